/* What is shown: a trace, one of its devices, a view; and the theme. */

const state = {trace: 0, device: 0, tab: "time", moment: null};
const VIEWS = [["time", "Over time"], ["flame", "Flame graph"], ["map", "Address map"], ["leaks", "Leaks"], ["oom", "Out of memory"],
	["transfers", "Transfers"], ["compare", "Compare"], ["about", "About"]];
const DRAW = {time: drawTime, flame: makeFlame, map: makeMap, leaks: makeLeaks, oom: makeOoms, transfers: makeTransfers,
	compare: makeCompare, about: makeAbout};

function currentTrace() {
	return data.traces[state.trace];
}

function currentDevice() {
	return currentTrace().devices[state.device];
}

/* Where a moment can be chosen; keeps the choice where it still is one. */
function fillMoments() {
	const trace = currentTrace();
	const scenes = trace.scenes.map((scene, i) => [i, sceneName(trace, scene), scene])
		.filter(([, , scene]) => scene.device === null || scene.device === state.device);
	const options = scenes.map(([i, name]) => [i, name]);
	const chosen = moment => moment ? [["chosen", "Chosen: " + moment.name]] : [];
	const leaking = leaksOf(state.trace).some(l => l.leak) ? [["leaks", "Leaks"]] : [];
	fillSelect(byId("map-of"), options);
	fillSelect(byId("flame-of"), [...options, ...leaking, ...chosen(state.moment)]);
	for (const id of ["compare-a", "compare-b"])
		fillSelect(byId(id), [...options, ...chosen(compared[id])]);
}

function peakScene() {
	const at = currentTrace().scenes.findIndex(s => s.at === "peak" && s.device === state.device);
	return String(at < 0 ? currentTrace().scenes.length - 1 : at);
}

function showDevice() {
	const trace = currentTrace();
	state.moment = null;
	compared["compare-a"] = compared["compare-b"] = null;
	view.at = view.brush = null;
	layLanes(trace);
	fillMoments();
	byId("map-of").value = byId("flame-of").value = byId("compare-a").value = peakScene();
	byId("compare-b").value = String(trace.scenes.length - 1);
	view.from = trace.start_ns;
	view.to = Math.max(trace.end_ns, trace.start_ns + 1000);
	if (state.tab === "time")
		chooseMoment(currentDevice().peak_ns, 0);
	else
		openTab(state.tab);
}

function showTrace() {
	const trace = currentTrace(), facts = report.traces[state.trace];
	byId("what").textContent = shown(trace.name);
	byId("facts").textContent = [facts.host && shown(facts.host), formatDuration(facts.duration_ns), "ended: " + facts.end,
		formatCount(facts.events) + " events" + (facts.lost_events ? ", " + formatCount(facts.lost_events) + " lost" : ""),
		...trace.devices.filter(d => !d.is_host).map(d => d.name + " " + shown(d.model || "") + ", peak " + formatBytes(d.peak_bytes)),
	].filter(Boolean).join(" \u00b7 ");
	document.title = shown(trace.name) + " \u2013 vramtrace";
	fillSelect(byId("device-choice"), trace.devices.map((device, i) => [i, device.name + (device.model ? " " + shown(device.model) : "")]));
	state.device = Number(byId("device-choice").value) || 0;
	makeTabs();
	showDevice();
}

function makeTabs() {
	const counts = {leaks: leaksOf(state.trace).filter(l => l.leak).length, oom: ofTrace(report.oom).length,
		transfers: ofTrace(report.transfer_findings).length};
	refill(byId("tabs"), ...VIEWS.map(([id, title]) => make("button", {type: "button", role: "tab", id: "tab-" + id,
		"aria-controls": "view-" + id, "aria-selected": String(id === state.tab), tabindex: id === state.tab ? "0" : "-1",
		onclick: () => openTab(id)}, title, counts[id] ? make("span", {class: id === "transfers" ? "count" : "bad"}, " " + counts[id]) : "")));
}

function openTab(id) {
	state.tab = id;
	for (const [view] of VIEWS) {
		byId("view-" + view).hidden = view !== id;
		byId("tab-" + view).setAttribute("aria-selected", String(view === id));
		byId("tab-" + view).tabIndex = view === id ? 0 : -1;
	}
	DRAW[id]();
}

function openScene(tab, scene) {
	byId(tab + "-of").value = String(scene);
	openTab(tab);
	byId("tab-" + tab).focus();
}

function tabKeys(event) {
	const ids = VIEWS.map(([id]) => id), at = ids.indexOf(state.tab);
	const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: ids.length - 1}[event.key];
	if (to === undefined)
		return;
	event.preventDefault();
	openTab(ids[(to + ids.length) % ids.length]);
	byId("tab-" + state.tab).focus();
}

function setTheme(dark) {
	document.documentElement.dataset.theme = dark ? "dark" : "light";
	byId("theme").setAttribute("aria-pressed", String(dark));
}

function start() {
	const prefers = window.matchMedia("(prefers-color-scheme: dark)");
	setTheme(prefers.matches);
	prefers.addEventListener("change", () => { setTheme(prefers.matches); DRAW[state.tab](); });
	byId("theme").addEventListener("click", () => { setTheme(!isDark()); DRAW[state.tab](); });
	fillSelect(byId("trace-choice"), data.traces.map((trace, i) => [i, shown(trace.name)]));
	byId("trace-choice").parentElement.hidden = data.traces.length < 2;
	byId("trace-choice").addEventListener("change", () => { state.trace = Number(byId("trace-choice").value); showTrace(); });
	byId("device-choice").addEventListener("change", () => { state.device = Number(byId("device-choice").value); showDevice(); });
	byId("tabs").addEventListener("keydown", tabKeys);
	listenTime();
	listenFlame();
	listenMap();
	listenCompare();
	window.addEventListener("resize", () => state.tab === "time" ? drawTime() : state.tab === "map" ? drawMap() : null);
	showTrace();
	document.documentElement.dataset.ready = "yes";
}

document.addEventListener("DOMContentLoaded", start);

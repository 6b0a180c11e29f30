/* Leaks, refusals, copies, and what the trace is: from the report, as `vramtrace report --json` has it. */

function leaksOf(index) {
	return (report.leaks || []).filter(leak => leak.trace === index);
}

function ofTrace(list) {
	return (list || []).filter(item => item.trace === state.trace);
}

/* The same, each {entry, label}: what the entry's stack is called in one line. */
function labelled(key) {
	const labels = currentTrace().labels[key];
	return ofTrace(report[key]).map((entry, i) => ({entry, label: textOf(labels[i])}));
}

function verdictText(leak) {
	return leak.verdict ? leak.verdict.replace(/_/g, " ") : leak.leak ? "live at the end" : "";
}

function makeLeaks() {
	const trace = currentTrace();
	const items = labelled("leaks").map((item, i) => ({...item, row: trace.leaks[i]}));
	const label = item => item.label;
	const gpu = d => d === null ? "" : "GPU " + d;
	refill(byId("leaks-table"), items.length ? sortedTable({caption: "Leaks", items, by: -1, limit: 100,
		quiet: item => !item.entry.leak, more: item => stackList(reportStack(item.entry.stack)), columns: [
			{title: "Verdict", key: i => i.entry.verdict || "", cell: i => make("span",
				{class: i.entry.leak ? "tag bad" : "tag"}, verdictText(i.entry) || "in use")},
			{title: "Call site", where: true, key: label, cell: label},
			{title: "Over time", cell: i => i.row < 0 ? "" : sparkline(rowCurve(trace, i.row), trace.start_ns, trace.end_ns)},
			{title: "Bytes", n: true, key: i => i.entry.bytes, cell: i => formatBytes(i.entry.bytes)},
			{title: "Count", n: true, key: i => i.entry.count, cell: i => formatCount(i.entry.count)},
			{title: "Grows by", n: true, key: i => i.entry.rate_bytes_per_s, cell: i => i.entry.rate_bytes_per_s === null ? "" :
				formatBytes(i.entry.rate_bytes_per_s * 60) + "/min"},
			{title: "Since", n: true, key: i => i.entry.first_ns, cell: i => formatMoment(i.entry.first_ns)},
			{title: "Owner", key: i => i.entry.owner || "", cell: i => shown(i.entry.owner || "")},
			{title: "Kind", key: i => i.entry.kind, cell: i => i.entry.kind + (i.entry.device === null ? "" : ", " + gpu(i.entry.device))},
		]}) : make("p", {class: "quiet"}, "Nothing was live at the end."));
	const suppressed = ofTrace(report.suppressions);
	refill(byId("leaks-more"), suppressed.length ? make("p", {class: "quiet"}, "Suppressed: " + suppressed.map(s =>
		shown(s.pattern) + " (" + formatBytes(s.bytes) + ")").join(", ")) : null);
}

function storyOf(oom) {
	const trace = currentTrace(), scene = trace.scenes.findIndex(s => s.at === "oom" && s.oom === oom.number);
	const asked = oom.requested_bytes === null ? "memory" : formatBytes(oom.requested_bytes);
	const links = scene < 0 ? null : make("p", {class: "bar"},
		make("button", {type: "button", onclick: () => openScene("map", scene)}, "Address map of then"),
		make("button", {type: "button", onclick: () => openScene("flame", scene)}, "Flame graph of then"));
	const names = trace.labels.holders[ofTrace(report.oom).indexOf(oom)];
	const held = sortedTable({caption: "Who held the memory", items: oom.holders.map((entry, i) => ({entry, label: textOf(names[i])})),
		by: 1, limit: 12, more: h => stackList(reportStack(h.entry.stack)), columns: [
			{title: "Who held it", where: true, key: h => h.label, cell: h => h.label},
			{title: "Bytes", n: true, key: h => h.entry.bytes, cell: h => formatBytes(h.entry.bytes)},
			{title: "Count", n: true, key: h => h.entry.count, cell: h => formatCount(h.entry.count)},
			{title: "Owner", key: h => h.entry.owner || "", cell: h => shown(h.entry.owner || "")},
		]});
	return make("article", {class: oom.recovered ? "story fine" : "story"},
		make("h3", {}, formatMoment(oom.time_ns) + ": asked for " + asked + (oom.free_bytes === null ? "" : ", " + formatBytes(oom.free_bytes) + " free") +
			" \u2014 " + (oom.class || "").replace(/_/g, " ") + (oom.recovered ? ", recovered" : "")),
		make("p", {}, shown(oom.reason || "")),
		make("p", {class: "quiet"}, shown(oom.api || "") + (oom.device === null ? "" : " on GPU " + oom.device) +
			(oom.refused_calls > 1 ? ", refused " + formatCount(oom.refused_calls) + " times" : "")),
		oom.would_suffice.length ? make("div", {}, make("strong", {}, "Would have been enough"),
			make("ul", {}, ...oom.would_suffice.map(w => make("li", {}, shown(w.text || w.action))))) : null,
		oom.whatif ? make("p", {}, shown(oom.whatif.text || "")) : null,
		links, oom.holders.length ? held : null,
		make("details", {}, make("summary", {}, "The call that asked"), stackList(reportStack(oom.stack))),
		make("details", {}, make("summary", {}, "What happened just before"), make("pre", {}, oom.events.map(shown).join("\n"))));
}

function makeOoms() {
	const list = ofTrace(report.oom);
	refill(byId("oom-list"), ...(list.length ? list.map(storyOf) : [make("p", {class: "quiet"}, "Nothing was refused for lack of memory.")]));
}

function copyText(item) {
	return [item.direction, item.host_kind].filter(Boolean).join(", ");
}

function makeTransfers() {
	const findings = labelled("transfer_findings"), rows = labelled("transfers");
	const where = {title: "Where", where: true, key: i => i.label, cell: i => i.label};
	refill(byId("findings-table"), findings.length ? sortedTable({caption: "Findings about copies", items: findings, by: 2,
		more: f => make("div", {}, make("p", {}, shown(f.entry.advice || "")), stackList(reportStack(f.entry.stack))), columns: [
			{title: "What", key: f => f.entry.finding, cell: f => make("span", {class: "tag"}, f.entry.finding.replace(/_/g, " "))},
			where,
			{title: "Time lost", n: true, key: f => f.entry.lost_time_ns, cell: f => f.entry.lost_time_ns === null ? "not known" :
				formatDuration(f.entry.lost_time_ns)},
			{title: "Bytes", n: true, key: f => f.entry.bytes, cell: f => formatBytes(f.entry.bytes)},
			{title: "Count", n: true, key: f => f.entry.count, cell: f => formatCount(f.entry.count)},
			{title: "What to do", cell: f => shown(f.entry.advice || "")},
		]}) : make("p", {class: "quiet"}, "Nothing was found to be lost."));
	refill(byId("transfers-table"), rows.length ? sortedTable({caption: "Copies by call site", items: rows, by: 4, limit: 100,
		more: t => stackList(reportStack(t.entry.stack)), columns: [
			{title: "Copies", key: t => copyText(t.entry), cell: t => copyText(t.entry)},
			where,
			{title: "Bytes", n: true, key: t => t.entry.bytes, cell: t => formatBytes(t.entry.bytes)},
			{title: "Calls", n: true, key: t => t.entry.calls, cell: t => formatCount(t.entry.calls)},
			{title: "Host time", n: true, key: t => t.entry.host_time_ns, cell: t => formatDuration(t.entry.host_time_ns)},
			{title: "Rate", n: true, key: t => t.entry.bytes_per_s, cell: t => t.entry.bytes_per_s === null ? "" : formatRate(t.entry.bytes_per_s)},
			{title: "Time lost", n: true, key: t => t.entry.lost_time_ns, cell: t => t.entry.lost_time_ns ? formatDuration(t.entry.lost_time_ns) : ""},
			{title: "Owner", key: t => t.entry.owner || "", cell: t => shown(t.entry.owner || "")},
		]}) : make("p", {class: "quiet"}, "No copies were recorded."));
}

function factList(facts) {
	return make("dl", {}, ...facts.filter(([, value]) => value !== null && value !== "" && value !== undefined)
		.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function deviceFacts(device) {
	const account = device.end.account;
	return make("div", {}, make("h3", {}, (device.ordinal === null ? "unknown GPU" : "GPU " + device.ordinal) + " " + shown(device.name || "")),
		factList([
			["memory", device.total_bytes === null ? null : formatBytes(device.total_bytes)],
			["peak, tracked", formatBytes(device.peak.tracked_bytes) + " at " + formatMoment(device.peak.time_ns)],
			["at the end, tracked", formatBytes(device.end.tracked_bytes)],
			["allocations", formatCount(device.allocations) + ", freed " + formatCount(device.frees)],
			...(account ? account.rows.map(row => [row.row.replace(/_/g, " "), formatBytes(row.bytes) + " (" + row.source + ")"]) : []),
		]));
}

function makeAbout() {
	const facts = report.traces[state.trace], coverage = report.coverage, python = coverage.python_stacks;
	const skipped = python ? Object.entries(python.skipped).map(([why, n]) => why.replace(/_/g, " ") + " " + formatCount(n)).join(", ") : "";
	const yes = value => value === null ? null : value ? "yes" : "no";
	refill(byId("about"), make("h2", {}, "The trace"), factList([
		["file", shown(facts.file || "")], ["command", facts.cmdline.map(shown).join(" ")], ["host", facts.host && shown(facts.host)],
		["process", String(facts.pid)], ["rank", facts.rank === null ? null : String(facts.rank)], ["began", facts.start_time],
		["lasted", formatDuration(facts.duration_ns)],
		["ended", facts.end + (facts.end_status === null ? "" : ", status " + facts.end_status)],
		["events", formatCount(facts.events) + ", lost " + formatCount(facts.lost_events)], ["complete", yes(facts.complete)],
		["driver", facts.driver_version === null ? null : String(facts.driver_version)], ["PyTorch", facts.torch && shown(facts.torch)],
		["Python", facts.python], ["stopped", facts.stopped],
	]), make("h2", {}, "What was seen"), factList([
		["calls of the driver", yes(coverage.driver_hooks)],
		["not covered", coverage.not_covered.map(shown).join(", ")], ["notes", coverage.notes.map(shown).join("; ")],
		["graph launches", coverage.graph_launches === null ? null : formatCount(coverage.graph_launches)],
		["PyTorch", coverage.torch ? coverage.torch.limits.map(shown).join("; ") : null],
		["Python stacks", python ? formatCount(python.captured) + (skipped ? "; not taken: " + skipped : "") : null],
		["without their names", report.symbols ? [...report.symbols.changed, ...report.symbols.missing].map(shown).join(", ") : null],
	]), make("h2", {}, "Devices"), ...ofTrace(report.devices).map(deviceFacts),
	make("p", {class: "quiet"}, "Written by " + data.generator + ". Nothing in this page is fetched."));
}

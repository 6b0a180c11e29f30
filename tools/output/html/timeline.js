/* Memory over time: each step of the plot shows the highest moment in it, and pales down to the lowest. */

const PLOT_LEFT = 76, PLOT_RIGHT = 14, PLOT_TOP = 10, LANE = 15;
const view = {from: 0, to: 1, at: null, brush: null, stacking: "owners"};
const plot = {columns: null, series: [], lanes: []};

function plotContext(canvas) {
	const box = canvas.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
	canvas.width = Math.max(1, Math.round(box.width * scale));
	canvas.height = Math.max(1, Math.round(box.height * scale));
	const context = canvas.getContext("2d");
	context.setTransform(scale, 0, 0, scale, 0, 0);
	context.clearRect(0, 0, box.width, box.height);
	context.font = "12px system-ui, sans-serif";
	return {context, width: box.width, height: box.height};
}

function colour(name) {
	return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

/* Told apart also by those who see red and green as one. */
const PALETTES = {
	light: ["#4477aa", "#ddaa33", "#228866", "#cc6677", "#66bbdd", "#aa4499", "#999933", "#885533", "#44aa99", "#7766bb",
		"#ee8866", "#557788", "#bbaa88", "#882255"],
	dark: ["#6fa3d8", "#e3bb5c", "#4fb891", "#e08a98", "#8fd4ee", "#cf7cc0", "#c2c263", "#b98a5e", "#6fcabb", "#a79be0",
		"#f2a58b", "#8aa6b8", "#d3c6a8", "#c0608c"],
};

function isDark() {
	return document.documentElement.dataset.theme === "dark";
}

function seriesColour(i) {
	const palette = PALETTES[isDark() ? "dark" : "light"];
	return palette[i % palette.length];
}

function quietColours() {
	return isDark() ? {others: "#7d868f", kept: "#474f57", rest: "#343b42"} : {others: "#9aa3ad", kept: "#c6ccd2", rest: "#e2e5e9"};
}

/* What is stacked, from the bottom: {name, colour, of: the values of a level's device, or null: what is left}. */
function stackedSeries(trace, device) {
	const of = trace.devices[device], quiet = quietColours();
	const names = view.stacking === "owners" ? of.owners.map(textOf) : of.curves.map(row => rowLabel(trace, row));
	const list = names.map((name, i) => ({name, colour: seriesColour(i), key: i}));
	list.push({name: view.stacking === "owners" ? "other owners" : "other call stacks", colour: quiet.others, key: "others"});
	list.push({name: "kept by allocators, in no block", colour: quiet.kept, key: "kept"});
	list.push({name: "rounding, and what pools reserve", colour: quiet.rest, key: "rest"});
	return list;
}

/* The stacked values of one bin, in the order of stackedSeries: their sum is what was tracked. */
function stackedValues(level, device, bin) {
	const of = level.devices[device], most = series(of, "most")[bin], parts = of[view.stacking];
	let left = most;
	const take = bytes => {
		const part = Math.max(0, Math.min(bytes, left));
		left -= part;
		return part;
	};
	const values = [];
	let sum = 0;
	for (let i = 0; i < parts.length; i++) {
		const bytes = series(parts, i)[bin];
		sum += bytes;
		values.push(take(bytes));
	}
	values.push(take(series(of, "live")[bin] - sum));
	values.push(take(series(of, "kept")[bin]));
	values.push(left);
	return values;
}

function clampView(trace) {
	const least = 1000, whole = Math.max(least, trace.end_ns - trace.start_ns);
	const length = Math.min(whole, Math.max(least, view.to - view.from));
	view.from = Math.max(trace.start_ns, Math.min(view.from, trace.start_ns + whole - length));
	view.to = view.from + length;
}

/* The finest level that is not much finer than the plot. */
function levelFor(trace, from, to, width) {
	for (const level of trace.levels) {
		const starts = series(level, "from");
		if (floorIndex(starts, to) - floorIndex(starts, from) <= 4 * width)
			return level;
	}
	return trace.levels[trace.levels.length - 1];
}

/* For each pixel the bin with the highest moment in it, and the least of all of them. */
function columnsOf(trace, device, from, to, width) {
	const level = levelFor(trace, from, to, width), starts = series(level, "from"), of = level.devices[device];
	const most = series(of, "most"), live = series(of, "live"), least = series(of, "least");
	const leastLive = series(of, "least_live");
	const used = series(of, "used"), untracked = series(of, "untracked");
	const columns = {level, bin: new Int32Array(width).fill(-1), least: new Float64Array(width).fill(Infinity),
		leastLive: new Float64Array(width).fill(Infinity),
		used: new Float64Array(width).fill(-1), untracked: new Float64Array(width).fill(-1)};
	const x = t => Math.floor((t - from) / (to - from) * width);
	for (let i = Math.max(0, floorIndex(starts, from)); i < starts.length && starts[i] <= to; i++) {
		const end = i + 1 < starts.length ? x(starts[i + 1]) : width - 1;
		for (let c = Math.max(0, x(starts[i])); c <= Math.min(width - 1, end); c++) {
			const old = columns.bin[c];
			if (old < 0 || most[i] > most[old] || (most[i] === most[old] && live[i] > live[old]))
				columns.bin[c] = i;
			columns.least[c] = Math.min(columns.least[c], least[i]);
			columns.leastLive[c] = Math.min(columns.leastLive[c], leastLive[i]);
			if (i >= of.sampled_from) {
				columns.used[c] = Math.max(columns.used[c], used[i]);
				columns.untracked[c] = Math.max(columns.untracked[c], untracked[i]);
			}
		}
	}
	return columns;
}

function topOf(columns, of) {
	const most = series(of, "most");
	let top = 1;
	for (let c = 0; c < columns.bin.length; c++) {
		if (columns.bin[c] >= 0)
			top = Math.max(top, most[columns.bin[c]]);
		top = Math.max(top, columns.used[c]);
	}
	return top;
}

function timeOfX(x) {
	return view.from + (view.to - view.from) * Math.max(0, Math.min(1, x / plot.width));
}

function xOfTime(time) {
	return PLOT_LEFT + (time - view.from) / (view.to - view.from) * plot.width;
}

function niceStep(span, n) {
	const raw = span / n, power = 10 ** Math.floor(Math.log10(raw)), part = raw / power;
	return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

function niceBytes(top, n) {
	let step = 1;
	while (top / step > n)
		step *= 2;
	return step;
}

function drawAxes(context, y, bottom) {
	context.strokeStyle = colour("line");
	context.fillStyle = colour("quiet");
	context.lineWidth = 1;
	context.textAlign = "right";
	context.textBaseline = "middle";
	const bytes = niceBytes(plot.top, 7), edges = [];
	for (let b = 0; b <= plot.top; b += bytes) {
		context.beginPath();
		context.moveTo(PLOT_LEFT, Math.round(y(b)) + .5);
		context.lineTo(PLOT_LEFT + plot.width, Math.round(y(b)) + .5);
		context.stroke();
		context.fillText(formatBytes(b), PLOT_LEFT - 8, y(b));
	}
	context.textBaseline = "top";
	const step = niceStep(view.to - view.from, Math.max(2, plot.width / 130));
	for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step)
		edges.push(t);
	for (const t of edges) {
		const x = Math.round(xOfTime(t)) + .5, text = formatMoment(t, step), half = context.measureText(text).width / 2;
		context.beginPath();
		context.moveTo(x, bottom);
		context.lineTo(x, bottom + 4);
		context.stroke();
		context.textAlign = x + half > PLOT_LEFT + plot.width ? "right" : "center";
		context.fillText(text, Math.min(x, PLOT_LEFT + plot.width), bottom + 6);
	}
}

function drawStack(context, trace, device, y) {
	const {columns, series: list} = plot;
	let c = 0;
	while (c < columns.bin.length) {
		const bin = columns.bin[c], start = c;
		while (c < columns.bin.length && columns.bin[c] === bin)
			c++;
		if (bin < 0)
			continue;
		const values = stackedValues(columns.level, device, bin);
		let base = 0;
		for (let i = 0; i < values.length; i++) {
			if (!values[i])
				continue;
			context.fillStyle = list[i].colour;
			context.fillRect(PLOT_LEFT + start, y(base + values[i]), c - start, y(base) - y(base + values[i]));
			base += values[i];
		}
	}
	paleBetween(context, device, y);
}

/* What was held, or live, only at times within a step of the plot: between its lowest and its highest. */
function paleBetween(context, device, y) {
	const {columns} = plot, of = columns.level.devices[device], most = series(of, "most"), live = series(of, "live");
	const pale = (c, from, to) => from < to && context.fillRect(PLOT_LEFT + c, y(to), 1, y(from) - y(to));
	context.fillStyle = colour("panel");
	context.globalAlpha = .45;
	for (let c = 0; c < columns.bin.length; c++) {
		const bin = columns.bin[c];
		if (bin < 0)
			continue;
		pale(c, columns.leastLive[c], Math.min(live[bin], columns.least[c]));
		pale(c, columns.least[c], most[bin]);
	}
	context.globalAlpha = 1;
}

function drawLine(context, values, y, style, dash) {
	context.strokeStyle = style;
	context.lineWidth = 1.5;
	context.setLineDash(dash);
	context.beginPath();
	let begun = false;
	for (let c = 0; c < values.length; c++) {
		if (values[c] < 0)
			continue;
		if (begun)
			context.lineTo(PLOT_LEFT + c, y(values[c]));
		else
			context.moveTo(PLOT_LEFT + c, y(values[c]));
		context.lineTo(PLOT_LEFT + c + 1, y(values[c]));
		begun = true;
	}
	context.stroke();
	context.setLineDash([]);
}

function eachPhase(trace, visit) {
	for (let i = 0; i < trace.phases.length; i += 4)
		visit(textOf(trace.phases[i]), trace.phases[i + 1],
			trace.phases[i + 2] < 0 ? trace.end_ns : trace.phases[i + 2], trace.phases[i + 3]);
}

/* Phases in as many lanes as are open at once, at most four. */
function layLanes(trace) {
	plot.lanes = [];
	eachPhase(trace, (name, begin, end) => {
		let lane = plot.lanes.findIndex(l => l[l.length - 1].end <= begin);
		if (lane < 0 && plot.lanes.length < 4)
			lane = plot.lanes.push([]) - 1;
		if (lane >= 0)
			plot.lanes[lane].push({name, begin, end});
	});
}

function drawPlaces(context, trace, top) {
	context.textBaseline = "middle";
	context.textAlign = "left";
	plot.lanes.forEach((lane, i) => {
		const y = top + i * LANE;
		let last = -1;
		lane.forEach((phase, k) => {
			if (phase.end < view.from || phase.begin > view.to)
				return;
			const x = Math.max(PLOT_LEFT, xOfTime(phase.begin)), end = Math.min(PLOT_LEFT + plot.width, xOfTime(phase.end));
			if (end - last < 1)
				return;
			last = end;
			context.fillStyle = k % 2 ? colour("hover") : colour("line");
			context.fillRect(x, y, Math.max(1, end - x), LANE - 2);
			if (end - x > 40) {
				context.save();
				context.beginPath();
				context.rect(x, y, end - x - 3, LANE);
				context.clip();
				context.fillStyle = colour("fg");
				context.fillText(phase.name, x + 4, y + LANE / 2 - 1);
				context.restore();
			}
		});
	});
	context.strokeStyle = colour("accent");
	context.beginPath();
	for (let i = 0; i < trace.marks.length; i += 2) {
		const x = Math.round(xOfTime(trace.marks[i + 1])) + .5;
		if (x < PLOT_LEFT || x > PLOT_LEFT + plot.width)
			continue;
		context.moveTo(x, top - 4);
		context.lineTo(x, top - 1);
	}
	context.lineWidth = 1;
	context.stroke();
}

function oomsOf(index, ordinal) {
	return (report.oom || []).filter(oom => oom.trace === index && (oom.device === ordinal || oom.device === null));
}

function drawMoments(context, bottom) {
	const ordinal = currentDevice().ordinal;
	context.fillStyle = colour("bad");
	for (const oom of oomsOf(state.trace, ordinal)) {
		const x = xOfTime(oom.time_ns);
		if (x < PLOT_LEFT - 1 || x > PLOT_LEFT + plot.width + 1)
			continue;
		context.beginPath();
		context.moveTo(x, bottom + 1);
		context.lineTo(x - 6, bottom + 11);
		context.lineTo(x + 6, bottom + 11);
		context.fill();
		context.fillRect(x - .5, PLOT_TOP, 1, bottom - PLOT_TOP);
	}
	if (view.brush) {
		context.fillStyle = colour("accent");
		context.globalAlpha = .15;
		const a = xOfTime(view.brush[0]), b = xOfTime(view.brush[1]);
		context.fillRect(Math.min(a, b), PLOT_TOP, Math.abs(b - a), bottom - PLOT_TOP);
		context.globalAlpha = 1;
	}
	if (view.at === null || view.at < view.from || view.at > view.to)
		return;
	const x = Math.round(xOfTime(view.at)) + .5;
	context.strokeStyle = colour("fg");
	context.lineWidth = 1;
	context.beginPath();
	context.moveTo(x, PLOT_TOP);
	context.lineTo(x, bottom);
	context.stroke();
}

function drawTime() {
	const trace = currentTrace(), device = state.device;
	clampView(trace);
	const {context, width, height} = plotContext(byId("time-plot"));
	plot.width = Math.max(50, Math.floor(width - PLOT_LEFT - PLOT_RIGHT));
	const bottom = height - 26 - (plot.lanes.length ? plot.lanes.length * LANE + 6 : 0);
	plot.columns = columnsOf(trace, device, view.from, view.to, plot.width);
	plot.top = topOf(plot.columns, plot.columns.level.devices[device]) * 1.04;
	plot.series = stackedSeries(trace, device);
	const y = bytes => bottom - (bottom - PLOT_TOP) * bytes / plot.top;
	drawAxes(context, y, bottom);
	drawStack(context, trace, device, y);
	drawLine(context, plot.columns.used, y, colour("fg"), [5, 3]);
	drawLine(context, plot.columns.untracked.map(v => v > 0 ? v : -1), y, colour("bad"), [2, 2]);
	if (trace.kept_from_ns > view.from) {
		context.fillStyle = colour("quiet");
		context.textAlign = "left";
		context.textBaseline = "top";
		context.fillText("before " + formatMoment(trace.kept_from_ns) + ": how much is known, not whose", PLOT_LEFT + 6, PLOT_TOP);
	}
	drawPlaces(context, trace, bottom + 26);
	drawMoments(context, bottom);
	drawStrip(trace, device);
	drawTimeLegend();
	const slider = byId("time-plot");
	slider.setAttribute("aria-valuemin", Math.round(trace.start_ns / 1e6));
	slider.setAttribute("aria-valuemax", Math.round(trace.end_ns / 1e6));
	slider.setAttribute("aria-valuenow", Math.round((view.at === null ? view.from : view.at) / 1e6));
	slider.setAttribute("aria-valuetext", view.at === null ? "no moment chosen" : momentText(view.at));
	byId("window").textContent = formatMoment(view.from, view.to - view.from) + " to " + formatMoment(view.to, view.to - view.from) +
		" (" + formatDuration(Math.round(view.to - view.from)) + ")";
}

function drawStrip(trace, device) {
	const {context, width, height} = plotContext(byId("time-strip"));
	const inner = Math.max(50, Math.floor(width - PLOT_LEFT - PLOT_RIGHT));
	const columns = columnsOf(trace, device, trace.start_ns, Math.max(trace.end_ns, trace.start_ns + 1), inner);
	const most = series(columns.level.devices[device], "most"), top = topOf(columns, columns.level.devices[device]);
	context.fillStyle = quietColours().others;
	for (let c = 0; c < inner; c++)
		if (columns.bin[c] >= 0) {
			const h = (height - 4) * most[columns.bin[c]] / top;
			context.fillRect(PLOT_LEFT + c, height - h, 1, h);
		}
	const whole = Math.max(1, trace.end_ns - trace.start_ns);
	const a = PLOT_LEFT + (view.from - trace.start_ns) / whole * inner, b = PLOT_LEFT + (view.to - trace.start_ns) / whole * inner;
	context.fillStyle = colour("panel");
	context.globalAlpha = .65;
	context.fillRect(PLOT_LEFT, 0, a - PLOT_LEFT, height);
	context.fillRect(b, 0, PLOT_LEFT + inner - b, height);
	context.globalAlpha = 1;
	context.strokeStyle = colour("accent");
	context.strokeRect(a + .5, .5, Math.max(2, b - a - 1), height - 1);
}

function drawTimeLegend() {
	const present = new Set(), key = (style, name) => {
		const box = make("span", {class: "key"});
		box.style.background = style;
		return make("span", {title: name}, box, make("b", {}, name));
	};
	for (const bin of new Set(plot.columns.bin))
		if (bin >= 0)
			stackedValues(plot.columns.level, state.device, bin).forEach((v, i) => v && present.add(i));
	const keys = plot.series.map((s, i) => present.has(i) ? key(s.colour, s.name) : null).reverse();
	if (plot.columns.used.some(v => v >= 0))
		keys.unshift(key("repeating-linear-gradient(90deg, currentColor 0 4px, transparent 4px 6px)", "in use on the device, by all"));
	if (plot.columns.untracked.some(v => v > 0))
		keys.push(key("repeating-linear-gradient(90deg, var(--bad) 0 2px, transparent 2px 4px)", "untracked, by this process"));
	const most = series(plot.columns.level.devices[state.device], "live");
	if (plot.columns.bin.some((bin, c) => bin >= 0 && plot.columns.leastLive[c] < most[bin]))
		keys.push(make("span", {class: "quiet"}, "paler: only at times within a step of the plot"));
	refill(byId("time-legend"), ...keys);
}

/* What the plot says about a moment, in words. */
function momentText(time) {
	const trace = currentTrace(), level = trace.levels[0];
	const bin = floorIndex(series(level, "from"), time);
	if (bin < 0)
		return formatMoment(time) + ": nothing yet";
	const of = level.devices[state.device];
	return formatMoment(time, view.to - view.from) + ": " + formatBytes(series(of, "most")[bin]) + " tracked, " +
		formatBytes(series(of, "live")[bin]) + " live";
}

function showTip(x, y) {
	const tip = byId("time-tip"), c = Math.round(x - PLOT_LEFT), columns = plot.columns;
	if (!columns || c < 0 || c >= columns.bin.length || columns.bin[c] < 0) {
		tip.hidden = true;
		return;
	}
	const bin = columns.bin[c], of = columns.level.devices[state.device], most = series(of, "most")[bin];
	const line = (name, value) => make("div", {}, make("span", {}, name), make("span", {}, value));
	const values = stackedValues(columns.level, state.device, bin);
	const time = formatMoment(timeOfX(x - PLOT_LEFT), view.to - view.from);
	refill(tip, make("strong", {}, time), line("tracked, at most", formatBytes(most)),
		columns.least[c] < most ? line("at least", formatBytes(columns.least[c])) : null,
		...plot.series.map((s, i) => values[i] ? line(s.name, formatBytes(values[i])) : null).filter(Boolean).reverse().slice(0, 12),
		columns.used[c] >= 0 ? line("in use by all", formatBytes(columns.used[c])) : null,
		columns.untracked[c] >= 0 ? line("untracked", formatBytes(columns.untracked[c])) : null);
	tip.hidden = false;
	const right = x > byId("time-plot").clientWidth / 2;
	tip.style.left = right ? "auto" : x + 14 + "px";
	tip.style.right = right ? byId("time-plot").clientWidth - x + 14 + "px" : "auto";
	tip.style.top = Math.max(0, y - 20) + "px";
}

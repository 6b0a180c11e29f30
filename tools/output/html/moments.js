/* What was live at a moment that is chosen on the plot, and the plot as a table. */

/* The rows that were live then; a peak, refusal or the end within reach is exact. */
function momentNear(time, reach) {
	const trace = currentTrace();
	let best = null;
	for (const scene of trace.scenes)
		if (Math.abs(scene.time_ns - time) <= reach && (scene.device === null || scene.device === state.device) &&
			(!best || rank(scene) < rank(best) ||
				(rank(scene) === rank(best) && Math.abs(scene.time_ns - time) < Math.abs(best.time_ns - time))))
			best = scene;
	if (best)
		return {time: best.time_ns, rows: sceneRows(best), name: sceneName(trace, best), scene: best};
	const live = liveAt(trace, time);
	return {...live, name: "At " + formatMoment(live.time, Math.min(1e8, view.to - view.from)), scene: null};
}

function rank(scene) {
	return ["oom", "peak", "end", "time"].indexOf(scene.at);
}

function chooseMoment(time, reach) {
	const trace = currentTrace(), moment = momentNear(time, reach);
	view.at = moment.scene ? moment.time : time;
	state.moment = moment;
	const rows = rowsOn(trace, moment.rows, state.device), sum = rows.reduce((s, r) => s + r.bytes, 0);
	const live = liveSum(trace, rows), isGone = !moment.scene && time < trace.kept_from_ns;
	byId("live-title").textContent = isGone ? "What was live at " + formatMoment(time) + " is no longer in the trace" :
		moment.name + ": " + formatBytes(live) + " live" + (sum > live ? ", " + formatBytes(sum - live) + " kept by allocators" : "");
	refill(byId("live-table"), siteTable(trace, rows, sum, "What was live then", row => {
		byId("stack-title").textContent = rowLabel(trace, row.row);
		refill(byId("live-stack"), sinceText(trace, row.row, moment.time), stackList(rowStack(trace, row.row).map(frameOf)));
		byId("live-stack").className = "";
	}));
	say(byId("live-title").textContent);
	fillMoments();
	drawTime();
}

/* Since when a row has held something without a break, and what it held over time. */
function sinceText(trace, row, time) {
	const points = rowCurve(trace, row);
	let since = null;
	for (let i = 0; i < points.length && points[i] <= time; i += 2)
		since = !points[i + 1] ? null : since === null ? points[i] : since;
	return make("p", {}, since === null ? "" : "Something of it was live since " + formatMoment(since) + ". ",
		"Over the whole time: ", sparkline(points, trace.start_ns, trace.end_ns));
}

function siteTable(trace, rows, sum, caption, choose) {
	return sortedTable({caption, items: rows, by: 1, choose, columns: [
		{title: "Call site", where: true, key: r => rowLabel(trace, r.row), cell: r => rowLabel(trace, r.row)},
		{title: "Bytes", n: true, key: r => r.bytes, cell: r => {
			const share = make("span");
			share.style.width = (100 * r.bytes / (sum || 1)).toFixed(1) + "%";
			return make("span", {}, formatBytes(r.bytes), make("span", {class: "share"}, share));
		}},
		{title: "Share", n: true, key: r => r.bytes, cell: r => formatShare(r.bytes, sum)},
		{title: "Blocks", n: true, key: r => r.count, cell: r => formatCount(r.count)},
		{title: "Owner", key: r => rowOwner(trace, r.row), cell: r => rowOwner(trace, r.row)},
		{title: "Kind", key: r => textOf(trace.rows[r.row][ROW_KIND]), cell: r => [textOf(trace.rows[r.row][ROW_KIND]),
			textOf(trace.rows[r.row][ROW_ALLOCATOR])].filter(Boolean).join(", ")},
	]});
}

function timeTable() {
	const trace = currentTrace(), level = [...trace.levels].reverse().find(l => l.from.length >= 100) || trace.levels[0];
	const starts = series(level, "from"), of = level.devices[state.device];
	const items = [...starts.keys()].filter(i => starts[i] >= view.from && starts[i] <= view.to);
	return sortedTable({caption: "Memory over time", items, limit: 100, columns: [
		{title: "From", cell: i => formatMoment(starts[i], view.to - view.from)},
		{title: "Tracked, at most", n: true, cell: i => formatBytes(series(of, "most")[i])},
		{title: "At least", n: true, cell: i => formatBytes(series(of, "least")[i])},
		{title: "Live", n: true, cell: i => formatBytes(series(of, "live")[i])},
		{title: "Kept by allocators", n: true, cell: i => formatBytes(series(of, "kept")[i])},
		{title: "In use by all", n: true, cell: i => i < of.sampled_from ? "" : formatBytes(series(of, "used")[i])},
	]});
}

/* Two moments, of one trace, beside one another. */

/* A moment that was chosen on the plot, and is not one of the scenes, is kept for each side. */
const compared = {"compare-a": null, "compare-b": null};

function sideRows(id) {
	const value = byId(id).value, trace = currentTrace();
	if (value === "chosen")
		return compared[id] || {name: "", rows: []};
	const scene = trace.scenes[value];
	return {name: sceneName(trace, scene), rows: sceneRows(scene)};
}

function compareWith(id) {
	if (!state.moment)
		return;
	compared[id] = state.moment;
	fillMoments();
	byId(id).value = "chosen";
	openTab("compare");
}

function compareItems(trace, a, b) {
	const items = new Map();
	const add = (rows, side) => {
		for (const r of rowsOn(trace, rows, state.device)) {
			if (!items.has(r.row))
				items.set(r.row, {row: r.row, bytes: [0, 0], counts: [0, 0]});
			items.get(r.row).bytes[side] += r.bytes;
			items.get(r.row).counts[side] += r.count;
		}
	};
	add(a.rows, 0);
	add(b.rows, 1);
	return [...items.values()];
}

function byOwner(trace, items) {
	const owners = new Map();
	for (const item of items) {
		const name = rowOwner(trace, item.row) + (trace.rows[item.row][ROW_LEVEL] === LEVEL_IDLE ? ", kept in no block" : "");
		if (!owners.has(name))
			owners.set(name, {name, bytes: [0, 0], counts: [0, 0]});
		for (const side of [0, 1]) {
			owners.get(name).bytes[side] += item.bytes[side];
			owners.get(name).counts[side] += item.counts[side];
		}
	}
	return [...owners.values()];
}

function changeColumns(first) {
	const change = i => i.bytes[1] - i.bytes[0];
	return [first,
		{title: "Change", n: true, key: i => Math.abs(change(i)), cell: i => make("span", {class: change(i) > 0 ? "up" : ""}, formatChange(change(i)))},
		{title: "A", n: true, key: i => i.bytes[0], cell: i => formatBytes(i.bytes[0])},
		{title: "B", n: true, key: i => i.bytes[1], cell: i => formatBytes(i.bytes[1])},
		{title: "Blocks", n: true, key: i => i.counts[1] - i.counts[0], cell: i => formatCount(i.counts[0]) + " \u2192 " + formatCount(i.counts[1])}];
}

function makeCompare() {
	const trace = currentTrace(), a = sideRows("compare-a"), b = sideRows("compare-b");
	const items = compareItems(trace, a, b);
	const live = [a, b].map(side => liveSum(trace, rowsOn(trace, side.rows, state.device)));
	byId("compare-sum").textContent = "A, " + a.name + ": " + formatBytes(live[0]) + " live. B, " + b.name + ": " + formatBytes(live[1]) +
		" live. From A to B " + formatChange(live[1] - live[0]) + ".";
	refill(byId("compare-owners"), sortedTable({caption: "Change by owner", items: byOwner(trace, items), by: 1,
		columns: changeColumns({title: "Owner", key: i => i.name, cell: i => i.name})}));
	const changed = items.filter(i => i.bytes[0] !== i.bytes[1] || i.counts[0] !== i.counts[1]);
	refill(byId("compare-table"), changed.length ? sortedTable({caption: "Change by call site", items: changed, by: 1,
		more: i => stackList(rowStack(trace, i.row).map(frameOf)),
		columns: [...changeColumns({title: "Call site", where: true, key: i => rowLabel(trace, i.row), cell: i => rowLabel(trace, i.row)}),
			{title: "Owner", key: i => rowOwner(trace, i.row), cell: i => rowOwner(trace, i.row)}]})
		: make("p", {class: "quiet"}, "At both moments the same was live."));
}

function listenCompare() {
	byId("compare-a").addEventListener("change", makeCompare);
	byId("compare-b").addEventListener("change", makeCompare);
	byId("compare-swap").addEventListener("click", () => {
		const a = byId("compare-a"), b = byId("compare-b"), value = a.value;
		a.value = b.value;
		b.value = value;
		[compared["compare-a"], compared["compare-b"]] = [compared["compare-b"], compared["compare-a"]];
		fillMoments();
		makeCompare();
	});
}

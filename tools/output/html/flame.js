/* A flame graph of what was live at a moment, merged over call stacks: callers above what they called, or the other way
 * round. */

const FLAME_ROW = 19, FLAME_MOST = 2500;
const flame = {root: null, zoom: null, nodes: [], find: ""};

function flameRows(trace, of) {
	if (of === "leaks")
		return leaksOf(state.trace).map((entry, i) => ({row: trace.leaks[i], bytes: entry.bytes, count: entry.count, leak: entry.leak}))
			.filter(l => l.row >= 0 && l.leak && l.bytes);
	if (of === "chosen")
		return state.moment ? state.moment.rows : [];
	return sceneRows(trace.scenes[of]);
}

/* Whole names are compared, so that frames of one function merge whatever its lines are. */
function growTree(trace, rows, invert) {
	const root = {name: "all", bytes: 0, count: 0, self: 0, children: new Map(), above: null, depth: 0, frame: null};
	for (const {row, bytes, count} of rows) {
		const label = rowStack(trace, row), own = label.length ? label : null;
		const path = own ? (invert ? own : [...own].reverse()) : [null];
		let node = root;
		root.bytes += bytes;
		root.count += count;
		for (const number of path) {
			const frame = number === null ? {name: rowLabel(trace, row), file: null, line: 0, module: null, python: false} : frameOf(number);
			const key = frame.name + "\u0000" + (frame.file || frame.module || "");
			let child = node.children.get(key);
			if (!child) {
				child = {name: frame.name, bytes: 0, count: 0, self: 0, children: new Map(), above: node, depth: node.depth + 1, frame};
				node.children.set(key, child);
			}
			child.bytes += bytes;
			child.count += count;
			node = child;
		}
		node.self += bytes;
	}
	return root;
}

function layFlame() {
	const list = [], path = [];
	for (let node = flame.zoom; node; node = node.above)
		path.unshift(node);
	for (const node of path)
		list.push({node, x: 0, width: 1, path: node !== flame.zoom});
	const visit = (node, x) => {
		let at = x;
		for (const child of [...node.children.values()].sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1))) {
			const width = child.bytes / (flame.zoom.bytes || 1);
			if (width < .0007 || list.length >= FLAME_MOST)
				break;
			list.push({node: child, x: at, width, path: false});
			visit(child, at);
			at += width;
		}
	};
	visit(flame.zoom, 0);
	return list;
}

function nodeText(node) {
	return node.name + ": " + formatBytes(node.bytes) + ", " + formatShare(node.bytes, flame.root.bytes) + ", " +
		formatCount(node.count) + " blocks";
}

function describeNode(node) {
	const frame = node.frame;
	const where = frame && (frame.file ? frame.file + (frame.line ? ":" + frame.line : "") : frame.module);
	byId("flame-path").textContent = nodeText(node) + (where ? ", " + where : "");
}

function isHit(node) {
	const frame = node.frame;
	return flame.find && frame && (frame.name + " " + (frame.file || "") + " " + (frame.module || "")).toLowerCase().includes(flame.find);
}

/* Bytes under frames that match, each once. */
function foundBytes(node) {
	if (isHit(node))
		return node.bytes;
	let sum = 0;
	for (const child of node.children.values())
		sum += foundBytes(child);
	return sum;
}

function drawFlame() {
	const box = byId("flame"), list = layFlame();
	let deepest = 0;
	const pixels = box.clientWidth;
	box.classList.toggle("finding", !!flame.find);
	flame.nodes = list.map(({node, x, width, path}, i) => {
		const kind = !node.frame || node.name.startsWith("[") ? " none" : node.frame.python ? " py" : "";
		const thin = width * pixels < 22 ? " thin" : "";
		const div = make("div", {
			class: (kind + thin + (path ? " path" : "") + (node.depth % 2 ? " odd" : "") + (isHit(node) ? " hit" : "")).trim(),
			role: "treeitem", tabindex: node === flame.zoom ? "0" : "-1", "aria-level": String(node.depth + 1),
			"aria-label": nodeText(node), title: nodeText(node),
		}, thin ? "" : node.name);
		div.style.left = (100 * x).toFixed(3) + "%";
		div.style.width = (100 * width).toFixed(3) + "%";
		div.style.top = node.depth * FLAME_ROW + "px";
		div.dataset.index = i;
		deepest = Math.max(deepest, node.depth);
		return div;
	});
	flame.list = list;
	box.style.height = (deepest + 1) * FLAME_ROW + "px";
	refill(box, ...flame.nodes);
	describeNode(flame.zoom);
	byId("flame-found").textContent = flame.find
		? formatBytes(foundBytes(flame.root)) + " (" + formatShare(foundBytes(flame.root), flame.root.bytes) + ") in frames that match" : "";
}

function zoomFlame(node) {
	flame.zoom = node;
	drawFlame();
	const index = flame.list.findIndex(item => item.node === node);
	flame.nodes[index].focus({preventScroll: true});
}

function makeFlame() {
	const trace = currentTrace(), rows = rowsOn(trace, flameRows(trace, byId("flame-of").value), state.device);
	flame.root = growTree(trace, rows, byId("flame-invert").checked);
	flame.zoom = flame.root;
	drawFlame();
	refill(byId("flame-table"), sortedTable({caption: "Call sites of the flame graph", items: rows, by: 1,
		more: r => stackList(rowStack(trace, r.row).map(frameOf)), columns: [
			{title: "Call site", where: true, key: r => rowLabel(trace, r.row), cell: r => rowLabel(trace, r.row)},
			{title: "Bytes", n: true, key: r => r.bytes, cell: r => formatBytes(r.bytes)},
			{title: "Share", n: true, key: r => r.bytes, cell: r => formatShare(r.bytes, flame.root.bytes)},
			{title: "Blocks", n: true, key: r => r.count, cell: r => formatCount(r.count)},
			{title: "Owner", key: r => rowOwner(trace, r.row), cell: r => rowOwner(trace, r.row)},
		]}));
}

/* The frame that an arrow leads to from the one with this index: above, below, or beside on the same level. */
function flameStep(index, key) {
	const list = flame.list, here = list[index];
	const level = list.map((item, i) => ({...item, i})).filter(item => item.node.depth === here.node.depth +
		(key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0));
	if (key === "ArrowDown")
		return level.find(item => item.node.above === here.node);
	if (key === "ArrowUp")
		return level.find(item => item.node === here.node.above);
	const beside = level.sort((a, b) => a.x - b.x), at = beside.findIndex(item => item.i === index);
	return beside[at + (key === "ArrowRight" ? 1 : -1)];
}

function flameKeys(event) {
	const index = Number(event.target.dataset.index);
	if (event.key === "Escape") {
		zoomFlame(flame.root);
	} else if (event.key === "/") {
		byId("flame-find").focus();
	} else if (Number.isNaN(index)) {
		return;
	} else if (event.key === "Enter" || event.key === " ") {
		zoomFlame(flame.list[index].node);
	} else if (event.key.startsWith("Arrow")) {
		const to = flameStep(index, event.key);
		if (to)
			flame.nodes[to.i].focus();
	} else {
		return;
	}
	event.preventDefault();
}

function listenFlame() {
	const box = byId("flame");
	const indexOf = event => Number(event.target.dataset.index);
	box.addEventListener("click", event => Number.isNaN(indexOf(event)) || zoomFlame(flame.list[indexOf(event)].node));
	box.addEventListener("keydown", flameKeys);
	const describe = event => {
		if (Number.isNaN(indexOf(event)))
			return;
		for (const node of flame.nodes)
			node.tabIndex = node === event.target && event.type === "focusin" ? 0 : event.type === "focusin" ? -1 : node.tabIndex;
		describeNode(flame.list[indexOf(event)].node);
	};
	box.addEventListener("pointerover", describe);
	box.addEventListener("focusin", describe);
	byId("flame-of").addEventListener("change", makeFlame);
	byId("flame-invert").addEventListener("change", makeFlame);
	byId("flame-reset").addEventListener("click", () => zoomFlame(flame.root));
	byId("flame-find").addEventListener("input", () => {
		flame.find = byId("flame-find").value.trim().toLowerCase();
		drawFlame();
	});
}

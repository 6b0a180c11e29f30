/* What lies where: every segment, page and allocation as a bar, as long as it is large, in the order of addresses. */

const PLACE_KIND = 0, PLACE_MEMORY = 1, PLACE_ADDRESS = 2, PLACE_BYTES = 3, PLACE_DEVICE = 4, PLACE_ALLOCATOR = 5,
	PLACE_EXPANDABLE = 6, PLACE_CAPTURED = 7, PLACE_LIVE = 8, PLACE_PENDING = 9, PLACE_FREE = 10, PLACE_RANGES = 11;
const LIVE = 0, PENDING = 1, FREE = 2, MIXED = 3, RANGE_SIZE = 6;
const BAR = 18, BAR_GAP = 5, GROUP_TOP = 24;
const map = {scene: null, groups: [], boxes: [], chosen: -1};

function kindName(place, many) {
	const names = [["segment", "segments"], ["page shared by small allocations", "pages shared by small allocations"],
		["allocation of its own", "allocations of their own"], ["mapping", "mappings"]];
	return names[place[PLACE_KIND]][many ? 1 : 0];
}

function rangesOf(place) {
	const ranges = [], flat = place[PLACE_RANGES];
	let offset = 0;
	for (let i = 0; i < flat.length; i += RANGE_SIZE) {
		ranges.push({offset, bytes: flat[i], state: flat[i + 1], live: flat[i + 2], count: flat[i + 3], row: flat[i + 4],
			time: flat[i + 5]});
		offset += flat[i];
	}
	return ranges;
}

/* Live blocks that keep free bytes beside them from being given back. */
function isPinned(place) {
	return place[PLACE_FREE] > 0 && place[PLACE_LIVE] > 0 && (place[PLACE_KIND] === 0 || place[PLACE_KIND] === 1);
}

function ownerColour(trace, row) {
	if (row < 0)
		return quietColours().others;
	const slot = trace.devices[trace.rows[row][ROW_DEVICE]].owners.indexOf(trace.rows[row][ROW_OWNER]);
	return slot < 0 ? quietColours().others : seriesColour(slot);
}

function hatch(context, line, back, step) {
	const tile = document.createElement("canvas");
	tile.width = tile.height = step;
	const to = tile.getContext("2d");
	to.fillStyle = back;
	to.fillRect(0, 0, step, step);
	to.strokeStyle = line;
	to.beginPath();
	to.moveTo(0, step);
	to.lineTo(step, 0);
	to.stroke();
	return context.createPattern(tile, "repeat");
}

/* The places of the scene in groups of one kind and allocator. */
function groupPlaces(trace) {
	map.groups = [];
	map.places = map.scene.map ? map.scene.map.places.filter(place => place[PLACE_DEVICE] === state.device) : [];
	map.places.forEach((place, i) => {
		const key = place[PLACE_KIND] + " " + place[PLACE_ALLOCATOR] + " " + place[PLACE_MEMORY];
		let group = map.groups.find(g => g.key === key);
		if (!group)
			map.groups.push(group = {key, places: [], bytes: 0, live: 0, free: 0, pinned: 0});
		group.places.push(i);
		group.bytes += place[PLACE_BYTES];
		group.live += place[PLACE_LIVE];
		group.free += place[PLACE_FREE];
		group.pinned += isPinned(place) ? place[PLACE_FREE] : 0;
	});
}

function groupTitle(group) {
	const place = map.places[group.places[0]], allocator = textOf(place[PLACE_ALLOCATOR]);
	return formatCount(group.places.length) + " " + kindName(place, group.places.length !== 1) + (allocator ? " of " + allocator : "") +
		" (" + textOf(place[PLACE_MEMORY]) + "): " + formatBytes(group.bytes) + ", live " + formatBytes(group.live) +
		(group.free ? ", free " + formatBytes(group.free) : "") + (group.pinned ? ", of that pinned " + formatBytes(group.pinned) : "");
}

/* Boxes in lines as wide as the plot; a bar that does not fit goes on in the next line. */
function layMap(width) {
	const total = map.groups.reduce((sum, g) => sum + g.bytes, 0), lines = 26;
	const perPixel = Math.max(1, total / (lines * width));
	let y = 0;
	map.boxes = [];
	for (const group of map.groups) {
		let x = 0;
		group.y = y;
		y += GROUP_TOP;
		for (const index of group.places) {
			let left = Math.max(3, map.places[index][PLACE_BYTES] / perPixel), done = 0;
			const whole = left;
			if (x + Math.min(left, 24) > width) {
				x = 0;
				y += BAR + BAR_GAP;
			}
			while (left > 0) {
				const part = Math.min(left, width - x);
				map.boxes.push({index, x, y, width: part, from: done / whole, to: (done + part) / whole});
				done += part;
				left -= part;
				x += part + 2;
				if (left > 0 || x >= width) {
					x = 0;
					y += BAR + BAR_GAP;
				}
			}
		}
		y += x ? BAR + BAR_GAP + 6 : 6;
	}
	return Math.max(60, y);
}

function drawRanges(context, trace, place, x, y, width, height, from, to, fills) {
	const bytes = place[PLACE_BYTES], scale = width / ((to - from) * bytes);
	context.fillStyle = fills.free;
	context.fillRect(x, y, width, height);
	for (const range of rangesOf(place)) {
		const a = Math.max(range.offset, from * bytes), b = Math.min(range.offset + range.bytes, to * bytes);
		if (b <= a || range.state === FREE)
			continue;
		const left = x + (a - from * bytes) * scale, wide = Math.max(.6, (b - a) * scale);
		context.fillStyle = range.state === PENDING ? fills.pending : ownerColour(trace, range.row);
		context.globalAlpha = range.state === MIXED ? .35 + .65 * range.live / range.bytes : 1;
		context.fillRect(left, y, wide, height);
		context.globalAlpha = 1;
		if (wide > 6 && range.state === LIVE) {
			context.fillStyle = colour("panel");
			context.fillRect(left + wide - 1, y, 1, height);
		}
	}
	if (isPinned(place)) {
		context.fillStyle = colour("bad");
		context.fillRect(x, y + height - 2, width, 2);
	}
}

function drawMap() {
	const trace = currentTrace(), canvas = byId("map-plot");
	const wide = canvas.parentElement.clientWidth;
	canvas.style.height = layMap(wide) + "px";
	const {context} = plotContext(canvas);
	const fills = {free: hatch(context, colour("free"), colour("panel"), 6), pending: hatch(context, colour("quiet"), colour("line"), 5)};
	context.textBaseline = "alphabetic";
	context.fillStyle = colour("fg");
	for (const group of map.groups)
		context.fillText(groupTitle(group), 0, group.y + 16);
	for (const box of map.boxes) {
		drawRanges(context, trace, map.places[box.index], box.x, box.y, box.width, BAR, box.from, box.to, fills);
		context.strokeStyle = box.index === map.chosen ? colour("fg") : colour("quiet");
		context.lineWidth = box.index === map.chosen ? 2.5 : .6;
		context.strokeRect(box.x + .5, box.y + .5, Math.max(1, box.width - 1), BAR - 1);
	}
	if (!map.places.length) {
		context.fillStyle = colour("quiet");
		context.fillText(map.scene.map ? "Nothing with an address was held on this device." :
			"What lay where at this moment is no longer in the trace.", 0, 20);
	}
}

function placeText(place) {
	return kindName(place) + " " + place[PLACE_ADDRESS] + ", " + formatBytes(place[PLACE_BYTES]) + ": live " + formatBytes(place[PLACE_LIVE]) +
		(place[PLACE_PENDING] ? ", waiting for a stream " + formatBytes(place[PLACE_PENDING]) : "") +
		(place[PLACE_FREE] ? ", free " + formatBytes(place[PLACE_FREE]) + (isPinned(place) ? " (pinned)" : "") : "");
}

function stateName(range) {
	return ["live", "waits for a stream", "free", "small ranges together"][range.state];
}

function placeAddress(place, offset) {
	return "0x" + (BigInt(place[PLACE_ADDRESS]) + BigInt(offset)).toString(16);
}

function choosePlace(index) {
	const trace = currentTrace(), place = map.places[index];
	map.chosen = index;
	drawMap();
	const strip = make("canvas", {role: "img", "aria-label": placeText(place)});
	strip.style.height = "42px";
	const ranges = rangesOf(place);
	const table = sortedTable({caption: "Ranges of the place", items: ranges, by: 0, limit: 60,
		more: r => r.row < 0 ? make("p", {class: "quiet"}, "No call stack.") : stackList(rowStack(trace, r.row).map(frameOf)), columns: [
			{title: "Address", key: r => -r.offset, cell: r => placeAddress(place, r.offset)},
			{title: "Bytes", n: true, key: r => r.bytes, cell: r => formatBytes(r.bytes)},
			{title: "State", key: r => r.state, cell: r => stateName(r)},
			{title: "Blocks", n: true, key: r => r.count, cell: r => r.count ? formatCount(r.count) : ""},
			{title: "Since", n: true, key: r => r.count ? r.time : null, cell: r => r.count ? formatMoment(r.time) : ""},
			{title: "Call site", where: true, key: r => r.row < 0 ? "" : rowLabel(trace, r.row), cell: r => r.row < 0 ? "" : rowLabel(trace, r.row)},
		]});
	const pinners = isPinned(place) ? ranges.filter(r => r.state === LIVE || r.state === MIXED).sort((a, b) => a.live - b.live).slice(0, 3) : [];
	refill(byId("map-detail"), make("h2", {}, placeText(place)),
		pinners.length ? make("p", {}, "Pinned by " + formatBytes(place[PLACE_LIVE]) + " live; the smallest: " +
			pinners.map(r => formatBytes(r.live) + " from " + (r.row < 0 ? "an unknown call site" : rowLabel(trace, r.row)) +
				" (since " + formatMoment(r.time) + ")").join("; ") + ".") : null,
		strip, table);
	const {context, width, height} = plotContext(strip);
	drawRanges(context, trace, place, 0, 2, width, height - 4, 0, 1,
		{free: hatch(context, colour("free"), colour("panel"), 6), pending: hatch(context, colour("quiet"), colour("line"), 5)});
}

/* What the report says of fragmentation at that moment. */
function mapVerdicts() {
	const at = map.scene.at === "oom" ? "oom:" + map.scene.oom : map.scene.at, ordinal = currentDevice().ordinal;
	return ofTrace(report.fragmentation).filter(row => row.at === at && row.device === ordinal && (row.verdict || row.pinned_bytes))
		.map(row => make("p", {class: row.verdict ? "" : "quiet"}, make("strong", {}, shown(row.allocator || row.level) + ": "),
			formatBytes(row.reserved_bytes) + " reserved, " + formatBytes(row.live_bytes) + " live, " + formatBytes(row.idle_bytes) +
			" idle, of that pinned " + formatBytes(row.pinned_bytes) + ". " +
			[row.verdict_text, row.advice].filter(Boolean).map(shown).join("; ")));
}

function makeMap() {
	const trace = currentTrace();
	map.scene = trace.scenes[byId("map-of").value];
	refill(byId("map-verdicts"), ...mapVerdicts());
	map.chosen = -1;
	groupPlaces(trace);
	const swatch = (name, background) => {
		const box = make("span", {class: "key"});
		box.style.background = background;
		return make("span", {}, box, make("b", {}, name));
	};
	refill(byId("map-legend"),
		...trace.devices[state.device].owners.map((owner, i) => swatch(textOf(owner), seriesColour(i))),
		swatch("waits for a stream", "repeating-linear-gradient(135deg, var(--quiet) 0 1px, var(--line) 1px 4px)"),
		swatch("free", "repeating-linear-gradient(135deg, var(--free) 0 1px, var(--panel) 1px 4px)"),
		swatch("free, and pinned by what is live beside it", "linear-gradient(var(--line) 70%, var(--bad) 70%)"));
	const out = map.scene.map;
	byId("map-sum").textContent = !out ? "" : [
		out.left_out ? formatCount(out.left_out) + " smaller places (" + formatBytes(out.left_out_bytes) + ") are left out" : "",
		out.grain ? "neighbours below " + formatBytes(out.grain) + " are drawn together" : "",
	].filter(Boolean).join("; ");
	refill(byId("map-detail"));
	drawMap();
	refill(byId("map-table"), sortedTable({caption: "Segments, pages and allocations", items: map.places.map((place, i) => ({place, i})), by: 2,
		choose: item => choosePlace(item.i), columns: [
			{title: "Address", where: true, key: p => p.place[PLACE_ADDRESS], cell: p => p.place[PLACE_ADDRESS]},
			{title: "What", key: p => p.place[PLACE_KIND], cell: p => kindName(p.place)},
			{title: "Bytes", n: true, key: p => p.place[PLACE_BYTES], cell: p => formatBytes(p.place[PLACE_BYTES])},
			{title: "Live", n: true, key: p => p.place[PLACE_LIVE], cell: p => formatBytes(p.place[PLACE_LIVE])},
			{title: "Waits", n: true, key: p => p.place[PLACE_PENDING], cell: p => formatBytes(p.place[PLACE_PENDING])},
			{title: "Free", n: true, key: p => p.place[PLACE_FREE], cell: p => formatBytes(p.place[PLACE_FREE])},
			{title: "Pinned", key: p => isPinned(p.place), cell: p => isPinned(p.place) ? "yes" : ""},
		]}));
}

function boxAt(event) {
	const area = byId("map-plot").getBoundingClientRect();
	const x = event.clientX - area.left, y = event.clientY - area.top;
	return map.boxes.find(b => x >= b.x && x <= b.x + b.width && y >= b.y && y <= b.y + BAR);
}

function listenMap() {
	const canvas = byId("map-plot"), tip = byId("map-tip");
	byId("map-of").addEventListener("change", makeMap);
	canvas.addEventListener("click", event => {
		const box = boxAt(event);
		if (box)
			choosePlace(box.index);
	});
	canvas.addEventListener("pointermove", event => {
		const box = boxAt(event), trace = currentTrace();
		tip.hidden = !box;
		if (!box)
			return;
		const place = map.places[box.index], area = canvas.getBoundingClientRect();
		const share = box.from + (box.to - box.from) * (event.clientX - area.left - box.x) / box.width;
		const range = rangesOf(place).find(r => share * place[PLACE_BYTES] < r.offset + r.bytes);
		refill(tip, make("strong", {}, placeText(place)), range ? make("div", {}, make("span", {},
			formatBytes(range.bytes) + " " + stateName(range) + (range.row < 0 ? "" : ", " + rowLabel(trace, range.row)))) : null);
		tip.style.left = Math.min(event.clientX - area.left + 12, area.width - 260) + "px";
		tip.style.top = event.clientY - area.top + 16 + "px";
	});
	canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
	canvas.addEventListener("keydown", event => {
		const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
		if (!step || !map.places.length)
			return;
		event.preventDefault();
		choosePlace(Math.max(0, Math.min(map.places.length - 1, map.chosen + step)));
	});
}

"use strict";
/* The page's data as the command wrote it: arrays of differences become arrays of values when they are first used. */

const data = JSON.parse(document.getElementById("page-data").textContent);
const report = JSON.parse(document.getElementById("report-data").textContent);

const ROW_DEVICE = 0, ROW_STACK = 1, ROW_KIND = 2, ROW_LEVEL = 3, ROW_OWNER = 4, ROW_LABEL = 5, ROW_ALLOCATOR = 6,
	ROW_TRACKED = 7, ROW_MOST = 8;
const FRAME_NAME = 0, FRAME_FILE = 1, FRAME_LINE = 2, FRAME_MODULE = 3, FRAME_PYTHON = 4;
const LEVEL_IDLE = 2;

function sums(differences) {
	const values = new Float64Array(differences.length);
	let sum = 0;
	for (let i = 0; i < differences.length; i++)
		values[i] = sum += differences[i];
	return values;
}

/* A member of an object that was written as differences. */
function series(object, key) {
	const value = object[key];
	return value instanceof Float64Array ? value : (object[key] = sums(value));
}

/* Names come from programs: what would change how the text around it is read is shown as a number. */
function shown(text) {
	return text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g,
		c => "\u27e8" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0") + "\u27e9");
}

function textOf(number) {
	return number < 0 ? null : shown(data.texts[number]);
}

function frameOf(number) {
	const frame = data.frames[number];
	return {
		name: textOf(frame[FRAME_NAME]), file: textOf(frame[FRAME_FILE]), line: frame[FRAME_LINE],
		module: textOf(frame[FRAME_MODULE]), python: !!frame[FRAME_PYTHON],
	};
}

function frameText(frame) {
	const file = frame.file ? frame.file.replace(/^.*\//, "") + (frame.line ? ":" + frame.line : "") : null;
	return frame.name + (file ? " " + file : frame.module ? " (" + frame.module + ")" : "");
}

function rowStack(trace, row) {
	const stack = trace.rows[row][ROW_STACK];
	return stack < 0 ? [] : data.stacks[stack];
}

function rowOwner(trace, row) {
	return textOf(trace.rows[row][ROW_OWNER]) || (trace.rows[row][ROW_LEVEL] < 0 ? "others" : "unknown");
}

function rowLabel(trace, row) {
	return textOf(trace.rows[row][ROW_LABEL]);
}

/* The last index whose value is not above x; -1: there is none. */
function floorIndex(values, x) {
	let low = 0, high = values.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (values[middle] <= x)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

/* When a stretch of the finest level, of so many bins, ends. */
function endOfGroup(trace, group) {
	const level = trace.levels[0], from = series(level, "from");
	const last = Math.min((group + 1) * 2 ** trace.live.shift, from.length) - 1;
	return from[last] + level.length[last];
}

/* [time, bytes, ...] of one row. */
function rowCurve(trace, row) {
	const bins = series(trace.live, "bin"), points = [];
	for (let i = 0; i < bins.length; i++)
		if (trace.live.row[i] === row)
			points.push(endOfGroup(trace, bins[i]), trace.live.bytes[i]);
	return points;
}

/* What was live at the end of the last stretch that ends at or before the time: {time, rows: [{row, bytes, count}]}. */
function liveAt(trace, time) {
	const bins = series(trace.live, "bin"), width = 2 ** trace.live.shift;
	let group = Math.floor(floorIndex(series(trace.levels[0], "from"), time) / width);
	while (group >= 0 && endOfGroup(trace, group) > time)
		group--;
	if (group < 0)
		return {time: Math.min(time, trace.start_ns), rows: []};
	const bytes = new Map(), counts = new Map();
	for (let i = 0; i < bins.length && bins[i] <= group; i++) {
		bytes.set(trace.live.row[i], trace.live.bytes[i]);
		counts.set(trace.live.row[i], trace.live.count[i]);
	}
	const rows = [];
	for (const [row, value] of bytes)
		if (value || counts.get(row))
			rows.push({row, bytes: value, count: counts.get(row)});
	return {time: endOfGroup(trace, group), rows};
}

function sceneRows(scene) {
	const rows = [];
	for (let i = 0; i < scene.rows.length; i += 3)
		rows.push({row: scene.rows[i], bytes: scene.rows[i + 1], count: scene.rows[i + 2]});
	return rows;
}

/* The rows of one device that hold something; most bytes first. */
function rowsOn(trace, rows, device) {
	return rows.filter(r => trace.rows[r.row][ROW_DEVICE] === device && r.bytes).sort((a, b) => b.bytes - a.bytes);
}

/* Of rows, what is in use; what is left is kept by allocators for blocks to come. */
function liveSum(trace, rows) {
	return rows.reduce((sum, r) => trace.rows[r.row][ROW_LEVEL] === LEVEL_IDLE ? sum : sum + r.bytes, 0);
}

function sceneName(trace, scene) {
	const at = formatMoment(scene.time_ns);
	switch (scene.at) {
	case "peak":
		return "Peak of " + trace.devices[scene.device].name + ", at " + at;
	case "oom":
		return "Out of memory " + scene.oom + ", at " + at;
	case "end":
		return "The end, at " + at;
	default:
		return "At " + at;
	}
}

/* Elements. Text only ever becomes textContent. */

function byId(id) {
	return document.getElementById(id);
}

function make(tag, attributes = {}, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes)) {
		if (name === "class")
			element.className = value;
		else if (name.startsWith("on"))
			element.addEventListener(name.slice(2), value);
		else if (value !== null && value !== false)
			element.setAttribute(name, value === true ? "" : value);
	}
	element.append(...children.filter(child => child !== null));
	return element;
}

function refill(element, ...children) {
	element.replaceChildren(...children.filter(child => child !== null));
}

function say(text) {
	byId("said").textContent = text;
}

/* A select's options: [[value, text], ...]; keeps what was chosen. */
function fillSelect(select, options) {
	const before = select.value;
	refill(select, ...options.map(([value, text]) => make("option", {value}, text)));
	if (options.some(([value]) => String(value) === before))
		select.value = before;
}

function stackList(frames) {
	if (!frames.length)
		return make("p", {class: "quiet"}, "No call stack.");
	return make("ol", {class: "stack"}, ...frames.map(frame => make("li", {},
		make("span", {class: frame.python ? "py" : ""}, frame.name), " ",
		make("span", {class: "at"}, (frame.file ? frame.file + (frame.line ? ":" + frame.line : "") : frame.module || "")))));
}

/* A stack of the report's JSON: its number, or null. */
function reportStack(stack) {
	return (stack === null ? [] : report.stacks[stack]).map(number => report.frames[number]).filter(frame => !frame.internal).map(frame => ({
		name: shown(frame.function || (frame.module || "").replace(/^.*\//, "") + "+0x" + (frame.offset || 0).toString(16)),
		file: frame.file && shown(frame.file), line: frame.line, module: frame.module && shown(frame.module),
		python: frame.kind === "python",
	}));
}

/* points: [time, bytes, ...], each until the next one. */
function sparkline(points, start, end) {
	const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
	const width = 120, height = 22;
	svg.setAttribute("width", width);
	svg.setAttribute("height", height);
	svg.setAttribute("role", "img");
	if (points.length < 2)
		return svg;
	let most = 1;
	for (let i = 1; i < points.length; i += 2)
		most = Math.max(most, points[i]);
	const x = t => (width * Math.max(0, Math.min(1, (t - start) / (end - start || 1)))).toFixed(1);
	const y = b => (height - 1 - (height - 3) * b / most).toFixed(1);
	let d = "M" + x(points[0]) + " " + (height - 1);
	for (let i = 0; i < points.length; i += 2)
		d += "H" + x(points[i]) + "V" + y(points[i + 1]);
	const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
	path.setAttribute("class", "spark");
	path.setAttribute("d", d + "H" + width);
	svg.setAttribute("aria-label", "up to " + formatBytes(most) + ", at last " + formatBytes(points[points.length - 1]));
	svg.append(path);
	return svg;
}

/* A table that is sorted by the columns' keys. columns: {title, n (a number: to the right), key(item), cell(item)}.
 * more(item): what a row unfolds to; choose(item): what a click on its first cell with `where` does. */
function sortedTable(options) {
	const {columns, items, caption, more, choose, limit = 200} = options;
	let by = options.by, descending = true, all = false;
	const body = make("tbody"), head = make("tr");
	const rowOf = item => {
		const row = make("tr", {class: options.quiet && options.quiet(item) ? "less" : ""});
		let unfolded = null;
		const press = event => {
			if (choose) {
				for (const other of body.children)
					other.classList.toggle("on", other === row);
				choose(item);
				return;
			}
			const button = event.currentTarget;
			if (unfolded) {
				unfolded.remove();
				unfolded = null;
			} else {
				unfolded = make("tr", {class: "more"}, make("td", {colspan: columns.length}, more(item)));
				row.after(unfolded);
			}
			button.setAttribute("aria-expanded", String(!!unfolded));
		};
		for (const column of columns) {
			const content = column.cell(item);
			const td = make("td", {class: column.n ? "n" : column.where ? "where" : ""});
			if (column.where && content !== "" && (more || choose))
				td.append(make("button", {type: "button", "aria-expanded": choose ? null : "false", onclick: press}, content));
			else
				td.append(content);
			row.append(td);
		}
		return row;
	};
	const fill = () => {
		const column = columns[by];
		const sorted = column && column.key ? [...items].sort((a, b) => {
			const x = column.key(a), y = column.key(b);
			const order = x === y ? 0 : x === null ? -1 : y === null ? 1 : x < y ? -1 : 1;
			return descending ? -order : order;
		}) : items;
		const part = all ? sorted : sorted.slice(0, limit);
		refill(body, ...part.map(rowOf));
		if (part.length < items.length)
			body.append(make("tr", {}, make("td", {colspan: columns.length}, make("button", {type: "button",
				onclick: () => { all = true; fill(); }}, "Show all " + formatCount(items.length)))));
		for (const [i, th] of [...head.children].entries())
			if (columns[i].key)
				th.setAttribute("aria-sort", i !== by ? "none" : descending ? "descending" : "ascending");
	};
	columns.forEach((column, i) => head.append(make("th", {scope: "col", class: column.n ? "n" : ""},
		column.key ? make("button", {type: "button", onclick: () => {
			descending = by === i ? !descending : !!column.n;
			by = i;
			fill();
		}}, column.title) : column.title)));
	fill();
	return make("div", {class: "scroll"}, make("table", {}, make("caption", {class: "away"}, caption), make("thead", {}, head), body));
}

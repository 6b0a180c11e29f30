/* Mouse and keys on the plot of memory over time. */

function zoomAround(time, factor) {
	const length = (view.to - view.from) * factor, share = (time - view.from) / (view.to - view.from);
	view.from = time - length * share;
	view.to = view.from + length;
	drawTime();
}

function showAllTime() {
	const trace = currentTrace();
	view.from = trace.start_ns;
	view.to = Math.max(trace.end_ns, trace.start_ns + 1000);
	view.brush = null;
	drawTime();
}

function zoomToBrush() {
	const [a, b] = view.brush;
	view.from = Math.min(a, b);
	view.to = Math.max(a, b);
	view.brush = null;
	drawTime();
	say("Shown: " + byId("window").textContent);
}

function goToPeak() {
	chooseMoment(currentDevice().peak_ns, 0);
	byId("time-plot").focus();
}

function pixelTime() {
	return (view.to - view.from) / plot.width;
}

function timeKeys(event) {
	const trace = currentTrace(), step = pixelTime() * (event.ctrlKey ? 50 : 10);
	const at = view.at === null ? view.from : view.at;
	const direction = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
	if (direction && event.shiftKey) {
		if (!view.brush)
			view.brush = [at, at];
		view.brush[1] = Math.max(view.from, Math.min(view.to, view.brush[1] + direction * step));
		drawTime();
	} else if (direction) {
		view.brush = null;
		const time = Math.max(trace.start_ns, Math.min(trace.end_ns, at + direction * step));
		if (time < view.from || time > view.to) {
			const length = view.to - view.from;
			view.from = time - length / 2;
			view.to = view.from + length;
		}
		chooseMoment(time, pixelTime());
		view.at = time;
		drawTime();
	} else if (event.key === "Enter" && view.brush) {
		zoomToBrush();
	} else if (event.key === "+" || event.key === "=") {
		zoomAround(at, .5);
	} else if (event.key === "-") {
		zoomAround(at, 2);
	} else if (event.key === "0" || event.key === "Escape") {
		showAllTime();
	} else if (event.key === "p" || event.key === "P") {
		goToPeak();
	} else if (event.key === "Home" || event.key === "End") {
		chooseMoment(event.key === "Home" ? view.from : view.to, pixelTime());
	} else {
		return;
	}
	event.preventDefault();
}

function listenTime() {
	const canvas = byId("time-plot"), strip = byId("time-strip");
	let pressed = null;
	const xOf = event => event.clientX - canvas.getBoundingClientRect().left;
	canvas.addEventListener("pointerdown", event => {
		if (event.button)
			return;
		pressed = xOf(event);
		canvas.setPointerCapture(event.pointerId);
	});
	canvas.addEventListener("pointermove", event => {
		const x = xOf(event);
		if (pressed !== null && Math.abs(x - pressed) > 4) {
			view.brush = [timeOfX(pressed - PLOT_LEFT), timeOfX(x - PLOT_LEFT)];
			drawTime();
		}
		showTip(x, event.clientY - canvas.getBoundingClientRect().top);
	});
	canvas.addEventListener("pointerup", event => {
		const x = xOf(event);
		if (pressed !== null && view.brush && Math.abs(x - pressed) > 4)
			zoomToBrush();
		else if (pressed !== null)
			chooseMoment(timeOfX(x - PLOT_LEFT), 5 * pixelTime());
		pressed = null;
	});
	canvas.addEventListener("pointerleave", () => { byId("time-tip").hidden = true; });
	canvas.addEventListener("dblclick", showAllTime);
	canvas.addEventListener("wheel", event => {
		if (!event.ctrlKey && !event.shiftKey)
			return;
		event.preventDefault();
		zoomAround(timeOfX(xOf(event) - PLOT_LEFT), (event.deltaY || event.deltaX) > 0 ? 1.25 : .8);
	}, {passive: false});
	canvas.addEventListener("keydown", timeKeys);
	let moving = false;
	const centre = event => {
		const trace = currentTrace(), box = strip.getBoundingClientRect(), length = view.to - view.from;
		const share = (event.clientX - box.left - PLOT_LEFT) / Math.max(1, box.width - PLOT_LEFT - PLOT_RIGHT);
		view.from = trace.start_ns + share * (trace.end_ns - trace.start_ns) - length / 2;
		view.to = view.from + length;
		drawTime();
	};
	strip.addEventListener("pointerdown", event => {
		moving = true;
		strip.setPointerCapture(event.pointerId);
		centre(event);
	});
	strip.addEventListener("pointermove", event => moving && centre(event));
	strip.addEventListener("pointerup", () => { moving = false; });
	byId("zoom-out").addEventListener("click", showAllTime);
	byId("to-peak").addEventListener("click", goToPeak);
	for (const radio of document.getElementsByName("stacking"))
		radio.addEventListener("change", () => { view.stacking = radio.value; drawTime(); });
	byId("time-data").addEventListener("toggle", () => {
		if (byId("time-data").open)
			refill(byId("time-data").lastElementChild, timeTable());
	});
	byId("live-flame").addEventListener("click", () => {
		byId("flame-of").value = "chosen";
		openTab("flame");
	});
	byId("live-a").addEventListener("click", () => compareWith("compare-a"));
	byId("live-b").addEventListener("click", () => compareWith("compare-b"));
}

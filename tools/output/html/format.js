/* Numbers as the command prints them. */

function formatBytes(bytes) {
	const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
	if (bytes < 0)
		return "-" + formatBytes(-bytes);
	if (bytes < 1024)
		return bytes + " B";
	let value = bytes / 1024, unit = 0;
	while (value >= 1023.95 && unit + 1 < units.length) {
		value /= 1024;
		unit++;
	}
	return value.toFixed(1) + " " + units[unit];
}

function formatChange(bytes) {
	return bytes > 0 ? "+" + formatBytes(bytes) : formatBytes(bytes);
}

function formatCount(n) {
	return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

function formatDuration(ns) {
	if (ns < 1000)
		return ns + " ns";
	if (ns < 999950)
		return (ns / 1e3).toFixed(1) + " us";
	if (ns < 999950000)
		return (ns / 1e6).toFixed(1) + " ms";
	if (ns < 59.95e9)
		return (ns / 1e9).toFixed(1) + " s";
	const seconds = Math.floor(ns / 1e9 + 0.5);
	if (seconds < 3600)
		return Math.floor(seconds / 60) + " min " + seconds % 60 + " s";
	return Math.floor(seconds / 3600) + " h " + Math.floor(seconds % 3600 / 60) + " min";
}

function two(n) {
	return String(n).padStart(2, "0");
}

/* step: the length that must show; by default as the command prints it. */
function formatMoment(ns, step = Infinity) {
	const seconds = Math.floor(ns / 1e9), part = ns - seconds * 1e9;
	const digits = step < 1e3 ? 9 : step < 1e6 ? 6 : step < 1e9 || seconds < 60 ? 3 : 0;
	const fraction = digits ? "." + String(Math.floor(part / 10 ** (9 - digits))).padStart(digits, "0") : "";
	if (seconds < 3600)
		return Math.floor(seconds / 60) + ":" + two(seconds % 60) + fraction;
	return Math.floor(seconds / 3600) + ":" + two(Math.floor(seconds % 3600 / 60)) + ":" + two(seconds % 60) + fraction;
}

function formatShare(part, of) {
	const percent = of ? 100 * part / of : 0;
	return (percent > 0 && percent < 9.95 ? percent.toFixed(1) : percent.toFixed(0)) + " %";
}

function formatRate(bytesPerSecond) {
	const units = ["kB", "MB", "GB", "TB"];
	let value = bytesPerSecond / 1000, unit = 0;
	while (value >= 999.95 && unit + 1 < units.length) {
		value /= 1000;
		unit++;
	}
	return value.toFixed(1) + " " + units[unit] + "/s";
}

#include "output/format.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define SECOND_NS 1000000000u

struct format_text format_bytes(uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	struct format_text out;
	double value = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(out.text, sizeof(out.text), "%" PRIu64 " B", bytes);
		return out;
	}
	/* 1023.95 would be shown as 1024.0. */
	while (value >= 1023.95 && unit + 1 < sizeof(units) / sizeof(*units)) {
		value /= 1024;
		unit++;
	}
	snprintf(out.text, sizeof(out.text), "%.1f %s", value, units[unit]);
	return out;
}

struct format_text format_signed_bytes(int64_t bytes)
{
	struct format_text out, value;

	if (bytes >= 0)
		return format_bytes((uint64_t)bytes);
	value = format_bytes(-(uint64_t)bytes);
	snprintf(out.text, sizeof(out.text), "-%.30s", value.text);
	return out;
}

struct format_text format_rate(uint64_t bytes_per_s)
{
	static const char *const units[] = {"kB", "MB", "GB", "TB"};
	struct format_text out;
	double value = (double)bytes_per_s / 1000;
	size_t unit = 0;

	while (value >= 999.95 && unit + 1 < sizeof(units) / sizeof(*units)) {
		value /= 1000;
		unit++;
	}
	snprintf(out.text, sizeof(out.text), "%.1f %s/s", value, units[unit]);
	return out;
}

struct format_text format_count(uint64_t n)
{
	struct format_text out;
	char digits[24], *to = out.text;
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, n);

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = 0;
	return out;
}

struct format_text format_duration(uint64_t ns)
{
	struct format_text out;
	uint64_t seconds = (ns + SECOND_NS / 2) / SECOND_NS;

	if (ns < 1000)
		snprintf(out.text, sizeof(out.text), "%" PRIu64 " ns", ns);
	else if (ns < 999950)
		snprintf(out.text, sizeof(out.text), "%.1f us", (double)ns / 1e3);
	else if (ns < 999950000)
		snprintf(out.text, sizeof(out.text), "%.1f ms", (double)ns / 1e6);
	else if (ns < 60ull * SECOND_NS - SECOND_NS / 20)
		snprintf(out.text, sizeof(out.text), "%.1f s", (double)ns / 1e9);
	else if (seconds < 3600)
		snprintf(out.text, sizeof(out.text), "%" PRIu64 " min %" PRIu64 " s", seconds / 60,
			seconds % 60);
	else
		snprintf(out.text, sizeof(out.text), "%" PRIu64 " h %" PRIu64 " min",
			seconds / 3600, seconds % 3600 / 60);
	return out;
}

struct format_text format_moment(uint64_t ns)
{
	struct format_text out;
	uint64_t seconds = ns / SECOND_NS;

	if (seconds < 60)
		snprintf(out.text, sizeof(out.text), "0:%02" PRIu64 ".%03" PRIu64, seconds,
			ns % SECOND_NS / 1000000);
	else if (seconds < 3600)
		snprintf(out.text, sizeof(out.text), "%" PRIu64 ":%02" PRIu64, seconds / 60,
			seconds % 60);
	else
		snprintf(out.text, sizeof(out.text), "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64,
			seconds / 3600, seconds % 3600 / 60, seconds % 60);
	return out;
}

struct format_text format_share(uint64_t part, uint64_t of)
{
	struct format_text out;
	double percent = of ? 100.0 * (double)part / (double)of : 0;

	snprintf(out.text, sizeof(out.text), percent > 0 && percent < 9.95 ? "%.1f %%" : "%.0f %%",
		percent);
	return out;
}

struct format_text format_utc(uint64_t realtime_ns)
{
	struct format_text out;
	time_t seconds = (time_t)(realtime_ns / SECOND_NS);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) ||
		!strftime(out.text, sizeof(out.text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		snprintf(out.text, sizeof(out.text), "1970-01-01T00:00:00Z");
	return out;
}

bool format_uuid(char text[FORMAT_UUID_BYTES], struct vt_text uuid)
{
	char *to = text + sprintf(text, "GPU-");

	if (uuid.bytes != 16)
		return false;
	for (size_t i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*to++ = '-';
		to += sprintf(to, "%02x", (unsigned char)uuid.data[i]);
	}
	return true;
}

struct format_text format_python(uint64_t version)
{
	static const char *const levels[16] = {[0xa] = "a", [0xb] = "b", [0xc] = "rc"};
	const char *level = levels[version >> 4 & 0xf];
	struct format_text out;
	int n = snprintf(out.text, sizeof(out.text), "%u.%u.%u",
		(unsigned int)(version >> 24 & 0xff), (unsigned int)(version >> 16 & 0xff),
		(unsigned int)(version >> 8 & 0xff));

	if (level)
		snprintf(out.text + n, sizeof(out.text) - (size_t)n, "%s%u", level,
			(unsigned int)(version & 0xf));
	return out;
}

size_t format_utf8_length(const char *data, size_t bytes)
{
	const unsigned char *p = (const unsigned char *)data;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length;
	uint32_t code;

	if (!bytes)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] < 0xe0) {
		length = 2;
		code = p[0] & 0x1fu;
	} else if ((p[0] & 0xf0) == 0xe0) {
		length = 3;
		code = p[0] & 0x0fu;
	} else if (p[0] >= 0xf0 && p[0] < 0xf5) {
		length = 4;
		code = p[0] & 0x07u;
	} else {
		return 0;
	}
	if (length > bytes)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3fu);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return length;
}

/* Prints up to `width` characters (0: all). Returns false when something was left. */
static bool put_safe(FILE *out, const char *data, size_t bytes, size_t width)
{
	size_t n = 0;

	while (bytes) {
		size_t length = format_utf8_length(data, bytes);
		/* C1 control characters are two bytes of UTF-8. */
		bool control = (length == 1 && ((unsigned char)*data < 0x20 || *data == 0x7f)) ||
			       (length == 2 && (unsigned char)data[0] == 0xc2 &&
				       (unsigned char)data[1] < 0xa0);

		if (width && n++ == width)
			return false;
		if (!length || control)
			fputc('?', out);
		else
			fwrite(data, 1, length, out);
		data += length ? length : 1;
		bytes -= length ? length : 1;
	}
	return true;
}

void format_put_text(FILE *out, struct vt_text text)
{
	put_safe(out, text.data, text.bytes, 0);
}

void format_put_arguments(FILE *out, struct vt_text arguments, size_t width)
{
	size_t at = 0, shown = 0;

	while (at < arguments.bytes) {
		size_t length = strnlen(arguments.data + at, arguments.bytes - at);

		if (width && shown + 2 > width) {
			fputs("...", out);
			return;
		}
		if (at) {
			fputc(' ', out);
			shown++;
		}
		if (!put_safe(out, arguments.data + at, length, width ? width - shown : 0)) {
			fputs("...", out);
			return;
		}
		shown += length;
		at += length + 1;
	}
}

void format_put_file(FILE *out, const char *name)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+,:@%-";

	if (*name && strspn(name, plain) == strlen(name)) {
		fputs(name, out);
		return;
	}
	fputc('\'', out);
	for (; *name; name++) {
		if (*name == '\'')
			fputs("'\\''", out);
		else
			put_safe(out, name, 1, 0);
	}
	fputc('\'', out);
}

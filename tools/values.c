#include "values.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool value_number(const char *text, uint64_t most, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *number <= most;
}

bool value_bytes(const char *text, uint64_t *bytes)
{
	static const char letters[] = "KMGT";
	const char *letter;
	char *end;
	double value = strtod(text, &end);

	if (!((*text >= '0' && *text <= '9') || *text == '.') || end == text)
		return false;
	letter = *end & ~0x20 ? strchr(letters, *end & ~0x20) : NULL;
	if (letter) {
		value = ldexp(value, 10 * (int)(letter - letters + 1));
		end++;
		if (!strcmp(end, "iB"))
			end += 2;
	}
	if (!strcmp(end, "B"))
		end++;
	if (*end || !(value < 0x1p63))
		return false;
	*bytes = (uint64_t)value;
	return true;
}

bool value_time(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"min", 60e9},
		{"h", 3600e9}};
	double total = 0;
	char *end;

	for (;;) {
		if (*text < '0' || *text > '9')
			return false;
		total += strtod(text, &end);
		if (*end != ':')
			break;
		total *= 60;
		text = end + 1;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(end, units[i].name) || !(total * units[i].ns < 0x1p63))
			continue;
		*ns = (uint64_t)(total * units[i].ns);
		return true;
	}
	return false;
}

bool value_rate(const char *text, uint64_t *bytes_per_s)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}};
	const char *slash = strchr(text, '/');
	char number[32];
	uint64_t bytes;

	if (!slash || (size_t)(slash - text) >= sizeof(number))
		return false;
	memcpy(number, text, (size_t)(slash - text));
	number[slash - text] = '\0';
	if (!value_bytes(number, &bytes))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(slash + 1, units[i].name) != 0)
			continue;
		*bytes_per_s = (uint64_t)((double)bytes / units[i].seconds);
		return true;
	}
	return false;
}

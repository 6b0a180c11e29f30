#include "record/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static void format_exe(char *out, size_t size)
{
	char path[4096];
	ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *name;

	if (bytes < 0)
		bytes = 0;
	path[bytes] = '\0';
	name = strrchr(path, '/');
	snprintf(out, size, "%s", name && name[1] ? name + 1 : "unknown");
}

static void format_host(char *out, size_t size)
{
	struct utsname host;

	snprintf(out, size, "%s", uname(&host) ? "unknown" : host.nodename);
}

static void format_rank(char *out, size_t size)
{
	static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};
	const char *value = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !value; i++)
		value = getenv(names[i]);
	snprintf(out, size, "%s", value ? value : "0");
}

/* gmtime_r may allocate while it reads the time zone, so the date is counted by hand. */
static void format_time(char *out, size_t size)
{
	time_t now = time(NULL);
	unsigned int days = (unsigned int)(now / 86400), rest = (unsigned int)(now % 86400);
	unsigned int year = 1970, month = 0;
	static const unsigned char lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	for (;; year++) {
		unsigned int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

		if (days >= 365 + leap) {
			days -= 365 + leap;
			continue;
		}
		for (month = 0; days >= lengths[month] + (month == 1 ? leap : 0); month++)
			days -= lengths[month] + (month == 1 ? leap : 0);
		break;
	}
	snprintf(out, size, "%04u%02u%02uT%02u%02u%02uZ", year, month + 1, days + 1, rest / 3600,
		rest / 60 % 60, rest % 60);
}

static bool append(char *out, size_t size, const char *text, size_t bytes)
{
	size_t used = strlen(out);

	if (bytes >= size - used)
		return false;
	memcpy(out + used, text, bytes);
	out[used + bytes] = '\0';
	return true;
}

/* The value of %<letter>, or false when it is none. */
static bool format_value(char *out, size_t size, char letter)
{
	switch (letter) {
	case 'e':
		format_exe(out, size);
		break;
	case 'p':
		snprintf(out, size, "%ld", (long)getpid());
		break;
	case 'h':
		format_host(out, size);
		break;
	case 'r':
		format_rank(out, size);
		break;
	case 't':
		format_time(out, size);
		break;
	case '%':
		snprintf(out, size, "%%");
		break;
	default:
		return false;
	}
	for (char *slash = strchr(out, '/'); slash; slash = strchr(slash, '/'))
		*slash = '_';
	return true;
}

bool path_expand(char *out, size_t size, const char *pattern, unsigned int number)
{
	char value[256], suffix[16];
	size_t bytes;

	out[0] = '\0';
	for (; *pattern; pattern++) {
		bool special = *pattern == '%' && pattern[1] &&
			       format_value(value, sizeof(value), pattern[1]);

		if (!append(out, size, special ? value : pattern, special ? strlen(value) : 1))
			return false;
		pattern += special;
	}
	if (!number)
		return true;
	bytes = strlen(out);
	snprintf(suffix, sizeof(suffix), ".%u", number);
	if (bytes > 3 && !strcmp(out + bytes - 3, ".vt")) {
		out[bytes - 3] = '\0';
		return append(out, size, suffix, strlen(suffix)) && append(out, size, ".vt", 3);
	}
	return append(out, size, suffix, strlen(suffix));
}

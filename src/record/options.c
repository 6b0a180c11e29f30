#include "record/options.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/unwind/unwind.h"

#define DEFAULT_OUTPUT "vramtrace.%e.%p.vt"
#define DEFAULT_DEPTH  128u

struct options options;

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
	size_t used = strlen(options.complaints);
	va_list args;

	va_start(args, format);
	vsnprintf(options.complaints + used, sizeof(options.complaints) - used, format, args);
	va_end(args);
}

bool options_parse_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	unsigned int shift = 0;
	uint64_t value = 0;
	const char *unit;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++) {
		unsigned int digit = (unsigned int)(*text - '0');

		if (value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	unit = *text & ~0x20 ? strchr(units, *text & ~0x20) : NULL;
	if (unit) {
		shift = 10 * (unsigned int)(unit - units + 1);
		text++;
		if (*text == 'i')
			text++;
		if (*text == 'B' || *text == 'b')
			text++;
	}
	if (*text || value > UINT64_MAX >> shift)
		return false;
	*bytes = value << shift;
	return true;
}

static void read_bool(const char *name, const char *value, bool *out)
{
	if (!strcmp(value, "0"))
		*out = false;
	else if (!strcmp(value, "1"))
		*out = true;
	else
		complain("vramtrace: %s=%.64s: use 0 or 1; using %d\n", name, value, *out);
}

static void read_stack(const char *name, const char *value)
{
	bool is_both = !strcmp(value, "both");
	bool is_native = !strcmp(value, "native"), is_python = !strcmp(value, "python");

	if (is_both || is_native || is_python || !strcmp(value, "none")) {
		options.native_stacks = is_both || is_native;
		options.python_stacks = is_both || is_python;
	} else {
		complain("vramtrace: %s=%.64s: use both, python, native or none; using both\n",
			name, value);
	}
}

static void read_copies(const char *name, const char *value)
{
	if (!strcmp(value, "all"))
		options.copies = true;
	else if (!strcmp(value, "none"))
		options.copies = false;
	else
		complain("vramtrace: %s=%.64s: use all or none; using all\n", name, value);
}

static void read_deepbind(const char *name, const char *value)
{
	if (!strcmp(value, "clear"))
		options.keep_deepbind = false;
	else if (!strcmp(value, "keep"))
		options.keep_deepbind = true;
	else
		complain("vramtrace: %s=%.64s: use clear or keep; using clear\n", name, value);
}

static void read_unwinder(const char *name, const char *value)
{
	if (!strcmp(value, "libunwind"))
		options.unwinder = OPTIONS_UNWINDER_LIBUNWIND;
	else if (strcmp(value, "fast") && strcmp(value, "check"))
		complain("vramtrace: %s=%.64s: use fast, libunwind or check; using %s\n", name,
			value, UNWIND_IS_FAST ? "fast" : "libunwind");
	else if (!UNWIND_IS_FAST)
		complain("vramtrace: %s=%.64s: this machine has libunwind only\n", name, value);
	else if (!strcmp(value, "check"))
		options.unwinder = OPTIONS_UNWINDER_CHECK;
	else
		options.unwinder = OPTIONS_UNWINDER_FAST;
}

static void read_layers(const char *name, const char *value)
{
	if (!strcmp(value, "driver,torch"))
		options.torch = true;
	else if (!strcmp(value, "driver"))
		options.torch = false;
	else
		complain("vramtrace: %s=%.64s: use driver or driver,torch; using driver,torch\n",
			name, value);
}

static void read_depth(const char *name, const char *value)
{
	uint64_t depth;

	if (options_parse_size(value, &depth) && depth >= 1 && depth <= OPTIONS_MAX_DEPTH)
		options.depth = (unsigned int)depth;
	else
		complain("vramtrace: %s=%.64s: use a number from 1 to %u; using %u\n", name, value,
			OPTIONS_MAX_DEPTH, DEFAULT_DEPTH);
}

static void read_max_size(const char *name, const char *value)
{
	uint64_t bytes;

	if (options_parse_size(value, &bytes) && bytes >= OPTIONS_MIN_SIZE)
		options.max_bytes = bytes;
	else
		complain("vramtrace: %s=%.64s: use a size of at least 1M, such as 512M; no limit "
			 "is used\n",
			name, value);
}

static void read_output(const char *name, const char *value)
{
	if (*value && strlen(value) < sizeof(options.output) - 64)
		strcpy(options.output, value);
	else
		complain("vramtrace: %s: %s; using %s\n", name,
			*value ? "the path is too long" : "the path is empty", DEFAULT_OUTPUT);
}

static void read_variable(const char *name, const char *value)
{
	const struct {
		const char *name;
		void (*read)(const char *name, const char *value);
		bool *flag;
	} variables[] = {
		{"VRAMTRACE_OUTPUT", read_output, NULL},
		{"VRAMTRACE_MAX_SIZE", read_max_size, NULL},
		{"VRAMTRACE_STACK", read_stack, NULL},
		{"VRAMTRACE_STACK_DEPTH", read_depth, NULL},
		{"VRAMTRACE_UNWINDER", read_unwinder, NULL},
		{"VRAMTRACE_LAYERS", read_layers, NULL},
		{"VRAMTRACE_COPIES", read_copies, NULL},
		{"VRAMTRACE_DEEPBIND", read_deepbind, NULL},
		{"VRAMTRACE_COPY_TIMING", NULL, &options.copy_timing},
		{"VRAMTRACE_MEMINFO", NULL, &options.memory_samples},
		{"VRAMTRACE_ENABLED", NULL, &options.enabled},
		{"VRAMTRACE_QUIET", NULL, &options.quiet},
	};

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		if (strcmp(name, variables[i].name))
			continue;
		if (variables[i].flag)
			read_bool(name, value, variables[i].flag);
		else
			variables[i].read(name, value);
		return;
	}
	complain("vramtrace: %s is not a variable of vramtrace: ignored\n", name);
}

void options_read(char **environ_list)
{
	options = (struct options){
		.enabled = true,
		.native_stacks = true,
		.python_stacks = true,
		.copies = true,
		.torch = true,
		.memory_samples = true,
		.unwinder = UNWIND_IS_FAST ? OPTIONS_UNWINDER_FAST : OPTIONS_UNWINDER_LIBUNWIND,
		.depth = DEFAULT_DEPTH,
		.output = DEFAULT_OUTPUT,
	};
	for (char **entry = environ_list; entry && *entry; entry++) {
		const char *equals = strchr(*entry, '=');
		char name[64];

		if (strncmp(*entry, "VRAMTRACE_", 10) || !equals)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(equals - *entry), *entry);
		read_variable(name, equals + 1);
	}
}

#include "analysis/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORD 128u

struct parser {
	struct settings *settings;
	torch_release version;
	char *problem;
	size_t problem_bytes;
};

struct setting {
	const char *key;
	torch_release since; /* 0: as long as this model knows */
	bool (*apply)(const struct parser *parser, const char *value);
};

torch_release settings_version(const char *text)
{
	unsigned int major, minor;

	if (!text || sscanf(text, "%3u.%3u", &major, &minor) != 2 || major > 99 || minor > 99)
		return 0;
	return major * 100 + minor;
}

void settings_default(struct settings *settings)
{
	*settings = (struct settings){
		.max_split_bytes = UINT64_MAX,
		.max_non_split_rounding_bytes = 20 * SETTINGS_MIB,
		.large_segment_bytes = 20 * SETTINGS_MIB,
		.memory_fraction = 1,
	};
}

__attribute__((format(printf, 2, 3))) static bool refuse(
	const struct parser *parser, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(parser->problem, parser->problem_bytes, format, arguments);
	va_end(arguments);
	return false;
}

static bool parse_number(const char *text, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && !*end;
}

static bool parse_fraction(const char *text, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && !*end && isfinite(*value);
}

/* MiB up to what a 64-bit size can say. */
static bool parse_mib(const char *text, uint64_t *bytes)
{
	uint64_t mib;

	if (!parse_number(text, &mib) || mib > UINT64_MAX / SETTINGS_MIB)
		return false;
	*bytes = mib * SETTINGS_MIB;
	return true;
}

static bool parse_flag(const struct parser *parser, const char *key, const char *value, bool *flag)
{
	if (strcmp(value, "True") != 0 && strcmp(value, "False") != 0)
		return refuse(parser, "%s must be True or False, not '%s'", key, value);
	*flag = !strcmp(value, "True");
	return true;
}

static bool apply_max_split(const struct parser *parser, const char *value)
{
	uint64_t least = parser->settings->large_segment_bytes + (parser->version < 211);
	uint64_t bytes;

	if (!parse_mib(value, &bytes) || bytes < least)
		return refuse(parser,
			"max_split_size_mb must be a number of MiB, %s%" PRIu64 ", not '%s'",
			parser->version < 211 ? "over " : "at least ",
			parser->settings->large_segment_bytes / SETTINGS_MIB, value);
	parser->settings->max_split_bytes = bytes;
	return true;
}

static bool apply_rounding(const struct parser *parser, const char *value)
{
	uint64_t least = parser->settings->large_segment_bytes;
	uint64_t bytes;

	if (!parse_mib(value, &bytes) || bytes < least)
		return refuse(parser,
			"max_non_split_rounding_mb must be at least %" PRIu64 ", not '%s'",
			least / SETTINGS_MIB, value);
	parser->settings->max_non_split_rounding_bytes = bytes;
	parser->settings->has_rounding = true;
	return true;
}

static bool apply_large_segment(const struct parser *parser, const char *value)
{
	uint64_t bytes;

	if (!parse_mib(value, &bytes) || bytes <= 10 * SETTINGS_MIB)
		return refuse(parser, "large_segment_size_mb must be over 10, not '%s'", value);
	parser->settings->large_segment_bytes = bytes;
	if (!parser->settings->has_rounding)
		parser->settings->max_non_split_rounding_bytes = bytes;
	return true;
}

static bool apply_collection(const struct parser *parser, const char *value)
{
	double fraction;

	if (!parse_fraction(value, &fraction) || fraction <= 0 || fraction >= 1)
		return refuse(parser,
			"garbage_collection_threshold must lie between 0 and 1, not '%s'", value);
	parser->settings->collection_threshold = fraction;
	return true;
}

static bool apply_fraction(const struct parser *parser, const char *value)
{
	double fraction;

	if (!parse_fraction(value, &fraction) || fraction <= 0 || fraction > 1)
		return refuse(parser,
			"per_process_memory_fraction must be over 0 and at most 1, not '%s'",
			value);
	parser->settings->memory_fraction = fraction;
	return true;
}

static bool apply_expandable(const struct parser *parser, const char *value)
{
	return parse_flag(parser, "expandable_segments", value, &parser->settings->expandable);
}

static bool apply_backend(const struct parser *parser, const char *value)
{
	if (!strcmp(value, "native"))
		parser->settings->backend = SETTINGS_NATIVE;
	else if (!strcmp(value, "cudaMallocAsync"))
		parser->settings->backend = SETTINGS_ASYNC;
	else
		return refuse(parser, "backend must be native or cudaMallocAsync, not '%s'", value);
	return true;
}

static bool differ(double a, double b)
{
	return a < b || a > b;
}

bool settings_equal(const struct settings *a, const struct settings *b)
{
	return a->max_split_bytes == b->max_split_bytes &&
	       a->max_non_split_rounding_bytes == b->max_non_split_rounding_bytes &&
	       a->large_segment_bytes == b->large_segment_bytes &&
	       !memcmp(a->divisions, b->divisions, sizeof(a->divisions)) &&
	       !differ(a->collection_threshold, b->collection_threshold) &&
	       !differ(a->memory_fraction, b->memory_fraction) && a->expandable == b->expandable &&
	       a->backend == b->backend;
}

static bool is_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

static bool parse_divisions(const char *text, bool zero, uint32_t *divisions)
{
	uint64_t n;

	if (!parse_number(text, &n) || n > UINT32_MAX || !(is_power_of_two(n) || (zero && !n)))
		return false;
	*divisions = (uint32_t)n;
	return true;
}

/* Where the next interval of a list goes. */
struct intervals {
	uint32_t *divisions;
	unsigned int rest; /* '>' begins so far behind the last bound */
	unsigned int last;
	bool any;
};

/* One "BOUND:DIVISIONS" of the list form, BOUND in MiB. What PyTorch makes of it: the first bound
 * is also for all below it, a later one only for its own interval, and '>' for all above the last
 * interval; up to about 2.8 for that one, too. */
static bool apply_interval(struct intervals *intervals, char *entry)
{
	char *colon = strchr(entry, ':');
	uint64_t bound;
	unsigned int index;
	uint32_t n;

	if (!colon || !parse_divisions(colon + 1, true, &n))
		return false;
	*colon = 0;
	if (!strcmp(entry, ">")) {
		for (unsigned int i = intervals->last + intervals->rest; i < SETTINGS_N_DIVISIONS;
			i++)
			intervals->divisions[i] = n;
		return true;
	}
	if (!parse_number(entry, &bound) || !is_power_of_two(bound))
		return false;
	index = (unsigned int)__builtin_ctzll(bound);
	if (index >= SETTINGS_N_DIVISIONS)
		index = SETTINGS_N_DIVISIONS - 1;
	for (unsigned int i = 0; !intervals->any && i < index; i++)
		intervals->divisions[i] = n;
	intervals->divisions[index] = n;
	intervals->last = index;
	intervals->any = true;
	return true;
}

static bool apply_divisions(const struct parser *parser, const char *value)
{
	uint32_t divisions[SETTINGS_N_DIVISIONS] = {0};
	struct intervals intervals = {
		.divisions = divisions, .rest = !parser->version || parser->version >= 209};
	char list[MAX_WORD], *rest, *entry;
	bool good = true;

	if (*value == '[') {
		snprintf(list, sizeof(list), "%s", value + 1);
		rest = strchr(list, ']');
		good = parser->version != 113 && rest && !rest[1];
		if (rest)
			*rest = 0;
		for (entry = strtok_r(list, ",", &rest); good && entry;
			entry = strtok_r(NULL, ",", &rest))
			good = apply_interval(&intervals, entry);
	} else {
		good = parse_divisions(value, false, &divisions[0]);
		for (unsigned int i = 1; i < SETTINGS_N_DIVISIONS; i++)
			divisions[i] = divisions[0];
	}
	if (!good)
		return refuse(parser,
			"roundup_power2_divisions must be a power of two, or a list such as "
			"[256:1,512:2,>:4], not '%s'",
			value);
	memcpy(parser->settings->divisions, divisions, sizeof(divisions));
	return true;
}

/* Accepted by PyTorch; no bytes depend on them in this model. */
static bool apply_nothing(const struct parser *parser, const char *value)
{
	(void)value;
	(void)parser;
	return true;
}

/* Segment size first: the bounds of others depend on it. */
static const struct setting list_of_settings[] = {
	{"large_segment_size_mb", 211, apply_large_segment},
	{"max_split_size_mb", 0, apply_max_split},
	{"max_non_split_rounding_mb", 206, apply_rounding},
	{"garbage_collection_threshold", 0, apply_collection},
	{"roundup_power2_divisions", 0, apply_divisions},
	{"expandable_segments", 201, apply_expandable},
	{"per_process_memory_fraction", 211, apply_fraction},
	{"backend", 200, apply_backend},
	{"release_lock_on_cudamalloc", 201, apply_nothing},
	{"release_lock_on_hipmalloc", 201, apply_nothing},
	{"pinned_use_cuda_host_register", 201, apply_nothing},
	{"pinned_use_hip_host_register", 201, apply_nothing},
	{"pinned_num_register_threads", 201, apply_nothing},
	{"pinned_use_background_threads", 206, apply_nothing},
	{"pinned_reserve_segment_size_mb", 211, apply_nothing},
	{"graph_capture_record_stream_reuse", 211, apply_nothing},
};

#define N_SETTINGS (sizeof(list_of_settings) / sizeof(*list_of_settings))

/* Takes "key:value" off *text, up to a comma outside brackets. False at the end. */
static bool take_pair(const char **text, char *key, char *value)
{
	size_t n_key = 0, n_value = 0;
	int depth = 0;
	const char *p = *text;

	while (*p == ',' || *p == ' ')
		p++;
	if (!*p)
		return false;
	for (; *p && *p != ':' && *p != '=' && *p != ','; p++)
		if (*p != ' ' && n_key + 1 < MAX_WORD)
			key[n_key++] = *p;
	if (*p == ':' || *p == '=')
		p++;
	for (; *p && (*p != ',' || depth); p++) {
		depth += *p == '[';
		depth -= *p == ']' && depth;
		if (*p != ' ' && n_value + 1 < MAX_WORD)
			value[n_value++] = *p;
	}
	key[n_key] = value[n_value] = 0;
	*text = p;
	return true;
}

static const struct setting *find_setting(const char *key)
{
	for (size_t i = 0; i < N_SETTINGS; i++)
		if (!strcmp(list_of_settings[i].key, key))
			return &list_of_settings[i];
	return NULL;
}

static bool check_key(const struct parser *parser, const char *key)
{
	const struct setting *setting = find_setting(key);

	if (!setting)
		return refuse(parser, "'%s' is no setting of PyTorch's allocator", key);
	if (parser->version && parser->version < setting->since)
		return refuse(parser, "%s came with PyTorch %u.%u; this run used %u.%u", key,
			setting->since / 100, setting->since % 100, parser->version / 100,
			parser->version % 100);
	return true;
}

static void remark(const struct parser *parser)
{
	const struct settings *settings = parser->settings;

	if (settings->collection_threshold > 0 && settings->memory_fraction >= 1)
		refuse(parser,
			"garbage_collection_threshold does nothing without a memory fraction");
	else if (settings->has_rounding && settings->max_split_bytes == UINT64_MAX)
		refuse(parser, "max_non_split_rounding_mb does nothing without max_split_size_mb");
}

bool settings_apply(struct settings *settings, const char *text, torch_release version,
	char *problem, size_t problem_bytes)
{
	struct settings changed = *settings;
	struct parser parser = {&changed, version, problem, problem_bytes};
	char key[MAX_WORD], value[MAX_WORD];
	const char *at;

	if (problem_bytes)
		*problem = 0;
	for (at = text; take_pair(&at, key, value);)
		if (!check_key(&parser, key))
			return false;
	for (size_t i = 0; i < N_SETTINGS; i++)
		for (at = text; take_pair(&at, key, value);)
			if (!strcmp(key, list_of_settings[i].key) &&
				!list_of_settings[i].apply(&parser, value))
				return false;
	*settings = changed;
	remark(&parser);
	return true;
}

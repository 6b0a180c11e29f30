/* Levels of detail, who held what at the ends of bins, moments, and the page they are written to,
 * against books that are kept here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/levels.h"
#include "analysis/scenes.h"
#include "analysis/watch.h"
#include "output/html.h"
#include "output/html_parts.h"
#include "unit/json_check.h"
#include "unit/records.h"

#define PATH	  "levels.vt"
#define PAGE	  (UINT64_C(2) << 20)
#define N_STACKS  30u
#define N_EVENTS  5000u
#define N_DEVICES 2u

/* After each change of the trace. */
struct moment {
	uint64_t time_ns;
	uint64_t tracked[N_DEVICES];
	uint64_t sites[N_DEVICES][N_STACKS];
};

static struct moment moments[N_EVENTS];
static size_t n_moments;

static const char *label(void *user, const struct model *model, uint64_t stack_id)
{
	static const char *const names[] = {"torch", "nccl", "jax", "cupy"};

	(void)user;
	(void)model;
	return stack_id % 5 == 4 ? NULL : names[stack_id % 5];
}

static const struct owner_source owners = {label, NULL};

/* Whole pages, so that what was asked for is what is tracked. */
static void write_trace(void)
{
	struct source random = {.state = 7};
	struct vt_writer writer;
	struct vt_lane *lane;
	uint64_t live[256] = {0};
	uint64_t now = 1000;

	trace_begin(&writer, PATH, (struct vt_writer_options){0});
	lane = vt_writer_lane(&writer, 1, 0);
	for (uint64_t i = 0; i < N_DEVICES; i++)
		vt_put_device(lane,
			&(struct vt_rec_device){i, UINT64_C(64) << 30, PAGE, {"GPU", 3}, {"", 0}});
	memset(moments, 0, sizeof(moments));
	for (n_moments = 0; n_moments < N_EVENTS; n_moments++) {
		struct moment *moment = &moments[n_moments];
		size_t at = source_next(&random) % 256;
		uint64_t stack = 1 + at % (N_STACKS - 1), device = at / 16 % N_DEVICES;
		uint64_t address = (at + 1) << 32;

		if (n_moments)
			*moment = moments[n_moments - 1];
		now += source_next(&random) % 64 ? 1 + source_next(&random) % 500 : 1000000;
		moment->time_ns = now;
		if (live[at]) {
			moment->tracked[device] -= live[at];
			moment->sites[device][stack] -= live[at];
			live[at] = 0;
			vt_put_free(lane, &(struct vt_rec_free){.time_ns = now,
						  .kind = VT_KIND_LINEAR,
						  .address = address});
			continue;
		}
		live[at] = PAGE * (1 + source_next(&random) % 40);
		moment->tracked[device] += live[at];
		moment->sites[device][stack] += live[at];
		vt_put_alloc(lane, &(struct vt_rec_alloc){.time_ns = now,
					   .kind = VT_KIND_LINEAR,
					   .device = (int64_t)device,
					   .context_id = 1 + device,
					   .address = address,
					   .bytes = live[at],
					   .stack_id = stack});
	}
	trace_end(&writer);
}

struct loaded {
	struct replay *replay;
	struct watch watch;
	struct roster roster;
	struct levels levels;
	struct scene_list scenes;
};

static void observe(void *user, const struct model *model, const struct vt_record *record)
{
	watch_observe(user, model, record);
}

static void load(struct loaded *loaded, size_t n_sites, const struct levels_limits *limits)
{
	*loaded = (struct loaded){0};
	assert_int_equal(replay_open(&loaded->replay, PATH, observe, &loaded->watch), 0);
	watch_finish(&loaded->watch);
	roster_make(
		&loaded->roster, loaded->replay->model, &loaded->watch.history, &owners, n_sites);
	assert_int_equal(levels_make(&loaded->levels, loaded->replay, &loaded->roster, limits), 0);
	assert_int_equal(scenes_make(&loaded->scenes, loaded->replay, &loaded->roster,
				 &loaded->watch.episodes, 2, 3),
		0);
}

static void unload(struct loaded *loaded)
{
	scenes_release(&loaded->scenes);
	levels_release(&loaded->levels);
	roster_release(&loaded->roster);
	watch_release(&loaded->watch);
	replay_close(loaded->replay);
}

/* A bin says what the books say of its time: the most, the least, and the parts of the most. */
static void check_bin(const struct loaded *loaded, const struct level *level, size_t bin,
	size_t device, size_t first, size_t last)
{
	const struct level_point *point = &level->points[device][bin];
	uint64_t most = 0, least = UINT64_MAX, owned = 0, drawn = 0;

	assert_int_equal(loaded->roster.devices[device].ordinal, device);
	for (size_t i = first; i <= last; i++) {
		most = moments[i].tracked[device] > most ? moments[i].tracked[device] : most;
		least = moments[i].tracked[device] < least ? moments[i].tracked[device] : least;
	}
	assert_int_equal(point->most_bytes, most);
	assert_int_equal(point->least_bytes, least);
	assert_int_equal(point->live_bytes, most);
	for (size_t i = 0; i < ROSTER_N_OWNERS; i++)
		owned += point->owner_bytes[i];
	for (size_t i = 0; i < ROSTER_N_CURVES; i++)
		drawn += point->curve_bytes[i];
	if (!loaded->roster.n_left_out)
		assert_int_equal(owned, most);
	assert_true(owned <= most);
	assert_true(drawn <= most);
}

static size_t moment_at(uint64_t time_ns)
{
	size_t i = 0;

	while (moments[i].time_ns != time_ns)
		i++;
	return i;
}

/* The bins of each level follow one another without a gap. */
static void check_levels(const struct loaded *loaded, size_t most_bins)
{
	const struct levels *levels = &loaded->levels;

	assert_int_equal(levels->n_changes, n_moments);
	assert_true(levels->levels[0].n_bins <= most_bins);
	for (size_t k = 0; k < levels->n_levels; k++) {
		const struct level *level = &levels->levels[k];
		size_t next = 0;

		for (size_t i = 0; i < level->n_bins; i++) {
			size_t first = moment_at(level->spans[i].from_ns);
			size_t last = moment_at(level->spans[i].to_ns);

			assert_int_equal(first, next);
			for (size_t device = 0; device < N_DEVICES; device++)
				check_bin(loaded, level, i, device, first, last);
			next = last + 1;
		}
		assert_int_equal(next, n_moments);
	}
}

static void check_rows(
	const struct loaded *loaded, const uint64_t *bytes, const struct moment *books)
{
	uint64_t sums[N_DEVICES] = {0};

	for (size_t row = 0; row < loaded->roster.n_rows; row++) {
		const struct roster_row *of = &loaded->roster.rows[row];

		assert_true(of->device < N_DEVICES);
		sums[of->device] += bytes[row];
		if (!of->is_rest)
			assert_int_equal(bytes[row], books->sites[of->device][of->key.stack_id]);
	}
	for (size_t device = 0; device < N_DEVICES; device++)
		assert_int_equal(sums[device], books->tracked[device]);
}

/* At the end of each group of bins, every row holds what the books say. */
static void check_live(const struct loaded *loaded, size_t most)
{
	const struct levels *levels = &loaded->levels;
	const struct level *level = &levels->levels[0];
	uint64_t *bytes = calloc(loaded->roster.n_rows, sizeof(*bytes));
	size_t at = 0;

	assert_true(levels->n_live <= most);
	for (size_t group = 0; group << levels->live_shift < level->n_bins; group++) {
		size_t last = ((group + 1) << levels->live_shift) - 1;

		if (last >= level->n_bins)
			last = level->n_bins - 1;
		for (; at < levels->n_live && levels->live[at].bin == group; at++)
			bytes[levels->live[at].row] = levels->live[at].bytes;
		check_rows(loaded, bytes, &moments[moment_at(level->spans[last].to_ns)]);
	}
	assert_int_equal(at, levels->n_live);
	free(bytes);
}

static void check_scenes(const struct loaded *loaded)
{
	uint64_t *bytes = calloc(loaded->roster.n_rows, sizeof(*bytes));

	assert_int_equal(loaded->scenes.n_items, N_DEVICES + 3 + 1);
	for (size_t i = 0; i < loaded->scenes.n_items; i++) {
		const struct scene *scene = &loaded->scenes.items[i];
		size_t at = n_moments - 1;
		uint64_t mapped = 0;

		while (at && moments[at].time_ns > scene->time_ns)
			at--;
		memset(bytes, 0, loaded->roster.n_rows * sizeof(*bytes));
		for (size_t k = 0; k < scene->n_rows; k++)
			bytes[scene->rows[k].row] = scene->rows[k].bytes;
		check_rows(loaded, bytes, &moments[at]);
		for (size_t k = 0; k < scene->map.n_places; k++)
			mapped += scene->map.places[k].live_bytes;
		assert_int_equal(mapped, scene->moment.at == REPLAY_AT_PEAK
						 ? moments[at].tracked[scene->moment.device]
						 : moments[at].tracked[0] + moments[at].tracked[1]);
	}
	free(bytes);
}

/* Everything told apart; and as little as can be. */
static void test_levels(void **state)
{
	static const struct {
		size_t n_sites, n_bins, n_live;
	} cases[] = {{1000, 8192, 100000}, {1000, 300, 100000}, {1000, 700, 900}, {7, 64, 100}};

	(void)state;
	write_trace();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct levels_limits limits = {cases[i].n_bins, cases[i].n_live};
		struct loaded loaded;

		load(&loaded, cases[i].n_sites, &limits);
		check_levels(&loaded, 2 * limits.n_bins);
		check_live(&loaded, limits.n_live);
		check_scenes(&loaded);
		unload(&loaded);
	}
	unlink(PATH);
}

static char *text_of(FILE *out, char **text)
{
	fclose(out);
	return *text;
}

/* No text can end the script that it stands in, or be taken for more than text. */
static void test_escapes(void **state)
{
	static const char hostile[] =
		"</script><!-- <b>&amp;\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\xff\"\\";
	struct json json;
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	json_init(&json, out, true);
	json.in_html = true;
	json_string(&json, NULL, hostile);
	assert_string_equal(text_of(out, &text),
		"\"\\u003c/script\\u003e\\u003c!-- "
		"\\u003cb\\u003e\\u0026amp;\\u2028\\u2029\xe2\x80\xaa"
		"\\ufffd\\\"\\\\\"");
	free(text);
	out = open_memstream(&text, &bytes);
	json_init(&json, out, true);
	json_string(&json, NULL, "<&>");
	assert_string_equal(text_of(out, &text), "\"<&>\"");
	free(text);
}

static void print_page(struct loaded *loaded)
{
	struct symbol_table *symbols = symbol_table_new();
	struct overview overview;
	struct report_trace shown = {&overview, symbols, {0}};
	struct html_trace trace = {&shown, &loaded->roster, &loaded->levels, &loaded->scenes};
	char *text, *at;
	size_t bytes, n_ends = 0;
	FILE *out = open_memstream(&text, &bytes);

	assert_int_equal(overview_make(&overview, loaded->replay,
				 &(struct overview_request){.watch = &loaded->watch,
					 .owners = &owners,
					 .history = &loaded->watch.history}),
		0);
	html_data_put(out, &trace, 1);
	assert_true(json_check(text_of(out, &text)));
	assert_null(strpbrk(text, "<>&"));
	free(text);
	out = open_memstream(&text, &bytes);
	html_put(out, &trace, 1, &(struct together){0});
	for (at = text_of(out, &text); (at = strstr(at, "</script")); at++)
		n_ends++;
	assert_int_equal(n_ends, 3);
	free(text);
	overview_release(&overview);
	symbol_table_free(symbols);
}

/* Traces that make no sense make a page, too. */
static void test_any_trace(void **state)
{
	static const unsigned int kinds[] = {VT_REC_alloc, VT_REC_free, VT_REC_block_alloc,
		VT_REC_block_free, VT_REC_handle_create, VT_REC_map, VT_REC_unmap, VT_REC_mark,
		VT_REC_phase};
	const struct levels_limits limits = {64, 200};

	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct source random = {.state = seed};
		struct vt_writer writer;
		struct vt_record record;
		struct vt_lane *lane;
		struct loaded loaded;

		trace_begin(&writer, PATH, (struct vt_writer_options){0});
		lane = vt_writer_lane(&writer, 1, 0);
		for (unsigned int i = 0; i < 1500; i++) {
			unsigned int kind = seed % 2 ? kinds[source_next(&random) % 9]
						     : (unsigned int)(source_next(&random) % 64);

			random.time_ns += source_next(&random) % 50;
			random.n_texts = 0;
			if (record_fill(&record, kind, &random))
				assert_int_equal(record_put(lane, &record), 0);
		}
		trace_end(&writer);
		load(&loaded, 20, &limits);
		print_page(&loaded);
		unload(&loaded);
	}
	unlink(PATH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_any_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

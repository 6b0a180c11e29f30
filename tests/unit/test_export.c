/* The exports: changes of the model as they are told, names, pickles, and documents of arbitrary
 * traces; what real ones hold is compared by tests/cases/export.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/counters.h"
#include "analysis/export_events.h"
#include "analysis/export_snapshot.h"
#include "model/events.h"
#include "output/csv.h"
#include "output/export.h"
#include "output/export_events.h"
#include "output/export_stack.h"
#include "output/perfetto.h"
#include "output/pickler.h"
#include "output/timeline_svg.h"
#include "output/torch_snapshot.h"
#include "unit/json_check.h"
#include "unit/story.h"

#define PATH	"export.vt"
#define TORCH	1
#define SEGMENT 0x10000000ull
#define OTHER	0x20000000ull

/* Collects what is printed. */
struct capture {
	FILE *out;
	char *text;
	size_t bytes;
};

static void capture_begin(struct capture *capture)
{
	*capture = (struct capture){0};
	capture->out = open_memstream(&capture->text, &capture->bytes);
	assert_non_null(capture->out);
}

static void capture_check(struct capture *capture, const char *expected, size_t bytes)
{
	fclose(capture->out);
	assert_int_equal(capture->bytes, bytes);
	assert_memory_equal(capture->text, expected, bytes);
	free(capture->text);
}

/* One letter for each change. */
struct changes {
	char told[64];
	size_t n;
};

static void listen(void *user, const struct model *model, const struct vt_record *record,
	const struct model_event *change)
{
	static const char letters[] = {
		[MODEL_BLOCK_BEGIN] = 'B',
		[MODEL_BLOCK_END] = 'b',
		[MODEL_MAPPING_BEGIN] = 'M',
		[MODEL_MAPPING_END] = 'm',
		[MODEL_SEGMENT_BEGIN] = 'S',
		[MODEL_SEGMENT_END] = 's',
		[MODEL_PIECE_BEGIN] = 'P',
		[MODEL_PIECE_PENDING] = 'w',
		[MODEL_PIECE_END] = 'p',
	};
	struct changes *changes = user;

	assert_non_null(model);
	assert_non_null(record);
	assert_int_equal(!!change->block, change->kind <= MODEL_BLOCK_END);
	assert_int_equal(!!change->piece, change->kind >= MODEL_PIECE_BEGIN);
	assert_true(changes->n < sizeof(changes->told) - 1);
	changes->told[changes->n++] = letters[change->kind];
	if (change->teardown)
		changes->told[changes->n++] = '!';
}

static void take(struct story *story, uint64_t address, uint64_t bytes)
{
	apply(story, (struct vt_record){.kind = VT_REC_block_alloc,
			     .block_alloc = {.allocator_id = TORCH,
				     .address = address,
				     .bytes = bytes,
				     .stack_id = 3}});
}

static void drop(struct story *story, uint64_t address)
{
	apply(story, (struct vt_record){.kind = VT_REC_block_free,
			     .block_free = {.allocator_id = TORCH, .address = address}});
}

/* What changed since the last time. */
static void check_told(struct changes *changes, const char *expected)
{
	changes->told[changes->n] = 0;
	assert_string_equal(changes->told, expected);
	changes->n = 0;
}

static void test_changes(void **state)
{
	struct story story = begin(1);
	struct changes changes = {0};

	(void)state;
	model_listen(story.model, listen, &changes);
	alloc(&story, VT_KIND_LINEAR, 0, SEGMENT, 2 * MIB, 1);
	check_told(&changes, "B");
	take(&story, SEGMENT, 512);
	check_told(&changes, "SP");
	take(&story, SEGMENT + 512, 512);
	drop(&story, SEGMENT);
	drop(&story, SEGMENT);
	check_told(&changes, "Pp");
	/* A piece where one is live, and one in no memory that is known. */
	take(&story, SEGMENT + 512, 1024);
	take(&story, OTHER, 512);
	check_told(&changes, "pPP");
	/* What is left in a segment ends before it, and it before its memory. */
	give_back(&story, SEGMENT, 0);
	check_told(&changes, "psb");
	alloc(&story, VT_KIND_LINEAR, 0, SEGMENT, MIB, 1);
	alloc(&story, VT_KIND_LINEAR, 0, SEGMENT, MIB, 1);
	check_told(&changes, "BbB");
	context(&story, VT_CONTEXT_DESTROY, 1);
	check_told(&changes, "b!");
	/* What is live when the model goes has not ended. */
	alloc(&story, VT_KIND_LINEAR, 0, SEGMENT, MIB, 1);
	apply(&story, (struct vt_record){.kind = VT_REC_handle_create,
			      .handle_create = {.handle = 5, .bytes = 2 * MIB}});
	apply(&story, (struct vt_record){.kind = VT_REC_map,
			      .map = {.handle = 5, .address = OTHER, .bytes = 2 * MIB}});
	check_told(&changes, "BBM");
	apply(&story,
		(struct vt_record){.kind = VT_REC_handle_release, .handle_release = {.handle = 5}});
	check_told(&changes, "");
	apply(&story, (struct vt_record){
			      .kind = VT_REC_unmap, .unmap = {.address = OTHER, .bytes = 2 * MIB}});
	check_told(&changes, "mb");
	model_free(story.model);
	check_told(&changes, "");
}

static void test_names(void **state)
{
	struct export_name name = {0};
	struct capture capture;

	(void)state;
	assert_string_equal(export_name_set(&name, NULL), "");
	assert_string_equal(export_name_set(&name, "a\xc3\xa9\xff;\n\x7f\xc2\x9b\xe2\x82\xac"),
		"a\xc3\xa9\xef\xbf\xbd;???\xe2\x82\xac");
	assert_int_equal(name.bytes, strlen(name.text));
	export_name_release(&name);
	capture_begin(&capture);
	csv_put(capture.out, "plain");
	csv_put(capture.out, "a,b");
	csv_put(capture.out, "\"");
	csv_put(capture.out, "");
	capture_check(&capture, "plain\"a,b\"\"\"\"\"", 14);
}

static void check_integer(int64_t value, const char *expected, size_t bytes)
{
	struct capture capture;
	struct pickler pickler;

	capture_begin(&capture);
	pickler_begin(&pickler, capture.out);
	fflush(capture.out);
	assert_memory_equal(capture.text, "\x80\x02", 2);
	pickler_integer(&pickler, value);
	fflush(capture.out);
	assert_int_equal(capture.bytes, 2 + bytes);
	assert_memory_equal(capture.text + 2, expected, bytes);
	pickler_end(&pickler);
	fclose(capture.out);
	free(capture.text);
}

static void test_pickle(void **state)
{
	struct capture capture;
	struct pickler pickler;
	struct pickler_list list;

	(void)state;
	check_integer(0, "K\x00", 2);
	check_integer(255, "K\xff", 2);
	check_integer(256, "M\x00\x01", 3);
	check_integer(65535, "M\xff\xff", 3);
	check_integer(65536, "J\x00\x00\x01\x00", 5);
	check_integer(INT32_MAX, "J\xff\xff\xff\x7f", 5);
	check_integer(-1, "J\xff\xff\xff\xff", 5);
	check_integer(INT32_MIN, "J\x00\x00\x00\x80", 5);
	/* Another byte where the highest bit would be taken for the sign. */
	check_integer((int64_t)1 << 31, "\x8a\x05\x00\x00\x00\x80\x00", 7);
	check_integer(-((int64_t)1 << 31) - 1, "\x8a\x05\xff\xff\xff\x7f\xff", 7);
	check_integer((int64_t)1 << 46, "\x8a\x06\x00\x00\x00\x00\x00\x40", 8);
	check_integer(INT64_MAX, "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", 10);
	check_integer(INT64_MIN, "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80", 10);
	capture_begin(&capture);
	pickler_begin(&pickler, capture.out);
	pickler_open_list(&pickler, &list);
	for (size_t i = 0; i < 2001; i++) {
		pickler_item(&pickler, &list);
		pickler_text(&pickler, "ab");
	}
	pickler_close_list(&pickler, &list);
	pickler_end(&pickler);
	fclose(capture.out);
	/* The text once, then by its number; three batches. */
	assert_int_equal(capture.bytes, 2 + 2 + 9 + 2000 * 2 + 2 * 2 + 1 + 1);
	assert_memory_equal(capture.text,
		"\x80\x02](X\x02\x00\x00\x00"
		"abq\x00h\x00",
		15);
	assert_memory_equal(capture.text + capture.bytes - 6,
		"e(h\x00"
		"e.",
		6);
	free(capture.text);
}

struct loaded {
	struct replay *replay;
	struct episodes episodes;
	struct symbol_table *symbols;
	struct model *names;
	struct trace_facts facts;
	struct export_moment moments[3];
	struct export_trace trace;
};

static void observe(void *user, const struct model *model, const struct vt_record *record)
{
	episodes_observe(&((struct loaded *)user)->episodes, model, record);
}

static void load(struct loaded *loaded)
{
	*loaded = (struct loaded){.symbols = symbol_table_new()};
	assert_int_equal(replay_open(&loaded->replay, PATH, observe, loaded), 0);
	loaded->moments[0].moment =
		(struct replay_moment){.at = REPLAY_AT_PEAK, .device = MODEL_DEVICE_UNKNOWN};
	loaded->moments[1].moment = (struct replay_moment){
		.at = REPLAY_AT_TIME, .time_ns = loaded->replay->model->last_ns / 2};
	loaded->moments[2].moment = (struct replay_moment){.at = REPLAY_AT_END};
	assert_int_equal(export_moments_make(loaded->replay, loaded->moments, 3), 0);
	trace_facts_get(&loaded->facts, loaded->replay);
	loaded->names = replay_take_model(loaded->replay);
	loaded->trace = (struct export_trace){
		.source = {loaded->names, loaded->symbols, {0}},
		.facts = &loaded->facts,
		.moments = loaded->moments,
		.n_moments = 3,
	};
}

static void unload(struct loaded *loaded)
{
	for (size_t i = 0; i < 3; i++)
		export_moment_release(&loaded->moments[i]);
	episodes_release(&loaded->episodes);
	symbol_table_free(loaded->symbols);
	model_free(loaded->names);
	replay_close(loaded->replay);
}

static void print_sites(const struct loaded *loaded)
{
	struct capture capture;

	capture_begin(&capture);
	export_speedscope(capture.out, &loaded->trace, 1);
	fclose(capture.out);
	assert_true(json_check(capture.text));
	free(capture.text);
	capture_begin(&capture);
	export_collapsed(capture.out, &loaded->trace, 1);
	export_pprof(capture.out, &loaded->trace, 1);
	fclose(capture.out);
	assert_true(capture.bytes > 0);
	free(capture.text);
}

static void put_event(void *user, const struct export_event *event)
{
	export_table_put(user, event);
}

static void print_events(const struct loaded *loaded, bool json)
{
	struct export_events_request request = {.event = put_event};
	struct export_table *table;
	struct capture capture;

	capture_begin(&capture);
	request.user = table = export_table_new(capture.out, json);
	export_table_set_trace(table, &loaded->trace);
	assert_int_equal(export_events_make(loaded->replay, &request), 0);
	export_table_free(table);
	fclose(capture.out);
	for (char *line = capture.text, *end; json && *line; line = end) {
		char first;

		end = strchr(line, '\n');
		assert_non_null(end++);
		first = *end;
		*end = 0;
		assert_true(json_check(line));
		*end = first;
	}
	free(capture.text);
}

static const char *label(void *user, const struct model *model, uint64_t stack_id)
{
	(void)user;
	(void)model;
	return stack_id % 2 ? "odd" : NULL;
}

static void put_point(void *user, const struct counter_point *point)
{
	perfetto_put_point(user, point);
}

static void print_perfetto(const struct loaded *loaded)
{
	const struct owner_source owners = {label, NULL};
	struct counters_request request = {
		.owners = &owners, .names = loaded->names, .step_ns = 100, .point = put_point};
	struct perfetto *perfetto;
	struct capture capture;

	capture_begin(&capture);
	request.user = perfetto = perfetto_new(capture.out);
	perfetto_set_trace(perfetto, &loaded->trace);
	assert_int_equal(counters_make(loaded->replay, &request), 0);
	for (size_t i = 0; i < loaded->episodes.n_items; i++)
		perfetto_put_episode(perfetto, &loaded->episodes.items[i]);
	perfetto_put_moments(perfetto);
	perfetto_free(perfetto);
	fclose(capture.out);
	assert_true(capture.bytes > 0);
	free(capture.text);
}

static void put_snapshot_event(void *user, const struct snapshot_event *event)
{
	assert_true(event->action == SNAPSHOT_OOM || event->bytes > 0);
	torch_snapshot_put_event(user, event);
}

static void check_layout(const struct snapshot_layout *layout)
{
	for (size_t i = 0; i < layout->n_segments; i++) {
		const struct snapshot_segment *segment = &layout->segments[i];
		uint64_t at = segment->address;

		assert_true(!i || segment[-1].address + segment[-1].bytes <= segment->address);
		for (size_t k = 0; k < segment->n_blocks; k++) {
			const struct snapshot_block *block =
				&layout->blocks[segment->first_block + k];

			assert_int_equal(block->address, at);
			at += block->bytes;
		}
		assert_int_equal(at, segment->address + segment->bytes);
	}
}

static void print_snapshot(const struct loaded *loaded)
{
	struct snapshot_layout layout;
	struct torch_snapshot *snapshot;
	struct snapshot_fates *fates;
	struct capture capture;
	int error;

	fates = snapshot_fates_new(loaded->replay, &error);
	assert_int_equal(error, 0);
	capture_begin(&capture);
	snapshot = torch_snapshot_new(capture.out, &loaded->trace);
	torch_snapshot_open_device(snapshot);
	assert_int_equal(snapshot_make(&layout, loaded->replay,
				 &(struct snapshot_request){.until_ns = UINT64_MAX,
					 .fates = fates,
					 .episodes = &loaded->episodes,
					 .event = put_snapshot_event,
					 .user = snapshot}),
		0);
	torch_snapshot_close_device(snapshot);
	check_layout(&layout);
	torch_snapshot_put_segments(snapshot, &layout, 1);
	torch_snapshot_free(snapshot);
	snapshot_layout_release(&layout);
	snapshot_fates_free(fates);
	fclose(capture.out);
	assert_int_equal(capture.text[capture.bytes - 1], '.');
	free(capture.text);
}

/* Few addresses and numbers, so that records meet. */
static void narrow(struct vt_record *record, struct source *random)
{
	switch (record->kind) {
	case VT_REC_alloc:
		record->alloc.address = source_next(random) % 8 << 20;
		record->alloc.bytes = source_next(random) % 4 << 19;
		record->alloc.device = 0;
		record->alloc.kind = VT_KIND_LINEAR + source_next(random) % 4;
		record->alloc.context_id = source_next(random) % 2;
		break;
	case VT_REC_free:
		record->free.address = source_next(random) % 8 << 20;
		record->free.result = 0;
		break;
	case VT_REC_block_alloc:
		record->block_alloc.address = source_next(random) % 64 << 17;
		record->block_alloc.bytes = source_next(random) % 4 << 16;
		record->block_alloc.allocator_id = 1 + source_next(random) % 2;
		break;
	case VT_REC_block_free:
		record->block_free.address = source_next(random) % 64 << 17;
		record->block_free.allocator_id = 1 + source_next(random) % 2;
		break;
	case VT_REC_handle_create:
		record->handle_create.handle = source_next(random) % 4;
		record->handle_create.bytes = 1 << 20;
		record->handle_create.device = 0;
		record->handle_create.location = 1;
		record->handle_create.sharing = VT_SHARING_OWN;
		break;
	case VT_REC_map:
		record->map.address = source_next(random) % 8 << 20;
		record->map.bytes = 1 << 20;
		record->map.handle = source_next(random) % 4;
		record->map.result = 0;
		break;
	case VT_REC_unmap:
		record->unmap.address = source_next(random) % 8 << 20;
		record->unmap.bytes = 1 << 20;
		record->unmap.result = 0;
		break;
	default:
		break;
	}
}

static void write_trace(uint64_t seed, bool is_narrow)
{
	static const unsigned int kinds[] = {VT_REC_alloc, VT_REC_free, VT_REC_block_alloc,
		VT_REC_block_free, VT_REC_handle_create, VT_REC_map, VT_REC_unmap};
	struct source random = {.state = seed};
	struct vt_writer writer;
	struct vt_record record;
	struct vt_lane *lane;

	trace_begin(&writer, PATH, (struct vt_writer_options){0});
	lane = vt_writer_lane(&writer, 1, 0);
	for (unsigned int i = 0; i < 1500; i++) {
		unsigned int kind = is_narrow ? kinds[source_next(&random) % 7]
					      : (unsigned int)(source_next(&random) % 64);

		random.time_ns += source_next(&random) % 50;
		random.n_texts = 0;
		if (!record_fill(&record, kind, &random))
			continue;
		if (is_narrow)
			narrow(&record, &random);
		assert_int_equal(record_put(lane, &record), 0);
	}
	trace_end(&writer);
}

static void test_any_trace(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct loaded loaded;

		write_trace(seed, seed % 2);
		load(&loaded);
		print_sites(&loaded);
		print_events(&loaded, true);
		print_events(&loaded, false);
		print_perfetto(&loaded);
		print_snapshot(&loaded);
		unload(&loaded);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_pickle),
		cmocka_unit_test(test_any_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

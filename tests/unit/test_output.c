/* tools/output: numbers, escaping, and whole documents of known and of arbitrary traces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/dump.h"
#include "output/fragmentation_text.h"
#include "output/info_text.h"
#include "output/leaks_text.h"
#include "output/oom_text.h"
#include "output/report.h"
#include "output/sites_text.h"
#include "output/timeline_text.h"
#include "unit/json_check.h"
#include "unit/records.h"

#define PATH "output.vt"
#define MIB  (1024ull * 1024)

static void test_numbers(void **state)
{
	(void)state;
	assert_string_equal(format_bytes(0).text, "0 B");
	assert_string_equal(format_bytes(1023).text, "1023 B");
	assert_string_equal(format_bytes(1024).text, "1.0 KiB");
	assert_string_equal(format_bytes(MIB - 1).text, "1.0 MiB");
	assert_string_equal(format_bytes(1536 * MIB).text, "1.5 GiB");
	assert_string_equal(format_bytes(UINT64_MAX).text, "16.0 EiB");
	assert_string_equal(format_count(0).text, "0");
	assert_string_equal(format_count(999).text, "999");
	assert_string_equal(format_count(1204331).text, "1,204,331");
	assert_string_equal(format_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
	assert_string_equal(format_duration(812).text, "812 ns");
	assert_string_equal(format_duration(3200000).text, "3.2 ms");
	assert_string_equal(format_duration(14200000000).text, "14.2 s");
	assert_string_equal(format_duration(59990000000).text, "1 min 0 s");
	assert_string_equal(format_duration(192000000000).text, "3 min 12 s");
	assert_string_equal(format_duration(7500000000000).text, "2 h 5 min");
	assert_string_equal(format_moment(412000000).text, "0:00.412");
	assert_string_equal(format_moment(161000000000).text, "2:41");
	assert_string_equal(format_moment(3761000000000).text, "1:02:41");
	assert_string_equal(format_share(85, 100).text, "85 %");
	assert_string_equal(format_share(3, 1000).text, "0.3 %");
	assert_string_equal(format_share(3, 0).text, "0 %");
	assert_string_equal(format_utc(1764521944500000000).text, "2025-11-30T16:59:04Z");
}

static void test_utf8(void **state)
{
	(void)state;
	assert_int_equal(format_utf8_length("a", 1), 1);
	assert_int_equal(format_utf8_length("\xc3\xa9", 2), 2);
	assert_int_equal(format_utf8_length("\xe2\x82\xac", 3), 3);
	assert_int_equal(format_utf8_length("\xf0\x9f\x98\x80", 4), 4);
	assert_int_equal(format_utf8_length("", 0), 0);
	assert_int_equal(format_utf8_length("\xc3", 1), 0);
	assert_int_equal(format_utf8_length("\x80", 1), 0);
	assert_int_equal(format_utf8_length("\xc0\x80", 2), 0);		/* overlong */
	assert_int_equal(format_utf8_length("\xe0\x80\x80", 3), 0);	/* overlong */
	assert_int_equal(format_utf8_length("\xed\xa0\x80", 3), 0);	/* surrogate */
	assert_int_equal(format_utf8_length("\xf4\x90\x80\x80", 4), 0); /* beyond Unicode */
}

/* Collects what is printed. */
struct capture {
	FILE *out;
	char *text;
	size_t bytes;
};

static void capture_begin(struct capture *capture)
{
	capture->out = open_memstream(&capture->text, &capture->bytes);
	assert_non_null(capture->out);
}

static void capture_check(struct capture *capture, const char *expected)
{
	fclose(capture->out);
	assert_string_equal(capture->text, expected);
	free(capture->text);
}

static void test_text_is_safe(void **state)
{
	struct capture capture;

	(void)state;
	capture_begin(&capture);
	format_put_text(capture.out, (struct vt_text){"a\033[31m\xc3\xa9\xff\xc2\x9b\x7f", 12});
	capture_check(&capture, "a?[31m\xc3\xa9???");
	capture_begin(&capture);
	format_put_arguments(capture.out, (struct vt_text){"python\0train.py\0--x", 19}, 0);
	fputc('\n', capture.out);
	format_put_arguments(capture.out, (struct vt_text){"python\0train.py\0--x", 19}, 10);
	capture_check(&capture, "python train.py --x\npython tra...");
	capture_begin(&capture);
	format_put_file(capture.out, "a/b-1.vt");
	format_put_file(capture.out, " it's");
	format_put_file(capture.out, "");
	capture_check(&capture, "a/b-1.vt' it'\\''s'''");
}

static void test_json(void **state)
{
	struct capture capture;
	struct json json;

	(void)state;
	capture_begin(&capture);
	json_init(&json, capture.out, true);
	json_open(&json, NULL, '{');
	json_text(&json, "a\"", (struct vt_text){"x\n\\\xff\0", 5});
	json_string(&json, "n", NULL);
	json_open(&json, "list", '[');
	json_number(&json, NULL, UINT64_MAX);
	json_signed(&json, NULL, INT64_MIN);
	json_hex(&json, NULL, 255);
	json_close(&json, ']');
	json_open(&json, "empty", '{');
	json_close(&json, '}');
	json_bool(&json, "b", true);
	json_number_or_null(&json, "u", false, 7);
	json_close(&json, '}');
	json_end(&json);
	capture_check(&capture,
		"{\"a\\\"\": \"x\\u000a\\\\\\ufffd\\u0000\", \"n\": null, \"list\": "
		"[18446744073709551615, -9223372036854775808, \"0xff\"], \"empty\": {}, \"b\": "
		"true, "
		"\"u\": null}\n");
}

static void test_cut(void **state)
{
	struct style style = {.width = 80}, ascii = {.width = 80, .ascii = true};
	struct capture capture;

	(void)state;
	capture_begin(&capture);
	style.out = ascii.out = capture.out;
	style_put_cut(&style, "abc", 5, true);
	style_put_cut(&style, "abcdefghij", 5, true);
	style_put_cut(&ascii, "abcdefghij", 6, true);
	style_put_cut(&style, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 3, true);
	capture_check(&capture, "abc  ab\u2026ijab..ij\u00e9\u2026\u00e9");
}

/* One trace, ready to be printed. */
struct loaded {
	struct replay *replay;
	struct symbol_table *symbols;
	struct watch watch;
	struct overview overview;
	struct report_trace shown;
};

static void observe(void *user, const struct model *model, const struct vt_record *record)
{
	struct loaded *loaded = user;

	if (record->kind == VT_REC_module)
		symbol_table_add_module(loaded->symbols, &record->module);
	watch_observe(&loaded->watch, model, record);
}

static void load(struct loaded *loaded)
{
	*loaded = (struct loaded){.symbols = symbol_table_new()};
	assert_int_equal(replay_open(&loaded->replay, PATH, observe, loaded), 0);
	watch_finish(&loaded->watch);
	assert_int_equal(overview_make(&loaded->overview, loaded->replay,
				 &(struct overview_request){.watch = &loaded->watch}),
		0);
	loaded->shown =
		(struct report_trace){.overview = &loaded->overview, .symbols = loaded->symbols};
}

static void unload(struct loaded *loaded)
{
	overview_release(&loaded->overview);
	symbol_table_free(loaded->symbols);
	watch_release(&loaded->watch);
	replay_close(loaded->replay);
}

static void print_every_text(const struct style *style, const struct loaded *loaded)
{
	struct timeline timeline;

	report_text(style, &loaded->shown);
	sites_text_views(style, &loaded->shown);
	leaks_text(style, &loaded->shown);
	info_text(style, &loaded->shown);
	fragmentation_text(style, &loaded->shown);
	oom_text(style, &loaded->shown);
	assert_int_equal(timeline_make(&timeline, loaded->replay, timeline_columns(style),
				 &(struct timeline_also){NULL, NULL}),
		0);
	timeline_text(style, &timeline, loaded->replay->model);
	timeline_csv(style->out, &timeline);
	timeline_release(&timeline);
}

/* Nothing that is printed for people may drive their terminal. */
static void check_printable(const char *text, size_t bytes)
{
	while (bytes) {
		size_t length = format_utf8_length(text, bytes);

		assert_true(length > 0);
		assert_true(length > 1 || *text == '\n' || (unsigned char)*text >= 0x20);
		assert_true(*text != 0x7f);
		text += length;
		bytes -= length;
	}
}

static void check_json_of(
	const struct loaded *loaded, void (*print)(FILE *, const struct report_trace *, size_t))
{
	struct report_trace twice[] = {loaded->shown, loaded->shown};
	struct capture capture;

	capture_begin(&capture);
	print(capture.out, twice, 2);
	fclose(capture.out);
	assert_true(json_check(capture.text));
	assert_int_equal(strlen(capture.text), capture.bytes);
	free(capture.text);
}

static void print_report_json(FILE *out, const struct report_trace *traces, size_t n)
{
	report_json(out, traces, n, REPORT_ALL);
}

static void print_timeline_json(FILE *out, const struct report_trace *traces, size_t n)
{
	struct timeline timeline = {.n_columns = 1, .column_ns = 1};
	struct timeline_column column = {.tracked_bytes = 1};
	struct timeline_device device = {.columns = &column};
	struct vt_rec_host_memory host = {.known = VT_HOST_LOCKED, .locked_bytes = 1};

	(void)n;
	timeline.devices = &device;
	timeline.n_devices = 1;
	timeline.host = &host;
	timeline_json(out, &timeline, traces->overview->facts.file);
}

/* Traces of random records: every document is whole, every text printable, in colour and without.
 */
static void test_any_trace(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct source random = {.state = seed};
		struct loaded loaded;
		struct capture capture;
		struct vt_writer writer;
		struct vt_record record;
		struct vt_lane *lane;
		struct style style = {.width = 60 + seed * 10, .ascii = seed % 2};

		trace_begin(&writer, PATH, (struct vt_writer_options){0});
		lane = vt_writer_lane(&writer, 1, 0);
		for (unsigned int i = 0; i < 1500; i++) {
			random.time_ns = i * 1000;
			random.n_texts = 0;
			if (!record_fill(&record,
				    (unsigned int)(source_next(&random) % VT_N_RECORDS), &random))
				continue;
			if (record.kind == VT_REC_failure && i % 2)
				record.failure.result = VT_RESULT_OUT_OF_MEMORY;
			record_put(lane, &record);
		}
		trace_end(&writer);
		load(&loaded);
		capture_begin(&capture);
		style.out = capture.out;
		print_every_text(&style, &loaded);
		fclose(capture.out);
		check_printable(capture.text, capture.bytes);
		free(capture.text);
		unload(&loaded);
		load(&loaded);
		check_json_of(&loaded, print_report_json);
		check_json_of(&loaded, info_json);
		check_json_of(&loaded, print_timeline_json);
		unload(&loaded);
	}
}

/* Each kind of record: its name and every field's name on one line; and one JSON value. */
static void test_dump(void **state)
{
	struct model *model = model_new();
	struct source random = {.state = 5};
	struct vt_record record;
	struct capture capture;

	(void)state;
	for (unsigned int kind = 0; kind < VT_N_RECORDS; kind++) {
		const struct vt_schema *schema = vt_schema_get(kind);

		random.n_texts = 0;
		if (!record_fill(&record, kind, &random))
			continue;
		capture_begin(&capture);
		dump_text(capture.out, model, &record);
		fclose(capture.out);
		assert_non_null(strstr(capture.text, schema->name));
		for (size_t i = 0; i < schema->n_fields; i++)
			if (schema->fields[i].type != VT_FIELD_TIME &&
				!strstr(capture.text, schema->fields[i].name))
				fail_msg("%s is not in %s", schema->fields[i].name, capture.text);
		assert_ptr_equal(strchr(capture.text, '\n'), capture.text + capture.bytes - 1);
		free(capture.text);
		capture_begin(&capture);
		dump_json(capture.out, model, &record);
		fclose(capture.out);
		assert_true(json_check(capture.text));
		assert_ptr_equal(strchr(capture.text, '\n'), capture.text + capture.bytes - 1);
		free(capture.text);
	}
	model_free(model);
}

static void test_dump_line(void **state)
{
	static const char expected[] = "1.000000002 12 alloc api_id=cuMemAlloc_v2 kind=linear "
				       "device=0 context_id=0x1 address=0x7f00 "
				       "bytes=512 stack_id=3 duration_ns=40 stream=0 pool=0";
	struct vt_record api = {.kind = VT_REC_api, .api = {7, {"cuMemAlloc_v2", 13}}};
	struct vt_record record = {.kind = VT_REC_alloc, .tid = 12, .time_ns = 1000000002};
	struct model *model = model_new();
	struct capture capture;

	(void)state;
	model_apply(model, &api);
	record.alloc = (struct vt_rec_alloc){.time_ns = 1000000002,
		.api_id = 7,
		.kind = VT_KIND_LINEAR,
		.context_id = 1,
		.address = 0x7f00,
		.bytes = 512,
		.stack_id = 3,
		.duration_ns = 40};
	capture_begin(&capture);
	dump_text(capture.out, model, &record);
	fclose(capture.out);
	/* Fields may come to stand behind these. */
	assert_memory_equal(capture.text, expected, strlen(expected));
	free(capture.text);
	model_free(model);
}

static void write_story(void)
{
	struct vt_writer writer;
	struct vt_lane *lane;

	trace_begin(&writer, PATH, (struct vt_writer_options){0});
	lane = vt_writer_lane(&writer, 1, 0);
	vt_put_process(lane,
		&(struct vt_rec_process){
			.pid = 42, .host = {"gpu01", 5}, .cmdline = {"python\0train.py", 16}});
	vt_put_device(lane,
		&(struct vt_rec_device){
			.total_bytes = 64 * MIB, .page_bytes = 2 * MIB, .name = {"Test GPU", 8}});
	vt_put_api(lane, &(struct vt_rec_api){1, {"cuMemAlloc_v2", 13}});
	vt_put_uncovered(lane, &(struct vt_rec_uncovered){{"cuMemNew", 8}});
	vt_put_alloc(lane, &(struct vt_rec_alloc){.time_ns = 5,
				   .api_id = 1,
				   .kind = 1,
				   .address = 0x400000,
				   .bytes = 2 * MIB});
	vt_put_alloc(lane, &(struct vt_rec_alloc){.time_ns = 1000000000,
				   .api_id = 1,
				   .kind = 1,
				   .address = 0x800000,
				   .bytes = 30 * MIB});
	vt_put_copy(lane, &(struct vt_rec_copy){.time_ns = 1500000000,
				  .direction = VT_DIR_H2D,
				  .dst = 0x800000,
				  .src = 0x10,
				  .bytes = MIB,
				  .duration_ns = 4000000});
	vt_put_failure(lane, &(struct vt_rec_failure){.time_ns = 2000000000,
				     .api_id = 1,
				     .kind = 1,
				     .bytes = 99 * MIB,
				     .result = 2});
	vt_put_free(lane, &(struct vt_rec_free){.time_ns = 2500000000, .address = 0x800000});
	/* The driver is gone when the process ends: no news. */
	vt_put_free(lane,
		&(struct vt_rec_free){.time_ns = 2900000000, .address = 0x400000, .result = 4});
	vt_put_end(lane,
		&(struct vt_rec_end){.time_ns = 3000000000, .reason = VT_END_EXIT, .status = 1});
	trace_end(&writer);
}

/* A story on one screen. */
static void test_report(void **state)
{
	static const char *const expected[] = {
		"python train.py \u00b7 pid 42 \u00b7 gpu01 \u00b7 3.0 s \u00b7 ended: exit 1 "
		"\u00b7 6 events, none lost\n",
		"GPU 0  Test GPU  64.0 MiB\n",
		"PEAK           32.0 MiB (50 % of the card, 32.0 MiB headroom) at 0:01.000\n",
		"AT THE END     2.0 MiB linear in 1 block\n",
		"OUT OF MEMORY  1 episode\n             ! 0:02.000  asked 99.0 MiB: impossible "
		"request",
		"the request is larger than the whole device of 64.0 MiB\n",
		"TRANSFERS      1.0 MiB to the device in 1 call, 4.0 ms of host time: 1.0 MiB "
		"pageable\n",
		"NOT SEEN       1 memory call of the driver that this version does not record: "
		"cuMemNew\n",
		"next: vramtrace oom output.vt \u00b7 vramtrace leaks output.vt \u00b7 vramtrace "
		"peak output.vt",
	};
	struct loaded loaded;
	struct capture capture;
	struct style style = {.width = 100};
	const char *at;

	(void)state;
	write_story();
	load(&loaded);
	capture_begin(&capture);
	style.out = capture.out;
	report_text(&style, &loaded.shown);
	fclose(capture.out);
	at = capture.text;
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		const char *found = strstr(at, expected[i]);

		if (!found)
			fail_msg("'%s' is not in, or not behind what should be before it:\n%s",
				expected[i], capture.text);
		at = found;
	}
	assert_null(strstr(capture.text, "shutting down"));
	/* It is told once. */
	assert_null(strstr(capture.text, "FAILED"));
	free(capture.text);
	unload(&loaded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_text_is_safe),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_any_trace),
		cmocka_unit_test(test_dump),
		cmocka_unit_test(test_dump_line),
		cmocka_unit_test(test_report),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

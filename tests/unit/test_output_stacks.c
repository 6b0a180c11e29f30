/* tools/output: stacks of a Python program as text and as JSON, long ones, and what is not to leave
 * the house. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "output/info_text.h"
#include "output/report.h"
#include "output/leaks_text.h"
#include "output/sites_text.h"
#include "unit/json_check.h"
#include "unit/records.h"

#define PATH "stacks.vt"
#define MIB  (1024ull * 1024)

#define HIDDEN "secret"

static struct vt_text text_of(const char *text)
{
	return (struct vt_text){text, strlen(text)};
}

static void put_module(struct vt_lane *lane, uint64_t start, const char *path)
{
	vt_put_module(lane, &(struct vt_rec_module){.bias = start,
				    .start = start,
				    .end = start + 0x1000,
				    .path = text_of(path)});
}

static void put_code(struct vt_lane *lane, uint64_t code_id, const char *function, const char *file)
{
	vt_put_python_code(lane, &(struct vt_rec_python_code){.code_id = code_id,
					 .first_line = 40,
					 .line_table = VT_LINES_LNOTAB,
					 .file = text_of(file),
					 .function = text_of(function),
					 .lines = {"\0\1\4\1", 4}});
}

static void put_alloc_at(struct vt_lane *lane, uint64_t stack_id, uint64_t bytes)
{
	vt_put_alloc(lane, &(struct vt_rec_alloc){.time_ns = 1000 + stack_id,
				   .api_id = 1,
				   .kind = VT_KIND_LINEAR,
				   .address = 0x100000000 * stack_id,
				   .bytes = bytes,
				   .stack_id = stack_id});
}

/* PyTorch below Block.forward below main, with the interpreter's own frames between. */
static void put_short_stack(struct vt_lane *lane)
{
	uint64_t frames[] = {0x10010, 0x20010, 0x30010, 0x30810, 0x30020, 0x80000};
	uint64_t python[] = {1ull << 32 | 4, 2ull << 32 | VT_PYTHON_ENTRY};

	vt_put_stack(lane, &(struct vt_rec_stack){.stack_id = 1,
				   .time_ns = 5,
				   .frames = {frames, 6},
				   .python = {python, 2},
				   .flags = VT_STACK_NATIVE_CUT | VT_STACK_NATIVE_GAP});
}

/* So many frames of PyTorch, then the same. */
static void put_long_stack(struct vt_lane *lane, size_t n)
{
	uint64_t frames[64], python[30];

	for (size_t i = 0; i < n; i++)
		frames[i] = 0x20010 + i;
	frames[n] = 0x30810;
	for (size_t i = 0; i < 30; i++)
		python[i] = (i == 4 ? 1ull : i == 20 ? 2ull : 3ull) << 32;
	python[29] |= VT_PYTHON_ENTRY;
	vt_put_stack(lane, &(struct vt_rec_stack){.stack_id = 2,
				   .time_ns = 5,
				   .frames = {frames, n + 1},
				   .python = {python, 30}});
}

static void write_trace(void)
{
	struct vt_writer writer;
	struct vt_lane *lane;

	trace_begin(&writer, PATH, (struct vt_writer_options){0});
	lane = vt_writer_lane(&writer, 1, 0);
	vt_put_process(
		lane, &(struct vt_rec_process){.pid = 42,
			      .host = text_of(HIDDEN "-host"),
			      .exe = text_of("/home/" HIDDEN "/bin/python3.12"),
			      .cmdline = {"/home/" HIDDEN "/bin/python3.12\0-u\0/home/" HIDDEN
					  "/train.py\0--token\0" HIDDEN,
				      67}});
	vt_put_environment(lane, &(struct vt_rec_environment){text_of("VRAMTRACE_OUTPUT"),
					 text_of("/home/" HIDDEN "/x.vt")});
	vt_put_driver(lane, &(struct vt_rec_driver){13000, text_of("/" HIDDEN "/libcuda.so.1")});
	vt_put_device(
		lane, &(struct vt_rec_device){.total_bytes = 64 * MIB, .page_bytes = 2 * MIB});
	vt_put_api(lane, &(struct vt_rec_api){1, text_of("cuMemAlloc_v2")});
	vt_put_note(lane, &(struct vt_rec_note){text_of("read '/" HIDDEN "/a/b.so' 3/s")});
	put_module(lane, 0x10000, "/" HIDDEN "/libcudart.so.13");
	put_module(lane, 0x20000, "/home/" HIDDEN "/lib/libtorch_cuda.so");
	put_module(lane, 0x30000, "/home/" HIDDEN "/lib/libpython3.12.so.1.0");
	put_code(lane, 1, "Block.forward", "/home/" HIDDEN "/model.py");
	put_code(lane, 2, "main", "/home/" HIDDEN "/train.py");
	put_code(lane, 3, "call", "/opt/lib/python3.12/site-packages/torch/nn.py");
	vt_put_python(
		lane, &(struct vt_rec_python){.time_ns = 1, .version = 0x030c01f0, .captured = 1});
	put_short_stack(lane);
	put_long_stack(lane, 40);
	vt_put_eval_range(lane, &(struct vt_rec_eval_range){6, 0x30800, 0x30900});
	put_alloc_at(lane, 1, 30 * MIB);
	put_alloc_at(lane, 2, 2 * MIB);
	vt_put_python_stacks(lane, &(struct vt_rec_python_stacks){2000, VT_PYTHON_CAPTURED, 1200});
	vt_put_python_stacks(lane, &(struct vt_rec_python_stacks){2001, VT_PYTHON_CAPTURED, 1204});
	vt_put_python_stacks(lane, &(struct vt_rec_python_stacks){2001, VT_PYTHON_NO_THREAD, 7});
	vt_put_python_stacks(lane, &(struct vt_rec_python_stacks){2001, VT_PYTHON_INVALID, 1});
	vt_put_python_stacks(lane, &(struct vt_rec_python_stacks){2001, VT_PYTHON_MISMATCH, 2});
	vt_put_python_stacks(lane, &(struct vt_rec_python_stacks){2001, 99, 2});
	trace_end(&writer);
}

struct loaded {
	struct replay *replay;
	struct symbol_table *symbols;
	struct overview overview;
	struct report_trace shown;
};

static void add_module(void *user, const struct model *model, const struct vt_record *record)
{
	(void)model;
	if (record->kind == VT_REC_module)
		assert_int_equal(symbol_table_add_module(user, &record->module), 0);
}

static void load(struct loaded *loaded, struct show show)
{
	loaded->symbols = symbol_table_new();
	assert_int_equal(replay_open(&loaded->replay, PATH, add_module, loaded->symbols), 0);
	assert_int_equal(
		overview_make(&loaded->overview, loaded->replay, &(struct overview_request){0}), 0);
	loaded->shown = (struct report_trace){
		.overview = &loaded->overview, .symbols = loaded->symbols, .show = show};
}

static void unload(struct loaded *loaded)
{
	overview_release(&loaded->overview);
	symbol_table_free(loaded->symbols);
	replay_close(loaded->replay);
}

static void put_report_json(const struct style *style, const struct report_trace *trace)
{
	report_json(style->out, trace, 1, REPORT_ALL);
}

static void put_info_json(const struct style *style, const struct report_trace *trace)
{
	info_json(style->out, trace, 1);
}

/* What put prints of the trace; to be freed. */
static char *printed(
	void (*put)(const struct style *, const struct report_trace *), struct show show)
{
	struct style style = {.width = 100};
	struct loaded loaded;
	size_t bytes;
	char *text;

	load(&loaded, show);
	style.out = open_memstream(&text, &bytes);
	assert_non_null(style.out);
	put(&style, &loaded.shown);
	fclose(style.out);
	unload(&loaded);
	return text;
}

static void check(const char *text, const char *expected)
{
	if (!strstr(text, expected))
		fail_msg("this is not there:\n%s\nbut there is:\n%s", expected, text);
}

static void test_text(void **state)
{
	char *text;

	(void)state;
	write_trace();
	text = printed(leaks_text, (struct show){0});
	check(text, "  30.0 MiB  in 1 block, linear on GPU 0, by torch;");
	check(text, "      #0  libcudart.so.13+0xf\n"
		    "      #1  libtorch_cuda.so+0xf\n"
		    "      #2  Block.forward  model.py:42\n"
		    "      #3  main  train.py:41\n"
		    "      #4  0x80000 (in no file)\n"
		    "      (frames further out were not kept: run --depth)\n"
		    "      (native frames may be missing: some code here has no unwind "
		    "information)\n\n");
	check(text, " are not on this machine: their functions are not named\n");
	free(text);
	text = printed(leaks_text, (struct show){.all_frames = true, .paths = SHOW_WHOLE_PATHS});
	check(text, "      #1  /home/" HIDDEN "/lib/libtorch_cuda.so+0xf\n"
		    "      #2  /home/" HIDDEN "/lib/libpython3.12.so.1.0+0xf\n"
		    "      #3  Block.forward  /home/" HIDDEN "/model.py:42\n"
		    "      #4  main  /home/" HIDDEN "/train.py:41\n"
		    "      #5  /home/" HIDDEN "/lib/libpython3.12.so.1.0+0x1f\n");
	assert_null(strstr(text, "more frames"));
	free(text);
}

/* The middle is left out, but not what names the stack. */
static void test_long_stack(void **state)
{
	char *text;

	(void)state;
	write_trace();
	text = printed(leaks_text, (struct show){0});
	check(text, "      #11 libtorch_cuda.so+0x1a\n"
		    "      \u2026 32 more frames (--all-frames)\n"
		    "      #44 Block.forward  model.py:41\n"
		    "      \u2026 15 more frames (--all-frames)\n"
		    "      #60 main  train.py:41\n"
		    "      \u2026 3 more frames (--all-frames)\n"
		    "      #64 call  nn.py:41\n");
	free(text);
	text = printed(leaks_text, (struct show){.all_frames = true});
	check(text, "      #43 call  nn.py:41\n"
		    "      #44 Block.forward  model.py:41\n"
		    "      #45 call  nn.py:41\n");
	free(text);
}

static void test_report(void **state)
{
	char *text;

	(void)state;
	write_trace();
	text = printed(report_text, (struct show){0});
	check(text, "30.0 MiB  torch  main train.py:41 > Block.forward model.py:42 ");
	check(text, " 1 stack lacks its Python frames: they could not be read\n");
	/* For these labels no symbols were needed. */
	assert_null(strstr(text, "not on this machine"));
	free(text);
}

static void test_json_frames(void **state)
{
	char *text;

	(void)state;
	write_trace();
	text = printed(put_report_json, (struct show){0});
	assert_true(json_check(text));
	check(text, "\"kind\": \"native\",\n     \"function\": null,\n     \"file\": null,\n"
		    "     \"line\": null,\n"
		    "     \"module\": \"/home/" HIDDEN "/lib/libpython3.12.so.1.0\",\n"
		    "     \"offset\": 15,\n     \"address\": \"0x30010\",\n"
		    "     \"internal\": true\n    },\n    {\n"
		    "     \"kind\": \"python\",\n     \"function\": \"Block.forward\",\n"
		    "     \"file\": \"/home/" HIDDEN "/model.py\",\n     \"line\": 42,\n"
		    "     \"module\": null,\n     \"offset\": null,\n     \"address\": null,\n"
		    "     \"internal\": false\n");
	check(text, "\"python\": \"3.12.1\"");
	check(text, "\"python_stacks\": {\n   \"captured\": 1204,\n   \"mismatched_stacks\": 2,\n"
		    "   \"skipped\": {\n    \"no_thread\": 7,\n    \"invalid\": 1\n   },\n"
		    "   \"reason\": null\n  }");
	check(text, "\"missing\": [\n   \"/home/" HIDDEN "/lib/");
	check(text, "\"stack_missing\": [\n    \"depth\",\n    \"unwind_info\"\n   ]");
	check(text, "\"stack_missing\": []");
	free(text);
}

static void test_info(void **state)
{
	char *text;

	(void)state;
	write_trace();
	text = printed(info_text, (struct show){0});
	check(text, "python        3.12.1, frames recorded\n"
		    "              1,204 stacks with Python frames\n"
		    "              7 stacks of threads that never ran Python\n"
		    "              1 stack without: they could not be read\n");
	check(text, "note          read '/" HIDDEN "/a/b.so' 3/s\n");
	free(text);
	text = printed(put_info_json, (struct show){0});
	assert_true(json_check(text));
	check(text, "\"python\": {\n    \"version\": \"3.12.1\",\n    \"captured\": true,\n"
		    "    \"reason\": null\n   }");
	check(text, "\"captured\": 1204");
	free(text);
}

/* An interpreter whose frames are not recorded. */
static void test_not_captured(void **state)
{
	struct vt_writer writer;
	struct vt_lane *lane;
	char *text;

	(void)state;
	trace_begin(&writer, PATH, (struct vt_writer_options){0});
	lane = vt_writer_lane(&writer, 1, 0);
	vt_put_api(lane, &(struct vt_rec_api){1, text_of("cuMemAlloc_v2")});
	vt_put_python(lane, &(struct vt_rec_python){.time_ns = 1,
				    .version = 0x031000b2,
				    .reason = text_of("this version is not known")});
	put_alloc_at(lane, 0, MIB);
	trace_end(&writer);
	text = printed(report_text, (struct show){0});
	check(text, "NOT SEEN       stacks of Python: this version is not known\n");
	free(text);
	text = printed(info_text, (struct show){0});
	check(text, "python        3.16.0b2, frames not recorded: this version is not known\n");
	free(text);
	text = printed(put_report_json, (struct show){0});
	check(text, "\"python\": \"3.16.0b2\"");
	check(text, "\"captured\": 0,");
	check(text, "\"reason\": \"this version is not known\"");
	free(text);
}

/* No folder, host or argument is in any document. */
static void test_hidden(void **state)
{
	static void (*const puts[])(const struct style *, const struct report_trace *) = {
		report_text, leaks_text, sites_text_views, info_text, put_report_json,
		put_info_json};
	const struct show show = {.paths = SHOW_NO_PATHS};

	(void)state;
	write_trace();
	for (size_t i = 0; i < sizeof(puts) / sizeof(*puts); i++) {
		char *text = printed(puts[i], show);

		if (strstr(text, HIDDEN) || strstr(text, "--token") || strstr(text, "-u"))
			fail_msg("document %zu tells: %s", i, text);
		if (i < 4)
			check(text, "python3.12 train.py (3 more arguments) \u00b7 pid 42 \u00b7 ");
		else
			assert_true(json_check(text));
		free(text);
	}
	for (size_t i = 0; i < sizeof(puts) / sizeof(*puts); i++) {
		char *text = printed(puts[i], (struct show){0});

		check(text, HIDDEN);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_long_stack),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_json_frames),
		cmocka_unit_test(test_info),
		cmocka_unit_test(test_not_captured),
		cmocka_unit_test(test_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

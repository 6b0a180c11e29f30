/* tools/symbol: stacks of native and Python frames merged, who owns them, and what they are called.
 *
 * A native stack is a text with one letter a frame, see modules; a Python stack likewise, a to z,
 * with | behind the outermost frame of each call of the evaluation loop. A merged stack is written
 * as the two are, with - before frames that are internal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "symbol/stack.h"
#include "unit/records.h"

#define NOW 1000

static const struct {
	char letter;
	uint64_t start;
	const char *path; /* NULL: in no module */
} modules[] = {
	{'D', 0x10000, "/usr/lib/libcuda.so.1"},
	{'T', 0x20000, "/opt/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so"},
	{'I', 0x30000, "/opt/lib/libpython3.12.so.1.0"},
	{'C', 0x40000, "/usr/lib/libc.so.6"},
	{'X', 0x50000, "/home/me/_ext.so"},
	{'P', 0x60000, "/opt/lib/python3.12/site-packages/pkg/_pkg.so"},
	{'M', 0x70000, "/opt/bin/python3.12"},
	{'J', 0x80000, NULL},
	/* parts of the interpreter: its evaluation loop, and a handler of instructions */
	{'E', 0x38000, NULL},
	{'H', 0x3c000, NULL},
};

#define N_MODULES (sizeof(modules) / sizeof(*modules))

static struct model *model;
static struct symbol_table *table;

static struct vt_text text_of(const char *text)
{
	return (struct vt_text){text, strlen(text)};
}

static int set_up(void **state)
{
	(void)state;
	model = model_new();
	table = symbol_table_new();
	for (size_t i = 0; i < N_MODULES; i++) {
		struct vt_rec_module module = {.bias = modules[i].start,
			.start = modules[i].start,
			.end = modules[i].start + 0x10000};

		if (!modules[i].path)
			continue;
		module.path = text_of(modules[i].path);
		assert_int_equal(symbol_table_add_module(table, &module), 0);
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	symbol_table_free(table);
	model_free(model);
	return 0;
}

static void learn_range(void)
{
	model_apply(model, &(struct vt_record){.kind = VT_REC_eval_range,
				   .eval_range = {NOW + 5, 0x38000, 0x39000}});
}

static void add_code(uint64_t code_id, const char *function, const char *file)
{
	model_apply(model, &(struct vt_record){.kind = VT_REC_python_code,
				   .python_code = {.code_id = code_id,
					   .first_line = 10,
					   .line_table = VT_LINES_LNOTAB,
					   .file = text_of(file),
					   .function = text_of(function),
					   .lines = {"\0\1\4\2\4\3", 6}}});
}

static uint64_t address_of(char letter)
{
	for (size_t i = 0; i < N_MODULES; i++)
		if (modules[i].letter == letter)
			return modules[i].start + 0x11;
	fail_msg("no module %c", letter);
	return 0;
}

static char letter_of(uint64_t address)
{
	for (size_t i = 0; i < N_MODULES; i++)
		if (modules[i].start + 0x11 == address)
			return modules[i].letter;
	fail_msg("no module at %llx", (unsigned long long)address);
	return 0;
}

/* The letter is the code object. */
static const struct model_stack *stack_of(const char *native, const char *python)
{
	static uint64_t stack_id;
	uint64_t frames[64], items[64];
	struct vt_rec_stack record = {.stack_id = ++stack_id,
		.time_ns = NOW,
		.frames = {frames, 0},
		.python = {items, 0}};

	for (; *native; native++)
		frames[record.frames.n_items++] = address_of(*native);
	for (; *python; python++) {
		if (*python == '|')
			items[record.python.n_items - 1] |= VT_PYTHON_ENTRY;
		else
			items[record.python.n_items++] = (uint64_t)*python << 32;
	}
	model_apply(model, &(struct vt_record){.kind = VT_REC_stack, .stack = record});
	return model_stack_find(model, stack_id);
}

static void check_merge(const char *native, const char *python, const char *expected)
{
	const struct symbol_stack *stack = symbol_stack_get(table, model, stack_of(native, python));
	char merged[256];
	size_t n = 0;

	for (size_t i = 0; i < stack->n_calls; i++) {
		const struct symbol_frame *frame = stack->calls[i].frame;

		if (stack->calls[i].internal)
			merged[n++] = '-';
		merged[n++] = frame->python ? *frame->function : letter_of(frame->address);
	}
	merged[n] = '\0';
	if (strcmp(merged, expected))
		fail_msg("%s and %s: %s, not %s", native, python, merged, expected);
}

static void add_letters(void)
{
	static char names[26][2];

	for (size_t i = 0; i < 26; i++) {
		names[i][0] = (char)('a' + i);
		add_code('a' + i, names[i], "/home/me/train.py");
	}
}

static void test_merge(void **state)
{
	(void)state;
	learn_range();
	add_letters();
	/* One loop runs several Python frames, or one each as before 3.11. */
	check_merge("DTIEIM", "abc|", "DT-Iabc-I-M");
	check_merge("DTIEIIEIIMCM", "ab|c|", "DT-Iab-I-Ic-I-I-M-C-M");
	check_merge("DTEIEIEM", "a|b|c|", "DTa-Ib-Ic-M");
	/* An extension between Python frames, which Python calls and which calls Python. */
	check_merge("DXIEXEIXIEM", "ab|c|d|", "DX-IabXc-IX-Id-M");
	/* A thread that libc started. */
	check_merge("DTEICC", "a|", "DTa-I-C-C");
	/* Only one of the two sorts. */
	check_merge("", "ab|c|", "abc");
	check_merge("DTIEIM", "", "DTIEIM");
	check_merge("", "", "");
}

/* Without matching numbers: the innermost ones belong together. */
static void test_mismatch(void **state)
{
	(void)state;
	learn_range();
	add_letters();
	/* A greenlet: Python ends where it was started, the native stack goes on into the starter.
	 */
	check_merge("DXEIXEIEIMCM", "ab|", "DXab-IXE-IE-I-M-C-M");
	/* The Python stack was cut inside of what a loop ran. */
	check_merge("DEIEIM", "ab", "Dab-IE-I-M");
	/* The native stack was cut. */
	check_merge("DTE", "a|b|c|", "DTabc");
	check_merge("D", "a|", "Da");
	/* Loops that were not found. */
	check_merge("DTIEICM", "a|b|c|", "DT-Ia-I-C-Mbc");
	check_merge("DXM", "a|", "DX-Ma");
}

static void test_no_range(void **state)
{
	(void)state;
	add_letters();
	check_merge("DTIEIMCM", "ab|", "DT-I-E-I-M-C-Mab");
	check_merge("DTIEIM", "", "DTIEIM");
}

/* A range that is learned late changes stacks that were merged before. */
static void test_late_range(void **state)
{
	const struct model_stack *stack;

	(void)state;
	add_letters();
	stack = stack_of("DEX", "a|");
	assert_int_equal(symbol_stack_get(table, model, stack)->n_calls, 4);
	learn_range();
	assert_int_equal(symbol_stack_get(table, model, stack)->n_calls, 3);
	assert_ptr_equal(
		symbol_stack_get(table, model, stack), symbol_stack_get(table, model, stack));
}

/* What `python -X perf` puts between the frames of the interpreter; and generated code elsewhere.
 */
static void test_trampolines(void **state)
{
	(void)state;
	learn_range();
	add_letters();
	check_merge("DTIEJIIEJIM", "a|b|", "DT-Ia-J-I-Ib-J-I-M");
	check_merge("DTJIEM", "a|", "DTJ-Ia-M");
	check_merge("DJEJXEM", "a|b|", "DJaJXb-M");
	check_merge("DJ", "a|", "DJa");
}

/* Where each instruction is a function, one of them stands inside the loop. */
static void test_handlers(void **state)
{
	static const struct symbol_frame handler = {.function = "_TAIL_CALL_CALL_PY_GENERAL"};

	(void)state;
	learn_range();
	add_letters();
	assert_int_equal(symbol_table_add_resolved(table, address_of('H'), NOW, &handler, 1), 0);
	check_merge("DTIHEIM", "a|", "DT-Ia-I-M");
	/* Without its name it is one of the interpreter's own; with it, but elsewhere, a frame. */
	check_merge("DTIIEIM", "a|", "DT-I-Ia-I-M");
	check_merge("DHX", "", "DHX");
}

static void test_inlined(void **state)
{
	static const struct symbol_frame inlined[] = {{.function = "inner"}, {.function = "outer"}};
	const struct symbol_stack *stack;

	(void)state;
	learn_range();
	add_letters();
	assert_int_equal(symbol_table_add_resolved(table, address_of('X'), NOW, inlined, 2), 0);
	stack = symbol_stack_get(table, model, stack_of("XE", "ab|"));
	assert_int_equal(stack->n_calls, 4);
	assert_string_equal(stack->calls[0].frame->function, "inner");
	assert_string_equal(stack->calls[1].frame->function, "outer");
	assert_string_equal(stack->calls[2].frame->function, "a");
	assert_false(stack->cut);
}

static const struct symbol_frame *python_frame(uint64_t code_id, uint64_t offset)
{
	static uint64_t stack_id = 1000000;
	const uint64_t item = code_id << 32 | VT_PYTHON_ENTRY | offset;
	const struct symbol_stack *stack;

	model_apply(model, &(struct vt_record){.kind = VT_REC_stack,
				   .stack = {.stack_id = ++stack_id,
					   .python = {&item, 1},
					   .flags = VT_STACK_PYTHON_CUT}});
	stack = symbol_stack_get(table, model, model_stack_find(model, stack_id));
	assert_int_equal(stack->n_calls, 1);
	assert_true(stack->cut);
	assert_true(stack->calls[0].frame->python);
	assert_null(stack->calls[0].frame->module);
	return stack->calls[0].frame;
}

static void test_python_frames(void **state)
{
	static const struct {
		uint64_t offset;
		unsigned int line;
	} cases[] = {{0, 11}, {2, 11}, {4, 13}, {8, 16}, {100, 16}, {VT_PYTHON_NO_OFFSET, 0}};
	const struct symbol_frame *frame;

	(void)state;
	add_code(1, "Block.forward", "/home/me/model.py");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		frame = python_frame(1, cases[i].offset);
		assert_string_equal(frame->function, "Block.forward");
		assert_string_equal(frame->file, "/home/me/model.py");
		assert_int_equal(frame->line, cases[i].line);
		assert_ptr_equal(python_frame(1, cases[i].offset), frame);
	}
	/* A code object that the trace lost, and one without names. */
	frame = python_frame(2, 4);
	assert_null(frame->function);
	assert_null(frame->file);
	assert_int_equal(frame->line, 0);
	add_code(2, "", "");
	frame = python_frame(2, 4);
	assert_null(frame->function);
	assert_null(frame->file);
	assert_int_equal(frame->line, 13);
}

/* A long line table comes in parts. */
static void test_joined_lines(void **state)
{
	static const char part[] = "\4\1\4\1\4\1";
	struct vt_record more = {
		.kind = VT_REC_python_lines, .python_lines = {1, {part, sizeof(part) - 1}}};

	(void)state;
	add_code(1, "f", "f.py");
	model_apply(model, &more);
	model_apply(model, &more);
	more.python_lines.code_id = 7;
	model_apply(model, &more);
	assert_int_equal(python_frame(1, 8)->line, 16);
	assert_int_equal(python_frame(1, 12)->line, 17);
	assert_int_equal(python_frame(1, 32)->line, 22);
}

static void test_owners(void **state)
{
	static const char site[] = "/usr/lib/python3/dist-packages";
	static const struct {
		const char *folder, *name, *owner;
	} cases[] = {
		{"/torch/lib/", "libtorch_cuda.so", "torch"},
		{"/torch/lib/", "libc10_cuda.so", "torch"},
		{"/nvidia/nccl/lib/", "libnccl.so.2", "nccl"},
		{"/nvidia/cublas/lib/", "libcublasLt.so.12", "cublas"},
		{"/nvidia/cudnn/lib/", "libcudnn_engines_precompiled.so.9", "cudnn"},
		{"/nvidia/cufft/lib/", "libcufft.so.11", "cufft"},
		{"/nvidia/cusolver/lib/", "libcusolver.so.11", "cusolver"},
		{"/nvidia/cusparse/lib/", "libcusparse.so.12", "cusparse"},
		{"/triton/_C/", "libtriton.so", "triton"},
		{"/home/u/.triton/cache/K/", "cuda_utils.so", "triton"},
		{"/jax_plugins/xla_cuda12/", "xla_cuda_plugin.so", "jax"},
		{"/jaxlib/", "cuda_versions.so", "jax"},
		{"/cupy/cuda/", "memory.cpython-312-x86_64-linux-gnu.so", "cupy"},
		{"/cupy_backends/cuda/api/", "runtime.cpython-312-x86_64-linux-gnu.so", "cupy"},
		{"/opt/app/", "server", "server"},
		{"/opt/app/", "libcudamemory.so", "libcudamemory.so"},
		{"/opt/app/", "libcommon.so", "libcommon.so"},
		/* What only passes a call on leaves it to the program. */
		{"/usr/lib/", "libcuda.so.580.1", "program"},
		{"/usr/lib/", "libcudart.so.13", "program"},
		{"/usr/lib/", "libcudart-d0da41ae.so.11.0", "program"},
		{"/usr/lib/", "libvramtrace.so", "program"},
		{"/usr/lib/", "libc.so.6", "program"},
		{"/usr/lib/", "libstdc++.so.6", "program"},
		{"/usr/lib/", "libffi.so.8", "program"},
		{"", "[vdso]", "program"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct symbol_table *other = symbol_table_new();
		const uint64_t addresses[] = {0x5001, 0x10010, 0x1000010};
		const struct model_stack stack = {.n_frames = 3, .frames = addresses};
		struct vt_rec_module program = {
			.start = 0x1000000, .end = 0x1001000, .path = text_of("/bin/program")};
		struct vt_rec_module module = {.start = 0x10000, .end = 0x11000};
		char path[256];

		snprintf(path, sizeof(path), "%s%s%s", *cases[i].folder ? site : "",
			cases[i].folder, cases[i].name);
		module.path = text_of(path);
		assert_int_equal(symbol_table_add_module(other, &program), 0);
		assert_int_equal(symbol_table_add_module(other, &module), 0);
		assert_string_equal(symbol_stack_owner(other, model, &stack), cases[i].owner);
		symbol_table_free(other);
	}
	assert_string_equal(symbol_stack_owner(table, model, stack_of("", "")), "cuda");
	assert_string_equal(symbol_stack_owner(table, model, stack_of("JD", "")), "cuda");
}

/* p: of a package; s: of the standard library; u: the user's; l: lost. */
static void add_sources(const char *package)
{
	static char file[200];

	snprintf(file, sizeof(file), "/opt/lib/python3.12/site-packages/%s", package);
	add_code('p', "call", file);
	add_code('q', "outer_call", "/opt/lib/python3.12/site-packages/other/x.py");
	add_code('s', "loads", "/opt/lib/python3.12/json/decoder.py");
	add_code('f', "_find", "<frozen importlib._bootstrap>");
	add_code('u', "step", "/home/me/train.py");
	add_code('v', "main", "/home/me/run.py");
	add_code('c', "<module>", "/opt/bin/torchrun");
	add_code('g', "call", "/tmp/torchinductor_me/ab/cabc.py");
}

static void test_python_owners(void **state)
{
	static const struct {
		const char *package, *native, *python, *owner;
	} cases[] = {
		/* Python alone. */
		{"torch/nn/modules/linear.py", "", "pu|", "torch"},
		{"torch/nn/modules/linear.py", "", "up|", "train.py"},
		{"triton/runtime/jit.py", "", "pu|", "triton"},
		{"jax/_src/api.py", "", "pu|", "jax"},
		{"jaxlib/xla_client.py", "", "pu|", "jax"},
		{"cupy/_core/core.py", "", "pu|", "cupy"},
		{"cupy_backends/x.py", "", "pu|", "cupy"},
		{"numba/cuda/driver.py", "", "pu|", "numba"},
		{"single.py", "", "pu|", "single.py"},
		{"torch/x.py", "", "g|u|", "torch"},
		/* The standard library is nobody's. */
		{"torch/x.py", "", "sfpu|", "torch"},
		{"torch/x.py", "", "sfup|", "train.py"},
		{"torch/x.py", "", "sf|", "decoder.py"},
		{"torch/x.py", "", "lu|", "train.py"},
		{"torch/x.py", "", "l|", "python"},
		/* Native frames come first, unless they are the interpreter's. */
		{"pkg/x.py", "DTIEIM", "pu|", "torch"},
		{"pkg/x.py", "DXIEIM", "pu|", "_ext.so"},
		{"pkg/x.py", "DCIEIM", "pu|", "pkg"},
		{"pkg/x.py", "DIEIM", "uu|", "train.py"},
		{"pkg/x.py", "DIEIM", "", "libpython3.12.so.1.0"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		set_up(state);
		learn_range();
		add_sources(cases[i].package);
		assert_string_equal(symbol_stack_owner(table, model,
					    stack_of(cases[i].native, cases[i].python)),
			cases[i].owner);
		tear_down(state);
	}
}

/* What a frame is called in these tests. */
static const char *name_of(const struct symbol_frame *frame)
{
	static char letters[2][2];
	static size_t turn;

	if (!frame)
		return "none";
	if (frame->python)
		return frame->function;
	turn = !turn;
	*letters[turn] = letter_of(frame->address);
	return letters[turn];
}

static void check_headline(
	const char *native, const char *python, const char *expected, const char *caller_name)
{
	const struct symbol_frame *caller,
		*frame = symbol_stack_headline(table, model, stack_of(native, python), &caller);

	assert_string_equal(name_of(frame), expected);
	assert_string_equal(name_of(caller), caller_name);
}

static void test_headlines(void **state)
{
	(void)state;
	learn_range();
	add_sources("torch/nn/linear.py");
	/* The user's Python line wins over everything. */
	check_headline("DTIEIM", "psufv|", "step", "main");
	check_headline("DXIEIM", "pu|", "step", "none");
	check_headline("", "gpuc|", "step", "none");
	check_headline("", "v|u|", "main", "step");
	/* Without one: the user's library, else the package. */
	check_headline("DXIEIM", "pqc|", "X", "none");
	check_headline("DPIEIM", "spqc|", "call", "none");
	check_headline("DTIEIM", "fs|", "_find", "none");
	/* Native alone, as ever. */
	check_headline("DTXXC", "", "X", "X");
	check_headline("DTPC", "", "P", "none");
	check_headline("DTC", "", "T", "none");
	check_headline("DC", "", "D", "none");
	check_headline("", "", "none", "none");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_merge),
		TEST(test_mismatch),
		TEST(test_no_range),
		TEST(test_late_range),
		TEST(test_trampolines),
		TEST(test_handlers),
		TEST(test_inlined),
		TEST(test_python_frames),
		TEST(test_joined_lines),
		TEST(test_owners),
		cmocka_unit_test(test_python_owners),
		TEST(test_headlines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The program that calls every row with every result: its part that no row decides. */
#include "rows.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum rows_pass {
	ROWS_FULL,
	ROWS_NULLS, /* no pointer and no handle is given */
	ROWS_ZEROS, /* all numbers, handles and descriptors are 0 */
};

struct rows_row {
	const char *export, *name;
	int version;
	unsigned int flags; /* that ask for exactly this row, with its name and version */
	bool begins_capture, in_capture;
	CUresult (*call)(void *function);
};

/* The call that is being made. */
static struct {
	unsigned int row, variant;
	enum rows_pass pass;
	int result, errno_before, errno_after, returned;
	unsigned char sent[512];
	size_t sent_bytes;
	struct rows_written {
		void *at;
		size_t bytes;
		uint64_t value;
		bool on_error;
	} written[ROWS_MAX_PARAMS];
	unsigned int n_written;
} now;

static unsigned char rows_memory[ROWS_MAX_PARAMS * ROWS_SLOT_BYTES] __attribute__((aligned(64)));
static unsigned char rows_pristine[sizeof(rows_memory)];
static FILE *rows_manifest;
static bool rows_telling; /* the arguments are new to the manifest */
static struct rows_call *rows_driver;
static __typeof__(&rows_look_up) right_answer; /* the driver's own */

static unsigned int n_passed, n_failed;

static void rows_check(bool right, const char *what, const char *export)
{
	static const char *const passes[] = {"", ", null", ", zero"};

	if (right) {
		n_passed++;
		return;
	}
	if (n_failed++ < 100)
		printf("%s: %s (variant %u%s, result %d)\n", export, what, now.variant,
			passes[now.pass], now.result);
}

static void *rows_slot(unsigned int param)
{
	return now.pass == ROWS_NULLS ? NULL : rows_memory + param * ROWS_SLOT_BYTES;
}

static uint64_t rows_unless_zero(uint64_t value)
{
	return now.pass == ROWS_ZEROS ? 0 : value;
}

static uint64_t rows_unless_none(uint64_t handle)
{
	return now.pass == ROWS_FULL ? handle : 0;
}

static void rows_text(char *at)
{
	if (at && now.pass != ROWS_ZEROS)
		snprintf(at, ROWS_SLOT_BYTES, "row_%u.%u", now.row, now.variant);
}

static void rows_tell(const char *name, uint64_t value)
{
	if (rows_telling)
		fprintf(rows_manifest, " %s=%llx", name, (unsigned long long)value);
}

static void rows_written_to(void *at, size_t bytes, uint64_t value, bool on_error)
{
	if (at)
		now.written[now.n_written++] = (struct rows_written){at, bytes, value, on_error};
}

#define V		    (now.variant)
#define N(param)	    rows_unless_zero(rows_value(now.row, param, V))
#define HANDLE(param)	    rows_unless_none(rows_value(now.row, param, V))
#define SHARED(family, nth) rows_unless_none(rows_handle(family, V, nth))
#define PICK(...)                                                                                  \
	rows_unless_zero(                                                                          \
		((const uint64_t[]){__VA_ARGS__})[V % (sizeof((uint64_t[]){__VA_ARGS__}) / 8)])
#define SEND(param)	  rows_append(now.sent, &now.sent_bytes, &(param), sizeof(param))
#define TELL(name, value) rows_tell(name, (uint64_t)(uintptr_t)(value))
#define PUT(member, value)                                                                         \
	do {                                                                                       \
		(member) = (__typeof__(member))(uintptr_t)rows_unless_zero(value);                 \
		TELL(#member, member);                                                             \
	} while (0)
#define OUT(at, name, value, on_error)                                                             \
	do {                                                                                       \
		__typeof__(*(at)) out_ = (__typeof__(out_))(uintptr_t)(value);                     \
		rows_written_to(at, sizeof(out_), (uint64_t)(uintptr_t)out_, on_error);            \
		TELL(name, out_);                                                                  \
	} while (0)

/* The last thing before the call. */
static void rows_begin(void)
{
	if (rows_telling)
		fputc('\n', rows_manifest);
	memcpy(rows_pristine, rows_memory, sizeof(rows_memory));
	rows_driver->row = (int)now.row;
	rows_driver->variant = V;
	rows_driver->result = now.result;
	rows_driver->memory = rows_memory;
	rows_driver->pristine = rows_pristine;
	rows_driver->memory_bytes = sizeof(rows_memory);
	rows_driver->n_seen = rows_driver->n_own = rows_driver->n_own_before = 0;
	errno = now.errno_before;
}

#define ROWS_CALL(export, function, ...)                                                           \
	CUresult result_;                                                                          \
	rows_begin();                                                                              \
	result_ = ((__typeof__(&(export)))(function))(__VA_ARGS__);                                \
	now.errno_after = errno;                                                                   \
	rows_driver->row = -1;                                                                     \
	return result_

extern const struct rows_row rows_table[];
extern const unsigned int rows_n;
extern const int rows_results[]; /* every CUresult, success first, and one that no header knows */
extern const unsigned int rows_n_results;

static void *rows_library;
static bool rows_traced, rows_sampled, rows_timed, rows_capturing;

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

#define IS_ONE_OF(name, ...)                                                                       \
	is_one_of(name, (const char *const[]){__VA_ARGS__},                                        \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* Before the real call only what tells the device's free memory may be called, or begins to time a
 * copy; while a capture is open, nothing that could end it. */
static bool is_permitted(const char *own, bool before)
{
	if (before)
		return !rows_capturing &&
		       ((rows_sampled && IS_ONE_OF(own, "cuMemGetInfo_v2", "cuDeviceGetUuid_v2")) ||
			       (rows_timed && IS_ONE_OF(own, "cuCtxGetCurrent", "cuEventCreate",
						      "cuEventRecord", "cuEventRecord_ptsz")));
	return !rows_capturing || IS_ONE_OF(own, "cuCtxGetCurrent", "cuStreamGetCaptureInfo_v2",
					  "cuStreamGetCaptureInfo_v2_ptsz");
}

static void check_own_calls(const char *export)
{
	char what[200];

	for (unsigned int i = 0; i < rows_driver->n_own; i++) {
		bool before = i < rows_driver->n_own_before;

		snprintf(what, sizeof(what), "the recorder called %s %s%s", rows_driver->own[i],
			before ? "before the call" : "after the call",
			rows_capturing ? " during a capture" : "");
		rows_check(rows_traced && is_permitted(rows_driver->own[i], before), what, export);
	}
}

static void check_call(const struct rows_row *row)
{
	rows_check(rows_driver->n_seen == 1, "did not reach the driver once", row->export);
	rows_check(now.sent_bytes == rows_driver->args_bytes &&
			   !memcmp(now.sent, rows_driver->args, now.sent_bytes),
		"an argument has changed", row->export);
	rows_check(rows_driver->memory_kept,
		"memory behind an argument had changed before the call", row->export);
	rows_check(rows_driver->errno_seen == now.errno_before, "errno had changed before the call",
		row->export);
	rows_check(now.returned == now.result, "the result has changed", row->export);
	rows_check(now.errno_after == rows_driver->errno_left, "errno has changed after the call",
		row->export);
	for (unsigned int i = 0; i < now.n_written; i++)
		if (!now.result != now.written[i].on_error)
			memcpy((unsigned char *)now.written[i].at - rows_memory + rows_pristine,
				&now.written[i].value, now.written[i].bytes);
	rows_check(!memcmp(rows_memory, rows_pristine, sizeof(rows_memory)),
		"an output has changed, or memory that is none", row->export);
	rows_check(!dlerror(), "dlerror has changed", row->export);
	check_own_calls(row->export);
}

/* Each set of arguments is told once; each call says which set it has. */
static void tell_arguments(const struct rows_row *row)
{
	static bool told[1024][ROWS_N_VARIANTS][3];

	rows_telling = rows_manifest && !told[now.row][V][now.pass];
	told[now.row][V][now.pass] = true;
	if (rows_telling)
		fprintf(rows_manifest, "A %s %u %d", row->export, V, now.pass);
}

static void call_row(unsigned int index, unsigned int variant, enum rows_pass pass, int result)
{
	static const enum rows_context contexts[] = {
		ROWS_DEVICE_0, ROWS_DEVICE_0, ROWS_NO_CONTEXT, ROWS_DEVICE_0, ROWS_NOT_TOLD};
	const struct rows_row *row = &rows_table[index];
	static unsigned int n_calls;

	n_calls++;
	now.row = index;
	now.variant = variant;
	now.pass = pass;
	now.result = result;
	now.errno_before = (int)(1000 + n_calls % 997);
	now.sent_bytes = now.n_written = 0;
	for (unsigned int i = 0; i < ROWS_MAX_PARAMS; i++)
		memset(rows_memory + i * ROWS_SLOT_BYTES, pass == ROWS_ZEROS ? 0 : (int)(0x40 + i),
			ROWS_SLOT_BYTES);
	rows_driver->errno_left = (int)(3000 + n_calls % 991);
	rows_driver->context = contexts[variant % 5];
	rows_driver->taken_bytes = n_calls % 3 * 4096;
	tell_arguments(row);
	now.returned = (int)row->call(dlsym(rows_library, row->export));
	if (rows_manifest)
		fprintf(rows_manifest, "C %s %u %d %d %d %llu %llu\n", row->export, variant, pass,
			result, (int)rows_driver->context,
			(unsigned long long)rows_driver->taken_bytes,
			(unsigned long long)rows_driver->free_bytes);
	check_call(row);
}

static unsigned int index_of(const char *export)
{
	for (unsigned int i = 0; i < rows_n; i++)
		if (!strcmp(rows_table[i].export, export))
			return i;
	fprintf(stderr, "there is no row %s\n", export);
	exit(2);
}

/* The recording begins with a success, and some pools are known. */
static void prepare(void)
{
	call_row(index_of("cuInit"), 0, ROWS_FULL, 0);
	call_row(index_of("cuDevicePrimaryCtxRetain"), 0, ROWS_FULL, 0);
	for (unsigned int variant = 0; variant < 3; variant++)
		call_row(index_of("cuMemPoolCreate"), variant, ROWS_FULL, 0);
}

static void call_successfully(unsigned int row, unsigned int variant, enum rows_pass pass)
{
	call_row(row, variant, pass, 0);
	/* An open capture would keep the recorder from asking for free memory. */
	if (rows_table[row].begins_capture)
		call_row(index_of("cuStreamEndCapture"), variant, ROWS_FULL, 0);
}

static void call_all(void)
{
	for (unsigned int row = 0; row < rows_n; row++) {
		for (unsigned int variant = 0; variant < ROWS_N_VARIANTS; variant++)
			call_successfully(row, variant, ROWS_FULL);
		call_successfully(row, 0, ROWS_ZEROS);
		for (unsigned int i = 1; i < rows_n_results; i++) {
			call_row(row, i % ROWS_N_VARIANTS, ROWS_FULL, rows_results[i]);
			call_row(row, i % ROWS_N_VARIANTS, ROWS_NULLS, rows_results[i]);
		}
		call_row(row, 0, ROWS_ZEROS, CUDA_ERROR_INVALID_VALUE);
	}
}

static void call_during_capture(void)
{
	call_row(index_of("cuStreamBeginCapture_v2"), 0, ROWS_FULL, 0);
	rows_driver->capturing = rows_capturing = true;
	for (unsigned int row = 0; row < rows_n; row++)
		for (unsigned int variant = 0;
			rows_table[row].in_capture && variant < ROWS_N_VARIANTS; variant++) {
			call_row(row, variant, ROWS_FULL, 0);
			call_row(row, variant, ROWS_FULL,
				variant % 2 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN);
		}
	rows_driver->capturing = rows_capturing = false;
	call_row(index_of("cuStreamEndCapture"), 0, ROWS_FULL, 0);
}

/* --- Look-ups --- */
typedef CUresult get_function(const char *, void **, int, cuuint64_t);
typedef CUresult get_function_v2(const char *, void **, int, cuuint64_t, int *status);

static const char *expected_owner;

/* Whether the function is the export of that name in the file of that name; NULL: is absent. */
static bool is_of(void *function, const char *owner, const char *export)
{
	const char *name;
	Dl_info info;

	if (!owner || !function)
		return !owner && !function;
	if (!dladdr(function, &info) || !info.dli_sname)
		return false;
	name = strrchr(info.dli_fname, '/');
	return !strcmp(name ? name + 1 : info.dli_fname, owner) && !strcmp(info.dli_sname, export);
}

static void expect_at(const char *route, void *function, const char *owner, const char *export)
{
	rows_check(is_of(function, owner, export), route, export);
}

static const char *name_of(void *function)
{
	Dl_info info;

	return function && dladdr(function, &info) && info.dli_sname ? info.dli_sname : "";
}

/* Whether the driver has the row. */
static bool look_up_row(const struct rows_row *row, void *get, void *get_v2)
{
	void *right = right_answer(row->name, row->version, row->flags), *found = (void *)-1;
	const char *right_owner = right ? expected_owner : NULL, *right_name = name_of(right);
	/* An older driver may have an older form only, which the name then gives. */
	const char *owner = strcmp(right_name, row->export) ? NULL : expected_owner;
	int status;

	expect_at("dlsym of a handle", dlsym(rows_library, row->export), owner, row->export);
	expect_at("dlvsym of a handle", dlvsym(rows_library, row->export, "ROWS_1"), owner,
		row->export);
	expect_at("RTLD_DEFAULT", dlsym(RTLD_DEFAULT, row->export), owner, row->export);
	expect_at("RTLD_NEXT", dlsym(RTLD_NEXT, row->export), owner, row->export);
	rows_check(!((get_function *)get)(row->name, &found, row->version, row->flags) == !!right,
		"cuGetProcAddress gives another result", row->export);
	expect_at("cuGetProcAddress", found, right_owner, right_name);
	if (!get_v2)
		return owner != NULL;
	found = (void *)-1;
	rows_check(!((get_function_v2 *)get_v2)(
			   row->name, &found, row->version, row->flags, &status) == !!right,
		"cuGetProcAddress_v2 gives another result", row->export);
	expect_at("cuGetProcAddress_v2", found, right_owner, right_name);
	return owner != NULL;
}

/* Any version and any flags: the wrapper of what the driver itself would give. */
static void look_up_around(const struct rows_row *row, void *get)
{
	for (unsigned int i = 0; i < rows_n; i++)
		for (unsigned int flags = 0; flags < 3; flags++) {
			int version = rows_table[i].version + (int)(i % 2);
			void *right = right_answer(row->name, version, flags), *found = NULL;

			((get_function *)get)(row->name, &found, version, flags);
			expect_at("cuGetProcAddress with another version", found,
				right ? expected_owner : NULL, name_of(right));
		}
}

/* Whoever only looks like the driver is left alone: its functions are found, and called. */
static void look_up_decoys(const char *path)
{
	void *decoy = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	rows_check(decoy != NULL, "the decoy cannot be opened", path);
	rows_driver->n_own = 0;
	for (unsigned int i = 0; decoy && i < rows_n; i++) {
		void *found = dlsym(decoy, rows_table[i].export);

		expect_at("dlsym of a decoy", found, "rows_decoy.so", rows_table[i].export);
		expect_at("dlvsym of a decoy", dlvsym(decoy, rows_table[i].export, "ROWS_1"),
			"rows_decoy.so", rows_table[i].export);
		rows_check(found && ((int (*)(void))found)() == (int)(5000 + i),
			"the decoy's function was not called", rows_table[i].export);
	}
	rows_check(!rows_driver->n_own, "a call of a decoy's function went to the driver", path);
}

/* A library that was linked with the driver, and opened. */
static void look_up_linked(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void **linked = library ? dlsym(library, "rows_linked") : NULL;

	rows_check(linked != NULL, "the linked library cannot be opened", path);
	for (unsigned int i = 0; linked && i < rows_n; i++)
		expect_at("linked", linked[i], expected_owner, rows_table[i].export);
}

static void look_up_all(const char *decoy, const char *linked)
{
	void *get = dlsym(rows_library, "cuGetProcAddress"),
	     *get_v2 = dlsym(rows_library, "cuGetProcAddress_v2");
	bool complete = true;

	for (unsigned int i = 0; i < rows_n; i++) {
		complete &= look_up_row(&rows_table[i], get, get_v2);
		look_up_around(&rows_table[i], get);
	}
	look_up_decoys(decoy);
	/* It cannot be opened where the driver is too old for it. */
	if (complete)
		look_up_linked(linked);
}

/*
 * rows_caller plain|unsampled|sampled all|capture [MANIFEST]
 * rows_caller plain|unsampled|sampled routes DECOY LINKED
 *
 * plain: without the recorder. (un)sampled: it may (not) ask for free memory.
 */
int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	rows_sampled = !strcmp(argv[1], "sampled");
	rows_timed = getenv("VRAMTRACE_COPY_TIMING") != NULL;
	rows_traced = rows_sampled || !strcmp(argv[1], "unsampled");
	expected_owner = rows_traced ? "libvramtrace.so" : "libcuda.so.1";
	rows_library = dlopen("libcuda.so.1", RTLD_NOW | (argc > 4 ? RTLD_GLOBAL : RTLD_LOCAL));
	rows_driver = rows_library ? dlsym(rows_library, "rows_log") : NULL;
	right_answer =
		rows_library ? (__typeof__(right_answer))dlsym(rows_library, "rows_look_up") : NULL;
	if (!rows_driver || !right_answer) {
		puts(dlerror());
		return 2;
	}
	if (!strcmp(argv[2], "routes") && argc > 4) {
		look_up_all(argv[3], argv[4]);
	} else {
		rows_manifest = argc > 3 ? fopen(argv[3], "w") : NULL;
		prepare();
		if (!strcmp(argv[2], "capture"))
			call_during_capture();
		else
			call_all();
		if (rows_manifest && fclose(rows_manifest))
			return 2;
	}
	printf("%u passed, %u failed\n", n_passed, n_failed);
	return n_failed > 0;
}

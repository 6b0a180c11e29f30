/* tools/symbol: this program's own functions, libc's, and what must not be guessed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol/symbol.h"

/* One object of this process as a recorder would write it down. */
struct loaded {
	char path[PATH_MAX];
	unsigned char build_id[64];
	struct vt_rec_module record;
};

struct search {
	uint64_t address;
	struct loaded *found;
};

static void read_build_id(struct loaded *loaded)
{
	const void *bits = NULL;
	int fd = open(loaded->path, O_RDONLY);
	Elf *elf;
	ssize_t n;

	assert_true(fd >= 0);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	n = dwelf_elf_gnu_build_id(elf, &bits);
	if (n > 0) {
		assert_true((size_t)n <= sizeof(loaded->build_id));
		memcpy(loaded->build_id, bits, (size_t)n);
		loaded->record.build_id.bytes = (size_t)n;
	}
	elf_end(elf);
	close(fd);
}

static int match_object(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct search *search = data;
	struct loaded *loaded = search->found;
	uint64_t start = UINT64_MAX, end = 0;

	(void)bytes;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uint64_t low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		start = low < start ? low : start;
		if (low + info->dlpi_phdr[i].p_memsz > end)
			end = low + info->dlpi_phdr[i].p_memsz;
	}
	if (search->address < start || search->address >= end)
		return 0;
	if (!realpath(*info->dlpi_name ? info->dlpi_name : "/proc/self/exe", loaded->path))
		return 0;
	loaded->record = (struct vt_rec_module){.time_ns = 100,
		.bias = info->dlpi_addr,
		.start = start,
		.end = end,
		.path = {loaded->path, strlen(loaded->path)},
		.build_id = {(char *)loaded->build_id, 0}};
	read_build_id(loaded);
	return 1;
}

static void find_loaded(struct loaded *loaded, const void *address)
{
	struct search search = {(uintptr_t)address, loaded};

	assert_int_equal(dl_iterate_phdr(match_object, &search), 1);
}

static struct symbol_table *table_with(const struct loaded *loaded)
{
	struct symbol_table *table = symbol_table_new();

	assert_non_null(table);
	assert_int_equal(symbol_table_add_module(table, &loaded->record), 0);
	return table;
}

static struct vt_rec_module module_at(uint64_t start, const char *path, uint64_t time_ns)
{
	return (struct vt_rec_module){.time_ns = time_ns,
		.bias = start,
		.start = start,
		.end = start + 0x1000,
		.path = {path, strlen(path)},
		.build_id = {"", 0}};
}

/* Where the caller goes on after the call. */
__attribute__((noinline)) uint64_t place_of_call(void)
{
	return (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0));
}

static volatile uint64_t place;

__attribute__((noinline)) static void a_static_function(void)
{
	place = place_of_call();
}

__attribute__((noinline)) void an_exported_function(void);
__attribute__((noinline)) void an_exported_function(void)
{
	place = place_of_call();
}

void mangled_function(void) __asm__("_ZN2ns5Class6methodEiPKc");
__attribute__((noinline)) void mangled_function(void)
{
	place = place_of_call();
}

void template_function(void) __asm__("_ZN2ns4makeIiEEiT_");
__attribute__((noinline)) void template_function(void)
{
	place = place_of_call();
}

void rust_function(void) __asm__("_RNvXNtC1m4deepINtB2_1SlENtB2_1T2go");
__attribute__((noinline)) void rust_function(void)
{
	place = place_of_call();
}

void old_rust_function(void) __asm__("_ZN4deep1S2go17h0123456789abcdefE");
__attribute__((noinline)) void old_rust_function(void)
{
	place = place_of_call();
}

void cloned_function(void) __asm__("plain_name.part.0");
__attribute__((noinline)) void cloned_function(void)
{
	place = place_of_call();
}

static inline __attribute__((always_inline)) void inlined_function(void)
{
	place = place_of_call();
}

__attribute__((noinline)) static void surrounding_function(void)
{
	inlined_function();
	place++;
}

/* Symbols with a size, without one, and a gap that belongs to none. */
__asm__(".pushsection .text\n"
	".globl sized_code, unsized_code\n"
	".type sized_code, %function\n"
	"sized_code: .skip 8\n"
	".size sized_code, 8\n"
	".skip 8\n"
	".type unsized_code, %function\n"
	"unsized_code: .skip 16\n"
	".type after_code, %function\n"
	"after_code: .skip 8\n"
	".size after_code, 8\n"
	".popsection\n");
extern const char sized_code[], unsized_code[];

static const struct symbol_frame *resolve_one(struct symbol_table *table, uint64_t address)
{
	const struct symbol_frame *frames;

	assert_int_equal(symbol_table_resolve(table, address, 200, &frames), 1);
	assert_false(frames[0].python);
	assert_int_equal(frames[0].address, address);
	return frames;
}

static void test_own_functions(void **state)
{
	static const struct {
		void (*call)(void);
		const char *name;
	} cases[] = {
		{a_static_function, "a_static_function"},
		{an_exported_function, "an_exported_function"},
		{mangled_function, "ns::Class::method"},
		{template_function, "ns::make<int>"},
		{rust_function, "<m::deep::S<i32> as m::deep::T>::go"},
		{old_rust_function, "deep::S::go"},
		{cloned_function, "plain_name"},
	};
	struct loaded self;
	struct symbol_table *table;

	(void)state;
	find_loaded(&self, sized_code);
	table = table_with(&self);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct symbol_frame *frame;

		cases[i].call();
		frame = resolve_one(table, place);
		assert_string_equal(frame->function, cases[i].name);
		assert_string_equal(frame->module, self.path);
		assert_string_equal(frame->module_name, "test_symbol");
		assert_int_equal(frame->offset, place - 1 - self.record.bias);
		/* The same answer again, from the cache. */
		assert_ptr_equal(resolve_one(table, place), frame);
	}
	symbol_table_free(table);
}

static void test_lines_and_inlining(void **state)
{
	struct loaded self;
	struct symbol_table *table;
	const struct symbol_frame *frames;

	(void)state;
	find_loaded(&self, sized_code);
	table = table_with(&self);
	surrounding_function();
	assert_int_equal(symbol_table_resolve(table, place - 1, 200, &frames), 2);
	assert_string_equal(frames[0].function, "inlined_function");
	assert_string_equal(frames[1].function, "surrounding_function");
	for (int i = 0; i < 2; i++) {
		const char *name = strrchr(frames[i].file, '/');

		assert_string_equal(name ? name + 1 : frames[i].file, "test_symbol.c");
	}
	assert_in_range(frames[0].line, 1, frames[1].line - 1);
	symbol_table_free(table);
}

static void test_sizes(void **state)
{
	struct loaded self;
	struct symbol_table *table;
	uint64_t sized = (uintptr_t)sized_code, unsized = (uintptr_t)unsized_code;

	(void)state;
	find_loaded(&self, sized_code);
	table = table_with(&self);
	assert_string_equal(resolve_one(table, sized + 1)->function, "sized_code");
	assert_string_equal(resolve_one(table, sized + 8)->function, "sized_code");
	assert_null(resolve_one(table, sized + 9)->function);
	assert_null(resolve_one(table, unsized)->function);
	assert_string_equal(resolve_one(table, unsized + 1)->function, "unsized_code");
	assert_string_equal(resolve_one(table, unsized + 16)->function, "unsized_code");
	assert_string_equal(resolve_one(table, unsized + 17)->function, "after_code");
	symbol_table_free(table);
}

static void test_libc(void **state)
{
	struct loaded loaded;
	struct symbol_table *table;
	const struct symbol_frame *frame;
	void *libc = dlopen("libc.so.6", RTLD_NOW), *function;

	(void)state;
	/* By its handle: a sanitizer has functions of the same names. */
	assert_non_null(libc);
	function = dlsym(libc, "qsort");
	assert_non_null(function);
	find_loaded(&loaded, function);
	table = table_with(&loaded);
	frame = resolve_one(table, (uintptr_t)function + 1);
	assert_string_equal(frame->function, "qsort");
	assert_non_null(strstr(frame->module_name, "libc"));
	symbol_table_free(table);
	dlclose(libc);
}

static void expect_only_module(struct loaded *loaded)
{
	struct symbol_table *table = table_with(loaded);
	const struct symbol_frame *frame = resolve_one(table, place);

	assert_null(frame->function);
	assert_null(frame->file);
	assert_int_equal(frame->line, 0);
	assert_int_equal(frame->offset, place - 1 - loaded->record.bias);
	assert_memory_equal(frame->module, loaded->record.path.data, loaded->record.path.bytes);
	symbol_table_free(table);
}

static void test_never_guessed(void **state)
{
	struct loaded self;
	struct vt_rec_module good;
	char deleted[PATH_MAX + 16], made[] = "/tmp/test_symbol.XXXXXX";
	int fd;

	(void)state;
	find_loaded(&self, sized_code);
	good = self.record;
	a_static_function();

	/* Another build of the same file; a recorder that knew of no build id; one that knew part
	 * of it. */
	if (good.build_id.bytes) {
		self.build_id[0] ^= 1;
		expect_only_module(&self);
		self.build_id[0] ^= 1;
		self.record.build_id.bytes = 0;
		expect_only_module(&self);
		self.record.build_id.bytes = good.build_id.bytes - 1;
		expect_only_module(&self);
		self.record = good;
	}

	snprintf(deleted, sizeof(deleted), "%s (deleted)", self.path);
	self.record.path = (struct vt_text){deleted, strlen(deleted)};
	expect_only_module(&self);
	self.record.path = (struct vt_text){"/nowhere/lib.so", 15};
	expect_only_module(&self);
	self.record.path = (struct vt_text){"[vdso]", 6};
	expect_only_module(&self);
	self.record.path = (struct vt_text){"/tmp", 4};
	expect_only_module(&self);

	/* A file that is no ELF object, an empty one, and a FIFO without a writer. */
	self.record.build_id.bytes = 0;
	fd = mkstemp(made);
	assert_true(fd >= 0);
	self.record.path = (struct vt_text){made, strlen(made)};
	expect_only_module(&self);
	assert_int_equal(write(fd, "\177ELF\2\1\1 and no more", 19), 19);
	expect_only_module(&self);
	close(fd);
	unlink(made);
	assert_int_equal(mkfifo(made, 0600), 0);
	expect_only_module(&self);
	unlink(made);
}

static void test_unknown_address(void **state)
{
	struct symbol_table *table = symbol_table_new();
	const uint64_t addresses[] = {0, 1, 0x1000, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		const struct symbol_frame *frame = resolve_one(table, addresses[i]);

		assert_null(frame->function);
		assert_null(frame->module);
		assert_null(frame->module_name);
		assert_int_equal(frame->offset, 0);
	}
	symbol_table_free(table);
	symbol_table_free(NULL);
}

/* Addresses that several objects had one after the other, wholly or in part. */
static void test_reuse_by_time(void **state)
{
	struct symbol_table *table = symbol_table_new();
	struct vt_rec_module first = module_at(0x10000, "/a/first.so", 1000);
	struct vt_rec_module second = module_at(0x10000, "/a/second.so", 2000);
	struct vt_rec_module shifted = module_at(0x10800, "/a/shifted.so", 3000);
	static const struct {
		uint64_t address, time_ns;
		const char *name;
	} cases[] = {
		{0x10011, 1000, "first.so"},
		{0x10011, 1999, "first.so"},
		{0x10011, 2000, "second.so"},
		{0x10011, 9999, "second.so"},
		{0x10011, 5, "first.so"},
		{0x10811, 2999, "second.so"},
		{0x10811, 3000, "shifted.so"},
		{0x11001, 9999, "shifted.so"},
		{0x11000, 2999, "second.so"},
		{0x11800, 0, "shifted.so"},
		{0x11801, 9999, NULL},
		{0x10000, 9999, NULL},
	};

	(void)state;
	assert_int_equal(symbol_table_add_module(table, &shifted), 0);
	assert_int_equal(symbol_table_add_module(table, &second), 0);
	assert_int_equal(symbol_table_add_module(table, &first), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct symbol_frame *frames;

		symbol_table_resolve(table, cases[i].address, cases[i].time_ns, &frames);
		if (cases[i].name)
			assert_string_equal(frames[0].module_name, cases[i].name);
		else
			assert_null(frames[0].module_name);
	}
	symbol_table_free(table);
}

/* Frames stay valid while modules and many addresses are added. */
static void test_frames_stay(void **state)
{
	struct symbol_table *table = symbol_table_new();
	struct vt_rec_module module = module_at(0x10000, "/a/first.so", 0);
	const struct symbol_frame *kept, *frames;

	(void)state;
	module.end = 0x100000;
	assert_int_equal(symbol_table_add_module(table, &module), 0);
	kept = resolve_one(table, 0x10001);
	for (uint64_t address = 0x10001; address < 0x20000; address += 3) {
		struct vt_rec_module more = module_at(address << 20, "/a/more.so", 0);

		if (address % 64 == 0)
			assert_int_equal(symbol_table_add_module(table, &more), 0);
		symbol_table_resolve(table, address, 200, &frames);
		assert_int_equal(frames[0].offset, address - 1 - 0x10000);
	}
	assert_ptr_equal(resolve_one(table, 0x10001), kept);
	assert_string_equal(kept->module, "/a/first.so");
	symbol_table_free(table);
}

/* Answers that came with the trace: of files that are not here, and before those that are. */
static void test_given(void **state)
{
	struct vt_rec_module gone = module_at(0x10000, "/nowhere/lib.so", 0);
	struct vt_rec_module later = module_at(0x10000, "/nowhere/later.so", 1000);
	char function[] = "ns::inner", file[] = "/src/inner.h";
	struct symbol_frame given[] = {
		{.function = function, .file = file, .line = 7}, {.function = "outer"}};
	const struct symbol_frame *frames;
	struct loaded self;
	struct symbol_table *table;

	(void)state;
	a_static_function();
	find_loaded(&self, sized_code);
	table = table_with(&self);
	assert_int_equal(symbol_table_add_module(table, &gone), 0);
	assert_int_equal(symbol_table_add_module(table, &later), 0);
	assert_int_equal(symbol_table_add_resolved(table, 0x10011, 0, given, 2), 0);
	assert_int_equal(symbol_table_add_resolved(table, place, 200, given + 1, 1), 0);
	assert_int_equal(symbol_table_add_resolved(table, 0x10021, 0, NULL, 0), 0);
	/* Nothing is kept of what the caller passed; a second answer changes nothing. */
	memset(function, 'x', 3);
	memset(file, 'x', 3);
	assert_int_equal(symbol_table_add_resolved(table, 0x10011, 0, given, 1), 0);

	assert_int_equal(symbol_table_resolve(table, 0x10011, 0, &frames), 2);
	assert_string_equal(frames[0].function, "ns::inner");
	assert_string_equal(frames[0].file, "/src/inner.h");
	assert_int_equal(frames[0].line, 7);
	assert_string_equal(frames[0].module, "/nowhere/lib.so");
	assert_string_equal(frames[0].module_name, "lib.so");
	assert_int_equal(frames[0].offset, 0x10);
	assert_string_equal(frames[1].function, "outer");
	assert_null(frames[1].file);
	assert_int_equal(frames[1].address, 0x10011);
	assert_string_equal(resolve_one(table, place)->function, "outer");
	assert_null(resolve_one(table, 0x10021)->function);
	/* Later another library lay there. */
	assert_int_equal(symbol_table_resolve(table, 0x10011, 1000, &frames), 1);
	assert_null(frames[0].function);
	assert_string_equal(frames[0].module_name, "later.so");
	symbol_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_functions),
		cmocka_unit_test(test_lines_and_inlining),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_never_guessed),
		cmocka_unit_test(test_unknown_address),
		cmocka_unit_test(test_reuse_by_time),
		cmocka_unit_test(test_frames_stay),
		cmocka_unit_test(test_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* src/record/modules.c: what is mapped into this process, written when first seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <limits.h>

#include "record/modules.h"
#include "unit/records.h"

#define PATH "modules.vt"
/* Small, part of every glibc, and linked by nothing here. */
#define EXTRA "libBrokenLocale.so.1"

static struct vt_writer writer;
static struct vt_lane *lane;

static int begin(void **state)
{
	(void)state;
	modules_forget();
	trace_begin(&writer, PATH, (struct vt_writer_options){0});
	lane = vt_writer_lane(&writer, 1, 0);
	return 0;
}

static bool names(const struct vt_rec_module *module, const char *name)
{
	return module->path.bytes >= strlen(name) &&
	       !memcmp(module->path.data + module->path.bytes - strlen(name), name, strlen(name));
}

/* How many modules were written at time_ns; the last one whose path ends in name goes to *found. */
static unsigned int read_modules(uint64_t time_ns, const char *name, struct vt_rec_module *found)
{
	struct vt_reader *reader = reader_open(PATH);
	struct vt_record record;
	unsigned int n = 0;

	memset(found, 0, sizeof(*found));
	while (vt_reader_next(reader, &record) == 1) {
		assert_int_equal(record.kind, VT_REC_module);
		if (record.module.time_ns != time_ns)
			continue;
		n++;
		assert_true(record.module.start < record.module.end);
		if (names(&record.module, name))
			*found = record.module;
	}
	/* The texts of *found are not looked at any more. */
	vt_reader_close(reader);
	return n;
}

static void everything_is_written_once(void **state)
{
	struct vt_rec_module self, libc;
	char exe[PATH_MAX];
	ssize_t bytes = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	unsigned int n;

	(void)state;
	assert_true(bytes > 0);
	exe[bytes] = '\0';
	modules_update(lane, 5);
	modules_update(lane, 6);
	trace_end(&writer);
	n = read_modules(5, exe, &self);
	assert_true(n >= 3);
	assert_in_range((uintptr_t)everything_is_written_once, self.start, self.end - 1);
	assert_true(self.bias <= self.start);
	assert_true(self.build_id.bytes == 0 || self.build_id.bytes >= 8);
	read_modules(5, "/libc.so.6", &libc);
	/* By an address of its data: with a sanitizer, its functions have stand-ins. */
	assert_in_range((uintptr_t)dlsym(dlopen("libc.so.6", RTLD_NOW), "_IO_2_1_stdout_"),
		libc.start, libc.end - 1);
	assert_int_equal(libc.build_id.bytes, 20);
	assert_int_equal(read_modules(6, "", &self), 0);
}

static void loaded_later_and_again(void **state)
{
	struct vt_rec_module module;
	void *handle;

	(void)state;
	modules_update(lane, 1);
	for (uint64_t round = 0; round < 3; round++) {
		handle = dlopen(EXTRA, RTLD_NOW);
		assert_non_null(handle);
		modules_update(lane, 10 + round);
		modules_update(lane, 20 + round);
		dlclose(handle);
		modules_update(lane, 30 + round);
	}
	trace_end(&writer);
	read_modules(1, EXTRA, &module);
	assert_int_equal(module.end, 0);
	for (uint64_t round = 0; round < 3; round++) {
		assert_int_equal(read_modules(10 + round, EXTRA, &module), 1);
		assert_true(module.end > module.start);
		assert_int_equal(read_modules(20 + round, EXTRA, &module), 0);
		assert_int_equal(read_modules(30 + round, EXTRA, &module), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(everything_is_written_once, begin),
		cmocka_unit_test_setup(loaded_later_and_again, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

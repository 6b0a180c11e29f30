#include "doctor/doctor.h"

#include <stdbool.h>
#include <string.h>

#include "doctor/image.h"

#define RECORDER "libvramtrace.so"

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool starts(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

/* These export such names because it is theirs to do. */
static bool is_owner(const char *name)
{
	static const char *const owners[] = {
		"libc.so", "libdl.so", "libcuda.so", RECORDER, "ld-linux"};

	for (size_t i = 0; i < sizeof(owners) / sizeof(*owners); i++)
		if (starts(name, owners[i]))
			return true;
	return false;
}

/* Whether a file has the runtime's code in it, which begins by looking that name up. */
static bool has_runtime(const char *name, const struct image *image)
{
	return !starts(name, "libcuda.so") && !starts(name, "libcudart") &&
	       !starts(name, RECORDER) && !image_needs(image, "libcudart") &&
	       image_has_text(image, "cuGetProcAddress_v2");
}

static void check_interposer(struct findings *findings, const char *path, const struct image *image)
{
	static const char *const names[] = {"dlsym", "cuMemAlloc_v2", "cuGetProcAddress_v2"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!image_exports(image, names[i]))
			continue;
		findings_add(findings, FINDING_WARNING, "interposer",
			"if calls are missing from the trace, run without it, or put it after "
			"libvramtrace.so in LD_PRELOAD",
			"%s exports %s too: it may stand between the program and the recorder",
			path, names[i]);
		return;
	}
}

/* Adds to *n_runtimes. */
static void check_one(
	struct findings *findings, const char *path, const struct image *image, size_t *n_runtimes)
{
	const char *name = last_part(path);

	if (starts(name, "libcudart")) {
		findings_add(findings, FINDING_OK, "runtime", NULL, "CUDA runtime: %s", path);
		++*n_runtimes;
	} else if (has_runtime(name, image)) {
		findings_add(findings, FINDING_OK, "runtime", NULL,
			"CUDA runtime: inside %s; its calls are seen at the driver, without their "
			"names",
			path);
		++*n_runtimes;
	}
	if (!is_owner(name))
		check_interposer(findings, path, image);
}

void doctor_check_libraries(struct findings *findings, const char *program,
	const struct image *image, const struct loaded_list *libraries)
{
	size_t n_runtimes = 0;

	check_one(findings, program, image, &n_runtimes);
	for (size_t i = 0; i < libraries->n_items; i++) {
		const struct loaded *item = &libraries->items[i];
		struct image *library = item->path ? image_open(item->path) : NULL;

		if (!item->path)
			findings_add(findings, FINDING_PROBLEM, "library",
				"install it, or set LD_LIBRARY_PATH",
				"%s is not found: the program will not start", item->name);
		if (library)
			check_one(findings, item->path, library, &n_runtimes);
		image_close(library);
	}
	if (!n_runtimes)
		findings_add(findings, FINDING_OK, "runtime", NULL,
			"CUDA runtime: none is linked; what is opened while the program runs will "
			"be seen");
}

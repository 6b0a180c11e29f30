#include "doctor/doctor.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "doctor/image.h"
#include "model/memory.h"
#include "vramtrace/memory_names.h"

#define NO_SPACE_BYTES	   (1u << 20)
#define LITTLE_SPACE_BYTES (256u << 20) /* can be full in minutes */

void doctor_check_environment(struct findings *findings)
{
	const char *enabled = getenv("VRAMTRACE_ENABLED"), *deepbind = getenv("VRAMTRACE_DEEPBIND");
	struct stat status;

	if (enabled && !strcmp(enabled, "0"))
		findings_add(findings, FINDING_PROBLEM, "environment",
			"unset VRAMTRACE_ENABLED, or vramtrace resume PID",
			"VRAMTRACE_ENABLED=0: no call stacks and copies are recorded until "
			"recording is resumed");
	if (deepbind && !strcmp(deepbind, "keep"))
		findings_add(findings, FINDING_WARNING, "environment",
			"unset VRAMTRACE_DEEPBIND if the program works without it",
			"VRAMTRACE_DEEPBIND=keep: libraries opened with RTLD_DEEPBIND are not "
			"seen");
	if (!stat("/etc/ld.so.preload", &status) && status.st_size)
		findings_add(findings, FINDING_WARNING, "interposer",
			"if calls are missing from the trace, look at what it names",
			"/etc/ld.so.preload preloads other libraries into every program");
}

void doctor_check_output(struct findings *findings, const char *pattern)
{
	char *copy = memory_text(pattern), *folder = dirname(copy);
	unsigned long long free_bytes = 0;
	struct statvfs disk;
	bool writable = !access(folder, W_OK | X_OK) && !statvfs(folder, &disk);

	if (writable)
		free_bytes = (unsigned long long)disk.f_bavail * disk.f_frsize;
	if (strchr(folder, '%'))
		findings_add(findings, FINDING_OK, "output", NULL,
			"traces go to %s: the folder is made up when they begin", pattern);
	else if (free_bytes < NO_SPACE_BYTES)
		findings_add(findings, FINDING_PROBLEM, "output",
			"set VRAMTRACE_OUTPUT, or run with -o",
			"traces cannot be written to %s: %s", folder,
			strerror(writable ? ENOSPC : errno));
	else if (free_bytes < LITTLE_SPACE_BYTES)
		findings_add(findings, FINDING_WARNING, "output",
			"free some space, or set VRAMTRACE_OUTPUT or VRAMTRACE_MAX_SIZE",
			"traces go to %s, where only %llu MiB are free", folder, free_bytes >> 20);
	else
		findings_add(findings, FINDING_OK, "output", NULL,
			"traces go to %s, where %llu MiB are free", folder, free_bytes >> 20);
	free(copy);
}

void doctor_check_unwinder(
	struct findings *findings, const char *recorder, const struct loaded_list *found)
{
	const struct loaded *unwinder = loader_find(found, "libunwind.so.8");
	char *copy = memory_text(recorder ? recorder : "."), path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/libunwind.so.8", dirname(copy));
	free(copy);
	if (!access(path, R_OK))
		findings_add(findings, FINDING_OK, "unwinder", NULL, "call stacks: by %s", path);
	else if (unwinder && unwinder->path)
		findings_add(findings, FINDING_OK, "unwinder", NULL, "call stacks: by %s",
			unwinder->path);
	else
		findings_add(findings, FINDING_WARNING, "unwinder",
			"install libunwind8, or put it beside libvramtrace.so",
			"no call stacks: libunwind.so.8 is not found");
}

struct unknown_names {
	const struct image *recorder;
	size_t n, n_shown;
	char text[200]; /* the shown ones */
};

/* The recorder exports a function for each entry point that it knows. */
static void note_unknown(const char *name, void *data)
{
	struct unknown_names *unknown = data;
	size_t used = strlen(unknown->text);

	if (!vt_name_is_memory_call(name) || image_exports(unknown->recorder, name))
		return;
	if (used + strlen(name) + 3 < sizeof(unknown->text)) {
		sprintf(unknown->text + used, "%s%s", used ? ", " : "", name);
		unknown->n_shown++;
	}
	unknown->n++;
}

/* What stands behind ".so." in the name of the file that the links lead to: the driver's release.
 */
static const char *release_of(const char *file)
{
	const char *slash = strrchr(file, '/'), *suffix = strstr(slash ? slash : file, ".so.");

	return suffix && strchr(suffix + 4, '.') ? suffix + 4 : "of an unknown release";
}

static void check_coverage(
	struct findings *findings, const struct image *recorder, const struct image *driver)
{
	struct unknown_names unknown = {recorder, 0, 0, ""};

	image_each_export(driver, note_unknown, &unknown);
	if (unknown.n)
		findings_add(findings, FINDING_WARNING, "coverage",
			"use a newer vramtrace, or build it with newer CUDA headers; what such "
			"calls do is not in the trace",
			"%zu memory call%s of this driver %s unknown to the recorder: %s%s",
			unknown.n, unknown.n == 1 ? "" : "s", unknown.n == 1 ? "is" : "are",
			unknown.text, unknown.n > unknown.n_shown ? ", ..." : "");
	else
		findings_add(findings, FINDING_OK, "coverage", NULL,
			"the recorder knows all memory calls of this driver");
}

void doctor_check_driver(
	struct findings *findings, const struct image *recorder, const struct loaded_list *found)
{
	const struct loaded *driver = loader_find(found, "libcuda.so.1");
	struct image *image;
	char *file;

	if (!driver || !driver->path) {
		findings_add(findings, FINDING_OK, "driver", NULL,
			"CUDA driver: none on this machine (no libcuda.so.1): programs find no GPU "
			"here");
		return;
	}
	file = realpath(driver->path, NULL);
	image = image_open(driver->path);
	if (image)
		findings_add(findings, FINDING_OK, "driver", NULL, "CUDA driver: %s, %s",
			driver->path, release_of(file ? file : driver->path));
	if (image && recorder)
		check_coverage(findings, recorder, image);
	image_close(image);
	free(file);
}

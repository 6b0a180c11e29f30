#include "doctor/doctor.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "doctor/image.h"
#include "model/memory.h"

/* Scripts may be run by scripts; the kernel gives up about here too. */
#define MAX_SCRIPTS 5

static bool is_program(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISREG(status.st_mode) && !access(path, X_OK);
}

/* As execvp looks. To be freed; NULL not found. */
static char *look_in_path(const char *name)
{
	const char *folders = getenv("PATH");
	char path[PATH_MAX];

	if (strchr(name, '/'))
		return memory_text(name);
	for (folders = folders ? folders : "/bin:/usr/bin"; *folders;) {
		size_t bytes = strcspn(folders, ":");
		int n = snprintf(path, sizeof(path), "%.*s%s%s", (int)bytes, folders,
			bytes ? "/" : "", name);

		if (n < (int)sizeof(path) && is_program(path))
			return memory_text(path);
		folders += bytes + (folders[bytes] == ':');
	}
	return NULL;
}

static bool check_file(struct findings *findings, const char *path)
{
	struct stat status;

	if (stat(path, &status))
		findings_add(findings, FINDING_PROBLEM, "command", "give the path of a program",
			"%s: %s", path, strerror(errno));
	else if (!S_ISREG(status.st_mode))
		findings_add(findings, FINDING_PROBLEM, "command", "give the path of a program",
			"%s is not a file", path);
	else if (access(path, X_OK))
		findings_add(findings, FINDING_PROBLEM, "command",
			"chmod +x, or name the interpreter before it", "%s is not executable",
			path);
	else
		return true;
	return false;
}

/* The interpreter in a script's first line: with env, the program that env looks for. To be freed;
 * NULL none. */
static char *interpreter_of(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[512] = "", *rest = line + 2, *word, *name;

	if (!file || !fgets(line, sizeof(line), file))
		line[0] = 0;
	if (file)
		fclose(file);
	if (strncmp(line, "#!", 2))
		return NULL;
	word = strtok_r(NULL, " \t\n", &rest);
	if (!word)
		return NULL;
	name = strrchr(word, '/');
	if (name && !strcmp(name, "/env"))
		for (char *next; (next = strtok_r(NULL, " \t\n", &rest));) {
			word = next;
			if (*word != '-' && !strchr(word, '='))
				break;
		}
	return memory_text(word);
}

/* The file that a script is run by, in place of path, which is freed. */
static char *follow_script(struct findings *findings, char *path)
{
	char *name = interpreter_of(path), *found;

	if (name)
		findings_add(findings, FINDING_OK, "script", NULL, "%s is a script, run by %s",
			path, name);
	else
		findings_add(findings, FINDING_WARNING, "script", "put a #! line at its top",
			"%s is neither a program nor begins with #!; it is tried with /bin/sh",
			path);
	found = look_in_path(name ? name : "/bin/sh");
	if (!found)
		findings_add(findings, FINDING_PROBLEM, "command", "install it",
			"%s is not in PATH", name);
	free(name);
	free(path);
	return found;
}

/* Where the kernel gives a process other rights than its caller's, the loader preloads nothing. */
static bool check_rights(struct findings *findings, const char *path)
{
	struct stat status;
	bool other_user, other_group;

	if (stat(path, &status))
		return true;
	other_user = status.st_mode & S_ISUID && status.st_uid != getuid();
	other_group =
		status.st_mode & S_ISGID && status.st_mode & S_IXGRP && status.st_gid != getgid();
	if (other_user || other_group)
		findings_add(findings, FINDING_PROBLEM, "setuid",
			"trace the program it starts instead, or a copy without that bit",
			"%s runs with the rights of another %s: LD_PRELOAD is ignored", path,
			other_user ? "user" : "group");
	else if (getuid() && getxattr(path, "security.capability", NULL, 0) > 0)
		findings_add(findings, FINDING_PROBLEM, "setuid",
			"trace a copy of it: copies have no capabilities",
			"%s has file capabilities: LD_PRELOAD is ignored", path);
	else
		return true;
	return false;
}

static bool check_image(struct findings *findings, const char *path, const struct image *image,
	const struct image *recorder)
{
	const char *name = strrchr(image_loader(image), '/');

	if (recorder && !image_is_like(image, recorder))
		findings_add(findings, FINDING_PROBLEM, "architecture",
			"use a recorder built for it", "%s is for %s, the recorder for %s", path,
			image_processor(image), image_processor(recorder));
	else if (!*image_loader(image))
		findings_add(findings, FINDING_PROBLEM, "static",
			"link it dynamically (a static CUDA runtime in it is no obstacle)",
			"%s is statically linked: nothing can be preloaded", path);
	else if (name && !strncmp(name, "/ld-musl", 8))
		findings_add(findings, FINDING_PROBLEM, "libc", "use a build for glibc",
			"%s is for musl, the recorder for glibc", path);
	else
		return true;
	return false;
}

/* The file that is executed in the end, opened; NULL when there is none. *path, to be freed, is
 * where the search ended. */
static struct image *open_program(struct findings *findings, char **path)
{
	for (int i = 0; i < MAX_SCRIPTS; i++) {
		struct image *image;

		if (!check_file(findings, *path))
			return NULL;
		image = image_open(*path);
		if (image)
			return image;
		*path = follow_script(findings, *path);
		if (!*path)
			return NULL;
	}
	findings_add(findings, FINDING_PROBLEM, "script", "name the program itself",
		"%s is one of scripts run by scripts, without end", *path);
	return NULL;
}

char *doctor_find_program(struct findings *findings, const char *command,
	const struct image *recorder, struct image **image)
{
	char *path = look_in_path(command);

	*image = NULL;
	if (path)
		*image = open_program(findings, &path);
	else
		findings_add(findings, FINDING_PROBLEM, "command", "give its path",
			"%s is not in PATH", command);
	if (*image && check_rights(findings, path) &&
		check_image(findings, path, *image, recorder)) {
		findings_add(
			findings, FINDING_OK, "command", NULL, "%s can be preloaded into", path);
		return path;
	}
	image_close(*image);
	*image = NULL;
	free(path);
	return NULL;
}

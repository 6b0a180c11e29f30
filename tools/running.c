#include "running.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/memory.h"
#include "vramtrace/format.h"

uint64_t running_pid(const char *text)
{
	uint64_t pid;
	char *end;

	errno = 0;
	pid = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno ? pid : 0;
}

/* The parts of a bounded trace are found by its own name. */
static bool is_trace(const char *path)
{
	struct vt_file_header header;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	bool is = fd >= 0 && read(fd, &header, sizeof(header)) == sizeof(header) &&
		  !memcmp(header.magic, VT_MAGIC, sizeof(header.magic)) && !header.part;

	if (fd >= 0)
		close(fd);
	return is;
}

/* The file behind a line of /proc/PID/maps if it is mapped to share what is written; NULL: it is
 * not. Cuts the line. */
static char *shared_file(char *line)
{
	char permissions[8];
	int at = 0;

	if (sscanf(line, "%*s %7s %*s %*s %*s %n", permissions, &at) != 1 || !at ||
		strcmp(permissions, "rw-s") || line[at] != '/')
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return line + at;
}

/* path as the process sees it, under the name that we can open it by; NULL: it is no trace. To be
 * freed. */
static char *name_here(uint64_t pid, const char *path)
{
	char *there;

	if (is_trace(path))
		return memory_text(path);
	there = memory_new(strlen(path) + 40, 1);
	sprintf(there, "/proc/%" PRIu64 "/root%s", pid, path);
	if (is_trace(there))
		return there;
	free(there);
	return NULL;
}

static bool has(char *const *paths, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(paths[i], path))
			return true;
	return false;
}

size_t running_find_traces(uint64_t pid, char ***paths)
{
	size_t n = 0, room = 0, line_room = 0;
	char maps[40], *line = NULL;
	FILE *in;

	*paths = NULL;
	snprintf(maps, sizeof(maps), "/proc/%" PRIu64 "/maps", pid);
	in = fopen(maps, "re");
	if (!in)
		return 0;
	while (getline(&line, &line_room, in) > 0) {
		char *file = shared_file(line);
		char *path = file ? name_here(pid, file) : NULL;

		if (!path)
			continue;
		if (has(*paths, n, path)) {
			free(path);
			continue;
		}
		*paths = memory_grow(*paths, n, &room, sizeof(**paths));
		(*paths)[n++] = path;
	}
	/* A process that is not ours has a list that cannot be read. */
	errno = ferror(in) ? EACCES : 0;
	free(line);
	fclose(in);
	return n;
}

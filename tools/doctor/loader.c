#include "doctor/loader.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/memory.h"

static void add(struct loaded_list *list, const char *name, const char *path)
{
	list->items = memory_grow(list->items, list->n_items, &list->room, sizeof(*list->items));
	list->items[list->n_items++] =
		(struct loaded){memory_text(name), path ? memory_text(path) : NULL};
}

/* "libc.so.6 => /lib/libc.so.6 (0x...)", "/lib64/ld.so (0x...)"; the kernel's own has no path. At a
 * missing library the loader gives up with "...: error while loading shared libraries: libx.so:
 * ...". */
static void read_line(struct loaded_list *list, char *line)
{
	static const char missing[] = ": error while loading shared libraries: ";
	char *address = strstr(line, " (0x"), *arrow = strstr(line, " => ");
	char *error = strstr(line, missing);

	line += strspn(line, " \t");
	line[strcspn(line, "\n")] = 0;
	if (address)
		*address = 0;
	if (arrow)
		*arrow = 0;
	if (error) {
		error += strlen(missing);
		error[strcspn(error, ":")] = 0;
		add(list, error, NULL);
	} else if (arrow || *line == '/') {
		add(list, line, arrow ? arrow + 4 : line);
	}
}

static void execute(const char *loader, const char *program, const char *preload, int out)
{
	int nothing = open("/dev/null", O_RDWR);

	if (preload)
		setenv("LD_PRELOAD", preload, 1);
	dup2(nothing, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execl(loader, loader, "--list", program, (char *)NULL);
	_exit(127);
}

struct loaded_list loader_list(const char *loader, const char *program, const char *preload)
{
	struct loaded_list list = {NULL, 0, 0};
	char *line = NULL;
	size_t room = 0;
	pid_t child;
	FILE *in;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return list;
	child = fork();
	if (!child)
		execute(loader, program, preload, fds[1]);
	close(fds[1]);
	in = fdopen(fds[0], "r");
	while (in && getline(&line, &room, in) > 0)
		read_line(&list, line);
	free(line);
	if (in)
		fclose(in);
	else
		close(fds[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	return list;
}

void loader_release(struct loaded_list *list)
{
	for (size_t i = 0; i < list->n_items; i++) {
		free(list->items[i].name);
		free(list->items[i].path);
	}
	free(list->items);
}

static bool starts(const char *path, const char *start)
{
	const char *name = strrchr(path, '/');

	return !strncmp(name ? name + 1 : path, start, strlen(start));
}

const struct loaded *loader_find(const struct loaded_list *list, const char *start)
{
	for (size_t i = 0; i < list->n_items; i++)
		if (starts(list->items[i].name, start) ||
			(list->items[i].path && starts(list->items[i].path, start)))
			return &list->items[i];
	return NULL;
}

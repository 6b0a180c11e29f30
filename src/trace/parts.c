#include "trace/parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vramtrace/error.h"

/* Parts may go between the look at the folder and their opening. */
#define MAX_TRIES 20

#define MOST_PARTS 4096u

/* The number in "NAME.part12", 0: it is not such a name. */
static uint64_t number_in(const char *entry, const char *name)
{
	static const char middle[] = ".part";
	size_t bytes = strlen(name);
	uint64_t number = 0;
	const char *p;

	if (strncmp(entry, name, bytes) || strncmp(entry + bytes, middle, strlen(middle)))
		return 0;
	p = entry + bytes + strlen(middle);
	if (!*p || *p == '0' || strlen(p) > 18)
		return 0;
	for (; *p >= '0' && *p <= '9'; p++)
		number = number * 10 + (uint64_t)(*p - '0');
	return *p ? 0 : number;
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The numbers of all parts in the folder, in order. To be freed. */
static int list_numbers(const char *path, uint64_t **numbers, size_t *n)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char folder[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	*n = 0;
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1,
		slash ? path : ".");
	*numbers = malloc(MOST_PARTS * sizeof(**numbers));
	if (!*numbers)
		return VT_E_NO_MEMORY;
	dir = opendir(folder);
	if (!dir)
		return VT_E_OPEN;
	while ((entry = readdir(dir)) && *n < MOST_PARTS) {
		uint64_t number = number_in(entry->d_name, name);

		if (number)
			(*numbers)[(*n)++] = number;
	}
	closedir(dir);
	qsort(*numbers, *n, sizeof(**numbers), compare_numbers);
	return 0;
}

/* Reads the part's header. False: it is not of this trace, or not ready. */
static bool look_at(struct vt_part *part, const struct vt_file_header *header)
{
	struct vt_file_header own;
	struct stat st;
	uint64_t held;

	if (pread(part->fd, &own, sizeof(own), 0) != sizeof(own) || fstat(part->fd, &st))
		return false;
	if (memcmp(own.magic, VT_MAGIC, sizeof(own.magic)) || own.pid != header->pid ||
		own.start_monotonic_ns != header->start_monotonic_ns ||
		own.start_realtime_ns != header->start_realtime_ns ||
		own.header_bytes != header->header_bytes ||
		own.chunk_bytes != header->chunk_bytes || own.part != part->number || !own.ready)
		return false;
	part->first_chunk = own.n_checkpoint_chunks;
	held = (uint64_t)st.st_size > own.header_bytes
		       ? ((uint64_t)st.st_size - own.header_bytes) / own.chunk_bytes
		       : 0;
	part->n_chunks = own.n_chunks < held ? own.n_chunks : held;
	if (__builtin_mul_overflow(
		    own.n_chunks - part->n_chunks, own.chunk_bytes, &part->missing_bytes))
		part->missing_bytes = UINT64_MAX;
	return true;
}

/* Opens one part. Returns 1, 0 when it does not count, or VT_E_*. */
static int open_one(struct vt_part *part, const char *path, const struct vt_file_header *header)
{
	char name[PATH_MAX + 32];

	snprintf(name, sizeof(name), "%s.part%llu", path, (unsigned long long)part->number);
	part->fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (part->fd < 0)
		return VT_E_OPEN;
	if (look_at(part, header))
		return 1;
	close(part->fd);
	return 0;
}

/* From the newest on backwards, as far as nothing is missing. */
static int open_row(struct vt_parts *parts, const uint64_t *numbers, size_t n, const char *path,
	const struct vt_file_header *header)
{
	parts->items = calloc(n ? n : 1, sizeof(*parts->items));
	if (!parts->items)
		return VT_E_NO_MEMORY;
	while (n--) {
		struct vt_part part = {.number = numbers[n]};
		int found;

		if (parts->n_items && parts->items[parts->n_items - 1].number != part.number + 1)
			break;
		found = open_one(&part, path, header);
		/* Older ones that go meanwhile are not needed. */
		if (found <= 0 && parts->n_items)
			break;
		if (found < 0)
			return found;
		if (found)
			parts->items[parts->n_items++] = part;
	}
	return 0;
}

static void settle(struct vt_parts *parts, enum vt_parts_which which)
{
	for (size_t i = 0; i < parts->n_items / 2; i++) {
		struct vt_part part = parts->items[i];

		parts->items[i] = parts->items[parts->n_items - 1 - i];
		parts->items[parts->n_items - 1 - i] = part;
	}
	while (which == VT_PARTS_NEWEST && parts->n_items > 1) {
		close(parts->items[0].fd);
		memmove(parts->items, parts->items + 1, --parts->n_items * sizeof(*parts->items));
	}
	/* What the checkpoint of a later part says is known from the parts before it. */
	for (size_t i = 0; i < parts->n_items; i++) {
		struct vt_part *part = &parts->items[i];
		uint64_t skipped = i ? part->first_chunk : 0;

		if (skipped > part->n_chunks)
			skipped = part->n_chunks;
		part->first_chunk = skipped;
		part->n_chunks -= skipped;
	}
}

int vt_parts_open(struct vt_parts *parts, const char *path, const struct vt_file_header *header,
	enum vt_parts_which which)
{
	int error = VT_E_OPEN;
	size_t n = 0;

	for (int i = 0; i < MAX_TRIES && error == VT_E_OPEN; i++) {
		uint64_t *numbers;

		*parts = (struct vt_parts){0};
		error = list_numbers(path, &numbers, &n);
		if (!error)
			error = open_row(parts, numbers, n, path, header);
		free(numbers);
		if (error)
			vt_parts_close(parts);
	}
	if (!error && !parts->n_items) {
		vt_parts_close(parts);
		error = n ? VT_E_EMPTY : VT_E_NO_PARTS;
	}
	if (!error)
		settle(parts, which);
	return error;
}

void vt_parts_close(struct vt_parts *parts)
{
	for (size_t i = 0; i < parts->n_items; i++)
		close(parts->items[i].fd);
	free(parts->items);
	*parts = (struct vt_parts){0};
}

bool vt_parts_remove(const char *path)
{
	char name[PATH_MAX + 32];
	uint64_t *numbers;
	size_t n;
	bool done = !list_numbers(path, &numbers, &n);

	for (size_t i = 0; done && i < n; i++) {
		snprintf(name, sizeof(name), "%s.part%llu", path, (unsigned long long)numbers[i]);
		done = !unlink(name);
	}
	free(numbers);
	return done;
}

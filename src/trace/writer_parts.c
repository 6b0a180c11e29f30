/*
 * The parts of a bounded trace. A part is full: every lane leaves its chunk, the part is cut behind
 * the last one, and a new part is opened with a checkpoint; when there are too many bytes, the
 * oldest part goes. At any moment there is a part whose checkpoint is complete and behind which
 * nothing is missing: the newest is `ready` only then, and the one before it stays until it is.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "trace/writer_internal.h"

/* So many parts are to fit into the size that is allowed, with their headers. */
#define N_PARTS 4u

/* Chunks for each thread that has a lane, at least, between two rotations. */
#define CHUNKS_A_LANE 4u

static void format_path(const struct vt_writer *writer, uint64_t number, char *out, size_t size)
{
	snprintf(out, size, "%s.part%llu", writer->parts.path, (unsigned long long)number);
}

static uint64_t n_closed(const struct writer_parts *parts, bool newest_open)
{
	return parts->number + 1 - parts->first - newest_open;
}

/* The program may change its folder. */
static bool take_path(struct writer_parts *parts, const char *path)
{
	size_t room = sizeof(parts->path) - 32, used = 0;

	if (*path != '/') {
		if (!getcwd(parts->path, room))
			return false;
		used = strlen(parts->path);
		parts->path[used++] = '/';
	}
	if (used + strlen(path) >= room) {
		errno = ENAMETOOLONG;
		return false;
	}
	strcpy(parts->path + used, path);
	return true;
}

static int open_part(struct vt_writer *writer, uint64_t number)
{
	struct vt_file_header like = {.part = (uint32_t)number};
	char path[sizeof(writer->parts.path) + 32];
	int error;

	format_path(writer, number, path, sizeof(path));
	error = writer_file_make(writer, path, &writer->home, &like);
	/* Of a trace of this name that is gone. */
	if (error == VT_E_OPEN && errno == EEXIST && !unlink(path))
		error = writer_file_make(writer, path, &writer->home, &like);
	if (!error)
		writer->parts.number = number;
	return error;
}

static uint64_t used_bytes(const struct vt_writer *writer)
{
	return VT_HEADER_BYTES +
	       atomic_load_explicit(&writer->home->n_chunks, memory_order_relaxed) * VT_CHUNK_BYTES;
}

static void set_ready(struct vt_writer *writer)
{
	atomic_store_explicit(&writer->home->ready, 1, memory_order_release);
	writer_file_update(writer);
}

int writer_parts_begin(struct vt_writer *writer, const char *path)
{
	struct writer_parts *parts = &writer->parts;
	uint64_t headers_bytes = (N_PARTS + 2) * VT_HEADER_BYTES;
	int error;

	if (writer->max_bytes < headers_bytes + 2 * N_PARTS * VT_CHUNK_BYTES)
		return VT_E_LIMIT;
	if (!take_path(parts, path))
		return VT_E_OPEN;
	parts->part_bytes =
		(writer->max_bytes - headers_bytes) / N_PARTS / VT_CHUNK_BYTES * VT_CHUNK_BYTES +
		VT_HEADER_BYTES;
	parts->limit = parts->part_bytes;
	parts->bytes = VT_HEADER_BYTES;
	parts->first = 1;
	if (writer->copy) {
		parts->main_fd = writer->fd;
	} else {
		writer_file_leave(writer);
	}
	error = open_part(writer, 1);
	if (!error)
		set_ready(writer);
	return error;
}

bool writer_parts_full(const struct vt_writer *writer)
{
	return !writer->frozen && used_bytes(writer) + VT_CHUNK_BYTES > writer->parts.limit;
}

bool writer_parts_remove_oldest(struct vt_writer *writer)
{
	struct writer_parts *parts = &writer->parts;
	bool newest_open = writer->home != NULL;
	bool ready =
		newest_open && atomic_load_explicit(&writer->home->ready, memory_order_relaxed);
	char path[sizeof(parts->path) + 32];

	if (n_closed(parts, newest_open) < (ready ? 1 : 2))
		return false;
	format_path(writer, parts->first, path, sizeof(path));
	unlink(path);
	parts->bytes -= parts->sizes[parts->first % WRITER_MAX_PARTS];
	parts->first++;
	return true;
}

/* Leaves the newest part for good. */
static void close_part(struct vt_writer *writer)
{
	struct writer_parts *parts = &writer->parts;
	uint64_t bytes = used_bytes(writer);

	for (struct vt_lane *lane = writer->lanes; lane; lane = lane->next)
		writer_seal(lane);
	writer_file_update(writer);
	if (ftruncate(writer->fd, (off_t)bytes))
		bytes = writer->mapped_end;
	for (size_t i = 0; i < parts->n_mapped; i++)
		munmap(parts->mapped[i].at, parts->mapped[i].bytes);
	parts->n_mapped = 0;
	munmap(writer->home, VT_HEADER_BYTES);
	writer->home = NULL;
	writer_file_leave(writer);
	parts->sizes[parts->number % WRITER_MAX_PARTS] = bytes;
	parts->bytes += bytes;
}

static uint64_t now_ns(const struct vt_writer *writer)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return vt_writer_time(writer, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
}

static void write_checkpoint(struct vt_writer *writer)
{
	struct vt_lane *lane = &writer->parts.checkpoint;

	*lane = (struct vt_lane){.writer = writer, .id = UINT32_MAX, .is_checkpoint = true};
	writer->keeper->checkpoint(lane, writer->parts.number, now_ns(writer));
	writer_seal(lane);
}

/* A part holds what a part is to have; more where a checkpoint or many threads take much of it, but
 * never so much that the next checkpoint would not fit beside it. */
static void set_limit(struct vt_writer *writer)
{
	struct writer_parts *parts = &writer->parts;
	uint64_t used = used_bytes(writer), least = parts->part_bytes / 2;
	uint64_t most = (writer->max_bytes - 2 * VT_HEADER_BYTES) / 2;

	if (least < (uint64_t)CHUNKS_A_LANE * writer->n_lanes * VT_CHUNK_BYTES)
		least = (uint64_t)CHUNKS_A_LANE * writer->n_lanes * VT_CHUNK_BYTES;
	parts->limit = used + least > parts->part_bytes ? used + least : parts->part_bytes;
	if (parts->limit > most)
		parts->limit = most;
	/* Not one of them would be given up for what is beyond it. */
	if (parts->limit > writer_file_most())
		parts->limit = writer_file_most();
}

/* Where there is no space, or no more than one is allowed, older parts make room. */
static int open_next(struct vt_writer *writer)
{
	struct writer_parts *parts = &writer->parts;
	int error;

	while ((parts->bytes + parts->part_bytes > writer->max_bytes ||
		       n_closed(parts, false) >= WRITER_MAX_PARTS - 1) &&
		writer_parts_remove_oldest(writer))
		;
	parts->limit = parts->part_bytes;
	do {
		error = open_part(writer, parts->number + 1);
	} while (error == VT_E_NO_SPACE && writer_parts_remove_oldest(writer));
	return error;
}

void writer_parts_rotate(struct vt_writer *writer)
{
	struct writer_parts *parts = &writer->parts;
	int error;

	pthread_mutex_lock(&writer->lock);
	close_part(writer);
	pthread_mutex_unlock(&writer->lock);
	error = open_next(writer);
	if (error) {
		writer_freeze(writer, error);
		return;
	}
	write_checkpoint(writer);
	if (writer->frozen) {
		char path[sizeof(parts->path) + 32];

		format_path(writer, parts->number, path, sizeof(path));
		unlink(path);
		return;
	}
	writer->home->n_checkpoint_chunks =
		(uint32_t)atomic_load_explicit(&writer->home->n_chunks, memory_order_relaxed);
	set_limit(writer);
	set_ready(writer);
}

#include "trace/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "trace/schema.h"

/* The file grows by at least one of these, by a quarter of itself when larger, by at most the
 * second. */
#define GROW_MIN_BYTES	(16u * VT_CHUNK_BYTES)
#define GROW_MAX_BYTES	(1024u * VT_CHUNK_BYTES)
#define LANE_PAGE_BYTES 65536u

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool write_all(int fd, const void *data, size_t bytes, uint64_t offset)
{
	const uint8_t *p = data;

	while (bytes) {
		ssize_t n = pwrite(fd, p, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		bytes -= (size_t)n;
		offset += (uint64_t)n;
	}
	return true;
}

static void *map_private(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* A child must never write into its parent's trace: the mapping does not exist there. */
static void *map_shared(int fd, uint64_t offset, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_DONTFORK);
	return p;
}

/* Reserves the bytes on disk, so that a full disk is an error here and not a SIGBUS later. */
static int reserve_bytes(const struct vt_writer *writer, uint64_t offset, uint64_t bytes)
{
	struct rlimit limit;
	int error;

	if (writer->max_bytes && offset + bytes > writer->max_bytes)
		return VT_E_LIMIT;
	/* Growing beyond RLIMIT_FSIZE would raise SIGXFSZ in the traced program. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
		offset + bytes > limit.rlim_cur)
		return VT_E_LIMIT;
	do {
		error = posix_fallocate(writer->fd, (off_t)offset, (off_t)bytes);
	} while (error == EINTR);
	if (error == ENOSPC || error == EDQUOT || error == EFBIG)
		return VT_E_NO_SPACE;
	return error ? VT_E_IO : 0;
}

/* The magic comes last: a process killed in the middle of this leaves a file that says it is empty,
 * not one that contradicts itself. */
static int write_header(struct vt_writer *writer, bool paused)
{
	struct vt_file_header *header = writer->header;
	size_t magic = sizeof(header->magic);

	header->format = VT_FORMAT;
	header->byte_order = VT_BYTE_ORDER;
	header->header_bytes = VT_HEADER_BYTES;
	header->chunk_bytes = VT_CHUNK_BYTES;
	header->pid = (uint32_t)getpid();
	header->schema_bytes = (uint32_t)vt_schema_text_bytes;
	/* What nobody else can write into is not worth heeding. */
	atomic_store_explicit(&header->control,
		(writer->copy ? 0 : VT_CONTROL_HEEDED) | (paused ? VT_CONTROL_PAUSED : 0),
		memory_order_relaxed);
	header->start_realtime_ns = clock_ns(CLOCK_REALTIME);
	header->start_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
	memcpy(header + 1, vt_schema_text, vt_schema_text_bytes);
	writer->start_monotonic_ns = header->start_monotonic_ns;
	atomic_signal_fence(memory_order_release);
	memcpy(header->magic, VT_MAGIC, magic);
	if (writer->copy && !(write_all(writer->fd, (uint8_t *)header + magic,
				      VT_HEADER_BYTES - magic, magic) &&
				    write_all(writer->fd, header, magic, 0)))
		return errno == ENOSPC ? VT_E_NO_SPACE : VT_E_IO;
	return 0;
}

int vt_writer_open(
	struct vt_writer *writer, const char *path, const struct vt_writer_options *options)
{
	int error;

	memset(writer, 0, sizeof(*writer));
	pthread_mutex_init(&writer->lock, NULL);
	writer->max_bytes = options->max_bytes;
	writer->copy = options->copy;
	writer->on_stop = options->on_stop;
	writer->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (writer->fd < 0)
		return VT_E_OPEN;
	error = reserve_bytes(writer, 0, VT_HEADER_BYTES);
	if (!error) {
		if (!writer->copy)
			writer->header = map_shared(writer->fd, 0, VT_HEADER_BYTES);
		if (!writer->header) {
			writer->copy = true;
			writer->header = map_private(VT_HEADER_BYTES);
		}
		error = writer->header ? write_header(writer, options->paused) : VT_E_NO_MEMORY;
	}
	writer->mapped_end = VT_HEADER_BYTES;
	if (error) {
		unlink(path);
		close(writer->fd);
		writer->fd = -1;
		writer->frozen = true;
	}
	return error;
}

/* Makes room for at least one more chunk. Called with the lock held. */
static int grow(struct vt_writer *writer)
{
	uint64_t offset = writer->mapped_end;
	uint64_t step = offset / 4 / VT_CHUNK_BYTES * VT_CHUNK_BYTES;
	uint8_t *segment;
	int error;

	if (step < GROW_MIN_BYTES)
		step = GROW_MIN_BYTES;
	if (step > GROW_MAX_BYTES)
		step = GROW_MAX_BYTES;
	error = reserve_bytes(writer, offset, step);
	if (error) {
		/* Nearly full: one chunk may still fit. */
		step = VT_CHUNK_BYTES;
		error = reserve_bytes(writer, offset, step);
		if (error)
			return error;
	}
	segment = writer->copy ? map_private(step) : map_shared(writer->fd, offset, step);
	if (!segment)
		return VT_E_NO_MEMORY;
	writer->segment = segment;
	writer->segment_offset = offset;
	writer->mapped_end = offset + step;
	return 0;
}

static void update_header(struct vt_writer *writer)
{
	if (writer->copy && writer->fd >= 0)
		write_all(writer->fd, writer->header, sizeof(*writer->header), 0);
}

static void publish(struct vt_lane *lane, uint8_t *end)
{
	struct vt_chunk_header *chunk = lane->chunk;
	uint8_t *start = (uint8_t *)(chunk + 1);
	struct vt_writer *writer = lane->writer;

	if (writer->copy) {
		uint64_t offset = lane->chunk_offset;

		write_all(writer->fd, lane->at, (size_t)(end - lane->at),
			offset + (uint64_t)(lane->at - (uint8_t *)chunk));
		atomic_store_explicit(&chunk->used, (uint32_t)(end - start), memory_order_relaxed);
		write_all(writer->fd, chunk, sizeof(*chunk), offset);
	} else {
		atomic_store_explicit(&chunk->used, (uint32_t)(end - start), memory_order_release);
	}
	lane->at = end;
}

static void seal(struct vt_lane *lane)
{
	struct vt_chunk_header *chunk = lane->chunk;

	if (!chunk)
		return;
	chunk->checksum = vt_checksum(
		(uint8_t *)(chunk + 1), atomic_load_explicit(&chunk->used, memory_order_relaxed));
	atomic_store_explicit(&chunk->sealed, 1, memory_order_release);
	if (lane->writer->copy)
		write_all(lane->writer->fd, chunk, sizeof(*chunk), lane->chunk_offset);
	lane->chunk = NULL;
	lane->at = lane->end = NULL;
}

/* Takes the next chunk of the file. */
static int take_chunk(
	struct vt_writer *writer, struct vt_chunk_header **chunk, uint64_t *chunk_offset)
{
	uint64_t n_chunks;
	uint64_t offset;
	bool stopped = false;
	int error = 0;

	pthread_mutex_lock(&writer->lock);
	n_chunks = atomic_load_explicit(&writer->header->n_chunks, memory_order_relaxed);
	offset = VT_HEADER_BYTES + n_chunks * VT_CHUNK_BYTES;
	if (writer->frozen)
		error = writer->error;
	else if (offset + VT_CHUNK_BYTES > writer->mapped_end)
		error = grow(writer);
	if (!error) {
		*chunk = (struct vt_chunk_header *)(writer->segment +
						    (offset - writer->segment_offset));
		*chunk_offset = offset;
		atomic_store_explicit(
			&writer->header->n_chunks, n_chunks + 1, memory_order_relaxed);
		update_header(writer);
	} else if (!writer->frozen) {
		writer->frozen = stopped = true;
		writer->error = error;
		atomic_store_explicit(&writer->header->stopped, error, memory_order_relaxed);
		update_header(writer);
	}
	pthread_mutex_unlock(&writer->lock);
	if (stopped && writer->on_stop)
		writer->on_stop(error);
	return error;
}

static int next_chunk(struct vt_lane *lane)
{
	struct vt_writer *writer = lane->writer;
	struct vt_chunk_header *chunk;
	uint64_t offset;
	int error;

	error = take_chunk(writer, &chunk, &offset);
	if (error)
		return error;
	seal(lane);
	chunk->lane = lane->id;
	chunk->tid = lane->tid;
	chunk->base_time_ns = lane->delta.time_ns;
	chunk->magic = VT_CHUNK_MAGIC;
	lane->chunk = chunk;
	lane->chunk_offset = offset;
	lane->n_chunks++;
	lane->at = (uint8_t *)(chunk + 1);
	lane->end = (uint8_t *)chunk + VT_CHUNK_BYTES;
	lane->delta.address = 0;
	return 0;
}

/* Room for a record of at most bytes. Returns where to write it, or NULL when it is lost; *error
 * says why. */
static uint8_t *begin_record(struct vt_lane *lane, size_t bytes, int *error)
{
	*error = 0;
	if (bytes > VT_CHUNK_BYTES - sizeof(struct vt_chunk_header)) {
		*error = VT_E_TOO_BIG;
	} else if ((size_t)(lane->end - lane->at) < bytes) {
		*error = next_chunk(lane);
	}
	if (!*error)
		return lane->at;
	atomic_fetch_add_explicit(&lane->writer->header->n_lost, 1, memory_order_relaxed);
	return NULL;
}

struct vt_lane *vt_writer_lane(struct vt_writer *writer, uint32_t tid, uint64_t since_ns)
{
	struct vt_lane **link, *lane;

	pthread_mutex_lock(&writer->lock);
	for (link = &writer->idle; *link && (*link)->delta.time_ns > since_ns;
		link = &(*link)->next_idle)
		;
	lane = *link;
	if (lane) {
		*link = lane->next_idle;
	} else {
		if (writer->lane_page_left < sizeof(*lane)) {
			writer->lane_page = map_private(LANE_PAGE_BYTES);
			writer->lane_page_left = writer->lane_page ? LANE_PAGE_BYTES : 0;
		}
		if (writer->lane_page_left) {
			lane = (struct vt_lane *)writer->lane_page;
			writer->lane_page += sizeof(*lane);
			writer->lane_page_left -= sizeof(*lane);
			lane->writer = writer;
			lane->id = writer->n_lanes++;
			lane->delta.time_ns = since_ns;
		}
	}
	pthread_mutex_unlock(&writer->lock);
	if (lane)
		lane->tid = tid;
	return lane;
}

void vt_lane_release(struct vt_lane *lane)
{
	struct vt_writer *writer = lane->writer;

	pthread_mutex_lock(&writer->lock);
	lane->next_idle = writer->idle;
	writer->idle = lane;
	pthread_mutex_unlock(&writer->lock);
}

int vt_writer_close(struct vt_writer *writer)
{
	uint64_t n_chunks;
	int error = 0;

	pthread_mutex_lock(&writer->lock);
	if (writer->fd >= 0 && !(writer->frozen && writer->error == VT_E_CLOSED)) {
		writer->frozen = true;
		writer->error = VT_E_CLOSED;
		n_chunks = atomic_load_explicit(&writer->header->n_chunks, memory_order_relaxed);
		update_header(writer);
		if (ftruncate(writer->fd, (off_t)(VT_HEADER_BYTES + n_chunks * VT_CHUNK_BYTES)))
			error = VT_E_IO;
	}
	pthread_mutex_unlock(&writer->lock);
	return error;
}

void vt_writer_forget(struct vt_writer *writer)
{
	if (writer->fd >= 0)
		close(writer->fd);
	memset(writer, 0, sizeof(*writer));
	pthread_mutex_init(&writer->lock, NULL);
	writer->fd = -1;
	writer->frozen = true;
	writer->error = VT_E_CLOSED;
}

static uint8_t *put_text(uint8_t *p, struct vt_text text)
{
	size_t bytes = text.bytes < VT_TEXT_MAX ? text.bytes : VT_TEXT_MAX;

	p = vt_encode_number(p, bytes);
	if (bytes)
		memcpy(p, text.data, bytes);
	return p + bytes;
}

/* Frames lie close together: each is a difference to the one before it. */
static uint8_t *put_list(uint8_t *p, struct vt_list list)
{
	uint64_t last = 0;

	p = vt_encode_number(p, list.n_items);
	for (size_t i = 0; i < list.n_items; i++) {
		p = vt_encode_number(p, vt_zigzag((int64_t)(list.items[i] - last)));
		last = list.items[i];
	}
	return p;
}

static uint8_t *put_difference(uint8_t *p, uint64_t *last, uint64_t value)
{
	p = vt_encode_number(p, vt_zigzag((int64_t)(value - *last)));
	*last = value;
	return p;
}

#define BOUND_TIME(value)   VT_NUMBER_MAX
#define BOUND_NUMBER(value) VT_NUMBER_MAX
#define BOUND_SIGNED(value) VT_NUMBER_MAX
#define BOUND_ADDR(value)   VT_NUMBER_MAX
#define BOUND_TEXT(value)                                                                          \
	(VT_NUMBER_MAX + ((value).bytes < VT_TEXT_MAX ? (value).bytes : VT_TEXT_MAX))
#define BOUND_LIST(value) (VT_NUMBER_MAX * (1 + (value).n_items))

#define PUT_TIME(p, value)   put_difference(p, &delta.time_ns, value)
#define PUT_NUMBER(p, value) vt_encode_number(p, value)
#define PUT_SIGNED(p, value) vt_encode_number(p, vt_zigzag(value))
#define PUT_ADDR(p, value)   put_difference(p, &delta.address, value)
#define PUT_TEXT(p, value)   put_text(p, value)
#define PUT_LIST(p, value)   put_list(p, value)

/* The most bytes each record can take. */
#define RECORD(number, rec, doc)                                                                   \
	static size_t bound_##rec(const struct vt_rec_##rec *record)                               \
	{                                                                                          \
		size_t bytes = 1;                                                                  \
		(void)record;
#define FIELD(type, name, doc) bytes += BOUND_##type(record->name);
#define END_RECORD(rec)                                                                            \
	return bytes;                                                                              \
	}
#include "vramtrace/records.def"

/* The state of the differences is read only after begin_record, which may have begun a new chunk.
 */
#define RECORD(number, rec, doc)                                                                   \
	int vt_put_##rec(struct vt_lane *lane, const struct vt_rec_##rec *record)                  \
	{                                                                                          \
		int error;                                                                         \
		uint8_t *p = begin_record(lane, bound_##rec(record), &error);                      \
		struct vt_delta delta = lane->delta;                                               \
		if (!p)                                                                            \
			return error;                                                              \
		*p++ = (number);
#define FIELD(type, name, doc) p = PUT_##type(p, record->name);
#define END_RECORD(rec)                                                                            \
	lane->delta = delta;                                                                       \
	publish(lane, p);                                                                          \
	return 0;                                                                                  \
	}
#include "vramtrace/records.def"

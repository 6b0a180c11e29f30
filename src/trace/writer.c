#include "trace/writer.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/writer_internal.h"

#define LANE_PAGE_BYTES 65536u

int vt_writer_open(
	struct vt_writer *writer, const char *path, const struct vt_writer_options *options)
{
	struct vt_file_header like = {.parted = options->keeper != NULL};
	int error;

	memset(writer, 0, sizeof(*writer));
	pthread_mutex_init(&writer->lock, NULL);
	pthread_mutex_init(&writer->order, NULL);
	writer->parts.main_fd = -1;
	writer->max_bytes = options->max_bytes;
	writer->copy = options->copy;
	writer->paused = options->paused;
	writer->on_stop = options->on_stop;
	writer->keeper = options->keeper;
	writer_file_start(writer);
	error = writer_file_make(writer, path, &writer->header, &like);
	writer->home = writer->header;
	if (!error && writer->keeper) {
		error = writer_parts_begin(writer, path);
		if (error)
			unlink(path);
	}
	if (error) {
		if (writer->fd >= 0)
			writer_file_leave(writer);
		writer->frozen = true;
	}
	return error;
}

static void publish(struct vt_lane *lane, uint8_t *end)
{
	struct vt_chunk_header *chunk = lane->chunk;
	uint8_t *start = (uint8_t *)(chunk + 1);
	struct vt_writer *writer = lane->writer;

	if (writer->copy) {
		uint64_t offset = lane->chunk_offset;

		writer_write(writer->fd, lane->at, (size_t)(end - lane->at),
			offset + (uint64_t)(lane->at - (uint8_t *)chunk));
		atomic_store_explicit(&chunk->used, (uint32_t)(end - start), memory_order_relaxed);
		writer_write(writer->fd, chunk, sizeof(*chunk), offset);
	} else {
		atomic_store_explicit(&chunk->used, (uint32_t)(end - start), memory_order_release);
	}
	lane->at = end;
}

void writer_seal(struct vt_lane *lane)
{
	struct vt_chunk_header *chunk = lane->chunk;

	if (!chunk)
		return;
	chunk->checksum = vt_checksum(
		(uint8_t *)(chunk + 1), atomic_load_explicit(&chunk->used, memory_order_relaxed));
	atomic_store_explicit(&chunk->sealed, 1, memory_order_release);
	if (lane->writer->copy)
		writer_write(lane->writer->fd, chunk, sizeof(*chunk), lane->chunk_offset);
	lane->chunk = NULL;
	lane->at = lane->end = NULL;
}

void writer_freeze(struct vt_writer *writer, int error)
{
	bool stopped;

	pthread_mutex_lock(&writer->lock);
	stopped = !writer->frozen;
	if (stopped) {
		writer->frozen = true;
		writer->error = error;
		atomic_store_explicit(&writer->header->stopped, error, memory_order_relaxed);
		if (writer->home)
			writer_file_update(writer);
	}
	pthread_mutex_unlock(&writer->lock);
	if (stopped && writer->on_stop)
		writer->on_stop(error);
}

static bool is_full(int error)
{
	return error == VT_E_LIMIT || error == VT_E_NO_SPACE;
}

/* Takes the next chunk of the file. */
static int take_chunk(
	struct vt_writer *writer, struct vt_chunk_header **chunk, uint64_t *chunk_offset)
{
	uint64_t n_chunks;
	uint64_t offset;
	int error;

	pthread_mutex_lock(&writer->lock);
	if (writer->frozen) {
		error = writer->error;
		pthread_mutex_unlock(&writer->lock);
		return error;
	}
	n_chunks = atomic_load_explicit(&writer->home->n_chunks, memory_order_relaxed);
	offset = VT_HEADER_BYTES + n_chunks * VT_CHUNK_BYTES;
	error = 0;
	if (offset + VT_CHUNK_BYTES > writer->mapped_end)
		error = writer_file_grow(writer);
	while (is_full(error) && writer->keeper && writer_parts_remove_oldest(writer))
		error = writer_file_grow(writer);
	if (!error) {
		*chunk = (struct vt_chunk_header *)(writer->segment +
						    (offset - writer->segment_offset));
		*chunk_offset = offset;
		atomic_store_explicit(&writer->home->n_chunks, n_chunks + 1, memory_order_relaxed);
		writer_file_update(writer);
	}
	pthread_mutex_unlock(&writer->lock);
	return error;
}

static int next_chunk(struct vt_lane *lane)
{
	struct vt_writer *writer = lane->writer;
	bool may_rotate = writer->keeper && !lane->is_checkpoint;
	struct vt_chunk_header *chunk = NULL;
	uint64_t offset;
	int error;

	if (may_rotate && writer_parts_full(writer))
		writer_parts_rotate(writer);
	error = take_chunk(writer, &chunk, &offset);
	if (is_full(error) && may_rotate && !writer->frozen) {
		writer_parts_rotate(writer);
		error = take_chunk(writer, &chunk, &offset);
	}
	if (!chunk) {
		writer_freeze(writer, error);
		return error;
	}
	writer_seal(lane);
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

static void count_lost(struct vt_writer *writer)
{
	atomic_fetch_add_explicit(&writer->header->n_lost, 1, memory_order_relaxed);
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
	count_lost(lane->writer);
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
			writer->lane_page = writer_map_private(LANE_PAGE_BYTES);
			writer->lane_page_left = writer->lane_page ? LANE_PAGE_BYTES : 0;
		}
		if (writer->lane_page_left) {
			lane = (struct vt_lane *)writer->lane_page;
			writer->lane_page += sizeof(*lane);
			writer->lane_page_left -= sizeof(*lane);
			lane->writer = writer;
			lane->id = writer->n_lanes++;
			lane->delta.time_ns = since_ns;
			lane->next = writer->lanes;
			writer->lanes = lane;
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

	if (writer->keeper && writer_is_keeping())
		return VT_E_BUSY;
	if (writer->keeper)
		pthread_mutex_lock(&writer->order);
	pthread_mutex_lock(&writer->lock);
	if (writer->fd >= 0 && !(writer->frozen && writer->error == VT_E_CLOSED)) {
		writer->frozen = true;
		writer->error = VT_E_CLOSED;
		n_chunks = atomic_load_explicit(&writer->home->n_chunks, memory_order_relaxed);
		writer_file_update(writer);
		if (ftruncate(writer->fd, (off_t)(VT_HEADER_BYTES + n_chunks * VT_CHUNK_BYTES)))
			error = VT_E_IO;
	}
	pthread_mutex_unlock(&writer->lock);
	if (writer->keeper)
		pthread_mutex_unlock(&writer->order);
	return error;
}

void vt_writer_forget(struct vt_writer *writer)
{
	if (writer->fd >= 0)
		close(writer->fd);
	if (writer->keeper && writer->parts.main_fd >= 0)
		close(writer->parts.main_fd);
	memset(writer, 0, sizeof(*writer));
	pthread_mutex_init(&writer->lock, NULL);
	pthread_mutex_init(&writer->order, NULL);
	writer->parts.main_fd = -1;
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
	int writer_put_##rec(struct vt_lane *lane, const struct vt_rec_##rec *record)              \
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

/* Of this thread: it holds a writer's `order`, or is about to. Initial-exec, as in session.h. */
static __thread bool is_keeping __attribute__((tls_model("initial-exec")));

bool writer_is_keeping(void)
{
	return is_keeping;
}

int writer_begin_keeping(struct vt_lane *lane)
{
	if (is_keeping) {
		count_lost(lane->writer);
		return VT_E_BUSY;
	}
	is_keeping = true;
	atomic_signal_fence(memory_order_seq_cst);
	pthread_mutex_lock(&lane->writer->order);
	return 0;
}

void writer_end_keeping(struct vt_lane *lane, enum vt_record_kind kind, const void *record)
{
	lane->writer->keeper->observe(kind, lane->tid, lane->delta.time_ns, record);
	pthread_mutex_unlock(&lane->writer->order);
	atomic_signal_fence(memory_order_seq_cst);
	is_keeping = false;
}

#define RECORD(number, rec, doc)                                                                   \
	int vt_put_##rec(struct vt_lane *lane, const struct vt_rec_##rec *record)                  \
	{                                                                                          \
		int error;                                                                         \
		if (!writer_is_kept(lane))                                                         \
			return writer_put_##rec(lane, record);                                     \
		error = writer_begin_keeping(lane);                                                \
		if (error)                                                                         \
			return error;                                                              \
		error = writer_put_##rec(lane, record);                                            \
		writer_end_keeping(lane, VT_REC_##rec, record);                                    \
		return error;                                                                      \
	}
#define FIELD(type, name, doc)
#define END_RECORD(rec)
#include "vramtrace/records.def"

#include "model/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "model/memory.h"
#include "trace/schema.h"

/* Enough of them that waking the other side costs little, few enough that they stay in its cache.
 */
#define N_RECORDS 512u /* of a batch */
#define N_BATCHES 8u
#define N_AWAKE                                                                                    \
	(N_BATCHES / 2) /* so many are empty, or full, before a side that waits is woken           \
			 */

struct batch {
	struct vt_record records[N_RECORDS];
	size_t n;
	uint64_t position; /* of the reader behind it */
	uint64_t **lists;  /* copies of what records point to that the reader takes back */
	size_t n_lists;
	size_t lists_room;
};

struct record_stream {
	struct vt_reader *reader;
	struct batch *batches; /* a ring */
	bool has_lists[VT_N_RECORDS];
	bool threaded; /* else batches are filled when they are asked for */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t filled;
	pthread_cond_t emptied;
	uint64_t n_filled;		  /* ever; lock */
	uint64_t n_emptied;		  /* ever; lock */
	bool ended;			  /* no batch will come; lock */
	bool stop;			  /* none is wanted; lock */
	int error;			  /* of the reader; valid once ended */
	struct batch *now;		  /* being handed out; NULL: none yet */
	const struct vt_record *at, *end; /* what is left of it */
};

static void keep_list(struct batch *batch, struct vt_list *list)
{
	uint64_t *copy;

	if (!list->n_items)
		return;
	copy = memory_new(list->n_items, sizeof(*copy));
	memcpy(copy, list->items, list->n_items * sizeof(*copy));
	list->items = copy;
	batch->lists = memory_grow(
		batch->lists, batch->n_lists, &batch->lists_room, sizeof(*batch->lists));
	batch->lists[batch->n_lists++] = copy;
}

static void keep_lists(struct batch *batch, struct vt_record *record)
{
	const struct vt_schema *schema = vt_schema_get(record->kind);

	for (size_t i = 0; i < schema->n_fields; i++)
		if (schema->fields[i].type == VT_FIELD_LIST)
			keep_list(
				batch, (struct vt_list *)(void *)((char *)record + VT_RECORD_BASE +
								  schema->fields[i].offset));
}

static void drop_lists(struct batch *batch)
{
	while (batch->n_lists)
		free(batch->lists[--batch->n_lists]);
}

/* False when nothing came behind the batch before. */
static bool fill(struct record_stream *stream, struct batch *batch)
{
	int found = 1;

	drop_lists(batch);
	batch->n = 0;
	while (batch->n < N_RECORDS) {
		struct vt_record *record = &batch->records[batch->n];

		found = vt_reader_next(stream->reader, record);
		if (found != 1)
			break;
		if (stream->has_lists[record->kind])
			keep_lists(batch, record);
		batch->n++;
	}
	batch->position = vt_reader_position(stream->reader);
	if (found < 0)
		stream->error = found;
	return batch->n > 0;
}

static void *read_ahead(void *user)
{
	struct record_stream *stream = user;
	bool more = true;

	while (more) {
		struct batch *batch = &stream->batches[stream->n_filled % N_BATCHES];

		more = fill(stream, batch);
		pthread_mutex_lock(&stream->lock);
		if (more)
			stream->n_filled++;
		else
			stream->ended = true;
		if (!more || stream->n_filled - stream->n_emptied >= N_AWAKE)
			pthread_cond_signal(&stream->filled);
		while (stream->n_filled - stream->n_emptied == N_BATCHES && !stream->stop)
			pthread_cond_wait(&stream->emptied, &stream->lock);
		more = more && !stream->stop;
		pthread_mutex_unlock(&stream->lock);
	}
	return NULL;
}

struct record_stream *record_stream_open(struct vt_reader *reader)
{
	struct record_stream *stream = memory_new(1, sizeof(*stream));

	stream->reader = reader;
	stream->batches = memory_new(N_BATCHES, sizeof(*stream->batches));
	for (unsigned int kind = 0; kind < VT_N_RECORDS; kind++) {
		const struct vt_schema *schema = vt_schema_get(kind);

		for (size_t i = 0; schema && i < schema->n_fields; i++)
			stream->has_lists[kind] |= schema->fields[i].type == VT_FIELD_LIST;
	}
	pthread_mutex_init(&stream->lock, NULL);
	pthread_cond_init(&stream->filled, NULL);
	pthread_cond_init(&stream->emptied, NULL);
	stream->error = vt_reader_rewind(reader);
	stream->ended = stream->error != 0;
	stream->threaded =
		!stream->ended && !pthread_create(&stream->thread, NULL, read_ahead, stream);
	return stream;
}

/* The next batch that was read ahead; NULL behind the last. */
static struct batch *await(struct record_stream *stream)
{
	struct batch *batch = NULL;

	pthread_mutex_lock(&stream->lock);
	stream->n_emptied += stream->now != NULL;
	if (stream->n_filled - stream->n_emptied <= N_BATCHES - N_AWAKE)
		pthread_cond_signal(&stream->emptied);
	while (stream->n_filled == stream->n_emptied && !stream->ended)
		pthread_cond_wait(&stream->filled, &stream->lock);
	if (stream->n_filled != stream->n_emptied)
		batch = &stream->batches[stream->n_emptied % N_BATCHES];
	pthread_mutex_unlock(&stream->lock);
	return batch;
}

static struct batch *next_batch(struct record_stream *stream)
{
	if (stream->threaded)
		return await(stream);
	return !stream->ended && fill(stream, stream->batches) ? stream->batches : NULL;
}

const struct vt_record *record_stream_next(struct record_stream *stream)
{
	if (stream->at == stream->end) {
		stream->now = next_batch(stream);
		if (!stream->now)
			return NULL;
		stream->at = stream->now->records;
		stream->end = stream->at + stream->now->n;
	}
	return stream->at++;
}

uint64_t record_stream_position(const struct record_stream *stream)
{
	return stream->now ? stream->now->position : 0;
}

int record_stream_close(struct record_stream *stream)
{
	int error;

	if (stream->threaded) {
		pthread_mutex_lock(&stream->lock);
		stream->stop = true;
		pthread_cond_signal(&stream->emptied);
		pthread_mutex_unlock(&stream->lock);
		pthread_join(stream->thread, NULL);
	}
	for (size_t i = 0; i < N_BATCHES; i++) {
		drop_lists(&stream->batches[i]);
		free(stream->batches[i].lists);
	}
	error = stream->error;
	pthread_mutex_destroy(&stream->lock);
	pthread_cond_destroy(&stream->filled);
	pthread_cond_destroy(&stream->emptied);
	free(stream->batches);
	free(stream);
	return error;
}

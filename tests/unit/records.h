/*
 * Any record: filled, written, compared; expanded from records.def, so that a new row is tested
 * without a new line here. Include it after cmocka.h.
 */
#ifndef TESTS_UNIT_RECORDS_H
#define TESTS_UNIT_RECORDS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/near.h"
#include "trace/reader.h"
#include "trace/schema.h"
#include "trace/writer.h"

/* Where the values of a record come from. Texts and lists of the record point into it. */
struct source {
	uint64_t state;
	uint64_t time_ns; /* of the next record */
	char texts[16][512];
	size_t n_texts;
	uint64_t lists[2][256];
	size_t n_lists;
};

/* splitmix64: the same numbers in every run. */
static inline uint64_t source_next(struct source *source)
{
	uint64_t z = source->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Small and huge values alike, and the extremes. */
static inline uint64_t source_number(struct source *source)
{
	static const uint64_t extremes[] = {
		0, 1, 127, 128, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
	uint64_t pick = source_next(source) % 80;

	if (pick < sizeof(extremes) / sizeof(*extremes))
		return extremes[pick];
	return source_next(source) >> (source_next(source) % 64);
}

static inline void fill_NUMBER(struct source *source, uint64_t *out)
{
	*out = source_number(source);
}

static inline void fill_ADDR(struct source *source, uint64_t *out)
{
	*out = source_number(source);
}

static inline void fill_SIGNED(struct source *source, int64_t *out)
{
	*out = (int64_t)source_number(source);
}

static inline void fill_TIME(struct source *source, uint64_t *out)
{
	*out = source->time_ns;
}

static inline void fill_TEXT(struct source *source, struct vt_text *out)
{
	char *text = source->texts[source->n_texts++ % 16];
	size_t bytes = source_next(source) % sizeof(source->texts[0]);

	for (size_t i = 0; i < bytes; i++)
		text[i] = (char)source_next(source);
	*out = (struct vt_text){text, bytes};
}

static inline void fill_LIST(struct source *source, struct vt_list *out)
{
	uint64_t *list = source->lists[source->n_lists++ % 2];
	size_t n = source_next(source) % 256;

	for (size_t i = 0; i < n; i++)
		list[i] = source_number(source);
	*out = (struct vt_list){list, n};
}

/* Fills the record of this kind. False when there is no such kind. */
static inline bool record_fill(struct vt_record *record, unsigned int kind, struct source *source)
{
	memset(record, 0, sizeof(*record));
	record->kind = (enum vt_record_kind)kind;
	/* These come back as what they stand for: test_near.c. */
	if (vt_near_is(record->kind))
		return false;
	switch (kind) {
#define RECORD(number, rec, doc)                                                                   \
	case number: {                                                                             \
		struct vt_rec_##rec *self = &record->rec;
#define FIELD(type, name, doc) fill_##type(source, &self->name);
#define END_RECORD(rec)                                                                            \
	return true;                                                                               \
	}
#include "vramtrace/records.def"
	default:
		return false;
	}
}

static inline int record_put(struct vt_lane *lane, const struct vt_record *record)
{
	switch ((unsigned int)record->kind) {
#define RECORD(number, rec, doc)                                                                   \
	case number:                                                                               \
		return vt_put_##rec(lane, &record->rec);
#define FIELD(type, name, doc)
#define END_RECORD(rec)
#include "vramtrace/records.def"
	default:
		return VT_E_TOO_BIG;
	}
}

#define SAME_TIME(a, b)	  ((a) == (b))
#define SAME_NUMBER(a, b) ((a) == (b))
#define SAME_SIGNED(a, b) ((a) == (b))
#define SAME_ADDR(a, b)	  ((a) == (b))
#define SAME_TEXT(a, b)	  ((a).bytes == (b).bytes && !memcmp((a).data, (b).data, (a).bytes))
#define SAME_LIST(a, b)                                                                            \
	((a).n_items == (b).n_items &&                                                             \
		(!(a).n_items || !memcmp((a).items, (b).items, (a).n_items * sizeof(*(a).items))))

/* Name of the first field that differs, NULL when none does. */
static inline const char *record_difference(const struct vt_record *a, const struct vt_record *b)
{
	if (a->kind != b->kind)
		return "kind";
	switch ((unsigned int)a->kind) {
#define RECORD(number, rec, doc)                                                                   \
	case number: {                                                                             \
		const struct vt_rec_##rec *x = &a->rec, *y = &b->rec;
#define FIELD(type, name, doc)                                                                     \
	if (!SAME_##type(x->name, y->name))                                                        \
		return #name;
#define END_RECORD(rec)                                                                            \
	return NULL;                                                                               \
	}
#include "vramtrace/records.def"
	default:
		return "kind";
	}
}

/* A new trace at path, whatever was there before. */
static inline void trace_begin(
	struct vt_writer *writer, const char *path, struct vt_writer_options options)
{
	unlink(path);
	assert_int_equal(vt_writer_open(writer, path, &options), 0);
}

static inline void trace_end(struct vt_writer *writer)
{
	assert_int_equal(vt_writer_close(writer), 0);
	vt_writer_forget(writer);
}

/* An allocation, as most tests write them. */
static inline int put_alloc(
	struct vt_lane *lane, uint64_t time_ns, uint64_t address, uint64_t bytes)
{
	struct vt_rec_alloc record = {
		.time_ns = time_ns, .kind = VT_KIND_LINEAR, .address = address, .bytes = bytes};

	return vt_put_alloc(lane, &record);
}

static inline struct vt_reader *reader_open(const char *path)
{
	struct vt_reader *reader;

	assert_int_equal(vt_reader_open(&reader, path), 0);
	return reader;
}

static inline bool damage_is_none(const struct vt_damage *damage)
{
	return !damage->n_chunks_skipped && !damage->n_chunks_cut && !damage->missing_bytes &&
	       !damage->n_unknown;
}

/* The whole file, to be freed by the caller. */
static inline uint8_t *file_read(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "rb");
	struct stat st;
	uint8_t *data;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	*bytes = (size_t)st.st_size;
	data = malloc(*bytes + 1);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, *bytes, file), *bytes);
	fclose(file);
	return data;
}

static inline void file_write(const char *path, const void *data, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, bytes), (ssize_t)bytes);
	close(fd);
}

#endif

/* For fuzz targets that run alone: a good trace, and changes to it; the same in every run. */
#ifndef TESTS_FUZZ_SEED_H
#define TESTS_FUZZ_SEED_H

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "trace/codec.h"
#include "trace/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define SEED_CHUNKS	 4u
#define SEED_CHUNK_BYTES 4096u
#define SEED_MAX	 (VT_HEADER_BYTES + SEED_CHUNKS * SEED_CHUNK_BYTES)

static uint64_t random_state = 20240229;

static uint64_t next_random(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Any field of any record, by its type alone. */
static uint8_t *put_field(uint8_t *p, enum vt_field_type type)
{
	uint64_t n = next_random() % 9;

	if (type != VT_FIELD_TEXT && type != VT_FIELD_LIST)
		return vt_encode_number(p, next_random() >> (next_random() % 64));
	p = vt_encode_number(p, n);
	while (n--)
		p = type == VT_FIELD_LIST ? vt_encode_number(p, next_random() >> 20)
					  : (*p = 'x', p + 1);
	return p;
}

static void fill_chunk(struct vt_chunk_header *chunk, uint32_t index)
{
	uint8_t *start = (uint8_t *)(chunk + 1), *p = start;

	chunk->magic = VT_CHUNK_MAGIC;
	chunk->lane = chunk->tid = index;
	chunk->base_time_ns = index * 1000;
	while (p - start < 3000) {
		unsigned int kind = (unsigned int)(next_random() % VT_N_RECORDS);
		const struct vt_schema *schema = vt_schema_get(kind);

		/* These tell of places that must have been named before. */
		if (!schema || kind == VT_REC_block_alloc_near || kind == VT_REC_block_free_near)
			continue;
		*p++ = (uint8_t)kind;
		for (size_t i = 0; i < schema->n_fields; i++)
			p = put_field(p, schema->fields[i].type);
	}
	atomic_store(&chunk->used, (uint32_t)(p - start));
	if (index == 0) {
		chunk->checksum = vt_checksum(start, chunk->used);
		atomic_store(&chunk->sealed, 1);
	}
}

/* A good trace as small as the format allows, so that a mutation is likely to matter. Returns its
 * length. */
static size_t make_seed(uint8_t *data)
{
	struct vt_file_header *header = (struct vt_file_header *)data;

	memset(data, 0, SEED_MAX);
	memcpy(header->magic, VT_MAGIC, sizeof(header->magic));
	header->format = VT_FORMAT;
	header->byte_order = VT_BYTE_ORDER;
	header->header_bytes = (uint32_t)((sizeof(*header) + vt_schema_text_bytes + 63) / 64 * 64);
	header->chunk_bytes = SEED_CHUNK_BYTES;
	header->schema_bytes = (uint32_t)vt_schema_text_bytes;
	atomic_store(&header->n_chunks, SEED_CHUNKS);
	memcpy(header + 1, vt_schema_text, vt_schema_text_bytes);
	for (uint32_t i = 0; i < SEED_CHUNKS; i++)
		fill_chunk((struct vt_chunk_header *)(data + header->header_bytes +
						      i * SEED_CHUNK_BYTES),
			i);
	return header->header_bytes + SEED_CHUNKS * SEED_CHUNK_BYTES;
}

static size_t mutate(uint8_t *data, size_t bytes)
{
	for (uint64_t n = 1 + next_random() % 6; n; n--) {
		size_t at =
			next_random() % (next_random() % 4 ? bytes : sizeof(struct vt_file_header));
		size_t from = next_random() % bytes, length = next_random() % 40;

		switch (next_random() % 6) {
		case 0:
			data[at] ^= (uint8_t)(1u << next_random() % 8);
			break;
		case 1:
			data[at] = next_random() & 1 ? 0xff : 0;
			break;
		case 2:
			if (at + length <= bytes && from + length <= bytes)
				memmove(data + at, data + from, length);
			break;
		case 3:
			if (at + 8 <= bytes)
				memset(data + at, 0xff, next_random() % 9);
			break;
		case 4:
			if (next_random() % 8 == 0)
				return 1 + at;
			break;
		default:
			data[at] = (uint8_t)next_random();
		}
	}
	return bytes;
}

static int run_file(const char *path)
{
	static uint8_t data[1 << 20];
	FILE *file = fopen(path, "rb");
	size_t bytes;

	if (!file) {
		perror(path);
		return 1;
	}
	bytes = fread(data, 1, sizeof(data), file);
	fclose(file);
	return LLVMFuzzerTestOneInput(data, bytes);
}

static int write_seed(const char *path, const uint8_t *seed, size_t bytes)
{
	FILE *file = fopen(path, "wb");

	if (!file || fwrite(seed, 1, bytes, file) != bytes || fclose(file)) {
		perror(path);
		return 1;
	}
	return 0;
}

#endif

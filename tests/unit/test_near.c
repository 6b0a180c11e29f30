/* src/trace/near: blocks that were written in few bytes come back as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/parts.h"
#include "unit/records.h"

#define PATH	 "near.vt"
#define N_EVENTS 60000u

static const struct vt_writer_options plain = {0};

/* The next block of a story: mostly at few addresses in few sizes, now and then anything. */
static struct vt_record next_block(struct source *source)
{
	bool odd = source_next(source) % 50 == 0, frees = source_next(source) % 2;
	uint64_t place = source_next(source) % (source_next(source) % 4 ? 300 : 100000);
	uint64_t size = 1 + source_next(source) % (source_next(source) % 4 ? 3 : 70000);
	uint64_t address = 0x7f0000000000u + place * 512 + (odd ? source_next(source) % 3 : 0);
	struct vt_record record = {.tid = 1};

	if (source_next(source) % 100 == 0)
		address = source_next(source) % 2 ? 0 : source_number(source);
	source->time_ns += source_next(source) % 20000;
	if (frees) {
		record.kind = VT_REC_block_free;
		record.block_free = (struct vt_rec_block_free){source->time_ns, 1 + odd, address,
			odd ? source_number(source) : 512 * size, odd ? -1 : 0, 0};
	} else {
		record.kind = VT_REC_block_alloc;
		record.block_alloc = (struct vt_rec_block_alloc){source->time_ns, 1 + odd, address,
			odd ? source_number(source) : 512 * size, source_next(source) % 500, 0,
			odd ? 4096 : 0};
	}
	return record;
}

static void put(struct vt_lane *lane, const struct vt_record *record)
{
	if (record->kind == VT_REC_block_free)
		assert_int_equal(vt_near_put_free(lane, &record->block_free), 0);
	else
		assert_int_equal(vt_near_put_alloc(lane, &record->block_alloc), 0);
}

/* Records of another kind, whose addresses and times stand between those of blocks. */
static struct vt_record next_set(struct source *source)
{
	struct vt_record record = {.kind = VT_REC_set, .tid = 1};

	source->time_ns += source_next(source) % 300;
	record.set = (struct vt_rec_set){.time_ns = source->time_ns, .dst = source_number(source)};
	return record;
}

static struct vt_record next_record(struct source *source)
{
	return source_next(source) % 20 ? next_block(source) : next_set(source);
}

static void check_story(struct vt_writer_options options)
{
	struct source writing = {.state = 99}, again = {.state = 99};
	struct vt_record record;
	struct vt_writer writer;
	struct vt_reader *reader;
	struct vt_lane *lane;

	trace_begin(&writer, PATH, options);
	lane = vt_writer_lane(&writer, 1, 0);
	for (unsigned int i = 0; i < N_EVENTS; i++) {
		record = next_record(&writing);
		if (record.kind == VT_REC_set)
			assert_int_equal(vt_put_set(lane, &record.set), 0);
		else
			put(lane, &record);
	}
	assert_true(atomic_load(&writer.header->n_chunks) > 3);
	trace_end(&writer);
	reader = reader_open(PATH);
	for (unsigned int i = 0; i < N_EVENTS; i++) {
		struct vt_record expected = next_record(&again);
		const char *difference;

		assert_int_equal(vt_reader_next(reader, &record), 1);
		assert_int_equal(record.kind, expected.kind);
		assert_int_equal(record.time_ns, again.time_ns);
		difference = record_difference(&record, &expected);
		if (difference)
			fail_msg("record %u of kind %d: field %s", i, (int)expected.kind,
				difference);
	}
	assert_int_equal(vt_reader_next(reader, &record), 0);
	assert_true(damage_is_none(vt_reader_damage(reader)));
	vt_reader_close(reader);
}

static void any_story_comes_back(void **state)
{
	(void)state;
	check_story(plain);
}

/* Of a bounded trace chunks are taken away, by other threads too: what comes then rests on nothing
 * before it. The keeper is told what the short records stand for. */
#define N_BLOCKS 300000u

static uint64_t n_kept;

static void observe(enum vt_record_kind kind, uint32_t tid, uint64_t time_ns, const void *record)
{
	const struct vt_rec_block_alloc *block = record;

	(void)tid;
	if (kind != VT_REC_block_alloc)
		return;
	n_kept++;
	assert_int_equal(block->time_ns, time_ns);
	assert_int_equal(block->bytes, 512 * (1 + time_ns % 7));
}

static void checkpoint(struct vt_lane *lane, uint64_t number, uint64_t now_ns)
{
	struct vt_rec_checkpoint record = {.made_ns = now_ns, .part = number};

	vt_put_checkpoint(lane, &record);
}

static struct vt_rec_block_alloc block_at(uint64_t time_ns)
{
	return (struct vt_rec_block_alloc){.time_ns = time_ns,
		.allocator_id = 1,
		.address = 0x7f0000000000u + time_ns % 600 * 8192,
		.bytes = 512 * (1 + time_ns % 7),
		.stack_id = 1};
}

/* Reads the trace at PATH, with all its parts: every block from one of them on. */
static void check_blocks(void)
{
	struct vt_reader *reader = reader_open(PATH);
	struct vt_record record;
	uint64_t next = 0;

	while (vt_reader_next(reader, &record) == 1) {
		struct vt_record expected = {.kind = VT_REC_block_alloc};

		if (record.kind != VT_REC_block_alloc)
			continue;
		expected.block_alloc = block_at(next ? next : record.time_ns);
		assert_null(record_difference(&record, &expected));
		next = record.time_ns + 1;
	}
	assert_int_equal(next, N_BLOCKS + 1);
	assert_true(damage_is_none(vt_reader_damage(reader)));
	vt_reader_close(reader);
}

static void bounded_traces_are_short_too(void **state)
{
	static const struct vt_keeper keeper = {observe, checkpoint};
	struct vt_writer_options how = {.max_bytes = 1u << 20, .keeper = &keeper};
	struct vt_lane *lanes[2];
	struct vt_writer writer;
	uint64_t n_short = 0;

	(void)state;
	n_kept = 0;
	trace_begin(&writer, PATH, how);
	lanes[0] = vt_writer_lane(&writer, 1, 0);
	lanes[1] = vt_writer_lane(&writer, 2, 0);
	for (uint64_t i = 1; i <= N_BLOCKS; i++) {
		struct vt_lane *lane = lanes[i / 3 % 2];
		struct vt_rec_block_alloc block = block_at(i);
		const struct vt_chunk_header *chunk = lane->chunk;
		const uint8_t *at = lane->at;

		assert_int_equal(vt_near_put_alloc(lane, &block), 0);
		n_short += chunk && lane->chunk == chunk && *at != VT_REC_block_alloc;
	}
	assert_int_equal(n_kept, N_BLOCKS);
	assert_true(n_short > N_BLOCKS / 10 * 9);
	assert_true(writer.parts.first > 1);
	check_blocks();
	trace_end(&writer);
	vt_parts_remove(PATH);
}

/* A loop in which every step does the same. */
static void loops_take_few_bytes(void **state)
{
	struct vt_writer writer;
	struct vt_lane *lane;
	uint64_t now = 1, bytes, n = 0;

	(void)state;
	trace_begin(&writer, PATH, plain);
	lane = vt_writer_lane(&writer, 1, 0);
	for (unsigned int step = 0; step < 300; step++)
		for (uint64_t i = 0; i < 200; i++, n += 2) {
			uint64_t address = 0x7f0000000000u + i * 81920;

			vt_near_put_alloc(lane, &(struct vt_rec_block_alloc){now += 5000, 1,
							address, 4096 + 512 * i, 1 + i, 0, 0});
			vt_near_put_free(lane, &(struct vt_rec_block_free){now += 5000, 1, address,
						       4096 + 512 * i, 0, 0});
		}
	bytes = atomic_load(&writer.header->n_chunks) * VT_CHUNK_BYTES;
	assert_true(2 * bytes < 13 * n);
	trace_end(&writer);
}

static void nonsense_is_found(void **state)
{
	static struct vt_near_places places;
	struct vt_delta delta = {100, 0};
	struct vt_record record = {.kind = VT_REC_block_free_near};

	(void)state;
	assert_false(vt_near_expand(&places, &record, &delta));
	record = (struct vt_record){.kind = VT_REC_block_alloc_at};
	record.block_alloc_at = (struct vt_rec_block_alloc_at){7, 3, 2, 9};
	assert_true(vt_near_expand(&places, &record, &delta));
	assert_int_equal(record.kind, VT_REC_block_alloc);
	assert_int_equal(record.block_alloc.time_ns, 107);
	assert_int_equal(record.block_alloc.address, 3 * 512);
	assert_int_equal(record.block_alloc.bytes, 2 * 512);
	record = (struct vt_record){.kind = VT_REC_block_free_near};
	assert_true(vt_near_expand(&places, &record, &delta));
	assert_int_equal(record.kind, VT_REC_block_free);
	assert_int_equal(record.block_free.bytes, 2 * 512);
	record = (struct vt_record){.kind = VT_REC_block_alloc_near};
	record.block_alloc_near.age = 1;
	assert_false(vt_near_expand(&places, &record, &delta));
	record.block_alloc_near.age = UINT64_MAX;
	assert_false(vt_near_expand(&places, &record, &delta));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_story_comes_back),
		cmocka_unit_test(bounded_traces_are_short_too),
		cmocka_unit_test(loops_take_few_bytes),
		cmocka_unit_test(nonsense_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

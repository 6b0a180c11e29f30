/*
 * Stories of copies, and what is found in them. The link moves 50 bytes a nanosecond from and to
 * pinned memory, a fifth of that from and to pageable memory. Include it after cmocka.h.
 */
#ifndef TESTS_UNIT_TRANSFERS_H
#define TESTS_UNIT_TRANSFERS_H

#include "analysis/transfers.h"
#include "unit/story.h"

#define US	 1000ull
#define MS	 (1000 * US)
#define SECOND	 (1000 * MS)
#define DEVICE	 0x10000000000ull
#define PINNED	 0x20000000000ull
#define PAGEABLE 0x30000000000ull
#define SUBMIT	 (2 * US)

/* A copy, as the tests write it. */
struct given {
	uint64_t direction, flags, dst, src, bytes, duration_ns, stack_id, stream, timed_id;
};

static inline void copy(struct story *story, struct given given)
{
	apply(story, (struct vt_record){.kind = VT_REC_copy,
			     .copy = {.direction = given.direction,
				     .flags = given.flags,
				     .device = 0,
				     .dst = given.dst,
				     .src = given.src,
				     .bytes = given.bytes,
				     .duration_ns = given.duration_ns,
				     .stack_id = given.stack_id,
				     .stream = given.stream,
				     .timed_id = given.timed_id}});
	story->now += given.duration_ns;
}

static inline void lock(struct story *story, uint64_t kind, uint64_t address, uint64_t bytes,
	uint64_t stack_id, uint64_t duration_ns)
{
	story->now += duration_ns;
	apply(story, (struct vt_record){.kind = VT_REC_alloc,
			     .alloc = {.kind = kind,
				     .device = -1,
				     .address = address,
				     .bytes = bytes,
				     .stack_id = stack_id,
				     .duration_ns = duration_ns}});
}

static inline void unlock(
	struct story *story, uint64_t kind, uint64_t address, uint64_t duration_ns)
{
	apply(story, (struct vt_record){.kind = VT_REC_free,
			     .free = {.kind = kind,
				     .address = address,
				     .stack_id = 9,
				     .duration_ns = duration_ns}});
	story->now += duration_ns;
}

static inline uint64_t pinned_ns(uint64_t bytes)
{
	return bytes / 50;
}

static inline uint64_t pageable_ns(uint64_t bytes)
{
	return bytes / 10 + 5 * US;
}

/* A device with memory, and pinned memory whose rate the trace shows. */
static inline struct story begin_here(void)
{
	struct story story = begin(1);

	alloc(&story, VT_KIND_LINEAR, 0, DEVICE, 1024 * MIB, 1);
	lock(&story, VT_KIND_PINNED, PINNED, 64 * MIB, 2, MS);
	for (int i = 0; i < 3; i++) {
		copy(&story, (struct given){VT_DIR_H2D, 0, DEVICE, PINNED, 64 * MIB,
				     pinned_ns(64 * MIB), 3, 0, 0});
		copy(&story, (struct given){VT_DIR_D2H, 0, PINNED, DEVICE, 64 * MIB,
				     pinned_ns(64 * MIB), 4, 0, 0});
	}
	copy(&story,
		(struct given){VT_DIR_H2D, VT_COPY_ASYNC, DEVICE, PINNED, MIB, SUBMIT, 3, 0, 0});
	return story;
}

/* The findings of the story; 3 and 4, which only show the rate, may have some. */
struct found {
	struct transfers transfers;
	const struct transfer_finding *findings[64];
	size_t n;
};

static inline void find(struct found *found, const struct story *story)
{
	found->n = 0;
	transfers_make(&found->transfers, story->model, NULL);
	for (size_t i = 0; i < found->transfers.n_findings; i++) {
		const struct transfer_finding *finding = &found->transfers.findings[i];

		if (finding->stack_id != 3 && finding->stack_id != 4)
			found->findings[found->n++] = finding;
	}
}

static inline void forget(struct found *found, struct story *story)
{
	transfers_release(&found->transfers);
	model_free(story->model);
}

static inline const struct transfer_finding *only(
	const struct found *found, enum transfer_finding_kind kind, uint64_t stack_id)
{
	for (size_t i = 0; i < found->n; i++)
		print_message("    %s of %d, lost %d us\n",
			transfer_finding_name(found->findings[i]->kind),
			(int)found->findings[i]->stack_id, (int)(found->findings[i]->lost_ns / US));
	assert_int_equal(found->n, 1);
	assert_string_equal(
		transfer_finding_name(found->findings[0]->kind), transfer_finding_name(kind));
	assert_int_equal(found->findings[0]->stack_id, stack_id);
	assert_non_null(transfer_finding_fix(found->findings[0]));
	return found->findings[0];
}

static inline const struct transfer_finding *first_of(
	const struct found *found, enum transfer_finding_kind kind)
{
	for (size_t i = 0; i < found->n; i++)
		if (found->findings[i]->kind == kind)
			return found->findings[i];
	fail_msg("no finding %s", transfer_finding_name(kind));
	return NULL;
}

static inline bool is_near(uint64_t value, uint64_t expected)
{
	return value >= expected - expected / 20 && value <= expected + expected / 20;
}

#define NEAR(value, expected) assert_true(is_near(value, expected))

#endif

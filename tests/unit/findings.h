/* Telling a story of memory that runs out, and judging it where it stands. Include it after
 * cmocka.h. */
#ifndef TESTS_UNIT_FINDINGS_H
#define TESTS_UNIT_FINDINGS_H

#include "analysis/oom.h"
#include "analysis/watch.h"
#include "unit/story.h"

#define GIB (1024 * MIB)

struct told {
	struct story story;
	struct watch watch;
};

static inline void tell(struct told *told, struct vt_record record)
{
	record.time_ns = told->story.now;
	record.tid = record.tid ? record.tid : 1;
	apply(&told->story, record);
	record.alloc.time_ns = record.time_ns;
	watch_observe(&told->watch, told->story.model, &record);
}

/* One device of so many bytes. */
static inline struct told told_begin(uint64_t total_bytes)
{
	struct told told = {.story = {model_new(), 100}};
	struct vt_record record = {
		.kind = VT_REC_device, .device = {.total_bytes = total_bytes, .page_bytes = PAGE}};

	model_apply(told.story.model, &record);
	return told;
}

static inline void told_end(struct told *told)
{
	model_free(told->story.model);
	watch_release(&told->watch);
}

static inline void take(
	struct told *told, uint64_t kind, uint64_t address, uint64_t bytes, uint64_t stack_id)
{
	tell(told, (struct vt_record){.kind = VT_REC_alloc,
			   .alloc = {.kind = kind,
				   .context_id = 1,
				   .address = address,
				   .bytes = bytes,
				   .stack_id = stack_id}});
}

static inline void give(struct told *told, uint64_t address)
{
	tell(told, (struct vt_record){.kind = VT_REC_free, .free = {.address = address}});
}

static inline void refuse(struct told *told, uint64_t kind, uint64_t bytes, uint64_t stack_id)
{
	tell(told, (struct vt_record){.kind = VT_REC_failure,
			   .failure = {.kind = kind,
				   .bytes = bytes,
				   .stack_id = stack_id,
				   .result = VT_RESULT_OUT_OF_MEMORY}});
}

/* Work of the program's own. */
static inline void copy(struct told *told)
{
	tell(told, (struct vt_record){.kind = VT_REC_copy, .copy = {.bytes = 1}});
}

/* What the driver says is free. */
static inline void say_free(struct told *told, uint64_t free_bytes, uint64_t total_bytes)
{
	tell(told, (struct vt_record){.kind = VT_REC_memory,
			   .memory = {.free_bytes = free_bytes, .total_bytes = total_bytes}});
}

static inline void say_pool(
	struct told *told, uint64_t pool, uint64_t reserved_bytes, uint64_t used_bytes)
{
	tell(told, (struct vt_record){.kind = VT_REC_pool_memory,
			   .pool_memory = {.pool = pool,
				   .reserved_bytes = reserved_bytes,
				   .used_bytes = used_bytes}});
}

static inline void do_pool(struct told *told, uint64_t action, uint64_t pool, uint64_t value)
{
	tell(told, (struct vt_record){.kind = VT_REC_pool,
			   .pool = {.action = action, .pool = pool, .value = value}});
}

/* The identities of every row. */
static inline void check_rows(const struct fragmentation *list)
{
	for (size_t i = 0; i < list->n_rows; i++) {
		const struct fragmentation_row *row = &list->rows[i];
		uint64_t holes = 0;

		assert_int_equal(row->reserved_bytes, row->live_bytes + row->rounding_bytes +
							      row->pending_bytes + row->idle_bytes);
		assert_int_equal(row->idle_bytes, row->pinned_bytes + row->returnable_bytes);
		for (size_t k = 0; k < row->n_hole_sizes; k++) {
			holes += row->holes[k].count;
			assert_true(row->holes[k].bytes <= row->largest_hole_bytes);
		}
		assert_true(holes <= row->n_holes);
	}
}

/* The last episode, judged with the model as it is now; release it with oom_list_release. */
static inline struct oom *judge(struct told *told, struct oom_list *list)
{
	watch_finish(&told->watch);
	oom_list_make(list, &told->watch.episodes);
	assert_true(list->n_items > 0);
	oom_judge(&list->items[list->n_items - 1], told->story.model, &told->watch.requests);
	check_rows(&list->items[list->n_items - 1].levels);
	return &list->items[list->n_items - 1];
}

/* What this action would have given, 0: it is not among those that would have sufficed. */
static inline uint64_t remedy(const struct oom *oom, enum oom_action action)
{
	for (size_t i = 0; i < oom->n_remedies; i++)
		if (oom->remedies[i].action == action)
			return oom->remedies[i].bytes;
	return 0;
}

#endif

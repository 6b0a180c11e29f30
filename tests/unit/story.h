/* Telling a model a story, record by record. Include it after cmocka.h. */
#ifndef TESTS_UNIT_STORY_H
#define TESTS_UNIT_STORY_H

#include "model/model.h"
#include "unit/records.h"

#define KIB  1024ull
#define MIB  (1024 * KIB)
#define PAGE (2 * MIB)

/* A model and the time of its next record. */
struct story {
	struct model *model;
	uint64_t now;
};

static inline void apply(struct story *story, struct vt_record record)
{
	record.time_ns = story->now++;
	record.tid = record.tid ? record.tid : 1;
	/* TIME is the first field of every event. */
	record.alloc.time_ns = record.time_ns;
	model_apply(story->model, &record);
}

static inline void device(struct story *story, uint64_t ordinal)
{
	struct vt_record record = {.kind = VT_REC_device,
		.device = {.ordinal = ordinal, .total_bytes = 64 * MIB, .page_bytes = PAGE}};

	model_apply(story->model, &record);
}

static inline struct story begin(unsigned int n_devices)
{
	struct story story = {model_new(), 100};

	for (unsigned int i = 0; i < n_devices; i++)
		device(&story, i);
	return story;
}

static inline void alloc(struct story *story, uint64_t kind, int64_t ordinal, uint64_t address,
	uint64_t bytes, uint64_t stack_id)
{
	apply(story, (struct vt_record){.kind = VT_REC_alloc,
			     .alloc = {.kind = kind,
				     .device = ordinal,
				     .context_id = (uint64_t)(ordinal + 1),
				     .address = address,
				     .bytes = bytes,
				     .stack_id = stack_id}});
}

static inline void give_back(struct story *story, uint64_t address, uint64_t result)
{
	apply(story, (struct vt_record){.kind = VT_REC_free,
			     .free = {.kind = VT_KIND_LINEAR,
				     .address = address,
				     .stack_id = 9,
				     .result = result}});
}

static inline void context(struct story *story, uint64_t action, uint64_t context_id)
{
	apply(story, (struct vt_record){.kind = VT_REC_context,
			     .context = {.action = action, .context_id = context_id}});
}

static inline const struct model_totals *totals(
	const struct story *story, int ordinal, uint32_t kind)
{
	return &model_device_find(story->model, ordinal)->kinds[kind];
}

static inline uint64_t tracked(const struct story *story, int ordinal)
{
	return model_device_find(story->model, ordinal)->tracked_bytes;
}

static inline const struct model_site *site(const struct story *story, uint64_t stack_id)
{
	for (const struct model_site *s = story->model->sites; s; s = s->hh.next)
		if (s->key.stack_id == stack_id)
			return s;
	fail_msg("no site of stack %d", (int)stack_id);
	return NULL;
}

#endif

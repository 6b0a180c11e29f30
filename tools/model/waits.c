/*
 * Events that freed pieces wait for. The recorder writes one down where the allocator's library
 * recorded an event right before it reported a free, from a frame close to the report's. That may
 * be chance: then the same place in the code is seen again with another distance, and nothing that
 * it recorded is a wait.
 */
#include <stdlib.h>

#include "model/blocks_internal.h"
#include "model/memory.h"

struct model_wait {
	uint64_t event;
	uint64_t address; /* of the piece */
	uint64_t caller;
	uint32_t tid;
	struct model_allocator *allocator; /* NULL: the free has not come yet */
	struct model_piece *piece;
	struct model_wait *next_open, **link_open; /* while piece is NULL */
	UT_hash_handle hh;			   /* by event */
};

/* A place that records events. */
struct model_place {
	uint64_t caller;
	uint64_t distance;
	bool is_none; /* it had two distances */
	UT_hash_handle hh;
};

static void wait_open(struct model *model, struct model_wait *wait)
{
	wait->next_open = model->open_waits;
	if (wait->next_open)
		wait->next_open->link_open = &wait->next_open;
	wait->link_open = &model->open_waits;
	model->open_waits = wait;
}

static void wait_close(struct model_wait *wait)
{
	*wait->link_open = wait->next_open;
	if (wait->next_open)
		wait->next_open->link_open = wait->link_open;
}

static void wait_remove(struct model *model, struct model_wait *wait)
{
	if (!wait->piece)
		wait_close(wait);
	HASH_DEL(model->waits, wait);
	free(wait);
}

/* The event is done with, or never was one. */
static void wait_end(struct model *model, struct model_wait *wait)
{
	struct model_allocator *allocator = wait->allocator;
	struct model_piece *piece = wait->piece;

	wait_remove(model, wait);
	if (piece && !--piece->n_waits)
		piece_settle(model, allocator, piece);
}

static void forget_place(struct model *model, struct model_place *place)
{
	struct model_wait *wait, *next;

	place->is_none = true;
	HASH_ITER(hh, model->waits, wait, next)
	{
		if (wait->caller == place->caller)
			wait_end(model, wait);
	}
}

static bool is_place(struct model *model, const struct vt_rec_stream_event *given)
{
	struct model_place *place;

	HASH_FIND(hh, model->places, &given->caller, sizeof(given->caller), place);
	if (!place) {
		place = memory_new(1, sizeof(*place));
		place->caller = given->caller;
		place->distance = given->distance;
		HASH_ADD(hh, model->places, caller, sizeof(place->caller), place);
	}
	if (!place->is_none && place->distance != given->distance)
		forget_place(model, place);
	return !place->is_none;
}

static struct model_wait *wait_find(const struct model *model, uint64_t event)
{
	struct model_wait *wait;

	HASH_FIND(hh, model->waits, &event, sizeof(event), wait);
	return wait;
}

static void apply_wait(struct model *model, const struct vt_rec_stream_event *given, uint32_t tid)
{
	struct model_wait *wait = wait_find(model, given->event);

	/* It is used again: whatever it was for has happened. */
	if (wait)
		wait_end(model, wait);
	if (!is_place(model, given))
		return;
	wait = memory_new(1, sizeof(*wait));
	wait->event = given->event;
	wait->address = given->address;
	wait->caller = given->caller;
	wait->tid = tid;
	HASH_ADD(hh, model->waits, event, sizeof(wait->event), wait);
	wait_open(model, wait);
}

void waits_apply(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_stream_event *given = &record->stream_event;
	struct model_wait *wait;

	if (given->action == VT_EVENT_WAIT) {
		apply_wait(model, given, record->tid);
		return;
	}
	wait = wait_find(model, given->event);
	if (wait)
		wait_end(model, wait);
}

size_t waits_attach(struct model *model, struct model_allocator *allocator,
	struct model_piece *piece, uint32_t tid)
{
	struct model_wait *next;

	for (struct model_wait *wait = model->open_waits; wait; wait = next) {
		next = wait->next_open;
		if (wait->tid != tid)
			continue;
		if (!piece || wait->address != piece->node.key) {
			wait_remove(model, wait);
			continue;
		}
		wait_close(wait);
		wait->allocator = allocator;
		wait->piece = piece;
		piece->n_waits++;
	}
	return piece ? piece->n_waits : 0;
}

void waits_drop(struct model *model, const struct model_piece *piece)
{
	struct model_wait *wait, *next;

	if (!piece->n_waits)
		return;
	HASH_ITER(hh, model->waits, wait, next)
	{
		if (wait->piece == piece)
			wait_remove(model, wait);
	}
}

void waits_release(struct model *model)
{
	struct model_place *place, *next;

	while (model->waits)
		wait_remove(model, model->waits);
	HASH_ITER(hh, model->places, place, next)
	{
		HASH_DEL(model->places, place);
		free(place);
	}
}

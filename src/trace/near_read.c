/* near.h: the side of the reader. */
#include "trace/near.h"

static uint64_t address_at(const struct vt_delta *delta, int64_t grains)
{
	return (delta->address / VT_NEAR_GRAIN_BYTES + (uint64_t)grains) * VT_NEAR_GRAIN_BYTES;
}

static void remember(struct vt_near_places *places, uint64_t address, uint64_t bytes)
{
	uint64_t at = places->n++ % VT_NEAR_N_PLACES;

	places->items[at].address = address;
	places->items[at].bytes = bytes;
}

/* What was named age places ago. */
static bool recall(
	const struct vt_near_places *places, uint64_t age, uint64_t *address, uint64_t *bytes)
{
	uint64_t at = (places->n - 1 - age) % VT_NEAR_N_PLACES;

	if (age >= places->n || age >= VT_NEAR_N_PLACES)
		return false;
	*address = places->items[at].address;
	*bytes = places->items[at].bytes;
	return true;
}

/* What a short record tells of its block. */
struct told {
	uint64_t later_ns;
	uint64_t address;
	uint64_t bytes;
	uint64_t stack_id;
	bool names; /* a place */
	bool frees;
};

static bool read_told(struct told *told, const struct vt_near_places *places,
	const struct vt_record *record, const struct vt_delta *delta)
{
	switch (record->kind) {
	case VT_REC_block_alloc_at: {
		const struct vt_rec_block_alloc_at *at = &record->block_alloc_at;

		*told = (struct told){at->later_ns, address_at(delta, at->grains),
			at->n_grains * VT_NEAR_GRAIN_BYTES, at->stack_id, true, false};
		return true;
	}
	case VT_REC_block_free_at: {
		const struct vt_rec_block_free_at *at = &record->block_free_at;

		*told = (struct told){at->later_ns, address_at(delta, at->grains),
			at->n_grains * VT_NEAR_GRAIN_BYTES, 0, true, true};
		return true;
	}
	case VT_REC_block_alloc_near: {
		const struct vt_rec_block_alloc_near *near = &record->block_alloc_near;

		*told = (struct told){.later_ns = near->later_ns,
			.stack_id = near->stack_id,
			.names = near->n_grains != 0};
		if (!recall(places, near->age, &told->address, &told->bytes))
			return false;
		if (near->n_grains)
			told->bytes = near->n_grains * VT_NEAR_GRAIN_BYTES;
		return true;
	}
	default: /* VT_REC_block_free_near */
		*told = (struct told){.later_ns = record->block_free_near.later_ns, .frees = true};
		return recall(places, record->block_free_near.age, &told->address, &told->bytes);
	}
}

bool vt_near_expand(struct vt_near_places *places, struct vt_record *record, struct vt_delta *delta)
{
	struct told told;

	if (!read_told(&told, places, record, delta))
		return false;
	if (told.names)
		remember(places, told.address, told.bytes);
	*delta = (struct vt_delta){delta->time_ns + told.later_ns, told.address};
	if (told.frees) {
		record->kind = VT_REC_block_free;
		record->block_free = (struct vt_rec_block_free){.time_ns = delta->time_ns,
			.allocator_id = places->allocator_id,
			.address = told.address,
			.bytes = told.bytes};
	} else {
		record->kind = VT_REC_block_alloc;
		record->block_alloc = (struct vt_rec_block_alloc){.time_ns = delta->time_ns,
			.allocator_id = places->allocator_id,
			.address = told.address,
			.bytes = told.bytes,
			.stack_id = told.stack_id};
	}
	return true;
}

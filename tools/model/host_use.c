/* Page-locked host memory: what it was locked for, and how much of it was used. */
#include <stdlib.h>

#include "model/internal.h"
#include "model/memory.h"

/* Memory that is unlocked after so few copies was locked for them. */
#define MAX_PINNED_COPIES 4u
/* Unlocked so long after the last copy is late, if it is more than half of the memory's time. */
#define LATE_NS	    10000000000u
#define ROUND_BYTES (1u << 20)

static bool is_host_kind(uint32_t kind)
{
	return kind == VT_KIND_PINNED || kind == VT_KIND_REGISTERED;
}

static struct model_pinning *pinning_of(struct model *model, const struct model_block *block)
{
	struct model_pinning_key key = {block->site->key.stack_id, block->kind};
	struct model_pinning *pinning;

	HASH_FIND(hh, model->pinnings, &key, sizeof(key), pinning);
	if (pinning)
		return pinning;
	pinning = memory_new(1, sizeof(*pinning));
	pinning->key = key;
	HASH_ADD(hh, model->pinnings, key, sizeof(pinning->key), pinning);
	return pinning;
}

void host_use_begin(
	struct model *model, struct model_block *block, const struct vt_rec_alloc *alloc)
{
	struct model_pinning *pinning;

	if (!is_host_kind(block->kind))
		return;
	block->use = memory_new(1, sizeof(*block->use));
	block->use->made_ns = alloc->time_ns;
	block->use->lock_ns = alloc->duration_ns;
	pinning = pinning_of(model, block);
	if (!pinning->n_locked++)
		pinning->first_ns = alloc->time_ns;
	pinning->last_ns = alloc->time_ns;
	pinning->locked_bytes = add_capped(pinning->locked_bytes, block->bytes);
	pinning->lock_ns = add_capped(pinning->lock_ns, alloc->duration_ns);
	if (block->bytes >= ROUND_BYTES && !(block->bytes & (block->bytes - 1))) {
		pinning->round.n++;
		pinning->round.bytes = add_capped(pinning->round.bytes, block->bytes);
	}
}

/* From the first byte to behind the last one of a copy at address. */
static uint64_t extent_of(const struct vt_rec_copy *given)
{
	uint64_t bytes;

	if (given->rows < 2 || !given->pitch ||
		__builtin_mul_overflow(given->rows - 1, given->pitch, &bytes))
		return given->bytes;
	return add_capped(bytes, given->bytes / given->rows);
}

/* Its block is known to the site that locked it. */
static void note_touched(struct model *model, struct model_block *block, uint64_t touched_bytes)
{
	struct model_pinning *pinning = pinning_of(model, block);

	if (!block->use->n_copies) {
		pinning->used.n++;
		pinning->used.bytes = add_capped(pinning->used.bytes, block->bytes);
	}
	if (touched_bytes <= block->use->touched_bytes)
		return;
	pinning->touched_bytes =
		add_capped(pinning->touched_bytes, touched_bytes - block->use->touched_bytes);
	block->use->touched_bytes = touched_bytes;
}

void host_use_note_copy(struct model *model, struct model_block *block, struct model_copy *copy,
	const struct vt_rec_copy *given, uint64_t address)
{
	struct model_host_use *use = block ? block->use : NULL;
	uint64_t touched_bytes;

	if (!use)
		return;
	touched_bytes = add_capped(address - block->node.key, extent_of(given));
	note_touched(model, block, touched_bytes < block->bytes ? touched_bytes : block->bytes);
	if (!use->n_copies++) {
		use->first_copy_ns = given->time_ns;
		use->copy = copy;
	}
	use->last_copy_ns = given->time_ns;
	use->stream = given->stream;
}

void host_use_end(struct model *model, struct model_block *block, const struct vt_rec_free *given)
{
	const struct model_host_use *use = block->use;
	struct model_part *pins, *late;
	uint64_t idle_ns;

	if (!use)
		return;
	host_ranges_end(model, block->node.key, block->bytes);
	if (!use->n_copies)
		return;
	if (use->n_copies <= MAX_PINNED_COPIES) {
		pins = &use->copy->pins;
		pins->n++;
		pins->bytes = add_capped(pins->bytes, block->bytes);
		pins->ns = add_capped(pins->ns, add_capped(use->lock_ns, given->duration_ns));
	}
	idle_ns = given->time_ns - use->last_copy_ns;
	if (given->time_ns < use->last_copy_ns || idle_ns < LATE_NS ||
		idle_ns < (given->time_ns - use->made_ns) / 2)
		return;
	late = &pinning_of(model, block)->late;
	late->n++;
	late->bytes = add_capped(late->bytes, block->bytes);
	late->ns = add_capped(late->ns, idle_ns);
}

/* The memory that is registered already and holds some of these bytes, or NULL. */
static const struct model_block *registered_at(
	const struct model *model, uint64_t address, uint64_t bytes)
{
	const struct model_block *block = ledger_block_at(model, address);
	const struct tree_node *next;

	if (!block) {
		next = tree_ceiling(&model->live, address);
		if (next && next->key - address < bytes)
			block = ledger_block_from(model, next->key);
	}
	return block && is_host_kind(block->kind) ? block : NULL;
}

void host_use_note_refused(struct model *model, const struct vt_rec_failure *given)
{
	const struct model_block *block;
	struct model_clash *clash = NULL;

	if (given->kind != VT_KIND_REGISTERED || !given->address)
		return;
	block = registered_at(model, given->address, given->bytes);
	if (!block)
		return;
	for (size_t i = 0; i < model->n_clashes && !clash; i++)
		if (model->clashes[i].stack_id == given->stack_id &&
			model->clashes[i].earlier_stack_id == block->site->key.stack_id)
			clash = &model->clashes[i];
	if (!clash && model->n_clashes < MODEL_MAX_CLASHES) {
		clash = &model->clashes[model->n_clashes++];
		*clash = (struct model_clash){.stack_id = given->stack_id,
			.earlier_stack_id = block->site->key.stack_id,
			.address = given->address,
			.bytes = given->bytes,
			.first_ns = given->time_ns};
	}
	if (clash)
		clash->n++;
}

/* Memory that is given back and asked for again at once. */
#include "model/internal.h"

#define AT_ONCE_NS 1000000u

void again_note_free(
	struct model *model, const struct model_block *block, const struct vt_rec_free *given)
{
	/* What copies used is host_use.c's to judge. */
	if (block->use && block->use->n_copies)
		return;
	model->freed[model->n_freed++ % MODEL_N_FREED] = (struct model_freed){
		.device = block->device->ordinal,
		.kind = block->kind,
		.bytes = block->bytes,
		.end_ns = add_capped(given->time_ns, given->duration_ns),
		.free_ns = given->duration_ns,
	};
}

static bool is_same(
	const struct model_freed *freed, const struct model_block *block, uint64_t begin_ns)
{
	return freed->end_ns && freed->bytes == block->bytes && freed->kind == block->kind &&
	       freed->device == block->device->ordinal && freed->end_ns <= begin_ns &&
	       begin_ns - freed->end_ns <= AT_ONCE_NS;
}

void again_note_alloc(
	struct model *model, const struct model_block *block, const struct vt_rec_alloc *given)
{
	uint64_t begin_ns =
		given->time_ns -
		(given->duration_ns < given->time_ns ? given->duration_ns : given->time_ns);
	struct model_part *again = &block->site->again;

	block->site->alloc_ns = add_capped(block->site->alloc_ns, given->duration_ns);
	for (uint64_t i = 1; i <= MODEL_N_FREED && i <= model->n_freed; i++) {
		struct model_freed *freed = &model->freed[(model->n_freed - i) % MODEL_N_FREED];

		if (!is_same(freed, block, begin_ns))
			continue;
		again->n++;
		again->bytes = add_capped(again->bytes, block->bytes);
		again->ns = add_capped(again->ns, add_capped(given->duration_ns, freed->free_ns));
		freed->end_ns = 0;
		return;
	}
}

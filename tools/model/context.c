/*
 * What the end of a context takes with it. Destroying or resetting one ends what is live in it, at
 * once. Letting go of the last reference to a primary context does too, but the CUDA runtime does
 * just that when a process exits, and what is live then is what a user wants to hear of: so such an
 * end is booked when the process is seen to go on using the context, and not at all when it does
 * not.
 */
#include <stdlib.h>

#include "model/internal.h"
#include "model/memory.h"

static struct model_context *context_of(struct model *model, uint64_t context_id)
{
	struct model_context *context;

	HASH_FIND(hh, model->contexts, &context_id, sizeof(context_id), context);
	if (context)
		return context;
	context = memory_new(1, sizeof(*context));
	context->context_id = context_id;
	HASH_ADD(hh, model->contexts, context_id, sizeof(context->context_id), context);
	return context;
}

static void teardown(struct model *model, uint64_t context_id)
{
	struct tree_node *node = tree_ceiling(&model->live, 0);

	while (node) {
		struct model_block *block = container(node, struct model_block, node);

		node = tree_next(&model->live, node);
		if (block->context_id != context_id)
			continue;
		ledger_remove(model, block, true);
		tree_remove(&model->live, &block->node);
		free(block);
	}
}

void context_touch(struct model *model, uint64_t context_id)
{
	struct model_context *context;

	if (!context_id)
		return;
	HASH_FIND(hh, model->contexts, &context_id, sizeof(context_id), context);
	if (!context || !context->released)
		return;
	context->released = false;
	teardown(model, context_id);
}

void context_apply(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_context *given = &record->context;
	struct model_context *context;

	if (given->result) {
		model_note_failure(model, MODEL_REFUSED_CONTEXT, given->api_id, VT_KIND_NONE,
			model_device_of(model, given->device)->ordinal, 0, given->result, 0,
			given->time_ns);
		return;
	}
	if (!given->context_id)
		return;
	context = context_of(model, given->context_id);
	switch (given->action) {
	case VT_CONTEXT_CREATE:
		context_touch(model, given->context_id);
		break;
	case VT_CONTEXT_RETAIN:
		context_touch(model, given->context_id);
		context->n_retains++;
		break;
	case VT_CONTEXT_RELEASE:
		if (context->n_retains && !--context->n_retains)
			context->released = true;
		break;
	case VT_CONTEXT_DESTROY:
	case VT_CONTEXT_RESET:
		context->released = false;
		teardown(model, given->context_id);
		break;
	default:
		break;
	}
}

/*
 * What the end of a context takes with it. Destroying or resetting one ends what is live in it, at
 * once. Letting go of the last reference to a primary context does too, but the CUDA runtime does
 * just that when a process exits, and what is live then is what a user wants to hear of: so such an
 * end is booked when the process is seen to go on using the context, and not at all when it does
 * not.
 *
 * What was taken on a device without being allocated (context, code, ...) goes with its last
 * context; of several, only a context's own part is known.
 */
#include <stdlib.h>
#include <string.h>

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

void context_add_block(struct model_context *context, struct model_block *block)
{
	if (!context)
		return;
	block->context = context;
	block->next_in_context = context->blocks;
	if (context->blocks)
		context->blocks->link_in_context = &block->next_in_context;
	block->link_in_context = &context->blocks;
	context->blocks = block;
}

void context_remove_block(struct model_block *block)
{
	if (!block->context)
		return;
	*block->link_in_context = block->next_in_context;
	if (block->next_in_context)
		block->next_in_context->link_in_context = block->link_in_context;
	block->context = NULL;
}

/* The context itself has memory on its device from now on. */
static void begin(struct model_context *context, struct model_device *device)
{
	if (device && !context->holds_memory)
		context->device = device;
	if (context->holds_memory || !context->device)
		return;
	context->holds_memory = true;
	context->device->n_contexts++;
}

static void teardown(struct model *model, struct model_context *context)
{
	struct model_device *device = context->device;

	while (context->blocks)
		ledger_end_block(model, context->blocks, true);
	if (!context->holds_memory)
		return;
	context->holds_memory = false;
	device->untracked_bytes[VT_CAUSE_CONTEXT] =
		subtract_wrapped(device->untracked_bytes[VT_CAUSE_CONTEXT], context->taken_bytes);
	context->taken_bytes = 0;
	if (device->newest_context == context)
		device->newest_context = NULL;
	if (--device->n_contexts)
		return;
	memset(device->untracked_bytes, 0, sizeof(device->untracked_bytes));
	device->first_context.gone_ns = model->last_ns;
}

void context_touch(struct model *model, struct model_context *context)
{
	if (!context || !context->released)
		return;
	context->released = false;
	teardown(model, context);
}

struct model_context *context_use(
	struct model *model, uint64_t context_id, struct model_device *device)
{
	struct model_context *context;

	if (!context_id)
		return NULL;
	context = context_of(model, context_id);
	context_touch(model, context);
	begin(context, device);
	return context;
}

static void note_refused(struct model *model, const struct vt_rec_context *given)
{
	struct model_failure_key key = {
		.api_id = given->api_id,
		.result = given->result,
		.device = model_device_of(model, given->device)->ordinal,
		.refusal = MODEL_REFUSED_CONTEXT,
	};

	model_note_failure(model, &key, 0, given->time_ns);
}

static void note_first(struct model_device *device, const struct vt_rec_context *given)
{
	struct model_first_context *first = &device->first_context;

	first->gone_ns = first->let_go_ns = 0;
	if (first->seen)
		return;
	first->seen = true;
	first->time_ns = given->time_ns;
	first->api_id = given->api_id;
}

static struct model_context *made(struct model *model, const struct vt_rec_context *given)
{
	struct model_device *device = model_device_of(model, given->device);
	struct model_context *context = context_of(model, given->context_id);

	context_touch(model, context);
	begin(context, device);
	context->device->newest_context = context;
	note_first(context->device, given);
	return context;
}

static void destroyed(struct model *model, struct model_context *context)
{
	context->released = false;
	teardown(model, context);
	HASH_DEL(model->contexts, context);
	free(context);
}

static void let_go(struct model_context *context, uint64_t time_ns)
{
	context->released = true;
	if (context->device)
		context->device->first_context.let_go_ns = time_ns;
}

void context_apply(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_context *given = &record->context;
	struct model_context *context;

	if (given->result) {
		note_refused(model, given);
		return;
	}
	if (!given->context_id)
		return;
	context = context_of(model, given->context_id);
	switch (given->action) {
	case VT_CONTEXT_CREATE:
		made(model, given);
		break;
	case VT_CONTEXT_RETAIN:
		made(model, given)->n_retains++;
		break;
	case VT_CONTEXT_RELEASE:
		if (context->n_retains && !--context->n_retains)
			let_go(context, given->time_ns);
		break;
	case VT_CONTEXT_DESTROY:
		destroyed(model, context);
		break;
	case VT_CONTEXT_RESET:
		context->released = false;
		teardown(model, context);
		break;
	default:
		break;
	}
}

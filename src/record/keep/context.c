/* Contexts: what their end takes along, see tools/model/context.c. */
#include "record/keep/internal.h"

static struct keep_context *context_of(uint64_t context_id)
{
	struct arena *arena = &keep.arena;
	struct keep_context *context;
	bool added = true;

	HASH_FIND(hh, keep.contexts, &context_id, sizeof(context_id), context);
	if (context)
		return context;
	context = keep_alloc(sizeof(*context));
	if (!context)
		return NULL;
	context->context_id = context_id;
	HASH_ADD(hh, keep.contexts, context_id, sizeof(context->context_id), context);
	return added ? context : NULL;
}

void keep_context_add(struct keep_context *context, struct keep_block *block)
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

void keep_context_remove(struct keep_block *block)
{
	if (!block->context)
		return;
	*block->link_in_context = block->next_in_context;
	if (block->next_in_context)
		block->next_in_context->link_in_context = block->link_in_context;
	block->context = NULL;
}

static void begin(struct keep_context *context, struct keep_device *device)
{
	if (device && !context->holds_memory)
		context->device = device;
	if (context->holds_memory || !context->device)
		return;
	context->holds_memory = true;
	context->device->n_contexts++;
}

static void let_go_over(struct keep_context *context)
{
	context->released = false;
	kept_free(context->let_go);
	context->let_go = NULL;
}

static void teardown(struct keep_context *context, uint64_t time_ns)
{
	struct keep_device *device = context->device;

	keep.teardown_ns = time_ns;
	while (context->blocks)
		keep_block_end(context->blocks, true, time_ns);
	if (!context->holds_memory)
		return;
	context->holds_memory = false;
	device->untracked[VT_CAUSE_CONTEXT] -= context->taken_bytes;
	context->taken_bytes = 0;
	if (device->newest_context == context)
		device->newest_context = NULL;
	if (!--device->n_contexts)
		memset(device->untracked, 0, sizeof(device->untracked));
}

void keep_context_touch(struct keep_context *context, uint64_t time_ns)
{
	if (!context || !context->released)
		return;
	let_go_over(context);
	teardown(context, time_ns);
}

struct keep_context *keep_context_use(
	uint64_t context_id, struct keep_device *device, uint64_t time_ns)
{
	struct keep_context *context = context_id ? context_of(context_id) : NULL;

	if (!context)
		return NULL;
	keep_context_touch(context, time_ns);
	begin(context, device);
	return context;
}

static void made(struct keep_context *context, const struct keep_event *event)
{
	struct keep_device *device = keep_device_of(keep_record(event, context)->device);

	keep_context_touch(context, event->time_ns);
	if (!device)
		return;
	/* The first one is repeated, unless the context was reset since. */
	if (!context->made || !context->holds_memory)
		kept_replace(&context->made, event);
	begin(context, device);
	context->device->newest_context = context;
}

static void destroyed(struct keep_context *context, uint64_t time_ns)
{
	struct arena *arena = &keep.arena;

	let_go_over(context);
	teardown(context, time_ns);
	kept_free(context->made);
	HASH_DEL(keep.contexts, context);
	keep_free(context, sizeof(*context));
}

static void apply(struct keep_context *context, const struct keep_event *event)
{
	switch (keep_record(event, context)->action) {
	case VT_CONTEXT_CREATE:
		made(context, event);
		break;
	case VT_CONTEXT_RETAIN:
		made(context, event);
		context->n_retains++;
		break;
	case VT_CONTEXT_RELEASE:
		if (context->n_retains && !--context->n_retains) {
			context->released = true;
			kept_replace(&context->let_go, event);
		}
		break;
	case VT_CONTEXT_DESTROY:
		destroyed(context, event->time_ns);
		break;
	case VT_CONTEXT_RESET:
		let_go_over(context);
		teardown(context, event->time_ns);
		break;
	default:
		break;
	}
}

void context_keep(const struct keep_event *event)
{
	const struct vt_rec_context *given = keep_record(event, context);
	const struct keep_device *device = keep_device_of(given->device);
	struct keep_context *context;

	if (given->result) {
		keep_refused(&(struct keep_refusal_key){.api_id = given->api_id,
				     .result = given->result,
				     .device = device ? device->ordinal : VT_DEVICE_UNKNOWN,
				     .refused = VT_REFUSED_CONTEXT},
			0, given->time_ns);
		return;
	}
	context = given->context_id ? context_of(given->context_id) : NULL;
	if (context)
		apply(context, event);
}

void context_untracked(const struct keep_event *event)
{
	const struct vt_rec_untracked *given = keep_record(event, untracked);
	struct keep_device *device = keep_device_of(given->device);
	struct keep_context *context = device ? device->newest_context : NULL;

	if (!device || !given->cause || given->cause >= VT_N_CAUSES)
		return;
	device->untracked[given->cause] += given->taken_bytes;
	device->untracked_ns = given->time_ns;
	if (given->cause == VT_CAUSE_CONTEXT && context) {
		context->taken_bytes += given->taken_bytes;
		context->taken_ns = given->time_ns;
	}
}

/* As many as are held, and one more where the last one was let go. */
static void put_retains(const struct keep_context *context)
{
	const struct kept *kept = context->made;
	uint64_t n = context->n_retains + context->released;
	struct vt_rec_context again = *kept_as(kept, context);

	again.action = VT_CONTEXT_RETAIN;
	for (uint64_t i = again.action == kept_as(kept, context)->action; i < n; i++)
		checkpoint_put_new(
			&(struct keep_event){VT_REC_context, kept->tid, kept->time_ns, &again});
}

static void put_taken(const struct keep_context *context)
{
	struct vt_rec_untracked record = {.time_ns = context->made->time_ns,
		.cause = VT_CAUSE_CONTEXT,
		.device = context->device->ordinal,
		.taken_bytes = context->taken_bytes};

	if (record.taken_bytes)
		checkpoint_put_new(&(struct keep_event){
			VT_REC_untracked, context->made->tid, record.time_ns, &record});
}

int64_t context_taken_bytes(const struct keep_device *device)
{
	const struct keep_context *context = keep.contexts;
	int64_t bytes = 0;

	for (; context; context = context->hh.next)
		if (context->made && context->device == device)
			bytes += context->taken_bytes;
	return bytes;
}

void context_checkpoint(void)
{
	for (struct keep_context *context = keep.contexts; context; context = context->hh.next) {
		if (!context->made)
			continue;
		checkpoint_put(context->made);
		put_retains(context);
		if (context->device)
			put_taken(context);
		checkpoint_put(context->let_go);
	}
}

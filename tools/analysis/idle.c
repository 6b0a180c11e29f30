#include "analysis/idle.h"

#include <stdlib.h>

#include "model/memory.h"

/* Memory of others counts: somebody wanted to look at it here. */
static bool was_allocated_on(const struct model_device *device)
{
	for (size_t kind = 0; kind < VT_N_KINDS; kind++)
		if (device->kinds[kind].n_allocs)
			return true;
	return device->peak_tracked_bytes != 0;
}

static bool was_allocated_anywhere(const struct model *model)
{
	for (size_t i = 0; i < model->n_devices; i++)
		if (was_allocated_on(model->devices[i]))
			return true;
	return false;
}

/* What has no device may be on any. But memory of another process that is mapped here, as NCCL
 * does, needs no context where it is. */
static bool may_be_anywhere(const struct model *model)
{
	for (size_t kind = 0; kind < VT_N_KINDS; kind++)
		if (kind != VT_KIND_SHARED && model->unknown.kinds[kind].n_allocs)
			return true;
	return false;
}

static enum idle_advice advice_for(const struct model *model)
{
	if (was_allocated_anywhere(model))
		return IDLE_CHOOSE_DEVICE;
	return was_allocated_on(&model->host) ? IDLE_PINS_ELSEWHERE : IDLE_KEEP_OUT;
}

static uint64_t last_allocation_ns(const struct model *model)
{
	uint64_t last_ns = 0;

	for (const struct model_site *site = model->sites; site; site = site->hh.next)
		if (site->last_ns > last_ns)
			last_ns = site->last_ns;
	return last_ns;
}

/* A release is not the end of the process when that goes on allocating elsewhere. */
static uint64_t end_of(const struct model_first_context *context, uint64_t last_allocation_ns)
{
	if (context->gone_ns)
		return context->gone_ns;
	return context->let_go_ns < last_allocation_ns ? context->let_go_ns : 0;
}

void idle_list_make(
	struct idle_list *list, const struct model *model, const struct trace_facts *facts)
{
	uint64_t last_ns = last_allocation_ns(model);

	if (!model->hooks_active || facts->damaged || facts->n_lost || facts->stopped ||
		may_be_anywhere(model))
		return;
	for (size_t i = 0; i < model->n_devices; i++) {
		const struct model_device *device = model->devices[i];
		const struct model_first_context *context = &device->first_context;

		if (!context->seen || was_allocated_on(device))
			continue;
		list->items =
			memory_grow(list->items, list->n_items, &list->room, sizeof(*list->items));
		list->items[list->n_items++] = (struct idle_context){
			.device = device->ordinal,
			.bytes_known = context->measured && context->taken_bytes >= 0,
			.bytes = context->taken_bytes > 0 ? (uint64_t)context->taken_bytes : 0,
			.since_ns = context->time_ns,
			.until_ns = end_of(context, last_ns),
			.api_id = context->api_id,
			.stack_id = context->stack_id,
			.advice = advice_for(model),
		};
	}
}

const char *idle_advice_name(enum idle_advice advice)
{
	static const char *const names[] = {
		[IDLE_CHOOSE_DEVICE] = "choose_device",
		[IDLE_KEEP_OUT] = "keep_out",
		[IDLE_PINS_ELSEWHERE] = "pin_elsewhere",
	};

	return names[advice];
}

void idle_list_release(struct idle_list *list)
{
	free(list->items);
	*list = (struct idle_list){0};
}

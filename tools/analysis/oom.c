#include "analysis/oom.h"

#include <stdio.h>
#include <stdlib.h>

#include "analysis/oom_parts.h"
#include "analysis/order.h"
#include "model/memory.h"

/* What is kept of who held what: more is in the trace. */
#define MAX_HOLDERS 1000u

/* NVML is asked once a second at most. */
#define LISTED_FOR_NS 1500000000u

static uint64_t rounded_up(uint64_t bytes, uint64_t unit)
{
	uint64_t units = bytes / unit + !!(bytes % unit);

	return units > UINT64_MAX / unit ? UINT64_MAX : units * unit;
}

static int compare_ooms(const void *a, const void *b)
{
	const struct oom *x = a, *y = b;
	int order = order_of(x->episode.first_ns, y->episode.first_ns);

	return order ? order
		     : (x->episode.tid > y->episode.tid) - (x->episode.tid < y->episode.tid);
}

void oom_list_make(struct oom_list *list, const struct episodes *episodes)
{
	*list = (struct oom_list){
		.n_items = episodes->n_items, .n_left_out = episodes->n_in_all - episodes->n_items};
	list->items = memory_new(list->n_items, sizeof(*list->items));
	for (size_t i = 0; i < list->n_items; i++) {
		list->items[i].episode = episodes->items[i];
		list->items[i].class = OOM_UNEXPLAINED;
	}
	if (list->n_items)
		qsort(list->items, list->n_items, sizeof(*list->items), compare_ooms);
	for (size_t i = 0; i < list->n_items; i++)
		list->items[i].number = i + 1;
}

/* What the driver said at the refusal; else what it said last, less what has been had since. */
static void take_free(struct oom *oom, const struct model_device *device)
{
	const struct model_account *account = &device->account;
	int64_t since;

	oom->total_bytes = device->total_bytes;
	if (oom->episode.sampled) {
		oom->free_known = oom->free_measured = true;
		oom->free_bytes = oom->episode.free_bytes;
		oom->total_bytes = oom->episode.total_bytes;
	} else if (account->seen) {
		since = (int64_t)(device->tracked_bytes - account->tracked_bytes);
		oom->free_known = true;
		oom->free_bytes = account->free_bytes - (uint64_t)since;
		if (since > 0 && (uint64_t)since > account->free_bytes)
			oom->free_bytes = 0;
	}
}

static void take_others(struct oom *oom, const struct model_device *device)
{
	const struct model_account *account = &device->account;
	int64_t bytes = account->others_bytes;

	if (device->listed.seen && oom->episode.last_ns < device->listed.time_ns + LISTED_FOR_NS) {
		oom->listed = device->listed;
		oom->others_known = true;
		oom->others_bytes = device->listed.used_bytes;
		return;
	}
	if (!account->seen)
		return;
	/* Less is in use than there should be: they have given some back. */
	if (account->unexplained_bytes < 0)
		bytes += account->unexplained_bytes;
	oom->others_known = device->others_measured;
	oom->others_bytes = bytes > 0 ? (uint64_t)bytes : 0;
}

static void keep_device(struct site_list *list, int device)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n_rows; i++)
		if (list->rows[i].device == device && model_kind_tracked(list->rows[i].kind))
			list->rows[kept++] = list->rows[i];
	list->n_rows = kept;
}

static const struct model_reservation *reservation_of(const struct tree_node *node)
{
	return (const struct model_reservation *)(const void *)node;
}

_Static_assert(offsetof(struct model_reservation, node) == 0, "it is where its node is");

static void add_reservation(struct site_list *list, const struct model_reservation *reservation)
{
	struct site_row *row = NULL;

	for (size_t i = 0; i < list->n_rows && !row; i++)
		if (list->rows[i].stack_id == reservation->stack_id)
			row = &list->rows[i];
	if (!row) {
		list->rows =
			memory_grow(list->rows, list->n_rows, &list->room, sizeof(*list->rows));
		row = &list->rows[list->n_rows++];
		*row = (struct site_row){
			.stack_id = reservation->stack_id, .device = MODEL_DEVICE_UNKNOWN};
	}
	row->bytes += reservation->bytes;
	row->count++;
}

static void take_addresses(struct oom *oom, const struct model *model)
{
	const struct tree_node *node;

	oom->reserved_address_bytes = model->reserved_bytes;
	for (node = tree_ceiling(&model->mappings, 0); node;
		node = tree_next(&model->mappings, node))
		oom->mapped_bytes += ((const struct model_mapping *)(const void *)node)->bytes;
	if (oom->episode.want != EPISODE_ADDRESS_SPACE)
		return;
	for (node = tree_ceiling(&model->reservations, 0); node;
		node = tree_next(&model->reservations, node))
		add_reservation(&oom->holders, reservation_of(node));
}

static void note_growth(struct site_list *list, const struct requests *requests)
{
	for (size_t i = 0; i < list->n_rows; i++) {
		struct site_row *row = &list->rows[i];

		row->grows = request_site_drifts(requests_site(requests,
			row->level == SITE_BLOCK ? REQUEST_FRAMEWORK : REQUEST_DRIVER, row->device,
			row->stack_id));
	}
}

static void take_holders(struct oom *oom, const struct model *model, int device)
{
	const struct site_filter most = {.limit = MAX_HOLDERS};

	take_addresses(oom, model);
	if (oom->episode.want != EPISODE_ADDRESS_SPACE) {
		site_list_add_live(&oom->holders, model);
		keep_device(&oom->holders, device);
	}
	site_list_sort(&oom->holders);
	site_list_filter(&oom->holders, &most);
}

static void take_device(
	struct oom *oom, const struct model *model, const struct model_device *device)
{
	for (size_t kind = 0; kind < VT_N_KINDS; kind++) {
		oom->kinds[kind] = device->kinds[kind];
		oom->host_kinds[kind] = model->host.kinds[kind];
	}
	oom->account = device->account;
	oom->tracked_bytes = device->tracked_bytes;
	take_free(oom, device);
	take_others(oom, device);
	take_holders(oom, model, device->ordinal);
}

/* Where the call does not tell how much it wanted, it was more than there was. */
static void take_need(struct oom *oom, const struct model_device *device)
{
	const struct episode *episode = &oom->episode;
	uint64_t bytes = episode->n_calls ? episode->bytes : episode->report_bytes;

	if (bytes)
		oom->need_bytes = rounded_up(bytes, device->page_bytes);
	else
		oom->need_bytes = oom->free_bytes + device->page_bytes;
}

void oom_judge(struct oom *oom, const struct model *model, const struct requests *requests)
{
	const struct model_device *device = model_device_find(model, oom->episode.device);
	char at[16];

	if (!device)
		return;
	oom->is_past = model_is_past(model, oom->episode.last_ns);
	if (oom->is_past) {
		oom->episode.n_events = 0;
		oom->total_bytes = device->total_bytes;
		take_need(oom, device);
		if (oom->total_bytes && oom->need_bytes > oom->total_bytes)
			oom->class = OOM_IMPOSSIBLE;
		return;
	}
	take_device(oom, model, device);
	note_growth(&oom->holders, requests);
	take_need(oom, device);
	snprintf(at, sizeof(at), "oom:%zu", oom->number);
	fragmentation_add(&oom->levels, model, device->ordinal, at, oom->episode.last_ns,
		oom->need_bytes, requests);
	oom_classify(oom, model, device);
}

static void release_oom(struct oom *oom)
{
	site_list_release(&oom->holders);
	fragmentation_release(&oom->levels);
	free(oom->remedies);
}

void oom_list_filter(struct oom_list *list, const struct site_filter *filter, size_t number)
{
	struct site_filter of_holders = {.min_bytes = filter->min_bytes, .limit = filter->limit};
	size_t kept = 0;

	for (size_t i = 0; i < list->n_items; i++) {
		struct oom *oom = &list->items[i];

		if ((number && oom->number != number) ||
			(filter->one_device && oom->episode.device != filter->device)) {
			release_oom(oom);
		} else if (filter->limit && kept == filter->limit) {
			release_oom(oom);
			list->n_left_out++;
		} else {
			site_list_filter(&oom->holders, &of_holders);
			fragmentation_filter(&oom->levels, &of_holders);
			list->items[kept++] = *oom;
		}
	}
	list->n_items = kept;
}

const char *oom_class_name(enum oom_class class)
{
	static const char *const names[] = {
		[OOM_IMPOSSIBLE] = "impossible_request",
		[OOM_ADDRESS_SPACE] = "address_space",
		[OOM_LIMIT] = "limit",
		[OOM_OTHER_PROCESS] = "other_process",
		[OOM_OTHER_ALLOCATOR] = "other_allocator",
		[OOM_PENDING] = "pending_free",
		[OOM_FRAGMENTATION] = "fragmentation",
		[OOM_EXHAUSTED] = "exhausted",
		[OOM_UNEXPLAINED] = "unexplained",
	};

	return names[class];
}

void oom_list_release(struct oom_list *list)
{
	for (size_t i = 0; i < list->n_items; i++)
		release_oom(&list->items[i]);
	free(list->items);
	*list = (struct oom_list){0};
}

/* The truth: sums, segments and blocks. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "c10_cuda.h"

struct list {
	const struct c10_block **items;
	size_t n, room;
};

static void add(struct list *list, const struct c10_block *block)
{
	if (list->n == list->room) {
		list->room = list->room ? 2 * list->room : 64;
		list->items = realloc(list->items, list->room * sizeof(*list->items));
		if (!list->items)
			abort();
	}
	list->items[list->n++] = block;
}

static void add_free(struct list *list, const struct c10_pool pools[2])
{
	for (int i = 0; i < 2; i++)
		for (const struct c10_block *b = pools[i].free; b; b = b->free_next)
			add(list, b);
}

static int by_address(const void *a, const void *b)
{
	const struct c10_block *x = *(const struct c10_block *const *)a;
	const struct c10_block *y = *(const struct c10_block *const *)b;

	return (x->pointer > y->pointer) - (x->pointer < y->pointer);
}

static bool begins_segment(const struct c10_block *block)
{
	return !block->prev || !block->prev->mapped;
}

static u64 segment_bytes(const struct list *list, size_t i)
{
	u64 bytes = list->items[i]->bytes;

	while (++i < list->n && !begins_segment(list->items[i]))
		bytes += list->items[i]->bytes;
	return bytes;
}

static void put_segments(FILE *out, const struct list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct c10_block *block = list->items[i];

		if (begins_segment(block))
			fprintf(out,
				"%s{\"address\": %" PRIuPTR ", \"size\": %" PRIu64
				", \"stream\": %" PRId64
				", \"expandable\": %s, \"private\": %" PRIu64 ", \"blocks\": [",
				i ? "]},\n" : "", (uintptr_t)block->pointer, segment_bytes(list, i),
				block->stream, block->expandable ? "true" : "false",
				block->pool->private_id);
		fprintf(out, "%s[%" PRIuPTR ", %" PRIu64 ", \"%s\"]",
			begins_segment(block) ? "" : ", ", (uintptr_t)block->pointer, block->bytes,
			block->allocated  ? "active"
			: block->n_events ? "pending"
					  : "inactive");
	}
	fputs(list->n ? "]}" : "", out);
}

static void put_stat(FILE *out, const char *name, const struct c10_stat *stat)
{
	fprintf(out, "\"%s\": {\"current\": %" PRIu64 ", \"peak\": %" PRIu64 "}, ", name,
		stat->current, stat->peak);
}

static void put_device(FILE *out, struct c10_device_state *device)
{
	struct list list = {0};

	pthread_mutex_lock(&device->lock);
	for (size_t i = 0; i < device->n_active; i++)
		add(&list, device->active[i]);
	add_free(&list, device->pools);
	for (const struct c10_private *p = device->privates; p; p = p->next)
		add_free(&list, p->pools);
	if (list.n)
		qsort(list.items, list.n, sizeof(*list.items), by_address);
	fprintf(out, "%s{\"ordinal\": %d, ", device->ordinal ? ",\n" : "", device->ordinal);
	put_stat(out, "allocated_bytes", &device->allocated);
	put_stat(out, "reserved_bytes", &device->reserved);
	put_stat(out, "active_bytes", &device->live);
	put_stat(out, "inactive_split_bytes", &device->inactive_split);
	fprintf(out,
		"\"pending_bytes\": %" PRIu64 ", \"allocations\": %" PRIu64 ", \"frees\": %" PRIu64
		", \"device_allocations\": %" PRIu64 ", \"device_frees\": %" PRIu64
		", \"retries\": %" PRIu64 ", \"ooms\": %" PRIu64 ",\n\"segments\": [",
		device->pending_bytes, device->n_allocations, device->n_frees,
		device->n_device_allocations, device->n_device_frees, device->n_retries,
		device->n_ooms);
	put_segments(out, &list);
	fputs("]}", out);
	pthread_mutex_unlock(&device->lock);
	free(list.items);
}

bool c10sim_write_ledger(const char *path)
{
	struct c10sim_reports reports;
	FILE *out = fopen(path, "we");
	bool failed;

	if (!out)
		return false;
	c10_settings();
	c10sim_reports_get(&reports);
	fprintf(out,
		"{\"reports\": {\"allocations\": %" PRIu64 ", \"frees\": %" PRIu64
		", \"refusals\": %" PRIu64 "},\n\"devices\": [",
		reports.allocations, reports.frees, reports.refusals);
	for (int i = 0; i < C10SIM_MAX_DEVICES; i++)
		if (c10_devices[i].n_device_allocations || !i)
			put_device(out, &c10_devices[i]);
	fputs("]}\n", out);
	failed = ferror(out);
	return !fclose(out) && !failed;
}

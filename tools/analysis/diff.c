#include "analysis/diff.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/order.h"
#include "model/hash.h"
#include "model/memory.h"

/* Rows by their key. */
struct entry {
	char *key;
	size_t row; /* index */
	UT_hash_handle hh;
};

static struct diff_row *row_new(struct diff_rows *rows, int device, const char *owner)
{
	rows->items = memory_grow(rows->items, rows->n_items, &rows->room, sizeof(*rows->items));
	rows->items[rows->n_items] = (struct diff_row){.device = device, .owner = owner};
	return &rows->items[rows->n_items++];
}

/* Takes key. */
static struct diff_row *row_of(
	struct diff_rows *rows, struct entry **entries, char *key, int device, const char *owner)
{
	struct entry *entry;

	HASH_FIND_STR(*entries, key, entry);
	if (entry) {
		free(key);
		return &rows->items[entry->row];
	}
	entry = memory_new(1, sizeof(*entry));
	entry->key = key;
	entry->row = rows->n_items;
	HASH_ADD_KEYPTR(hh, *entries, entry->key, strlen(entry->key), entry);
	return row_new(rows, device, owner);
}

static bool same_owner(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static struct diff_row *owner_of(struct diff_rows *rows, int device, const char *owner)
{
	for (size_t i = 0; i < rows->n_items; i++)
		if (rows->items[i].device == device && same_owner(rows->items[i].owner, owner))
			return &rows->items[i];
	return row_new(rows, device, owner);
}

static void book(struct diff_row *row, const struct site_row *site, size_t side)
{
	row->bytes[side] += site->bytes;
	row->counts[side] += site->count;
}

static bool is_same(const struct diff_row *row)
{
	return row->bytes[0] == row->bytes[1] && row->counts[0] == row->counts[1];
}

static int64_t growth_of(const struct diff_row *row)
{
	return (int64_t)(row->bytes[1] - row->bytes[0]);
}

static int compare_rows(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;
	int64_t growth_x = growth_of(x), growth_y = growth_of(y);
	int order = (growth_y > growth_x) - (growth_y < growth_x);

	if (!order)
		order = order_of(y->bytes[1], x->bytes[1]);
	if (!order)
		order = (x->device > y->device) - (x->device < y->device);
	return order ? order : order_of(y->counts[1], x->counts[1]);
}

static void finish(struct diff_rows *rows)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->n_items; i++)
		if (!is_same(&rows->items[i]))
			rows->items[kept++] = rows->items[i];
	rows->n_items = kept;
	if (kept)
		qsort(rows->items, kept, sizeof(*rows->items), compare_rows);
}

void diff_make(struct diff *diff, const struct diff_side sides[2])
{
	struct entry *entries = NULL, *entry, *next;

	for (size_t side = 0; side < 2; side++) {
		const struct diff_side *from = &sides[side];

		for (size_t i = 0; i < from->sites->n_rows; i++) {
			const struct site_row *site = &from->sites->rows[i];
			const char *owner = from->owner(from->user, site);
			struct diff_row *row;

			if (site->teardown)
				continue;
			row = row_of(&diff->sites, &entries, from->key(from->user, site),
				site->device, owner);
			if (!row->sites[side])
				row->sites[side] = site;
			book(row, site, side);
			book(owner_of(&diff->owners, site->device, owner), site, side);
		}
	}
	HASH_ITER(hh, entries, entry, next)
	{
		HASH_DEL(entries, entry);
		free(entry->key);
		free(entry);
	}
	finish(&diff->sites);
	finish(&diff->owners);
}

static void filter_rows(struct diff_rows *rows, const struct site_filter *filter, size_t limit)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->n_items; i++) {
		const struct diff_row *row = &rows->items[i];
		int64_t growth = growth_of(row);

		if ((filter->one_device && row->device != filter->device) ||
			(uint64_t)(growth < 0 ? -growth : growth) < filter->min_bytes)
			continue;
		if (limit && kept == limit)
			rows->n_left_out++;
		else
			rows->items[kept++] = *row;
	}
	rows->n_items = kept;
}

void diff_filter(struct diff *diff, const struct site_filter *filter)
{
	filter_rows(&diff->sites, filter, filter->limit);
	filter_rows(&diff->owners, filter, 0);
}

void diff_release(struct diff *diff)
{
	free(diff->sites.items);
	free(diff->owners.items);
	*diff = (struct diff){0};
}

/*
 * The pages the driver takes for linear memory and for arrays. Requests up to 1 MiB share pages,
 * which go when the last block in them goes; larger ones take whole pages. Arrays have no address:
 * small ones are taken as packed into as few pages as hold them.
 */
#include <stdlib.h>

#include "model/internal.h"
#include "model/memory.h"

struct page_key {
	uint64_t index;
	uint64_t device;
};

struct model_page {
	struct page_key key;
	uint64_t n_blocks;
	UT_hash_handle hh;
};

static struct page_key page_key_of(const struct model_device *device, uint64_t index)
{
	return (struct page_key){index, (uint64_t)(device->ordinal + 2)};
}

/* One more, or one less, small block on this page. Returns the bytes that the device holds more, or
 * less, for it. */
static uint64_t page_add(struct model *model, const struct model_device *device, uint64_t index)
{
	struct page_key key = page_key_of(device, index);
	struct model_page *page;

	HASH_FIND(hh, model->pages, &key, sizeof(key), page);
	if (page) {
		page->n_blocks++;
		return 0;
	}
	page = memory_new(1, sizeof(*page));
	page->key = key;
	page->n_blocks = 1;
	HASH_ADD(hh, model->pages, key, sizeof(page->key), page);
	return device->page_bytes;
}

static uint64_t page_remove(struct model *model, const struct model_device *device, uint64_t index)
{
	struct page_key key = page_key_of(device, index);
	struct model_page *page;

	HASH_FIND(hh, model->pages, &key, sizeof(key), page);
	if (!page || --page->n_blocks)
		return 0;
	HASH_DEL(model->pages, page);
	free(page);
	return device->page_bytes;
}

/* Bytes of shared pages that a small linear block adds, or that go with it. */
static uint64_t shared_change(struct model *model, const struct model_block *block, bool add)
{
	const struct model_device *device = block->device;
	uint64_t first = block->node.key / device->page_bytes, change = 0, n_pages;

	/* The driver keeps a small block inside one page; a trace may still say otherwise. */
	n_pages = (block->node.key % device->page_bytes + (block->bytes ? block->bytes - 1 : 0)) /
			  device->page_bytes +
		  1;
	for (uint64_t i = 0; i < n_pages; i++)
		change += add ? page_add(model, device, first + i)
			      : page_remove(model, device, first + i);
	return change;
}

/* The same for a small array. */
static uint64_t packed_change(struct model_device *device, uint64_t bytes, bool add)
{
	uint64_t before = rounded_up(device->small_array_bytes, device->page_bytes), after;

	bytes = rounded_up(bytes, MODEL_UNIT_BYTES);
	device->small_array_bytes += add ? bytes : -bytes;
	after = rounded_up(device->small_array_bytes, device->page_bytes);
	return add ? after - before : before - after;
}

void pages_book(struct model *model, struct model_block *block, bool add)
{
	struct model_device *device = block->device;
	bool array = block->kind == VT_KIND_ARRAY;
	uint64_t *part = array ? &device->held.array_bytes : &device->held.linear_bytes, change;

	if (block->bytes > MODEL_SMALL_BYTES)
		change = rounded_up(block->bytes, device->page_bytes);
	else if (array)
		change = packed_change(device, block->bytes, add);
	else
		change = shared_change(model, block, add);
	ledger_hold(device, part, add ? *part + change : *part - change);
}

void pages_release(struct model *model)
{
	struct model_page *page, *next;

	HASH_ITER(hh, model->pages, page, next)
	{
		HASH_DEL(model->pages, page);
		free(page);
	}
}

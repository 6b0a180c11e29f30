#include "analysis/requests.h"

#include <stdlib.h>

#include "analysis/order.h"
#include "model/blocks.h"
#include "model/memory.h"

/* Sizes are told apart up to so many; beyond, they are rounded up to one of 16 for each power of
 * two. */
#define MAX_SIZES  16384u
#define FINE_STEPS 16u

/* A step up of at most this part is a little; and what PyTorch rounds large segments to, since it
 * hands them out whole rather than leave little of them. */
#define LITTLE_PART	    8u
#define SEGMENT_STEP_BYTES  (2u << 20)
#define LEAST_SEGMENT_BYTES (4u << 20)
/* So many steps are no chance, and at least so much of the requests must be as large as any before.
 */
#define MIN_STEPS     6u
#define TOP_PART      4u
#define LEAPS_OF_PART 4u

static uint64_t coarse(uint64_t bytes)
{
	unsigned int bits = bytes ? 63u - (unsigned int)__builtin_clzll(bytes) : 0;
	uint64_t step = bits > 4 ? (UINT64_C(1) << bits) / FINE_STEPS : 1;

	return bytes > UINT64_MAX - step ? bytes : (bytes + step - 1) / step * step;
}

/* The size of that many bytes, made when new. */
static struct request_size *size_of(struct requests *requests, const struct request_size_key *key)
{
	unsigned int hash = hash_of(key, sizeof(*key));
	struct request_size **near = &HASH_NEAR(requests->near_sizes, hash), *size = *near;

	if (size && !memcmp(&size->key, key, sizeof(*key)))
		return size;
	HASH_FIND_BYHASHVALUE(hh, requests->sizes, key, sizeof(*key), hash, size);
	if (!size) {
		size = memory_new(1, sizeof(*size));
		size->key = *key;
		HASH_ADD_BYHASHVALUE(hh, requests->sizes, key, sizeof(size->key), hash, size);
	}
	*near = size;
	return size;
}

static void count_size(struct requests *requests, struct request_site *site, uint64_t bytes)
{
	if (HASH_COUNT(requests->sizes) >= MAX_SIZES)
		bytes = coarse(bytes);
	if (!site->size || site->size->key.bytes != bytes)
		site->size = size_of(requests,
			&(struct request_size_key){bytes, site->key.device, site->key.level});
	site->size->count++;
}

static void count_site(struct request_site *site, uint64_t bytes)
{
	uint64_t top = site->largest_bytes;

	if (!site->n_requests++) {
		site->first_bytes = site->largest_bytes = bytes;
		site->n_at_top = 1;
		return;
	}
	site->n_at_top += bytes >= top;
	if (bytes <= top)
		return;
	site->largest_bytes = bytes;
	if (bytes - top <= top / LITTLE_PART ||
		(top > LEAST_SEGMENT_BYTES && bytes - top <= SEGMENT_STEP_BYTES))
		site->n_steps++;
	else
		site->n_leaps++;
}

static struct request_site *site_of(struct requests *requests, const struct request_site_key *key)
{
	struct request_site **near = &HASH_NEAR_STACK(requests->near_sites, key->stack_id,
				    key->level + 8u * (uint32_t)key->device),
			    *site = *near;
	unsigned int hash;

	if (site && site->key.stack_id == key->stack_id && site->key.device == key->device &&
		site->key.level == key->level)
		return site;
	hash = hash_of(key, sizeof(*key));
	HASH_FIND_BYHASHVALUE(hh, requests->sites, key, sizeof(*key), hash, site);
	if (!site) {
		site = memory_new(1, sizeof(*site));
		site->key = *key;
		HASH_ADD_BYHASHVALUE(hh, requests->sites, key, sizeof(site->key), hash, site);
	}
	*near = site;
	return site;
}

static void note(struct requests *requests, enum request_level level, int device, uint64_t stack_id,
	uint64_t bytes)
{
	struct request_site *site =
		site_of(requests, &(struct request_site_key){stack_id, device, level});

	count_size(requests, site, bytes);
	count_site(site, bytes);
}

/* What the model makes of an ordinal in a record. */
static int device_of(const struct model *model, int64_t ordinal)
{
	const struct model_device *device = ordinal >= 0 && ordinal <= INT32_MAX
						    ? model_device_find(model, (int)ordinal)
						    : NULL;

	if (device)
		return device->ordinal;
	return model->n_devices == 1 && model->n_described == 1 ? model->devices[0]->ordinal
								: MODEL_DEVICE_UNKNOWN;
}

/* Where the block lies that has just been handed out. */
static int device_of_block(const struct model *model, const struct vt_rec_block_alloc *block)
{
	const struct model_allocator *allocator = model_allocator_find(model, block->allocator_id);

	if (!allocator)
		return MODEL_DEVICE_UNKNOWN;
	return allocator->newest->segment
		       ? allocator->holdings[allocator->newest->segment->holding].device->ordinal
		       : allocator->device;
}

void requests_observe(
	struct requests *requests, const struct model *model, const struct vt_record *record)
{
	const struct vt_rec_alloc *alloc = &record->alloc;
	const struct vt_rec_handle_create *create = &record->handle_create;

	if (record->kind == VT_REC_alloc && alloc->kind < VT_N_KINDS &&
		model_kind_tracked((uint32_t)alloc->kind))
		note(requests, REQUEST_DRIVER, device_of(model, alloc->device), alloc->stack_id,
			alloc->bytes);
	else if (record->kind == VT_REC_block_alloc)
		note(requests, REQUEST_FRAMEWORK, device_of_block(model, &record->block_alloc),
			record->block_alloc.stack_id, record->block_alloc.bytes);
	else if (record->kind == VT_REC_handle_create && create->sharing == VT_SHARING_OWN &&
		 create->device >= 0)
		note(requests, REQUEST_DRIVER, device_of(model, create->device), create->stack_id,
			create->bytes);
}

static int compare_sizes(const struct request_size *a, const struct request_size *b)
{
	return order_of(a->key.bytes, b->key.bytes);
}

void requests_finish(struct requests *requests)
{
	HASH_SORT(requests->sizes, compare_sizes);
}

static bool is_of(
	const struct request_size *size, enum request_level level, int device, uint64_t above_bytes)
{
	return size->key.level == level && size->key.device == device &&
	       size->key.bytes > above_bytes;
}

struct request_span requests_span(const struct requests *requests, enum request_level level,
	int device, uint64_t above_bytes, uint64_t hole_bytes)
{
	struct request_span span = {0};
	uint64_t seen = 0;

	for (const struct request_size *size = requests->sizes; size; size = size->hh.next) {
		if (!is_of(size, level, device, above_bytes))
			continue;
		span.n_requests += size->count;
		if (size->key.bytes <= hole_bytes)
			span.n_fitting += size->count;
	}
	for (const struct request_size *size = requests->sizes; size; size = size->hh.next) {
		if (!is_of(size, level, device, above_bytes))
			continue;
		seen += size->count;
		span.median_bytes = size->key.bytes;
		if (seen >= span.n_requests - span.n_requests / 2)
			break;
	}
	return span;
}

uint64_t requests_count_drifting(
	const struct requests *requests, enum request_level level, int device, uint64_t least_bytes)
{
	uint64_t n = 0;

	for (const struct request_site *site = requests->sites; site; site = site->hh.next)
		n += site->key.level == level && site->key.device == device &&
		     site->largest_bytes >= least_bytes && request_site_drifts(site);
	return n;
}

const struct request_site *requests_site(
	const struct requests *requests, enum request_level level, int device, uint64_t stack_id)
{
	struct request_site_key key = {stack_id, device, level};
	struct request_site *site;

	HASH_FIND(hh, requests->sites, &key, sizeof(key), site);
	return site;
}

bool request_site_drifts(const struct request_site *site)
{
	return site && site->n_steps >= MIN_STEPS &&
	       site->n_leaps <= site->n_steps / LEAPS_OF_PART &&
	       site->n_at_top >= site->n_requests / TOP_PART;
}

void requests_release(struct requests *requests)
{
	while (requests->sizes) {
		struct request_size *size = requests->sizes;

		HASH_DEL(requests->sizes, size);
		free(size);
	}
	while (requests->sites) {
		struct request_site *site = requests->sites;

		HASH_DEL(requests->sites, site);
		free(site);
	}
	*requests = (struct requests){0};
}

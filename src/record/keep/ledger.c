/* Live blocks by address, arrays by handle, and the books of each call site. */
#include "record/keep/internal.h"

#define MIN_FAILURES 8u
#define MAX_FAILURES 32u

/* Refusals for lack of memory, one by one: the first ones and the last ones. */
static struct {
	struct kept *items[MAX_FAILURES];
	uint64_t n;
} failures;

/* The last ones that were given out before they were seen to be free; a ring. */
#define N_MISSED 64u

static struct {
	uint64_t address, time_ns; /* 0: none */
	bool counted;		   /* as missed */
} missed[N_MISSED];
static size_t n_missed;

static void note_missed(uint64_t address, uint64_t time_ns, bool counted)
{
	missed[n_missed % N_MISSED].address = address;
	missed[n_missed % N_MISSED].time_ns = time_ns;
	missed[n_missed % N_MISSED].counted = counted;
	n_missed++;
}

void keep_missed(uint64_t address, uint64_t time_ns)
{
	keep.n_missed_frees++;
	note_missed(address, time_ns, true);
}

bool keep_was_missed(uint64_t address, uint64_t freed_ns)
{
	for (size_t i = 0; i < N_MISSED; i++) {
		if (missed[i].address != address || missed[i].time_ns < freed_ns)
			continue;
		missed[i].time_ns = 0;
		keep.n_missed_frees -= missed[i].counted;
		return true;
	}
	return false;
}

struct keep_site *keep_site_of(
	uint64_t stack_id, struct keep_device *device, uint32_t kind, uint64_t allocator_id)
{
	struct keep_site_key key = {stack_id, device->ordinal, kind, allocator_id};
	struct arena *arena = &keep.arena;
	struct keep_site *site;
	bool added = true;

	HASH_FIND(hh, keep.sites, &key, sizeof(key), site);
	if (site)
		return site;
	site = keep_alloc(sizeof(*site));
	if (!site)
		return NULL;
	site->key = key;
	site->the_device = device;
	site->live.epoch = device->epoch;
	HASH_ADD(hh, keep.sites, key, sizeof(site->key), site);
	return added ? site : NULL;
}

void site_begin(struct keep_site *site, uint64_t bytes, uint64_t time_ns)
{
	if (!site->first_ns)
		site->first_ns = time_ns;
	if (time_ns > site->last_ns)
		site->last_ns = time_ns;
	amount_change(&site->live, site->the_device, bytes, 1);
}

void site_end(struct keep_site *site, uint64_t bytes, bool teardown)
{
	amount_change(&site->live, site->the_device, -bytes, -UINT64_C(1));
	site->n_gone++;
	site->gone_bytes += bytes;
	if (teardown) {
		site->n_teardown++;
		site->teardown_bytes += bytes;
	}
}

struct keep_refusal *keep_refusal_find(const struct keep_refusal_key *key)
{
	struct keep_refusal *refusal;

	HASH_FIND(hh, keep.refusals, key, sizeof(*key), refusal);
	return refusal;
}

void keep_refused(const struct keep_refusal_key *key, uint64_t bytes, uint64_t time_ns)
{
	struct keep_refusal *refusal = keep_refusal_find(key);
	struct arena *arena = &keep.arena;
	bool added = true;

	if (!refusal) {
		refusal = keep_alloc(sizeof(*refusal));
		if (!refusal)
			return;
		refusal->key = *key;
		refusal->first_ns = time_ns;
		HASH_ADD(hh, keep.refusals, key, sizeof(refusal->key), refusal);
		if (!added)
			return;
	}
	refusal->n_calls++;
	refusal->bytes += bytes;
	if (bytes > refusal->largest_bytes)
		refusal->largest_bytes = bytes;
	refusal->last_ns = time_ns;
}

static struct keep_block *block_from(struct tree_node *node)
{
	return node ? keep_container(node, struct keep_block, node) : NULL;
}

static struct tree *tree_of(uint32_t kind)
{
	return kind == VT_KIND_ARRAY ? &keep.arrays : &keep.live;
}

struct keep_block *keep_block_at(uint64_t address)
{
	struct keep_block *block = block_from(tree_floor(&keep.live, address));

	return block && address - block->node.key < (block->bytes ? block->bytes : 1) ? block
										      : NULL;
}

struct keep_block *keep_block_from(uint64_t address)
{
	return block_from(tree_find(&keep.live, address));
}

/* What a device holds for a block of this kind. */
static void book(struct keep_block *block, bool add)
{
	switch (block->kind) {
	case VT_KIND_LINEAR:
	case VT_KIND_ARRAY:
		pages_keep(block, add);
		break;
	case VT_KIND_POOL:
		pool_keep_block(block, add);
		break;
	case VT_KIND_GRAPH:
		graph_settle_device(block->device);
		break;
	default:
		break;
	}
}

void keep_block_end(struct keep_block *block, bool teardown, uint64_t time_ns)
{
	struct keep_device *device = block->device;

	/* What a launch found live had been freed, or is freed by the launch itself. */
	if (block->launched_ns)
		note_missed(block->node.key, block->launched_ns, false);
	keep_context_remove(block);
	block_segment_end(&block->segment, block->node.key, time_ns);
	device_remove(device, block->kind, block->bytes);
	if (block->site)
		site_end(block->site, block->bytes, teardown);
	book(block, false);
	device_changed(device, time_ns);
	tree_remove(tree_of(block->kind), &block->node);
	kept_free(block->kept);
	keep_free(block, sizeof(*block));
}

struct keep_block *keep_block_new(uint32_t kind, uint64_t address, uint64_t time_ns)
{
	struct tree *tree = tree_of(kind);
	struct keep_block *block = block_from(tree_find(tree, address));

	if (block) {
		/* As a context that was let go had it, that has ended. */
		keep_context_touch(block->context, time_ns);
		block = block_from(tree_find(tree, address));
	}
	if (block) {
		keep_missed(address, time_ns);
		keep_block_end(block, false, time_ns);
	}
	block = keep_alloc(sizeof(*block));
	if (!block)
		return NULL;
	block->kind = kind;
	tree_insert(tree, &block->node, address);
	return block;
}

void keep_block_begin(struct keep_block *block, const struct keep_event *alloc)
{
	const struct vt_rec_alloc *given = keep_record(alloc, alloc);

	block->kept = kept_new(alloc);
	block->site = keep_site_of(given->stack_id, block->device, block->kind, 0);
	if (block->site)
		site_begin(block->site, block->bytes, alloc->time_ns);
	device_add(block->device, block->kind, block->bytes, alloc->time_ns);
	book(block, true);
	device_changed(block->device, alloc->time_ns);
}

static void apply_alloc(const struct keep_event *event)
{
	struct vt_rec_alloc given = *keep_record(event, alloc);
	uint32_t kind = keep_kind(given.kind);
	bool on_host = kind == VT_KIND_PINNED || kind == VT_KIND_REGISTERED;
	struct keep_device *device = keep_device_of(on_host ? VT_DEVICE_HOST : given.device);
	bool told = given.device >= 0 && kind != VT_KIND_POOL;
	struct keep_context *context;
	struct keep_event alloc = *event;
	struct keep_block *block;

	if (!device)
		return;
	context = keep_context_use(given.context_id, told ? device : NULL, event->time_ns);
	block = keep_block_new(kind, given.address, event->time_ns);
	if (!block)
		return;
	block->bytes = given.bytes;
	block->device = device;
	if (kind == VT_KIND_POOL) {
		block->pool = keep_pool_of(given.pool, device);
		if (block->pool) {
			block->device = block->pool->device;
			/* The current pool may be another one later. */
			given.pool = block->pool->key.handle;
		}
	}
	keep_context_add(context, block);
	alloc.record = &given;
	keep_block_begin(block, &alloc);
}

/* Graph memory was freed by a thread that came to say so only after another one had launched the
 * graph again. */
static void begin_again(struct keep_block *old, uint64_t freed_ns)
{
	struct vt_rec_alloc again;
	struct keep_event event = {VT_REC_alloc, 0, old->launched_ns, &again};
	struct keep_device *device = old->device;
	struct keep_block *block;

	if (!old->kept)
		return;
	again = *kept_as(old->kept, alloc);
	again.time_ns = old->launched_ns;
	event.tid = old->kept->tid;
	keep_block_end(old, false, freed_ns);
	block = keep_block_new(VT_KIND_GRAPH, again.address, again.time_ns);
	if (!block)
		return;
	block->bytes = again.bytes;
	block->device = device;
	keep_block_begin(block, &event);
}

static void apply_free(const struct keep_event *event)
{
	const struct vt_rec_free *given = keep_record(event, free);
	struct keep_block *block;

	if (!given->address && !given->result)
		return;
	block = given->kind == VT_KIND_ARRAY ? block_from(tree_find(&keep.arrays, given->address))
					     : keep_block_from(given->address);
	if (given->result) {
		keep_refused(&(struct keep_refusal_key){given->stack_id, given->api_id,
				     given->caller_api, given->result,
				     block ? block->device->ordinal : VT_DEVICE_UNKNOWN,
				     VT_REFUSED_FREE, block ? block->kind : keep_kind(given->kind)},
			block ? block->bytes : 0, given->time_ns);
	} else if (keep_was_missed(given->address, given->time_ns) ||
		   (block && block->kept && block->kept->time_ns > given->time_ns)) {
		return; /* of an older one, whose end is known */
	} else if (block && block->launched_ns > given->time_ns) {
		begin_again(block, given->time_ns);
	} else if (block) {
		keep_block_end(block, false, given->time_ns);
	} else if (given->time_ns >= keep.teardown_ns) {
		/* Else a context's end was said first, and took it along. */
		keep.n_unknown_frees++;
	}
}

static void keep_failure(const struct keep_event *event)
{
	uint64_t at = failures.n < MAX_FAILURES
			      ? failures.n
			      : MIN_FAILURES +
					(failures.n - MIN_FAILURES) % (MAX_FAILURES - MIN_FAILURES);

	kept_replace(&failures.items[at], event);
	failures.n++;
}

static struct keep_refusal_key key_of_failure(const struct vt_rec_failure *given)
{
	uint32_t kind = keep_kind(given->kind);
	bool on_host = kind == VT_KIND_PINNED || kind == VT_KIND_REGISTERED;
	const struct keep_device *device = keep_device_of(given->device);

	return (struct keep_refusal_key){given->stack_id, given->api_id, given->caller_api,
		given->result,
		on_host	 ? VT_DEVICE_HOST
		: device ? device->ordinal
			 : VT_DEVICE_UNKNOWN,
		VT_REFUSED_ALLOC, kind};
}

static void apply_failure(const struct keep_event *event)
{
	const struct vt_rec_failure *given = keep_record(event, failure);
	struct keep_refusal_key key = key_of_failure(given);

	keep_refused(&key, given->bytes, given->time_ns);
	if (given->result == VT_RESULT_OUT_OF_MEMORY)
		keep_failure(event);
}

/* Copies and the like leave nothing behind but refusals. */
static void apply_work(const struct keep_event *event)
{
	const struct vt_rec_copy *copy = keep_record(event, copy);
	const struct vt_rec_set *set = keep_record(event, set);
	const struct vt_rec_migrate *migrate = keep_record(event, migrate);
	struct keep_refusal_key key = {0};
	uint64_t bytes;

	if (event->kind == VT_REC_copy) {
		key = (struct keep_refusal_key){copy->stack_id, copy->api_id, copy->caller_api,
			copy->result, copy->device, VT_REFUSED_COPY, 0};
		bytes = copy->bytes;
	} else if (event->kind == VT_REC_set) {
		key = (struct keep_refusal_key){set->stack_id, set->api_id, set->caller_api,
			set->result, set->device, VT_REFUSED_SET, 0};
		bytes = set->bytes;
	} else {
		key = (struct keep_refusal_key){migrate->stack_id, migrate->api_id, 0,
			migrate->result, migrate->device < 0 ? VT_DEVICE_HOST : migrate->device,
			VT_REFUSED_MIGRATE, VT_KIND_MANAGED};
		bytes = migrate->bytes;
	}
	if (key.result)
		keep_refused(&key, bytes, event->time_ns);
}

void ledger_keep(const struct keep_event *event)
{
	switch (event->kind) {
	case VT_REC_alloc:
		apply_alloc(event);
		break;
	case VT_REC_free:
		apply_free(event);
		break;
	case VT_REC_failure:
		apply_failure(event);
		break;
	case VT_REC_block_failure:
		keep_failure(event);
		break;
	default:
		apply_work(event);
		break;
	}
}

static void put_tree(const struct tree *tree)
{
	for (struct tree_node *node = tree_ceiling(tree, 0); node; node = tree_next(tree, node))
		checkpoint_put(block_from(node)->kept);
}

void ledger_checkpoint(void)
{
	put_tree(&keep.live);
	put_tree(&keep.arrays);
	for (size_t i = 0; i < MAX_FAILURES; i++)
		checkpoint_put(failures.items[i]);
}

/* What will be said of them by records that are repeated. */
static void count_repeated_failures(void)
{
	struct keep_refusal *refusal;

	for (refusal = keep.refusals; refusal; refusal = refusal->hh.next)
		refusal->n_repeated = refusal->repeated_bytes = 0;
	for (size_t i = 0; i < MAX_FAILURES; i++) {
		const struct kept *kept = failures.items[i];
		struct keep_refusal_key key;

		if (!kept)
			continue;
		key = kept->kind == VT_REC_failure
			      ? key_of_failure(kept_as(kept, failure))
			      : block_refusal_key(kept_as(kept, block_failure));
		refusal = keep_refusal_find(&key);
		if (!refusal)
			continue;
		refusal->n_repeated++;
		refusal->repeated_bytes += kept->kind == VT_REC_failure
						   ? kept_as(kept, failure)->bytes
						   : kept_as(kept, block_failure)->bytes;
	}
}

static void put_refusals(void)
{
	for (struct keep_refusal *refusal = keep.refusals; refusal; refusal = refusal->hh.next)
		checkpoint_past(&(struct vt_rec_past){.what = VT_PAST_REFUSED,
			.stack_id = refusal->key.stack_id,
			.device = refusal->key.device,
			.kind = refusal->key.kind,
			.id = refusal->key.refused,
			.api_id = refusal->key.api_id,
			.caller_api = refusal->key.caller_api,
			.result = refusal->key.result,
			.count = refusal->n_calls - refusal->n_repeated,
			.bytes = refusal->bytes - refusal->repeated_bytes,
			.largest_bytes = refusal->largest_bytes,
			.first_ns = refusal->first_ns,
			.last_ns = refusal->last_ns});
}

void ledger_checkpoint_first(void)
{
	for (struct keep_site *site = keep.sites; site; site = site->hh.next)
		checkpoint_past(&(struct vt_rec_past){.what = VT_PAST_ALLOC,
			.stack_id = site->key.stack_id,
			.device = site->key.device,
			.kind = site->key.kind,
			.id = site->key.allocator_id,
			.count = site->n_gone - site->n_repeated,
			.bytes = site->gone_bytes - site->repeated_bytes,
			.n_teardown = site->n_teardown,
			.teardown_bytes = site->teardown_bytes,
			.first_ns = site->first_ns,
			.last_ns = site->last_ns,
			.peak_count = amount_peak_count(&site->live, site->the_device),
			.peak_bytes = amount_peak_bytes(&site->live, site->the_device)});
	count_repeated_failures();
	put_refusals();
}

void ledger_forget(void)
{
	memset(&failures, 0, sizeof(failures));
	memset(missed, 0, sizeof(missed));
	n_missed = 0;
}

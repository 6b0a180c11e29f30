/* Devices: what they hold, peaks, samples of the driver, and the timeline. */
#include "record/keep/internal.h"

#define PAGE_BYTES     (2u << 20) /* when the driver did not say */
#define MIN_PAGE_BYTES 4096u
#define MAX_PAGE_BYTES (1u << 30)
#define SMALL_BYTES    (1u << 20) /* requests up to this share pages */
#define UNIT_BYTES     512u
#define MAX_ORDINAL    1023

/* Length of a stretch at first. */
#define STRETCH_NS 1000000u

struct keep_page {
	struct page_key {
		uint64_t index, device;
	} key;
	uint64_t n_blocks;
	UT_hash_handle hh;
};

static struct keep_page *pages;

static struct keep_device *device_new(int ordinal)
{
	struct keep_device *device = keep_alloc(sizeof(*device));

	if (!device)
		return NULL;
	device->ordinal = ordinal;
	device->page_bytes = PAGE_BYTES;
	device->stretch_ns = STRETCH_NS;
	return device;
}

static struct keep_device *special(struct keep_device **at, int ordinal)
{
	if (!*at)
		*at = device_new(ordinal);
	return *at;
}

static struct keep_device *device_find(int64_t ordinal)
{
	struct keep_device *device = keep.devices;

	while (device && device->ordinal != ordinal)
		device = device->next;
	return device;
}

static struct keep_device *device_make(int ordinal)
{
	struct keep_device **end = &keep.devices, *device = device_new(ordinal);

	if (!device)
		return NULL;
	while (*end)
		end = &(*end)->next;
	*end = device;
	keep.n_devices++;
	return device;
}

struct keep_device *keep_device_of(int64_t ordinal)
{
	struct keep_device *device;

	if (ordinal == VT_DEVICE_HOST)
		return special(&keep.host, VT_DEVICE_HOST);
	device = device_find(ordinal);
	if (!device && ordinal >= 0 && ordinal <= MAX_ORDINAL)
		device = device_make((int)ordinal);
	if (device)
		return device;
	return keep.n_devices == 1 && keep.n_described == 1
		       ? keep.devices
		       : special(&keep.unknown, VT_DEVICE_UNKNOWN);
}

void amount_change(
	struct keep_amount *amount, struct keep_device *device, uint64_t bytes, uint64_t count)
{
	if (amount->epoch != device->epoch) {
		amount->peak_bytes = amount->bytes;
		amount->peak_count = amount->count;
		amount->epoch = device->epoch;
	}
	amount->bytes += bytes;
	amount->count += count;
}

uint64_t amount_peak_bytes(const struct keep_amount *amount, const struct keep_device *device)
{
	return amount->epoch == device->epoch ? amount->peak_bytes : amount->bytes;
}

uint64_t amount_peak_count(const struct keep_amount *amount, const struct keep_device *device)
{
	return amount->epoch == device->epoch ? amount->peak_count : amount->count;
}

void device_hold(struct keep_device *device, uint32_t kind, uint64_t bytes)
{
	device->tracked_bytes += bytes - device->held[kind];
	device->held[kind] = bytes;
}

void device_add(struct keep_device *device, uint32_t kind, uint64_t bytes, uint64_t time_ns)
{
	device->kinds[kind].n_allocs++;
	device->kinds[kind].live_bytes += bytes;
	if (device->kinds[kind].live_bytes > device->kinds[kind].peak_bytes) {
		device->kinds[kind].peak_bytes = device->kinds[kind].live_bytes;
		device->kinds[kind].peak_ns = time_ns;
	}
}

void device_remove(struct keep_device *device, uint32_t kind, uint64_t bytes)
{
	device->kinds[kind].live_bytes -= bytes;
}

/* What was sampled goes with a stretch's end, not with its highest moment. */
static void take_sample(struct keep_stretch *to, const struct keep_stretch *from)
{
	to->used_known = from->used_known;
	to->used_bytes = from->used_bytes;
	to->untracked_bytes = from->untracked_bytes;
	to->others_bytes = from->others_bytes;
	to->unexplained_bytes = from->unexplained_bytes;
}

static void enter(struct keep_stretch *to, const struct keep_stretch *from)
{
	if (from->tracked_bytes >= to->tracked_bytes)
		*to = *from;
	else
		take_sample(to, from);
}

/* Stretches of twice the length. */
static void coarsen(struct keep_device *device)
{
	size_t n = KEEP_N_STRETCHES / 2;

	for (size_t i = 0; i < n; i++) {
		device->stretches[i] = device->stretches[2 * i];
		enter(&device->stretches[i], &device->stretches[2 * i + 1]);
	}
	memset(device->stretches + n, 0, n * sizeof(*device->stretches));
	device->stretch_ns *= 2;
	device->stretch /= 2;
}

static void advance(struct keep_device *device, uint64_t time_ns)
{
	uint64_t stretch;

	while ((stretch = time_ns / device->stretch_ns) >= KEEP_N_STRETCHES) {
		/* What lasts until now stands in all of them. */
		while (device->stretch + 1 < KEEP_N_STRETCHES)
			device->stretches[++device->stretch] = device->now;
		coarsen(device);
	}
	while (device->stretch < stretch)
		device->stretches[++device->stretch] = device->now;
}

static void note_peak(struct keep_device *device, uint64_t time_ns)
{
	if (device->tracked_bytes < device->peak_bytes ||
		(device->tracked_bytes == device->peak_bytes &&
			device->block_bytes <= device->peak_block_bytes))
		return;
	if (device->tracked_bytes > device->peak_bytes)
		device->peak_sampled = false;
	device->peak_bytes = device->tracked_bytes;
	device->peak_block_bytes = device->block_bytes;
	device->peak_ns = time_ns;
	device->epoch++;
}

void device_changed(struct keep_device *device, uint64_t time_ns)
{
	note_peak(device, time_ns);
	advance(device, time_ns);
	device->now.tracked_bytes = device->tracked_bytes;
	for (size_t kind = 0; kind < VT_N_KINDS; kind++)
		device->now.kind_bytes[kind] = device->kinds[kind].live_bytes;
	enter(&device->stretches[device->stretch], &device->now);
}

/* One more, or one less, small block on this page. Returns the bytes that the device holds more, or
 * less, for it. */
static uint64_t page_change(struct keep_device *device, uint64_t index, bool add)
{
	struct page_key key = {index, (uint64_t)(device->ordinal + 2)};
	struct arena *arena = &keep.arena;
	struct keep_page *page;
	bool added = true;

	HASH_FIND(hh, pages, &key, sizeof(key), page);
	if (!page && add) {
		page = keep_alloc(sizeof(*page));
		if (!page)
			return 0;
		page->key = key;
		page->n_blocks = 1;
		HASH_ADD(hh, pages, key, sizeof(page->key), page);
		return added ? device->page_bytes : 0;
	}
	if (!page)
		return 0;
	page->n_blocks += add ? 1 : -UINT64_C(1);
	if (page->n_blocks)
		return 0;
	HASH_DEL(pages, page);
	keep_free(page, sizeof(*page));
	return device->page_bytes;
}

static uint64_t shared_change(const struct keep_block *block, bool add)
{
	uint64_t page_bytes = block->device->page_bytes, change = 0;
	uint64_t first = block->node.key / page_bytes;
	uint64_t n = (block->node.key % page_bytes + (block->bytes ? block->bytes - 1 : 0)) /
			     page_bytes +
		     1;

	for (uint64_t i = 0; i < n; i++)
		change += page_change(block->device, first + i, add);
	return change;
}

/* The same for a small array: which pages they share is not known. */
static uint64_t packed_change(struct keep_device *device, uint64_t bytes, bool add)
{
	uint64_t before = keep_rounded(device->small_array_bytes, device->page_bytes), after;

	bytes = keep_rounded(bytes, UNIT_BYTES);
	device->small_array_bytes += add ? bytes : -bytes;
	after = keep_rounded(device->small_array_bytes, device->page_bytes);
	return add ? after - before : before - after;
}

void pages_keep(struct keep_block *block, bool add)
{
	struct keep_device *device = block->device;
	uint64_t change, held = device->held[block->kind];

	if (block->bytes > SMALL_BYTES)
		change = keep_rounded(block->bytes, device->page_bytes);
	else if (block->kind == VT_KIND_ARRAY)
		change = packed_change(device, block->bytes, add);
	else
		change = shared_change(block, add);
	device_hold(device, block->kind, add ? held + change : held - change);
}

static void describe(const struct vt_rec_device *given)
{
	struct keep_device *device =
		given->ordinal <= MAX_ORDINAL ? keep_device_of((int64_t)given->ordinal) : NULL;

	if (!device || device->described)
		return;
	device->described = true;
	keep.n_described++;
	if (given->page_bytes >= MIN_PAGE_BYTES && given->page_bytes <= MAX_PAGE_BYTES &&
		!device->kinds[VT_KIND_LINEAR].n_allocs)
		device->page_bytes = given->page_bytes;
}

static int64_t sum_of(const int64_t *bytes)
{
	uint64_t sum = 0;

	for (size_t cause = 0; cause < VT_N_CAUSES; cause++)
		sum += (uint64_t)bytes[cause];
	return (int64_t)sum;
}

/* Where NVML did not tell: what is in use at the first sample, and not this process's. */
static void assume_others(struct keep_device *device, uint64_t used_bytes, int64_t untracked_bytes)
{
	int64_t rest = (int64_t)(used_bytes - device->tracked_bytes - (uint64_t)untracked_bytes);

	if (device->others_known)
		return;
	device->others_known = true;
	device->others_bytes = rest > 0 ? rest : 0;
}

static void apply_memory(const struct vt_rec_memory *given)
{
	struct keep_device *device = keep_device_of(given->device);
	uint64_t used = given->total_bytes - given->free_bytes;
	int64_t untracked;

	if (!device || given->free_bytes > given->total_bytes)
		return;
	untracked = sum_of(device->untracked);
	assume_others(device, used, untracked);
	device->sample.seen = true;
	device->sample.time_ns = given->time_ns;
	device->sample.free_bytes = given->free_bytes;
	device->sample.total_bytes = given->total_bytes;
	memcpy(device->sample.held, device->held, sizeof(device->held));
	memcpy(device->sample.untracked, device->untracked, sizeof(device->untracked));
	device->sample.unexplained_bytes =
		(int64_t)(used - device->tracked_bytes - (uint64_t)untracked -
			  (uint64_t)device->others_bytes);
	if (used > device->most_used_bytes) {
		device->most_used_bytes = used;
		device->most_used_ns = given->time_ns;
	}
	if (device->peak_bytes && device->tracked_bytes == device->peak_bytes) {
		device->peak_sampled = true;
		device->peak_free_bytes = given->free_bytes;
		device->peak_sample_ns = given->time_ns;
	}
	advance(device, given->time_ns);
	device->now.used_known = true;
	device->now.used_bytes = used;
	device->now.untracked_bytes = untracked;
	device->now.others_bytes = device->others_bytes;
	device->now.unexplained_bytes = device->sample.unexplained_bytes;
	enter(&device->stretches[device->stretch], &device->now);
}

/* Memory can be had on a device without a context there, from pools for one. */
static bool was_used(const struct keep_device *device)
{
	for (size_t kind = 0; kind < VT_N_KINDS; kind++)
		if (device->kinds[kind].n_allocs)
			return true;
	return false;
}

static void apply_others(const struct keep_event *event)
{
	const struct vt_rec_others *given = keep_record(event, others);
	struct keep_device *device = keep_device_of(given->device);

	if (!device)
		return;
	if (given->at_refusal) {
		kept_replace(&device->listed, event);
		if (device->others_measured)
			device->others_bytes = (int64_t)given->used_bytes;
		return;
	}
	if (device->n_contexts > 1 || was_used(device))
		return;
	device->others_known = device->others_measured = true;
	device->others_bytes = (int64_t)given->used_bytes;
}

void device_apply(const struct keep_event *event)
{
	if (event->kind == VT_REC_device)
		describe(keep_record(event, device));
	else if (event->kind == VT_REC_memory)
		apply_memory(keep_record(event, memory));
	else if (event->kind == VT_REC_others)
		apply_others(event);
}

static void put_figure(const struct keep_device *device, enum vt_figure what, uint64_t kind,
	uint64_t value, uint64_t when_ns)
{
	checkpoint_figure(&(struct vt_rec_figure){.what = what,
		.device = device->ordinal,
		.kind = kind,
		.value = (int64_t)value,
		.when_ns = when_ns});
}

static void put_sample(const struct keep_device *device)
{
	put_figure(device, VT_FIGURE_TOTAL, 0, device->sample.total_bytes, device->sample.time_ns);
	for (uint32_t kind = 0; kind < VT_N_KINDS; kind++)
		if (device->sample.held[kind])
			put_figure(device, VT_FIGURE_HELD, kind, device->sample.held[kind], 0);
	for (uint32_t cause = 0; cause < VT_N_CAUSES; cause++)
		if (device->sample.untracked[cause])
			put_figure(device, VT_FIGURE_UNTRACKED, cause,
				(uint64_t)device->sample.untracked[cause], 0);
	put_figure(device, VT_FIGURE_FREE, 0, device->sample.free_bytes, device->sample.time_ns);
	put_figure(device, VT_FIGURE_MOST_USED, 0, device->most_used_bytes, device->most_used_ns);
}

static void put_figures(const struct keep_device *device)
{
	for (uint32_t kind = 0; kind < VT_N_KINDS; kind++)
		if (device->kinds[kind].peak_bytes)
			put_figure(device, VT_FIGURE_KIND_PEAK, kind,
				device->kinds[kind].peak_bytes, device->kinds[kind].peak_ns);
	if (device->peak_bytes) {
		put_figure(device, VT_FIGURE_PEAK, 0, device->peak_bytes, device->peak_ns);
		put_figure(device, VT_FIGURE_PEAK_BLOCKS, 0, device->peak_block_bytes,
			device->peak_ns);
	}
	if (device->others_known)
		put_figure(device, VT_FIGURE_OTHERS, device->others_measured,
			(uint64_t)device->others_bytes, 0);
	if (device->sample.seen)
		put_sample(device);
	if (device->peak_sampled)
		put_figure(device, VT_FIGURE_PEAK_FREE, 0, device->peak_free_bytes,
			device->peak_sample_ns);
}

static void put_stretches(const struct keep_device *device)
{
	for (size_t i = 0; i <= device->stretch; i++) {
		const struct keep_stretch *stretch = &device->stretches[i];
		const uint64_t *kinds = stretch->kind_bytes;

		checkpoint_stretch(&(struct vt_rec_stretch){.device = device->ordinal,
			.start_ns = i * device->stretch_ns,
			.length_ns = device->stretch_ns,
			.tracked_bytes = stretch->tracked_bytes,
			.linear_bytes = kinds[VT_KIND_LINEAR],
			.array_bytes = kinds[VT_KIND_ARRAY],
			.pool_bytes = kinds[VT_KIND_POOL],
			.vmm_bytes = kinds[VT_KIND_VMM],
			.managed_bytes = kinds[VT_KIND_MANAGED],
			.graph_bytes = kinds[VT_KIND_GRAPH],
			.shared_bytes = kinds[VT_KIND_SHARED],
			.used_known = stretch->used_known,
			.used_bytes = stretch->used_bytes,
			.untracked_bytes = stretch->untracked_bytes,
			.others_bytes = stretch->others_bytes,
			.unexplained_bytes = stretch->unexplained_bytes});
	}
}

void device_checkpoint_first(void)
{
	for (struct keep_device *device = keep.devices; device; device = device->next) {
		put_figures(device);
		put_stretches(device);
	}
	if (keep.host)
		put_figures(keep.host);
	if (keep.unknown) {
		put_figures(keep.unknown);
		if (keep.unknown->peak_bytes)
			put_stretches(keep.unknown);
	}
}

/* What contexts took that are gone, or were not seen made; it is nobody's. */
static void put_nobodys(const struct keep_device *device)
{
	struct vt_rec_untracked record = {.cause = VT_CAUSE_CONTEXT, .device = device->ordinal};

	record.taken_bytes = device->untracked[VT_CAUSE_CONTEXT] - context_taken_bytes(device);
	if (record.taken_bytes)
		checkpoint_put_new(&(struct keep_event){VT_REC_untracked, 0, 0, &record});
}

static void put_untracked(const struct keep_device *device)
{
	for (uint32_t cause = 0; cause < VT_N_CAUSES; cause++) {
		struct vt_rec_untracked record = {.time_ns = device->untracked_ns,
			.cause = cause,
			.device = device->ordinal,
			.taken_bytes = device->untracked[cause]};

		/* What a context itself takes goes with its own record. */
		if (record.taken_bytes && cause != VT_CAUSE_CONTEXT)
			checkpoint_put_new(
				&(struct keep_event){VT_REC_untracked, 0, record.time_ns, &record});
	}
}

void device_checkpoint(void)
{
	for (struct keep_device *device = keep.devices; device; device = device->next) {
		put_nobodys(device);
		put_untracked(device);
		checkpoint_put(device->listed);
		checkpoint_put(device->set_current);
		checkpoint_put(device->graph_memory);
	}
}

void device_forget(void)
{
	pages = NULL;
}

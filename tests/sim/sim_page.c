/* Devices, physical pages, address space, and the packer of small requests. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define WORD_BITS 64

struct sim_small { /* a 2 MiB page with packed requests */
	struct sim_small *next, *previous;
	u64 address;
	u32 page;
	u32 n_used;
	u32 largest; /* no free run is longer than this */
	u64 used[SIM_UNITS / WORD_BITS];
};

static char *reserve(u64 address, u64 bytes, int protection)
{
	int flags =
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (address ? MAP_FIXED_NOREPLACE : 0);
	char *p = mmap((void *)(uintptr_t)address, bytes, protection, flags, -1, 0);

	if (p != MAP_FAILED && address && (u64)(uintptr_t)p != address) {
		munmap(p, bytes);
		return MAP_FAILED;
	}
	return p;
}

static CUresult arena_init(struct sim_arena *arena, u64 address, u64 bytes)
{
	char *p = reserve(address, bytes, PROT_NONE);

	if (p == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	arena->base = ((u64)(uintptr_t)p + SIM_WIDE_ALIGN - 1) & ~(SIM_WIDE_ALIGN - 1);
	arena->n_pages = (u32)(((u64)(uintptr_t)p + bytes - arena->base) / SIM_PAGE_BYTES);
	arena->used = calloc(arena->n_pages, 1);
	return arena->used ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Room for what all devices hold, several times over; less where the system does not grant it. */
static CUresult arenas_init(void)
{
	static const u64 low_addresses[] = {0x10000000, 0x20000000, 0x40000000, 0xc0000000};
	u64 least = 2 * sim.n_devices * sim.memory_bytes + SIM_WIDE_ALIGN;
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	for (u64 bytes = 4 * least + (256ull << 30); result != CUDA_SUCCESS && bytes >= least;
		bytes /= 2)
		result = arena_init(&sim.arena, 0, bytes);
	for (size_t i = 0; i < sizeof(low_addresses) / sizeof(low_addresses[0]); i++)
		if (arena_init(&sim.low_arena, low_addresses[i], 256ull << 20) == CUDA_SUCCESS)
			break;
	return result;
}

u64 sim_other_bytes(void)
{
	u32 n_pages = (u32)(sim.memory_bytes / SIM_PAGE_BYTES);
	u32 n_other = sim_n_pages(sim.other_bytes);

	return sim.memory_bytes - (n_other < n_pages ? n_pages - n_other : 0) * SIM_PAGE_BYTES;
}

static u64 *machine_of(const struct sim_device *dev)
{
	return &sim.machine_bytes[sim.machine_number[dev->ordinal]];
}

u64 sim_others_use(const struct sim_device *dev)
{
	u64 bytes = sim_other_bytes();

	if (sim.machine_bytes)
		bytes += __atomic_load_n(machine_of(dev), __ATOMIC_RELAXED) -
			 sim.ledger.devices[dev->ordinal].page_bytes;
	return bytes;
}

static void tell_machine(const struct sim_device *dev, u64 more_bytes)
{
	if (sim.machine_bytes)
		__atomic_fetch_add(machine_of(dev), more_bytes, __ATOMIC_RELAXED);
}

static CUresult device_init(struct sim_device *dev, CUdevice ordinal)
{
	dev->ordinal = ordinal;
	dev->total_bytes = sim.memory_bytes;
	dev->n_pages = (u32)(sim.memory_bytes / SIM_PAGE_BYTES);
	dev->physical = reserve(0, dev->n_pages * SIM_PAGE_BYTES, PROT_READ | PROT_WRITE);
	dev->free_pages = malloc(dev->n_pages * sizeof(*dev->free_pages));
	dev->dirty = calloc(dev->n_pages, 1);
	dev->chunk_of = calloc(dev->n_pages, sizeof(*dev->chunk_of));
	if (dev->physical == MAP_FAILED || !dev->free_pages || !dev->dirty || !dev->chunk_of)
		return CUDA_ERROR_OUT_OF_MEMORY;
	dev->n_free = (u32)((sim.memory_bytes - sim_other_bytes()) / SIM_PAGE_BYTES);
	for (u32 i = 0; i < dev->n_free; i++)
		dev->free_pages[i] = dev->n_free - 1 - i;
	dev->heap = (struct sim_heap){.dev = dev, .arena = &sim.arena};
	dev->low_heap = (struct sim_heap){.dev = dev, .arena = &sim.low_arena};
	dev->array_heap = dev->heap;
	dev->array_heap.owner = CUSIM_BY_ARRAYS;
	dev->exec_heap = dev->heap;
	dev->exec_heap.owner = CUSIM_BY_GRAPH_EXECS;
	return CUDA_SUCCESS;
}

CUresult sim_devices_init(void)
{
	CUresult result = arenas_init();

	for (u32 i = 0; result == CUDA_SUCCESS && i < sim.n_devices; i++)
		result = device_init(&sim.devices[i], (CUdevice)i);
	return result;
}

bool sim_pages_take(struct sim_device *dev, enum cusim_owner owner, u32 n, u32 *pages)
{
	struct cusim_device_ledger *ledger = &sim.ledger.devices[dev->ordinal];

	if (n > dev->n_free)
		return false;
	for (u32 i = 0; i < n; i++)
		pages[i] = dev->free_pages[--dev->n_free];
	ledger->page_bytes += n * SIM_PAGE_BYTES;
	tell_machine(dev, n * SIM_PAGE_BYTES);
	ledger->owned_bytes[owner] += n * SIM_PAGE_BYTES;
	if (ledger->page_bytes > ledger->peak_page_bytes)
		ledger->peak_page_bytes = ledger->page_bytes;
	return true;
}

void sim_pages_give(struct sim_device *dev, enum cusim_owner owner, const u32 *pages, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		u32 page = pages[i];

		if (dev->dirty[page])
			madvise(dev->physical + page * SIM_PAGE_BYTES, SIM_PAGE_BYTES,
				MADV_DONTNEED);
		dev->dirty[page] = 0;
		dev->free_pages[dev->n_free++] = page;
	}
	sim.ledger.devices[dev->ordinal].page_bytes -= n * SIM_PAGE_BYTES;
	tell_machine(dev, -(n * SIM_PAGE_BYTES));
	sim.ledger.devices[dev->ordinal].owned_bytes[owner] -= n * SIM_PAGE_BYTES;
}

u32 *sim_pages_new(struct sim_device *dev, enum cusim_owner owner, u32 n)
{
	u32 *pages = n <= dev->n_free ? malloc(n * sizeof(*pages)) : NULL;

	if (pages && !sim_pages_take(dev, owner, n, pages)) {
		free(pages);
		return NULL;
	}
	return pages;
}

void sim_pages_free(struct sim_device *dev, enum cusim_owner owner, u32 *pages, u32 n)
{
	if (pages)
		sim_pages_give(dev, owner, pages, n);
	free(pages);
}

u64 sim_address_take(struct sim_arena *arena, u32 n_pages, u64 align)
{
	u32 step = align > SIM_PAGE_BYTES ? (u32)(align / SIM_PAGE_BYTES) : 1;
	u32 at = arena->first_free, n_run = 0;

	if (align > SIM_WIDE_ALIGN || n_pages == 0) /* the base is aligned no better */
		return 0;
	while (at < arena->n_pages && n_run < n_pages) {
		if (n_run == 0 && at % step) {
			at += step - at % step;
			continue;
		}
		n_run = arena->used[at] ? 0 : n_run + 1;
		at++;
	}
	if (n_run < n_pages)
		return 0;
	at -= n_run;
	memset(&arena->used[at], 1, n_pages);
	while (arena->first_free < arena->n_pages && arena->used[arena->first_free])
		arena->first_free++;
	return arena->base + at * SIM_PAGE_BYTES;
}

void sim_address_give(struct sim_arena *arena, u64 address, u32 n_pages)
{
	u32 at = (u32)((address - arena->base) / SIM_PAGE_BYTES);

	memset(&arena->used[at], 0, n_pages);
	if (at < arena->first_free)
		arena->first_free = at;
}

static bool arena_has(const struct sim_arena *arena, u64 address)
{
	return address >= arena->base && address < arena->base + arena->n_pages * SIM_PAGE_BYTES;
}

bool sim_address_is_device(u64 address)
{
	return arena_has(&sim.arena, address) || arena_has(&sim.low_arena, address);
}

static bool heap_take(struct sim_heap *heap, u32 n, u32 *pages)
{
	return heap->pool ? sim_pool_take(heap->pool, n, pages)
			  : sim_pages_take(heap->dev, heap->owner, n, pages);
}

static void heap_give(struct sim_heap *heap, const u32 *pages, u32 n)
{
	if (heap->pool)
		sim_pool_give(heap->pool, pages, n);
	else
		sim_pages_give(heap->dev, heap->owner, pages, n);
}

/* The first unit from `at` on that is used, or that is free; SIM_UNITS if none is. */
static u32 unit_next(const struct sim_small *small, u32 at, bool used)
{
	while (at < SIM_UNITS) {
		u64 word = small->used[at / WORD_BITS];
		u64 rest = (used ? word : ~word) >> (at % WORD_BITS);

		if (rest)
			return at + (u32)__builtin_ctzll(rest);
		at = (at / WORD_BITS + 1) * WORD_BITS;
	}
	return SIM_UNITS;
}

static void units_mark(struct sim_small *small, u32 first, u32 n, bool used)
{
	for (u32 i = first; i < first + n; i++) {
		if (used)
			small->used[i / WORD_BITS] |= 1ull << (i % WORD_BITS);
		else
			small->used[i / WORD_BITS] &= ~(1ull << (i % WORD_BITS));
	}
	small->n_used = used ? small->n_used + n : small->n_used - n;
}

/* The first free run of n units, or SIM_UNITS, and then `largest` is exact. */
static u32 units_find(struct sim_small *small, u32 n)
{
	u32 largest = 0;

	for (u32 at = unit_next(small, 0, false); at < SIM_UNITS;) {
		u32 end = unit_next(small, at, true);

		if (end - at >= n)
			return at;
		if (end - at > largest)
			largest = end - at;
		at = unit_next(small, end, false);
	}
	small->largest = largest;
	return SIM_UNITS;
}

/* The heap lists the pages that are not full. */
static void small_link(struct sim_heap *heap, struct sim_small *small)
{
	small->largest = SIM_UNITS;
	small->previous = NULL;
	small->next = heap->smalls;
	if (heap->smalls)
		heap->smalls->previous = small;
	heap->smalls = small;
}

static void small_unlink(struct sim_heap *heap, struct sim_small *small)
{
	if (small->previous)
		small->previous->next = small->next;
	else
		heap->smalls = small->next;
	if (small->next)
		small->next->previous = small->previous;
}

static struct sim_small *small_new(struct sim_heap *heap)
{
	struct sim_small *small = calloc(1, sizeof(*small));

	if (!small)
		return NULL;
	small->address = sim_address_take(heap->arena, 1, SIM_PAGE_BYTES);
	if (!small->address || !heap_take(heap, 1, &small->page)) {
		if (small->address)
			sim_address_give(heap->arena, small->address, 1);
		free(small);
		return NULL;
	}
	small_link(heap, small);
	return small;
}

static CUresult place_small(struct sim_heap *heap, u64 bytes, struct sim_place *place)
{
	u32 n = (u32)((bytes + SIM_UNIT_BYTES - 1) / SIM_UNIT_BYTES);
	u32 at = SIM_UNITS;
	struct sim_small *small;

	for (small = heap->smalls; small; small = small->next) {
		if (small->largest >= n)
			at = units_find(small, n);
		if (at < SIM_UNITS)
			break;
	}
	if (!small) {
		small = small_new(heap);
		at = 0;
	}
	if (!small)
		return CUDA_ERROR_OUT_OF_MEMORY;
	units_mark(small, at, n, true);
	if (small->n_used == SIM_UNITS)
		small_unlink(heap, small);
	place->small = small;
	place->first_unit = at;
	place->n_units = n;
	place->address = small->address + at * SIM_UNIT_BYTES;
	return CUDA_SUCCESS;
}

static CUresult place_pages(struct sim_heap *heap, u64 bytes, struct sim_place *place)
{
	u32 n = sim_n_pages(bytes);
	u64 align = bytes >= SIM_WIDE_BYTES ? SIM_WIDE_ALIGN : SIM_PAGE_BYTES;

	if (bytes > heap->dev->total_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	place->pages = malloc(n * sizeof(*place->pages));
	place->address = place->pages ? sim_address_take(heap->arena, n, align) : 0;
	if (!place->address || !heap_take(heap, n, place->pages)) {
		if (place->address)
			sim_address_give(heap->arena, place->address, n);
		free(place->pages);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	place->n_pages = n;
	return CUDA_SUCCESS;
}

CUresult sim_place_take(struct sim_heap *heap, u64 bytes, struct sim_place *place)
{
	*place = (struct sim_place){.heap = heap};
	return bytes <= SIM_SMALL_BYTES ? place_small(heap, bytes, place)
					: place_pages(heap, bytes, place);
}

void sim_place_give(struct sim_place *place)
{
	struct sim_heap *heap = place->heap;
	struct sim_small *small = place->small;

	if (small) {
		if (small->n_used == SIM_UNITS)
			small_link(heap, small);
		units_mark(small, place->first_unit, place->n_units, false);
		small->largest = SIM_UNITS;
		if (small->n_used == 0) {
			small_unlink(heap, small);
			heap_give(heap, &small->page, 1);
			sim_address_give(heap->arena, small->address, 1);
			free(small);
		}
	} else {
		heap_give(heap, place->pages, place->n_pages);
		if (place->address)
			sim_address_give(heap->arena, place->address, place->n_pages);
		free(place->pages);
	}
	*place = (struct sim_place){0};
}

char *sim_place_bytes(
	const struct sim_place *place, u64 offset, u64 *n_contiguous, unsigned char **dirty)
{
	u64 inside = offset + (place->small ? place->first_unit * SIM_UNIT_BYTES : 0);
	u32 page = place->small ? place->small->page : place->pages[inside / SIM_PAGE_BYTES];

	inside %= SIM_PAGE_BYTES;
	*n_contiguous = SIM_PAGE_BYTES - inside;
	*dirty = &place->heap->dev->dirty[page];
	return place->heap->dev->physical + page * SIM_PAGE_BYTES + inside;
}

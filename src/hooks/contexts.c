#include "hooks/contexts.h"

#include <pthread.h>
#include <stdatomic.h>

#include "hooks/driver.h"
#include "record/table.h"

#define MAX_DEVICES 64
#define NO_CONTEXT  ((struct context_info){0, -1})

struct entry {
	const void *handle;
	struct context_info info;
	uint64_t address; /* of a mapped graphics resource */
	UT_hash_handle hh;
};

static struct {
	pthread_mutex_t lock; /* a leaf: nothing is called under it */
	struct arena arena;
	struct entry *contexts;
	struct entry *pools;
	struct entry *resources;
	const void *primary[MAX_DEVICES];
	unsigned int last_id;
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Changes when a context goes: its handle may come back as another one. */
static _Atomic unsigned int generation = 1;

/* The context this thread used last. */
static __thread struct {
	CUcontext handle;
	unsigned int generation;
	struct context_info info;
} last __attribute__((tls_model("initial-exec")));

static struct entry *find(struct entry *entries, const void *handle)
{
	struct entry *entry;

	HASH_FIND_PTR(entries, &handle, entry);
	return entry;
}

/* Finds or makes the entry of handle. Called with the lock held; NULL when there is no memory. */
static struct entry *obtain(struct entry **entries, const void *handle)
{
	struct arena *arena = &known.arena;
	struct entry *entry = find(*entries, handle);
	bool added = true;

	if (entry)
		return entry;
	entry = arena_alloc(arena, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->handle = handle;
	entry->info = (struct context_info){++known.last_id, -1};
	HASH_ADD_PTR(*entries, handle, entry);
	return added ? entry : NULL;
}

static struct context_info drop(struct entry **entries, const void *handle)
{
	struct arena *arena = &known.arena;
	struct entry *entry = find(*entries, handle);
	struct context_info info = NO_CONTEXT;

	if (entry) {
		info = entry->info;
		HASH_DEL(*entries, entry);
		arena_free(arena, entry, sizeof(*entry));
	}
	return info;
}

struct context_info contexts_add(const void *handle, int device)
{
	struct context_info info = NO_CONTEXT;
	struct entry *entry;

	pthread_mutex_lock(&known.lock);
	entry = obtain(&known.contexts, handle);
	if (entry) {
		entry->info.device = device;
		info = entry->info;
	}
	pthread_mutex_unlock(&known.lock);
	return info;
}

struct context_info contexts_get(const void *handle)
{
	struct context_info info = NO_CONTEXT;
	struct entry *entry;

	if (!handle)
		return info;
	pthread_mutex_lock(&known.lock);
	entry = find(known.contexts, handle);
	if (entry)
		info = entry->info;
	pthread_mutex_unlock(&known.lock);
	return info;
}

struct context_info contexts_remove(const void *handle)
{
	struct context_info info;

	pthread_mutex_lock(&known.lock);
	info = drop(&known.contexts, handle);
	pthread_mutex_unlock(&known.lock);
	atomic_fetch_add_explicit(&generation, 1, memory_order_release);
	return info;
}

void contexts_set_primary(int device, const void *handle)
{
	if (device < 0 || device >= MAX_DEVICES)
		return;
	pthread_mutex_lock(&known.lock);
	known.primary[device] = handle;
	pthread_mutex_unlock(&known.lock);
}

const void *contexts_get_primary(int device)
{
	const void *handle;

	if (device < 0 || device >= MAX_DEVICES)
		return NULL;
	pthread_mutex_lock(&known.lock);
	handle = known.primary[device];
	pthread_mutex_unlock(&known.lock);
	return handle;
}

/* A context nobody was seen to make (a green one, or one made before the library could see it) is
 * asked for its device. */
static struct context_info look_up(CUcontext handle)
{
	__typeof__(&cuCtxGetDevice) get_device = DRIVER_ORIGINAL(cuCtxGetDevice);
	struct context_info info = contexts_get(handle);
	CUdevice device;

	if (!info.id && get_device && !get_device(&device))
		info = contexts_add(handle, device);
	return info;
}

struct context_info contexts_current(void)
{
	__typeof__(&cuCtxGetCurrent) get_current = DRIVER_ORIGINAL(cuCtxGetCurrent);
	unsigned int now = atomic_load_explicit(&generation, memory_order_acquire);
	CUcontext handle;

	if (!get_current || get_current(&handle) || !handle)
		return NO_CONTEXT;
	if (handle != last.handle || now != last.generation) {
		last.info = look_up(handle);
		last.handle = handle;
		last.generation = now;
	}
	return last.info;
}

void contexts_add_pool(const void *pool, int device)
{
	struct entry *entry;

	pthread_mutex_lock(&known.lock);
	entry = obtain(&known.pools, pool);
	if (entry)
		entry->info.device = device;
	pthread_mutex_unlock(&known.lock);
}

void contexts_remove_pool(const void *pool)
{
	pthread_mutex_lock(&known.lock);
	drop(&known.pools, pool);
	pthread_mutex_unlock(&known.lock);
}

int contexts_device_of_pool(const void *pool)
{
	struct entry *entry;
	int device = -1;

	pthread_mutex_lock(&known.lock);
	entry = find(known.pools, pool);
	if (entry)
		device = entry->info.device;
	pthread_mutex_unlock(&known.lock);
	return device;
}

void contexts_add_mapped(const void *resource, uint64_t address)
{
	struct entry *entry;

	pthread_mutex_lock(&known.lock);
	entry = obtain(&known.resources, resource);
	if (entry)
		entry->address = address;
	pthread_mutex_unlock(&known.lock);
}

uint64_t contexts_take_mapped(const void *resource)
{
	struct entry *entry;
	uint64_t address = 0;

	pthread_mutex_lock(&known.lock);
	entry = find(known.resources, resource);
	if (entry)
		address = entry->address;
	drop(&known.resources, resource);
	pthread_mutex_unlock(&known.lock);
	return address;
}

void contexts_forget(void)
{
	memset(&known, 0, sizeof(known));
	pthread_mutex_init(&known.lock, NULL);
	atomic_fetch_add_explicit(&generation, 1, memory_order_release);
}

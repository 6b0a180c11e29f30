/* The order of attempts of an allocation, and releasing. */
#include <stdlib.h>

#include "c10_cuda.h"

static u64 rounded(u64 bytes, u64 unit)
{
	return (bytes + unit - 1) / unit * unit;
}

static u64 segment_bytes(u64 bytes)
{
	if (bytes <= SMALL_MOST)
		return SMALL_SEGMENT;
	return bytes < LARGE_LEAST ? LARGE_SEGMENT : rounded(bytes, SEGMENT_ROUND);
}

static struct c10_device cuda_device(const struct c10_device_state *device)
{
	return (struct c10_device){1, (int8_t)device->ordinal};
}

static void report(struct c10_device_state *device, void *pointer, int64_t bytes)
{
	u64 allocated = device->allocated.current, reserved = device->reserved.current;

	if (c10_settings()->names == NAMES_1_13)
		_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(
			pointer, bytes, (int64_t)allocated, (int64_t)reserved, cuda_device(device));
	else
		_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(
			pointer, bytes, allocated, reserved, cuda_device(device));
}

static void report_refusal(struct c10_device_state *device, u64 bytes)
{
	u64 allocated = device->allocated.current, reserved = device->reserved.current;

	if (c10_settings()->names == NAMES_1_13)
		_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE(
			(int64_t)bytes, (int64_t)allocated, (int64_t)reserved, cuda_device(device));
	else if (c10_settings()->names == NAMES_NEXT)
		_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE(
			bytes, allocated, reserved, cuda_device(device));
	else
		_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(
			(int64_t)bytes, allocated, reserved, cuda_device(device));
}

bool c10_within_limit(const struct c10_device_state *device, u64 bytes)
{
	return !device->limit_bytes || device->reserved.current + bytes <= device->limit_bytes;
}

/* cudaMalloc, in relaxed mode while a capture is open. */
static cudaError_t take(struct c10_pool *pool, void **pointer, u64 bytes)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	cudaError_t error;

	if (pool->private_id)
		cudaThreadExchangeStreamCaptureMode(&mode);
	error = cudaMalloc(pointer, bytes);
	if (pool->private_id)
		cudaThreadExchangeStreamCaptureMode(&mode);
	if (error)
		cudaGetLastError();
	return error;
}

static struct c10_block *new_segment(struct c10_pool *pool, int64_t stream, u64 bytes)
{
	struct c10_device_state *device = pool->device;
	u64 segment = segment_bytes(bytes);
	void *pointer;

	if (!c10_within_limit(device, segment))
		return NULL;
	if (c10_settings()->expandable)
		return c10_expand(pool, stream, bytes);
	if (take(pool, &pointer, segment))
		return NULL;
	c10_stat_add(&device->reserved, segment);
	device->n_device_allocations++;
	return c10_block_new(pool, stream, pointer, segment);
}

/* A whole segment goes back to CUDA. */
static void release_block(struct c10_block *block)
{
	struct c10_device_state *device = block->pool->device;

	if (cudaFree(block->pointer))
		abort();
	device->reserved.current -= block->bytes;
	device->n_device_frees++;
	c10_free_remove(block);
	free(block);
}

/* Gives back pages of one free block. False: no block has any. */
static bool unmap_one(struct c10_pool *pool)
{
	u64 reserved = pool->device->reserved.current;
	struct c10_block *next;

	for (struct c10_block *block = pool->free; block; block = next) {
		next = block->free_next;
		if (!block->expandable)
			continue;
		c10_unmap(block);
		if (pool->device->reserved.current != reserved)
			return true;
	}
	return false;
}

static void release_pool(struct c10_pool *pool)
{
	struct c10_block *next;

	for (struct c10_block *block = pool->free; block; block = next) {
		next = block->free_next;
		if (!block->expandable && !c10_is_split(block))
			release_block(block);
	}
	/* Unmapping changes the set: what has no whole page left stays in it. */
	while (unmap_one(pool))
		;
}

/* For requests that max_split_size keeps apart: one that is large enough, else the largest ones
 * until there is enough. */
static bool release_oversize(struct c10_pool *pool, int64_t stream, u64 bytes)
{
	const u64 max_split = c10_settings()->max_split_bytes;
	u64 wanted = bytes > max_split ? bytes : max_split, gone = 0;
	struct c10_block *fit = NULL, *largest;

	if (max_split == UINT64_MAX)
		return false;
	for (struct c10_block *b = pool->free; b; b = b->free_next)
		if (b->stream == stream && !b->expandable && !c10_is_split(b) &&
			b->bytes >= wanted && (!fit || b->bytes < fit->bytes))
			fit = b;
	if (fit) {
		release_block(fit);
		return true;
	}
	do {
		largest = NULL;
		for (struct c10_block *b = pool->free; b; b = b->free_next)
			if (b->stream == stream && !b->expandable && !c10_is_split(b) &&
				b->bytes >= max_split && (!largest || b->bytes > largest->bytes))
				largest = b;
		if (largest) {
			gone += largest->bytes;
			release_block(largest);
		}
	} while (largest && gone < wanted);
	return gone >= wanted;
}

static bool release_cached(struct c10_device_state *device)
{
	if (c10_captures_open(device))
		return false;
	c10_process_events(device, true);
	release_pool(&device->pools[1]);
	release_pool(&device->pools[0]);
	for (struct c10_private *p = device->privates; p; p = p->next) {
		if (p->released) {
			release_pool(&p->pools[1]);
			release_pool(&p->pools[0]);
		}
	}
	return true;
}

static struct c10_pool *pool_for(struct c10_device_state *device, int64_t stream, u64 bytes)
{
	unsigned int large = bytes > SMALL_MOST;

	for (struct c10_private *p = device->privates; p; p = p->next)
		if (p->open && p->stream == stream)
			return &p->pools[large];
	return &device->pools[large];
}

static struct c10_block *find_block(struct c10_pool *pool, int64_t stream, u64 bytes)
{
	struct c10_block *block = c10_find_free(pool, stream, bytes);

	if (block) {
		c10_free_remove(block);
		return block;
	}
	block = new_segment(pool, stream, bytes);
	if (!block && release_oversize(pool, stream, bytes))
		block = new_segment(pool, stream, bytes);
	if (!block && release_cached(pool->device)) {
		pool->device->n_retries++;
		block = new_segment(pool, stream, bytes);
	}
	return block;
}

static void *allocate(struct c10_device_state *device, u64 request)
{
	int64_t stream = c10_stream_current(device->ordinal);
	u64 bytes = request < MIN_BLOCK ? MIN_BLOCK : rounded(request, MIN_BLOCK);
	size_t free_bytes, total_bytes;
	struct c10_block *block;

	if (!c10_captures_open(device))
		c10_process_events(device, false);
	block = find_block(pool_for(device, stream, bytes), stream, bytes);
	if (!block) {
		device->n_ooms++;
		cudaMemGetInfo(&free_bytes, &total_bytes);
		report_refusal(device, bytes);
		return NULL;
	}
	block = c10_hand_out(block, bytes);
	report(device, block->pointer, (int64_t)block->bytes);
	return block->pointer;
}

void *c10sim_alloc(size_t bytes, int device)
{
	const struct c10_settings *settings = c10_settings();
	struct c10_device_state *state = &c10_devices[device];
	void *pointer = NULL;

	c10_device_use(device);
	if (settings->async || settings->uncached) {
		cudaError_t error =
			settings->async
				? cudaMallocAsync(&pointer, bytes,
					  c10_stream_handle(device, c10_stream_current(device)))
				: cudaMalloc(&pointer, bytes);
		return error ? NULL : pointer;
	}
	pthread_mutex_lock(&state->lock);
	pointer = allocate(state, bytes);
	pthread_mutex_unlock(&state->lock);
	return pointer;
}

/* As PyTorch's: events are recorded, then the free is reported, from one function. */
static bool free_on(struct c10_device_state *device, void *pointer)
{
	struct c10_block *block;
	int64_t bytes;
	size_t at;

	block = c10_active_find(device, pointer, &at);
	if (!block || !block->allocated)
		return false;
	bytes = (int64_t)block->bytes;
	c10_give_back(block);
	report(device, pointer, -bytes);
	return true;
}

void c10sim_free(void *pointer)
{
	const struct c10_settings *settings = c10_settings();
	bool found = false;

	if (settings->async || settings->uncached) {
		found = settings->async ? !cudaFreeAsync(pointer, NULL) : !cudaFree(pointer);
	} else {
		for (int i = 0; i < C10SIM_MAX_DEVICES && !found; i++) {
			pthread_mutex_lock(&c10_devices[i].lock);
			found = free_on(&c10_devices[i], pointer);
			pthread_mutex_unlock(&c10_devices[i].lock);
		}
	}
	if (!found)
		abort();
}

void c10sim_record_stream(void *pointer, int64_t stream)
{
	for (int i = 0; i < C10SIM_MAX_DEVICES; i++) {
		struct c10_block *block;
		size_t at;

		pthread_mutex_lock(&c10_devices[i].lock);
		block = c10_active_find(&c10_devices[i], pointer, &at);
		if (block && block->stream != stream) {
			c10_stream_handle(i, stream);
			block->uses |= 1u << stream;
		}
		pthread_mutex_unlock(&c10_devices[i].lock);
	}
}

void c10sim_empty_cache(void)
{
	c10_settings();
	for (int i = 0; i < C10SIM_MAX_DEVICES; i++) {
		pthread_mutex_lock(&c10_devices[i].lock);
		if (c10_devices[i].n_device_allocations) {
			c10_device_use(i);
			release_cached(&c10_devices[i]);
		}
		pthread_mutex_unlock(&c10_devices[i].lock);
	}
}

void c10sim_set_limit(int device, uint64_t bytes)
{
	c10_settings();
	pthread_mutex_lock(&c10_devices[device].lock);
	c10_devices[device].limit_bytes = bytes;
	pthread_mutex_unlock(&c10_devices[device].lock);
}

static struct c10_private *private_of(struct c10_device_state *device, u64 id)
{
	struct c10_private *p = device->privates;

	while (p && p->id != id)
		p = p->next;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->id = id;
	p->pools[0] = (struct c10_pool){.device = device, .private_id = id, .small = true};
	p->pools[1] = (struct c10_pool){.device = device, .private_id = id};
	p->next = device->privates;
	device->privates = p;
	return p;
}

void c10sim_pool_begin(int device, uint64_t pool, int64_t stream)
{
	struct c10_private *p;

	c10_settings();
	pthread_mutex_lock(&c10_devices[device].lock);
	p = private_of(&c10_devices[device], pool);
	p->open = true;
	p->released = false;
	p->stream = stream;
	pthread_mutex_unlock(&c10_devices[device].lock);
}

void c10sim_pool_end(int device, uint64_t pool)
{
	pthread_mutex_lock(&c10_devices[device].lock);
	private_of(&c10_devices[device], pool)->open = false;
	pthread_mutex_unlock(&c10_devices[device].lock);
}

void c10sim_pool_release(int device, uint64_t pool)
{
	pthread_mutex_lock(&c10_devices[device].lock);
	private_of(&c10_devices[device], pool)->released = true;
	pthread_mutex_unlock(&c10_devices[device].lock);
}

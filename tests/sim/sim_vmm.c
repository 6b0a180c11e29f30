/* Virtual memory management: addresses, physical memory, and mappings between them live apart. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

struct sim_physical { /* lives while it has handles */
	struct sim_device *dev;
	u64 bytes, id;
	u32 *pages, n_pages;
	struct sim_external *external; /* instead of pages: another process has them */
	u32 n_handles;
	CUmemAllocationProp properties;
};

struct sim_handle {		       /* lives while it is held or mapped */
	struct sim_physical *physical; /* NULL: a multicast object, without memory */
	u64 bytes;
	bool imported;
	u32 n_held, n_mapped;
};

static struct sim_handle *handle_get(CUmemGenericAllocationHandle value)
{
	struct sim_handle *handle = (struct sim_handle *)(uintptr_t)value;

	/* Mapped memory that nobody holds is still known, by its mappings only. */
	return sim_handle_known(&sim.handles, handle) && handle->n_held > 0 ? handle : NULL;
}

static void physical_drop(struct sim_physical *physical)
{
	if (--physical->n_handles > 0)
		return;
	sim_index_remove(&sim.physicals, physical->id, physical);
	sim_pages_free(physical->dev, CUSIM_BY_VMM, physical->pages, physical->n_pages);
	if (physical->external)
		sim_external_drop(physical->external);
	free(physical);
}

static int kind_of(const struct sim_handle *handle)
{
	return handle->imported ? CUSIM_SHARED : CUSIM_VMM;
}

static void end_if_unused(struct sim_handle *handle)
{
	if (handle->n_held > 0 || handle->n_mapped > 0)
		return;
	if (handle->physical) {
		sim_ledger_free(handle->physical->dev, kind_of(handle), handle->bytes, false);
		physical_drop(handle->physical);
	}
	sim_handle_remove(&sim.handles, handle);
	free(handle);
}

void sim_vmm_unmap(struct sim_range *mapping)
{
	mapping->handle->n_mapped--;
	end_if_unused(mapping->handle);
}

bool sim_vmm_has_memory(const struct sim_range *mapping)
{
	return mapping->handle->physical;
}

char *sim_vmm_bytes(
	const struct sim_range *mapping, u64 offset, u64 *n_contiguous, unsigned char **dirty)
{
	struct sim_physical *physical = mapping->handle->physical;
	u32 page;

	if (physical->external)
		return physical->external->host + offset;
	page = physical->pages[offset / SIM_PAGE_BYTES];
	*n_contiguous = SIM_PAGE_BYTES - offset % SIM_PAGE_BYTES;
	*dirty = &physical->dev->dirty[page];
	return physical->dev->physical + page * SIM_PAGE_BYTES + offset % SIM_PAGE_BYTES;
}

static bool whole_pages(u64 bytes)
{
	return bytes > 0 && bytes % SIM_PAGE_BYTES == 0;
}

/* A new handle, with a reference to the physical memory if it succeeds. */
static CUresult handle_new(
	CUmemGenericAllocationHandle *out, struct sim_physical *physical, u64 bytes, bool imported)
{
	struct sim_handle *handle = calloc(1, sizeof(*handle));

	if (!handle || !sim_handle_insert(&sim.handles, handle)) {
		free(handle);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*handle = (struct sim_handle){
		.physical = physical, .bytes = bytes, .imported = imported, .n_held = 1};
	if (physical) {
		physical->n_handles++;
		sim_ledger_alloc(physical->dev, kind_of(handle), bytes);
	}
	*out = (CUmemGenericAllocationHandle)(uintptr_t)handle;
	return CUDA_SUCCESS;
}

/* Physical memory with one reference and no pages yet; NULL: no memory. */
static struct sim_physical *physical_new(
	struct sim_device *dev, u64 bytes, const CUmemAllocationProp *properties)
{
	struct sim_physical *physical = calloc(1, sizeof(*physical));

	if (!physical)
		return NULL;
	*physical = (struct sim_physical){.dev = dev,
		.bytes = bytes,
		.id = ++sim.last_id,
		.n_pages = sim_n_pages(bytes),
		.n_handles = 1,
		.properties = *properties};
	return physical;
}

static CUresult create(
	CUmemGenericAllocationHandle *out, u64 bytes, const CUmemAllocationProp *properties)
{
	struct sim_device *dev = sim_device_get(properties->location.id);
	struct sim_physical *physical;
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	if (!out || !whole_pages(bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (bytes > dev->total_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	physical = physical_new(dev, bytes, properties);
	if (!physical)
		return CUDA_ERROR_OUT_OF_MEMORY;
	physical->pages = sim_pages_new(dev, CUSIM_BY_VMM, physical->n_pages);
	if (physical->pages)
		result = handle_new(out, physical, bytes, false);
	physical_drop(physical);
	return result;
}

/* Only device memory is simulated; a failure counts for the device asked for, where there is such a
 * one. */
static CUresult create_checked(CUmemGenericAllocationHandle *out, u64 bytes,
	const CUmemAllocationProp *properties, u64 flags)
{
	if (!properties || flags || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!sim_device_get(properties->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	return create(out, bytes, properties);
}

static void create_failed(const CUmemAllocationProp *properties)
{
	struct sim_device *dev = NULL;

	if (properties && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		dev = sim_device_get(properties->location.id);
	if (dev)
		sim.ledger.devices[dev->ordinal].kinds[CUSIM_VMM].failed++;
	else
		sim.ledger.failed_elsewhere++;
}

static CUresult export_fd(
	int *out, CUmemGenericAllocationHandle value, CUmemAllocationHandleType type, u64 flags)
{
	struct sim_handle *handle = handle_get(value);
	struct sim_physical *physical = handle ? handle->physical : NULL;
	struct sim_token token;

	if (!out || !physical || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
		!(physical->properties.requestedHandleTypes & type))
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_index_get(&sim.physicals, physical->id) &&
		!sim_index_insert(&sim.physicals, physical->id, physical))
		return CUDA_ERROR_OUT_OF_MEMORY;
	token = sim_token_of(SIM_TOKEN_PHYSICAL, physical->dev, 0, physical->bytes, physical->id);
	*out = sim_token_write(&token);
	return *out >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

/* Memory that another process has; its bytes are not shared. */
static struct sim_physical *physical_elsewhere(const struct sim_token *token)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = token->device}};
	struct sim_physical *physical =
		physical_new(sim_device_get(token->device), token->bytes, &properties);

	if (!physical)
		return NULL;
	physical->external = sim_external_new(token->bytes);
	if (physical->external)
		return physical;
	free(physical);
	return NULL;
}

static CUresult import_fd(
	CUmemGenericAllocationHandle *out, const void *os_handle, CUmemAllocationHandleType type)
{
	struct sim_physical *physical;
	struct sim_token token;
	CUresult result;

	if (!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
		!sim_token_read((int)(intptr_t)os_handle, SIM_TOKEN_PHYSICAL, &token))
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_get(token.device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (sim_token_mine(&token)) {
		physical = sim_index_get(&sim.physicals, token.id);
		return physical ? handle_new(out, physical, token.bytes, true)
				: CUDA_ERROR_INVALID_VALUE;
	}
	physical = physical_elsewhere(&token);
	if (!physical)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = handle_new(out, physical, token.bytes, true);
	physical_drop(physical);
	return result;
}

#if CUDA_VERSION >= 12010
static CUresult multicast_create(
	CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *properties)
{
	if (!out || !properties || properties->numDevices == 0 ||
		properties->numDevices > sim.n_devices || !whole_pages(properties->size) ||
		properties->flags)
		return CUDA_ERROR_INVALID_VALUE;
	return handle_new(out, NULL, properties->size, false);
}
#endif

static CUresult release(CUmemGenericAllocationHandle value)
{
	struct sim_handle *handle = handle_get(value);

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	handle->n_held--;
	end_if_unused(handle);
	return CUDA_SUCCESS;
}

static CUresult reserve(CUdeviceptr *out, u64 bytes, u64 align, u64 flags)
{
	struct sim_range *range;
	u64 address;

	if (!out || !whole_pages(bytes) || flags || (align & (align - 1)))
		return CUDA_ERROR_INVALID_VALUE;
	if (bytes / SIM_PAGE_BYTES > sim.arena.n_pages)
		return CUDA_ERROR_OUT_OF_MEMORY;
	address = sim_address_take(&sim.arena, sim_n_pages(bytes), align);
	if (!address)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range = sim_range_new(SIM_RANGE_RESERVATION, NULL, NULL, address, bytes);
	if (!range) {
		sim_address_give(&sim.arena, address, sim_n_pages(bytes));
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = address;
	return CUDA_SUCCESS;
}

/* Is any byte of the addresses mapped. */
static bool any_mapped(u64 address, u64 bytes)
{
	struct sim_range *last = sim_index_floor(&sim.ranges, address + bytes - 1);

	return last && last->base + last->bytes > address;
}

static CUresult unreserve(u64 address, u64 bytes)
{
	struct sim_range *range = sim_index_get(&sim.reservations, address);

	if (!range || range->bytes != bytes || any_mapped(address, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	sim_address_give(&sim.arena, address, sim_n_pages(bytes));
	sim_range_free(range, false);
	return CUDA_SUCCESS;
}

static CUresult map(
	u64 address, u64 bytes, u64 offset, CUmemGenericAllocationHandle value, u64 flags)
{
	struct sim_range *reservation = sim_index_floor(&sim.reservations, address);
	struct sim_handle *handle = handle_get(value);
	struct sim_range *mapping;

	if (!handle || flags || offset || !whole_pages(bytes) || bytes > handle->bytes ||
		address % SIM_PAGE_BYTES)
		return CUDA_ERROR_INVALID_VALUE;
	if (!reservation || address + bytes > reservation->base + reservation->bytes ||
		any_mapped(address, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	mapping = sim_range_new(SIM_RANGE_MAPPING, handle->physical ? handle->physical->dev : NULL,
		NULL, address, bytes);
	if (!mapping)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mapping->handle = handle;
	handle->n_mapped++;
	return CUDA_SUCCESS;
}

/* Calls `act` for each mapping of the addresses, if whole mappings cover them exactly. */
static CUresult each_mapping(
	u64 address, u64 bytes, void (*act)(struct sim_range *, const void *), const void *argument)
{
	if (!whole_pages(bytes))
		return CUDA_ERROR_INVALID_VALUE;
	for (int acting = 0; acting < 2; acting++) {
		u64 at = address;

		while (at < address + bytes) {
			struct sim_range *range = sim_index_get(&sim.ranges, at);

			if (!range || range->kind != SIM_RANGE_MAPPING ||
				range->bytes > address + bytes - at)
				return CUDA_ERROR_INVALID_VALUE;
			at += range->bytes;
			if (acting)
				act(range, argument);
		}
	}
	return CUDA_SUCCESS;
}

static void unmap_one(struct sim_range *mapping, const void *unused)
{
	(void)unused;
	sim_range_free(mapping, false);
}

static void set_access_one(struct sim_range *mapping, const void *argument)
{
	const CUmemAccessDesc *description = argument;

	mapping->access[description->location.id] = (unsigned char)description->flags;
}

static CUresult set_access(
	u64 address, u64 bytes, const CUmemAccessDesc *descriptions, size_t count)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (!descriptions)
		return result;
	for (size_t i = 0; i < count; i++) {
		if (descriptions[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (!sim_device_get(descriptions[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
	}
	for (size_t i = 0; i < count; i++) {
		result = each_mapping(address, bytes, set_access_one, &descriptions[i]);
		if (result != CUDA_SUCCESS)
			break;
	}
	return result;
}

static CUresult get_access(unsigned long long *out, const CUmemLocation *location, u64 address)
{
	struct sim_range *range = sim_range_find(address);

	if (!out || !location || !range || range->kind != SIM_RANGE_MAPPING ||
		location->type != CU_MEM_LOCATION_TYPE_DEVICE || !sim_device_get(location->id))
		return CUDA_ERROR_INVALID_VALUE;
	*out = range->access[location->id];
	return CUDA_SUCCESS;
}

static CUresult retain(CUmemGenericAllocationHandle *out, const void *address)
{
	struct sim_range *range = sim_range_find((u64)(uintptr_t)address);

	if (!out || !range || range->kind != SIM_RANGE_MAPPING)
		return CUDA_ERROR_INVALID_VALUE;
	range->handle->n_held++;
	*out = (CUmemGenericAllocationHandle)(uintptr_t)range->handle;
	return CUDA_SUCCESS;
}

static CUresult properties_get(CUmemAllocationProp *out, CUmemGenericAllocationHandle value)
{
	struct sim_handle *handle = handle_get(value);

	if (!out || !handle || !handle->physical)
		return CUDA_ERROR_INVALID_VALUE;
	*out = handle->physical->properties;
	return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(
	CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
	(void)addr; /* a wish, which the driver need not grant */
	return SIM_CALL(NEED_INIT, reserve(ptr, size, alignment, flags));
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	return SIM_CALL(NEED_INIT, unreserve(ptr, size));
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	return SIM_CALL_THEN(NEED_INIT, create_checked(handle, size, prop, flags),
		if (result != CUDA_SUCCESS) create_failed(prop));
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	return SIM_FREE(NEED_INIT, release(handle));
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
	unsigned long long flags)
{
	return SIM_CALL(NEED_INIT, map(ptr, size, offset, handle, flags));
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	return SIM_CALL(NEED_INIT, each_mapping(ptr, size, unmap_one, NULL));
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	return SIM_CALL(NEED_INIT, set_access(ptr, size, desc, count));
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	return SIM_CALL(NEED_INIT, get_access(flags, location, ptr));
}

CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
	CUmemAllocationHandleType handleType, unsigned long long flags)
{
	return SIM_CALL(NEED_INIT, export_fd(shareableHandle, handle, handleType, flags));
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
	CUmemAllocationHandleType shHandleType)
{
	return SIM_CALL_THEN(NEED_INIT, import_fd(handle, osHandle, shHandleType),
		if (result != CUDA_SUCCESS) sim_ledger_failed(ctx, CUSIM_SHARED));
}

#if CUDA_VERSION >= 12010
CUresult cuMulticastCreate(
	CUmemGenericAllocationHandle *mcHandle, const CUmulticastObjectProp *prop)
{
	return SIM_CALL(NEED_INIT, multicast_create(mcHandle, prop));
}
#endif

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	return SIM_CALL(NEED_INIT, retain(handle, addr));
}

CUresult cuMemGetAllocationPropertiesFromHandle(
	CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	return SIM_CALL(NEED_INIT, properties_get(prop, handle));
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags option)
{
	return SIM_CALL(NEED_INIT,
		granularity && prop && (unsigned int)option <= CU_MEM_ALLOC_GRANULARITY_RECOMMENDED
			? (*granularity = SIM_PAGE_BYTES, CUDA_SUCCESS)
			: CUDA_ERROR_INVALID_VALUE);
}

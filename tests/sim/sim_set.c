/* Memory sets. */
#include "sim.h"
#include "sim_bytes.h"

#include <string.h>

/* n_elements of the width (1, 2 or 4 bytes) at an aligned address: no element lies across two
 * pages. */
static void fill(u64 address, u32 value, u32 width, u64 n_elements)
{
	u64 n = n_elements * width;

	while (n > 0) {
		u64 part = n;
		char *bytes = sim_bytes_at(address, &part, true);

		if (width == 1)
			memset(bytes, (int)value, part);
		else
			for (u64 i = 0; i < part; i += width)
				memcpy(bytes + i, &value, width);
		address += part;
		n -= part;
	}
}

struct set {
	u64 address, pitch; /* bytes */
	u32 value, element; /* bytes of an element */
	u64 width, height;  /* elements, rows */
};

static CUresult set_now(CUcontext ctx, const struct set *s)
{
	struct sim_device *dev;
	u64 row, last;
	CUresult result;

	if (s->address % s->element || s->pitch % s->element || s->width > UINT64_MAX / s->element)
		return CUDA_ERROR_INVALID_VALUE;
	row = s->width * s->element;
	if (s->height > 1 && s->pitch < row)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->height == 0 || row == 0)
		last = 0;
	else if (__builtin_mul_overflow(s->pitch, s->height - 1, &last) ||
		 __builtin_add_overflow(last, row, &last))
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_range_check(s->address, last, ctx->dev, true, &dev);
	if (result != CUDA_SUCCESS)
		return result;
	for (u64 y = 0; last > 0 && y < s->height; y++)
		fill(s->address + y * s->pitch, s->value, s->element, s->width);
	if (!dev)
		dev = ctx->dev;
	sim_ledger_traffic(&sim.ledger.devices[dev->ordinal].sets, row * s->height);
	return CUDA_SUCCESS;
}

static CUresult set_sync(CUcontext ctx, const struct set *s)
{
	return sim_capture_allows_implicit() ? set_now(ctx, s) : CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

static CUresult set_async(CUcontext ctx, const struct set *s, CUstream stream)
{
	if (!sim_stream_known(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	return sim_stream_capturing(stream) ? CUDA_SUCCESS : set_now(ctx, s);
}

#define SET(expr)                                                                                  \
	SIM_CALL_THEN(                                                                             \
		NEED_CONTEXT, expr, if (result != CUDA_SUCCESS) { sim.ledger.failed_sets++; })
#define ROW_OF(value)	(&(struct set){dstDevice, 0, value, sizeof(value), N, 1})
#define PLANE_OF(value) (&(struct set){dstDevice, dstPitch, value, sizeof(value), Width, Height})

/* The exports of one element type differ in their argument types and names only. */
#define SET_1D(name, address, count, type)                                                         \
	CUresult name(address dstDevice, type value, count N)                                      \
	{                                                                                          \
		return SET(set_sync(ctx, ROW_OF(value)));                                          \
	}
#define SET_2D(name, address, count, type)                                                         \
	CUresult name(address dstDevice, count dstPitch, type value, count Width, count Height)    \
	{                                                                                          \
		return SET(set_sync(ctx, PLANE_OF(value)));                                        \
	}
#define SET_1D_ASYNC(name, type)                                                                   \
	CUresult name(CUdeviceptr dstDevice, type value, size_t N, CUstream hStream)               \
	{                                                                                          \
		return SET(set_async(ctx, ROW_OF(value), hStream));                                \
	}
#define SET_2D_ASYNC(name, type)                                                                   \
	CUresult name(CUdeviceptr dstDevice, size_t dstPitch, type value, size_t Width,            \
		size_t Height, CUstream hStream)                                                   \
	{                                                                                          \
		return SET(set_async(ctx, PLANE_OF(value), hStream));                              \
	}
#define SETS_OF(bits, type)                                                                        \
	SET_1D(cuMemsetD##bits, CUdeviceptr_v1, unsigned int, type)                                \
	SET_1D(cuMemsetD##bits##_v2, CUdeviceptr, size_t, type)                                    \
	SET_1D(cuMemsetD##bits##_v2_ptds, CUdeviceptr, size_t, type)                               \
	SET_2D(cuMemsetD2D##bits, CUdeviceptr_v1, unsigned int, type)                              \
	SET_2D(cuMemsetD2D##bits##_v2, CUdeviceptr, size_t, type)                                  \
	SET_2D(cuMemsetD2D##bits##_v2_ptds, CUdeviceptr, size_t, type)                             \
	SET_1D_ASYNC(cuMemsetD##bits##Async, type)                                                 \
	SET_1D_ASYNC(cuMemsetD##bits##Async_ptsz, type)                                            \
	SET_2D_ASYNC(cuMemsetD2D##bits##Async, type)                                               \
	SET_2D_ASYNC(cuMemsetD2D##bits##Async_ptsz, type)

SETS_OF(8, unsigned char)
SETS_OF(16, unsigned short)
SETS_OF(32, unsigned int)

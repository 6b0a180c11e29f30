/*
 * random_driver_box.h: the copies of boxes and the batches of random_driver.h, which includes it.
 */
#ifndef RANDOM_DRIVER_BOX_H
#define RANDOM_DRIVER_BOX_H

static CUmemorytype memory_type(enum place place)
{
	static const CUmemorytype types[] = {[PLACE_HOST] = CU_MEMORYTYPE_HOST,
		[PLACE_DEVICE] = CU_MEMORYTYPE_DEVICE,
		[PLACE_UNIFIED] = CU_MEMORYTYPE_UNIFIED,
		[PLACE_ARRAY] = CU_MEMORYTYPE_ARRAY};

	return types[place];
}

/* The fields that all descriptors have, with addresses of their type. */
#define SIDE_FIELDS(c, side, from, type)                                                           \
	do {                                                                                       \
		(c)->side##MemoryType = memory_type((from)->place);                                \
		(c)->side##Pitch = (type)(from)->pitch;                                            \
		if ((from)->place == PLACE_ARRAY)                                                  \
			(c)->side##Array = POINTER((from)->at);                                    \
		else if ((from)->place == PLACE_HOST)                                              \
			(c)->side##Host = POINTER((from)->at);                                     \
		else                                                                               \
			(c)->side##Device = (__typeof__((c)->side##Device))(from)->at;             \
	} while (0)
#define FIELDS_2D(c, b, type)                                                                      \
	do {                                                                                       \
		memset(c, 0, sizeof(*(c)));                                                        \
		SIDE_FIELDS(c, dst, &(b)->dst, type);                                              \
		SIDE_FIELDS(c, src, &(b)->src, type);                                              \
		(c)->WidthInBytes = (type)(b)->width;                                              \
		(c)->Height = (type)(b)->height;                                                   \
	} while (0)
#define FIELDS_3D(c, b, type)                                                                      \
	do {                                                                                       \
		FIELDS_2D(c, b, type);                                                             \
		(c)->dstHeight = (c)->srcHeight = (type)(b)->height;                               \
		(c)->Depth = (type)(b)->depth;                                                     \
	} while (0)

static int box_2d(unsigned form, const struct box *b)
{
	CUDA_MEMCPY2D c;

	FIELDS_2D(&c, b, size_t);
	switch (CHOOSE(6)) {
	case 0:
		return (int)CU(cuMemcpy2D_v2)(&c);
	case 1:
		return (int)CU(cuMemcpy2D_v2_ptds)(&c);
	case 2:
		return (int)CU(cuMemcpy2DUnaligned_v2)(&c);
	case 3:
		return (int)CU(cuMemcpy2DUnaligned_v2_ptds)(&c);
	case 4:
		return (int)CU(cuMemcpy2DAsync_v2)(&c, stream_of(form));
	default:
		return (int)CU(cuMemcpy2DAsync_v2_ptsz)(&c, stream_of(form));
	}
}

static int box_2d_low(unsigned form, const struct box *b)
{
	CUDA_MEMCPY2D_v1 c;

	FIELDS_2D(&c, b, unsigned int);
	switch (CHOOSE(3)) {
	case 0:
		return (int)CU(cuMemcpy2D)(&c);
	case 1:
		return (int)CU(cuMemcpy2DUnaligned)(&c);
	default:
		return (int)CU(cuMemcpy2DAsync)(&c, stream_of(form));
	}
}

static int box_3d(unsigned form, const struct box *b)
{
	CUDA_MEMCPY3D c;

	FIELDS_3D(&c, b, size_t);
	switch (CHOOSE(4)) {
	case 0:
		return (int)CU(cuMemcpy3D_v2)(&c);
	case 1:
		return (int)CU(cuMemcpy3D_v2_ptds)(&c);
	case 2:
		return (int)CU(cuMemcpy3DAsync_v2)(&c, stream_of(form));
	default:
		return (int)CU(cuMemcpy3DAsync_v2_ptsz)(&c, stream_of(form));
	}
}

static int box_3d_low(unsigned form, const struct box *b)
{
	CUDA_MEMCPY3D_v1 c;

	FIELDS_3D(&c, b, unsigned int);
	return (int)(CHOOSE(2) ? CU(cuMemcpy3D)(&c) : CU(cuMemcpy3DAsync)(&c, stream_of(form)));
}

static int box_peer(unsigned form, const struct box *b)
{
	CUDA_MEMCPY3D_PEER c;

	FIELDS_3D(&c, b, size_t);
	c.dstContext = contexts[b->dst.device];
	c.srcContext = contexts[b->src.device];
	switch (CHOOSE(4)) {
	case 0:
		return (int)CU(cuMemcpy3DPeer)(&c);
	case 1:
		return (int)CU(cuMemcpy3DPeer_ptds)(&c);
	case 2:
		return (int)CU(cuMemcpy3DPeerAsync)(&c, stream_of(form));
	default:
		return (int)CU(cuMemcpy3DPeerAsync_ptsz)(&c, stream_of(form));
	}
}

static int row_to_array(unsigned form, const struct box *b)
{
	CUarray dst = POINTER(b->dst.at), from = POINTER(b->src.at);
	const void *host = POINTER(b->src.at);
	unsigned int low = (unsigned int)b->width;
	size_t n = b->width;

	if (b->src.place == PLACE_ARRAY)
		return (int)(CHOOSE(3) == 0   ? CU(cuMemcpyAtoA)(dst, 0, from, 0, low)
			     : CHOOSE(3) == 1 ? CU(cuMemcpyAtoA_v2)(dst, 0, from, 0, n)
					      : CU(cuMemcpyAtoA_v2_ptds)(dst, 0, from, 0, n));
	if (b->src.place == PLACE_DEVICE && CHOOSE(2) && is_low(b->src.at, n))
		return (int)CU(cuMemcpyDtoA)(dst, 0, LOW(b->src.at), low);
	if (b->src.place == PLACE_DEVICE)
		return (int)(CHOOSE(2) ? CU(cuMemcpyDtoA_v2)(dst, 0, b->src.at, n)
				       : CU(cuMemcpyDtoA_v2_ptds)(dst, 0, b->src.at, n));
	switch (CHOOSE(6)) {
	case 0:
		return (int)CU(cuMemcpyHtoA)(dst, 0, host, low);
	case 1:
		return (int)CU(cuMemcpyHtoA_v2)(dst, 0, host, n);
	case 2:
		return (int)CU(cuMemcpyHtoA_v2_ptds)(dst, 0, host, n);
	case 3:
		return (int)CU(cuMemcpyHtoAAsync)(dst, 0, host, low, stream_of(form));
	case 4:
		return (int)CU(cuMemcpyHtoAAsync_v2)(dst, 0, host, n, stream_of(form));
	default:
		return (int)CU(cuMemcpyHtoAAsync_v2_ptsz)(dst, 0, host, n, stream_of(form));
	}
}

static int row_from_array(unsigned form, const struct box *b)
{
	CUarray src = POINTER(b->src.at);
	void *host = POINTER(b->dst.at);
	unsigned int low = (unsigned int)b->width;
	size_t n = b->width;

	if (b->dst.place == PLACE_DEVICE && CHOOSE(2) && is_low(b->dst.at, n))
		return (int)CU(cuMemcpyAtoD)(LOW(b->dst.at), src, 0, low);
	if (b->dst.place == PLACE_DEVICE)
		return (int)(CHOOSE(2) ? CU(cuMemcpyAtoD_v2)(b->dst.at, src, 0, n)
				       : CU(cuMemcpyAtoD_v2_ptds)(b->dst.at, src, 0, n));
	switch (CHOOSE(6)) {
	case 0:
		return (int)CU(cuMemcpyAtoH)(host, src, 0, low);
	case 1:
		return (int)CU(cuMemcpyAtoH_v2)(host, src, 0, n);
	case 2:
		return (int)CU(cuMemcpyAtoH_v2_ptds)(host, src, 0, n);
	case 3:
		return (int)CU(cuMemcpyAtoHAsync)(host, src, 0, low, stream_of(form));
	case 4:
		return (int)CU(cuMemcpyAtoHAsync_v2)(host, src, 0, n, stream_of(form));
	default:
		return (int)CU(cuMemcpyAtoHAsync_v2_ptsz)(host, src, 0, n, stream_of(form));
	}
}

/* Has the side an address that the first version of the API cannot name. */
static bool is_high(const struct box_side *side, const struct box *b)
{
	bool device = side->place == PLACE_DEVICE || side->place == PLACE_UNIFIED;

	return device && !is_low(side->at, b->width * b->height * b->depth);
}

/* Can the side be one end of a copy of one row. */
static bool is_row_end(const struct box_side *side)
{
	return side->place == PLACE_ARRAY ? side->is_row : side->place != PLACE_UNIFIED;
}

static int box(unsigned form, const struct box *b)
{
	bool low = !is_high(&b->dst, b) && !is_high(&b->src, b);

	if (b->height == 1 && b->depth == 1 && is_row_end(&b->dst) && is_row_end(&b->src) &&
		(form & 4)) {
		if (b->dst.place == PLACE_ARRAY)
			return row_to_array(form, b);
		if (b->src.place == PLACE_ARRAY)
			return row_from_array(form, b);
	}
	if ((form & 3) == 3)
		return box_peer(form, b);
	if (b->depth > 1 || (form & 3) == 2)
		return low && (form & 1) ? box_3d_low(form, b) : box_3d(form, b);
	return low ? box_2d_low(form, b) : box_2d(form, b);
}

#if CUDA_VERSION >= 12080
#define MAX_BATCH 8

static void operation(CUDA_MEMCPY3D_BATCH_OP *out, const struct copy *c)
{
	memset(out, 0, sizeof(*out));
	out->dst.type = out->src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	out->dst.op.ptr.ptr = c->dst;
	out->src.op.ptr.ptr = c->src;
	out->extent.width = c->bytes;
	out->extent.height = out->extent.depth = 1;
	out->srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
}

static int batch_of_boxes(unsigned form, const struct copy *copies, size_t n)
{
	CUDA_MEMCPY3D_BATCH_OP all[MAX_BATCH];
	CUstream stream = streams[device_now];
	size_t failed;

	for (size_t i = 0; i < n; i++)
		operation(&all[i], &copies[i]);
#if CUDA_VERSION >= 13000
	if (form & 2)
		return (int)(form & 1 ? CU(cuMemcpy3DBatchAsync_v2)(n, all, 0, stream)
				      : CU(cuMemcpy3DBatchAsync_v2_ptsz)(n, all, 0, stream));
#endif
	return (int)(form & 1 ? CU(cuMemcpy3DBatchAsync)(n, all, &failed, 0, stream)
			      : CU(cuMemcpy3DBatchAsync_ptsz)(n, all, &failed, 0, stream));
}

static int batch(unsigned form, const struct copy *copies, size_t n)
{
	CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	CUdeviceptr dsts[MAX_BATCH], srcs[MAX_BATCH];
	size_t sizes[MAX_BATCH], first = 0, failed;
	CUstream stream = streams[device_now];

	if (form & 4)
		return batch_of_boxes(form, copies, n);
	for (size_t i = 0; i < n; i++) {
		dsts[i] = copies[i].dst;
		srcs[i] = copies[i].src;
		sizes[i] = copies[i].bytes;
	}
#if CUDA_VERSION >= 13000
	if (form & 2)
		return (int)(form & 1 ? CU(cuMemcpyBatchAsync_v2)(dsts, srcs, sizes, n, &attributes,
						&first, 1, stream)
				      : CU(cuMemcpyBatchAsync_v2_ptsz)(dsts, srcs, sizes, n,
						&attributes, &first, 1, stream));
#endif
	return (int)(form & 1 ? CU(cuMemcpyBatchAsync)(dsts, srcs, sizes, n, &attributes, &first, 1,
					&failed, stream)
			      : CU(cuMemcpyBatchAsync_ptsz)(dsts, srcs, sizes, n, &attributes,
					&first, 1, &failed, stream));
}
#endif

#endif

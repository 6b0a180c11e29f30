/*
 * random_driver_copy.h: the copies and memory sets of random_driver.h, which includes it: all entry
 * points of a direction or an element width, one per form.
 */
#ifndef RANDOM_DRIVER_COPY_H
#define RANDOM_DRIVER_COPY_H

/* The five entry points of one direction: two of the first version, for low addresses, or four of
 * the second. */
#define COPY_FORMS(name, low, dst_low, src_low, dst, src)                                          \
	if (low)                                                                                   \
		return (int)(form & 1 ? CU(name)(dst_low, src_low, (unsigned int)n)                \
				      : CU(name##Async)(dst_low, src_low, (unsigned int)n,         \
						stream_of(form)));                                 \
	switch (CHOOSE(4)) {                                                                       \
	case 0:                                                                                    \
		return (int)CU(name##_v2)(dst, src, n);                                            \
	case 1:                                                                                    \
		return (int)CU(name##_v2_ptds)(dst, src, n);                                       \
	case 2:                                                                                    \
		return (int)CU(name##Async_v2)(dst, src, n, stream_of(form));                      \
	default:                                                                                   \
		return (int)CU(name##Async_v2_ptsz)(dst, src, n, stream_of(form));                 \
	}

#define LOW(address) ((CUdeviceptr_v1)(address))

static int copy_h2d(unsigned form, u64 to, const void *from, u64 n)
{
	COPY_FORMS(cuMemcpyHtoD, is_low(to, n), LOW(to), from, to, from)
}

static int copy_d2h(unsigned form, void *to, u64 from, u64 n)
{
	COPY_FORMS(cuMemcpyDtoH, is_low(from, n), to, LOW(from), to, from)
}

static int copy_d2d(unsigned form, u64 to, u64 from, u64 n)
{
	COPY_FORMS(cuMemcpyDtoD, is_low(to, n) && is_low(from, n), LOW(to), LOW(from), to, from)
}

static int copy_p2p(unsigned form, const struct copy *c)
{
	CUcontext to = contexts[c->dst_device], from = contexts[c->src_device];

	switch (CHOOSE(4)) {
	case 0:
		return (int)CU(cuMemcpyPeer)(c->dst, to, c->src, from, c->bytes);
	case 1:
		return (int)CU(cuMemcpyPeer_ptds)(c->dst, to, c->src, from, c->bytes);
	case 2:
		return (int)CU(cuMemcpyPeerAsync)(
			c->dst, to, c->src, from, c->bytes, stream_of(form));
	default:
		return (int)CU(cuMemcpyPeerAsync_ptsz)(
			c->dst, to, c->src, from, c->bytes, stream_of(form));
	}
}

static int copy(unsigned form, const struct copy *c)
{
	switch (c->direction) {
	case COPY_H2D:
		return copy_h2d(form, c->dst, POINTER(c->src), c->bytes);
	case COPY_D2H:
		return copy_d2h(form, POINTER(c->dst), c->src, c->bytes);
	case COPY_D2D:
		return copy_d2d(form, c->dst, c->src, c->bytes);
	case COPY_P2P:
		return copy_p2p(form, c);
	default:
		break;
	}
	switch (CHOOSE(4)) {
	case 0:
		return (int)CU(cuMemcpy)(c->dst, c->src, c->bytes);
	case 1:
		return (int)CU(cuMemcpy_ptds)(c->dst, c->src, c->bytes);
	case 2:
		return (int)CU(cuMemcpyAsync)(c->dst, c->src, c->bytes, stream_of(form));
	default:
		return (int)CU(cuMemcpyAsync_ptsz)(c->dst, c->src, c->bytes, stream_of(form));
	}
}

/* A set of n elements, or of rows of 16 of them, in every form there is. */
#define SET_FORMS(bits, value)                                                                     \
	switch (form & 7) {                                                                        \
	case 0:                                                                                    \
		if (low)                                                                           \
			return (int)CU(cuMemsetD##bits)(LOW(s->address), value, (unsigned int)n);  \
		return (int)CU(cuMemsetD##bits##_v2)(s->address, value, n);                        \
	case 1:                                                                                    \
		return (int)CU(cuMemsetD##bits##_v2_ptds)(s->address, value, n);                   \
	case 2:                                                                                    \
		return (int)CU(cuMemsetD##bits##Async)(s->address, value, n, stream_of(form));     \
	case 3:                                                                                    \
		return (int)CU(cuMemsetD##bits##Async_ptsz)(                                       \
			s->address, value, n, stream_of(form));                                    \
	case 4:                                                                                    \
		if (low)                                                                           \
			return (int)CU(cuMemsetD2D##bits)(LOW(s->address), (unsigned int)pitch,    \
				value, 16, (unsigned int)(n / 16));                                \
		return (int)CU(cuMemsetD2D##bits##_v2)(s->address, pitch, value, 16, n / 16);      \
	case 5:                                                                                    \
		return (int)CU(cuMemsetD2D##bits##_v2_ptds)(s->address, pitch, value, 16, n / 16); \
	case 6:                                                                                    \
		return (int)CU(cuMemsetD2D##bits##Async)(                                          \
			s->address, pitch, value, 16, n / 16, stream_of(form));                    \
	default:                                                                                   \
		return (int)CU(cuMemsetD2D##bits##Async_ptsz)(                                     \
			s->address, pitch, value, 16, n / 16, stream_of(form));                    \
	}

static int set8(unsigned form, const struct set *s)
{
	u64 n = s->bytes, pitch = 16;
	bool low = is_low(s->address, n);

	SET_FORMS(8, s->value)
}

static int set16(unsigned form, const struct set *s)
{
	u64 n = s->bytes / 2, pitch = 32;
	bool low = is_low(s->address, s->bytes);
	unsigned short value = (unsigned short)(s->value * 0x0101u);

	SET_FORMS(16, value)
}

static int set32(unsigned form, const struct set *s)
{
	u64 n = s->bytes / 4, pitch = 64;
	bool low = is_low(s->address, s->bytes);
	unsigned int value = s->value * 0x01010101u;

	SET_FORMS(32, value)
}

static int set(unsigned form, const struct set *s)
{
	if (s->bytes % 64) /* no whole rows, maybe no whole elements */
		return (int)CU(cuMemsetD8_v2)(s->address, s->value, s->bytes);
	switch (CHOOSE(3)) {
	case 0:
		return set8(form, s);
	case 1:
		return set16(form, s);
	default:
		return set32(form, s);
	}
}

#endif

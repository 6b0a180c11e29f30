/*
 * random_route.h: one way for the random program to reach the driver. Each of random_runtime.c,
 * random_driver.c and random_dlsym.c defines one route; a program links random_calls.c and one of
 * them.
 *
 * Functions return 0 or the error code of CUDA. `form` is any number: it picks one of the entry
 * points that do the same thing. Bytes are bytes, devices are ordinals. A family that a route
 * cannot reach has NULL functions.
 */
#ifndef RANDOM_ROUTE_H
#define RANDOM_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t u64;

enum copy_direction { COPY_H2D, COPY_D2H, COPY_D2D, COPY_P2P, COPY_UNIFIED, N_COPY_DIRECTIONS };

struct copy {
	enum copy_direction direction;
	u64 dst, src, bytes;
	int dst_device, src_device; /* for P2P */
};

struct set {
	u64 address, bytes; /* multiples of 4 where the form asks for wider elements */
	unsigned char value;
};

struct array {			  /* of elements of one byte */
	u64 width, height, depth; /* 0: no such dimension */
	unsigned n_levels;	  /* 0: not mipmapped */
	u64 handle, level;	  /* out: the array, and its first level to copy (0: cannot be) */
	u64 bytes;		  /* out: its true size; 0: not told */
};

enum place { PLACE_HOST, PLACE_DEVICE, PLACE_UNIFIED, PLACE_ARRAY };

struct box_side {
	enum place place;
	u64 at;	   /* an address, or the level of an array */
	u64 pitch; /* bytes from row to row of memory; layers follow each other */
	int device;
	bool is_row; /* an array of one dimension */
};

struct box {
	struct box_side dst, src;
	u64 width, height, depth; /* width in bytes; all at least one */
};

enum share {
	SHARE_IPC,
	SHARE_EXTERNAL,
	SHARE_POOL,
	SHARE_IMPORT,
	SHARE_GRAPHICS, /* only where the driver is the simulated one */
	N_SHARES
};

struct graph {
	int device;
	u64 bytes;
	bool frees;		  /* it frees what it allocates */
	u64 exec, graph, address; /* out */
};

/* The families of --families all. A function that a route does not have is NULL. */
struct wide {
	int (*array_make)(unsigned form, struct array *array);
	int (*array_end)(const struct array *array);
	int (*box)(unsigned form, const struct box *box);
	int (*batch)(unsigned form, const struct copy *copies, size_t n);
	/* Shared memory of so many bytes. *base is what is shared: linear memory, nothing, memory
	 * of the device's own pool, physical memory, or (out) a graphics resource. */
	int (*share)(enum share share, int device, u64 *base, u64 bytes, u64 *out);
	int (*unshare)(enum share share, u64 base, u64 address);
	bool has_share[N_SHARES];
	int (*graph_make)(unsigned form, struct graph *graph); /* and launches it */
	int (*graph_launch)(unsigned form, u64 exec);
	int (*graph_end)(const struct graph *graph);
	int (*migrate)(unsigned form, int device, u64 address, u64 bytes);
	int (*discard)(unsigned form, u64 address, u64 bytes);
	int (*code)(unsigned form);		  /* loads and unloads some */
	int (*adjust)(unsigned form, int device); /* limits, pools, green contexts, multicast */
};

struct route {
	const char *name;
	const struct wide *wide;     /* NULL: basic families only */
	int (*start)(int n_devices); /* once, before any thread */
	int (*use)(int device);	     /* for the calling thread */
	int (*alloc)(unsigned form, u64 bytes, u64 *out);
	int (*alloc_pitch)(unsigned form, u64 width, u64 height, u64 *pitch, u64 *out);
	int (*alloc_managed)(u64 bytes, u64 *out);
	int (*free)(unsigned form, u64 address);
	int (*alloc_pinned)(unsigned form, u64 bytes, u64 *out);
	int (*free_pinned)(u64 address);
	int (*register_host)(unsigned form, void *p, u64 bytes);
	int (*unregister_host)(void *p);
	int (*alloc_async)(unsigned form, int device, u64 bytes, u64 *out);
	int (*free_async)(unsigned form, u64 address);
	int (*copy)(unsigned form, const struct copy *copy);
	int (*set)(unsigned form, const struct set *set);
	int (*reserve)(u64 bytes, u64 *out);
	int (*unreserve)(u64 address, u64 bytes);
	int (*create)(int device, u64 bytes, u64 *out);
	int (*release)(u64 handle);
	int (*map)(u64 address, u64 bytes, u64 handle);
	int (*unmap)(u64 address, u64 bytes);
	int (*allow)(u64 address, u64 bytes, int device);
	int (*capture)(unsigned form); /* begins and ends an empty capture that disturbs nobody */
	int (*query)(unsigned form);   /* a call that changes nothing */
	/* Makes another context of the device, allocates and frees in it, ends it. */
	int (*visit)(unsigned form, int device, u64 bytes);
};

extern const struct route route;

#endif

/* random_program.h: the threads of the random program, and the memory they own. */
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H

#include <pthread.h>

#include "random_route.h"

#define MIB	    (1ull << 20)
#define MAX_DEVICES 16
#define MAX_COPY    65536

enum kind {
	LINEAR,
	PITCHED,
	MANAGED,
	PINNED,
	REGISTERED,
	POOL,
	VMM,
	ARRAY, /* from here on: of --families all */
	SHARED,
	GRAPH,
	N_KINDS
};
#define N_BASIC_KINDS ARRAY

struct object {
	enum kind kind;
	int device;
	u64 address, bytes;
	u64 handle; /* VMM: physical memory; released early or late */
	bool held;
	unsigned char value; /* of the first n_known bytes */
	u64 n_known;
	struct array
		array; /* known of it: n_known rows of n_known_wide bytes, in its first layer */
	u64 n_known_wide;
	struct graph graph;
	enum share share;
	u64 base; /* what is shared */
};

struct thread {
	pthread_t id;
	u64 random;
	int device;
	u64 n_calls;
	struct object *objects;
	size_t n_objects, capacity;
	unsigned char *buffer; /* MAX_COPY pageable bytes */
};

struct options {
	u64 n_calls, n_stop, seed;
	int n_threads, n_devices;
	bool all_families;
};
extern struct options options;

/* A random number, one below n, and one for the form of a call. */
u64 thread_random(struct thread *t);
u64 thread_below(struct thread *t, u64 n);
unsigned thread_form(struct thread *t);
/* Sizes in bytes of every magnitude up to 4 MiB, a third of them round. */
u64 thread_bytes(struct thread *t);
/* Says what went wrong and ends the program. */
void thread_fail(const struct thread *t, const char *what, int error);
/* Counts a call, and fails if it did not end as it must. */
void thread_ended(struct thread *t, bool success, const char *what, int error);

/* What CUSIM_FAIL is given to make calls fail that should not: they are made again. What a failed
 * try left behind stays live, as in many a program. */
#define INJECTED_ERROR 999
#define thread_expect(t, success, what, ...)                                                       \
	do {                                                                                       \
		int error_ = (__VA_ARGS__);                                                        \
                                                                                                   \
		while ((success) && error_ == INJECTED_ERROR)                                      \
			error_ = (__VA_ARGS__);                                                    \
		thread_ended(t, success, what, error_);                                            \
	} while (0)
/* A copy, from one of several call sites; the error. random_sites.c */
int thread_copy(struct thread *t, const struct copy *c);
/* Prints "SITE COPIES BYTES" for each. */
void sites_print(void);
/* Makes the device the thread's. */
void thread_use(struct thread *t, int device);
/* Allocates on the thread's device, if the cap of the kind allows, or beyond it. The thread owns
 * the object. */
void thread_make(struct thread *t, enum kind kind, u64 bytes, bool beyond);
/* Frees one of the thread's objects. */
void thread_end(struct thread *t, size_t at);
/* Room for so many bytes more, below the cap (or beyond it). False: no room, nothing claimed. */
bool memory_claim(enum kind kind, int device, u64 bytes, bool beyond);
void memory_unclaim(enum kind kind, int device, u64 bytes);
/* Is the kind on the device beyond its cap. */
bool memory_is_beyond(enum kind kind, int device);
/* The bytes live now. */
u64 memory_live(enum kind kind, int device);
/* Keeps an object made for the thread. */
void thread_keep(struct thread *t, const struct object *o);
/* One of the thread's objects: memory of its device, or host memory, or NULL after some tries. */
struct object *thread_pick(struct thread *t, bool host);
/* Is there memory at the object's address. */
bool object_is_memory(const struct object *o);

/* random_wide.c: the same for the kinds of --families all. */
void wide_make(struct thread *t, enum kind kind, u64 bytes, bool beyond);
void wide_end(struct thread *t, const struct object *o);
/* A random call of one of those families. */
void wide_something(struct thread *t);

#endif

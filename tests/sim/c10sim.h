/*
 * c10sim.h: PyTorch's caching allocator, as far as memory is concerned: libc10.so, libc10_cuda.so
 * and libtorch_cuda.so of this folder (in torch/lib beside the simulated CUDA, with a version.py).
 * It takes segments from CUDA and hands out blocks by the rules that were measured on PyTorch 2.11,
 * and it reports them to c10::reportMemoryUsageToProfiler across the libraries' boundary, with its
 * lock held, as PyTorch does. Its own ledger is the truth that traces are compared with.
 *
 *   c10_report.c   libc10.so: the report functions of all versions, which count
 *   c10_stream.c   libc10_cuda.so: streams and devices; c10::cuda::getCurrentCUDAStream
 *   c10_block.c    blocks: lists, splitting, merging, waiting for events
 *   c10_expand.c   expandable segments
 *   c10_alloc.c    the order of attempts, releasing, entry points
 *   c10_ledger.c   what is written as truth
 *   c10_graph.c    libtorch_cuda.so: at::cuda::CUDAGraph
 *
 * Settings: PYTORCH_CUDA_ALLOC_CONF (else PYTORCH_ALLOC_CONF) with expandable_segments:True,
 * max_split_size_mb:N, backend:cudaMallocAsync; PYTORCH_NO_CUDA_MEMORY_CACHING; and
 *   C10SIM_NAMES   2 (default), 1.13, next: whose report functions are called
 *
 * The ledger, one JSON object:
 *   reports   calls that reached libc10: blocks that came, that went, requests refused
 *   devices   array, by ordinal:
 *     allocated_bytes reserved_bytes active_bytes inactive_split_bytes   objects: current, peak
 *     pending_bytes      freed, waiting for events
 *     allocations frees  blocks handed out, and given back
 *     device_allocations device_frees  segments, or runs of pages, had from CUDA and returned
 *     retries ooms
 *     segments  array, by address: address size stream expandable private (0: an ordinary pool)
 *               blocks: array, by address: address size state, which is "active", "pending" or
 *               "inactive"; a range of expandable pages without a hole is one segment
 */
#ifndef C10SIM_H
#define C10SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define C10SIM_MAX_DEVICES 16
#define C10SIM_MAX_STREAMS 16

/* A block of the current stream of this thread on a device. NULL: out of memory, reported. */
void *c10sim_alloc(size_t bytes, int device);
void c10sim_free(void *pointer);

/* The block is also used on that stream: once freed, it waits for what the stream has to do. */
void c10sim_record_stream(void *pointer, int64_t stream);

/* Records an event for nobody's block, as generic events of PyTorch's are recorded by the same
 * library, from so many frames further down. */
void c10sim_record_event(int device, unsigned int depth);

/* Gives back to CUDA what is not in use, on all devices. */
void c10sim_empty_cache(void);

/* The current stream of this thread on a device: 0, the default one, or up to MAX_STREAMS - 1. */
void c10sim_set_stream(int device, int64_t stream);

/* The runtime's stream behind such a number. */
struct CUstream_st *c10sim_stream_handle(int device, int64_t stream);

/* Of the device's memory the allocator may reserve at most so much; 0: no limit. */
void c10sim_set_limit(int device, uint64_t bytes);

/* Blocks for streams that are being captured come from a private pool while a capture is open. */
void c10sim_pool_begin(int device, uint64_t pool, int64_t stream);
void c10sim_pool_end(int device, uint64_t pool);
/* Its last graph is gone: segments go when the cache is emptied. */
void c10sim_pool_release(int device, uint64_t pool);

/* Writes the ledger. False: the file could not be written. */
bool c10sim_write_ledger(const char *path);

/* Calls that reached libc10's report functions. */
struct c10sim_reports {
	uint64_t allocations;
	uint64_t frees;
	uint64_t refusals;
};
void c10sim_reports_get(struct c10sim_reports *out);

/* at::cuda::CUDAGraph, whose functions have their mangled names in libtorch_cuda.so. */
struct c10sim_graph {
	int device;
	int64_t stream; /* to be captured, not the default one */
	uint64_t pool;	/* 0: none yet */
	void *graph;	/* the captured one */
};

#endif

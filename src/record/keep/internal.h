/* What the files of the books share. */
#ifndef VRAMTRACE_RECORD_KEEP_INTERNAL_H
#define VRAMTRACE_RECORD_KEEP_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "record/table.h"
#include "trace/tree.h"
#include "vramtrace/format.h"

struct vt_lane;

/* The struct of this type whose member is at pointer. */
#define keep_container(pointer, type, member)                                                      \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* A copy of a record; its struct follows, then what its texts and lists point to. */
struct kept {
	struct kept *next; /* in a list of its owner */
	uint64_t time_ns;
	uint32_t tid;
	uint16_t kind;	/* enum vt_record_kind */
	bool transient; /* made for one checkpoint */
	size_t bytes;
};

/* The record of kind `name` in a struct kept. */
#define kept_as(kept, name) ((struct vt_rec_##name *)(void *)((kept) + 1))

/* A record that is being taken in. */
struct keep_event {
	enum vt_record_kind kind;
	uint32_t tid;
	uint64_t time_ns;
	const void *record;
};

#define keep_record(event, name) ((const struct vt_rec_##name *)(event)->record)

/* An amount, and what it was when its device was at its peak: saved at its first change after. */
struct keep_amount {
	uint64_t bytes, count;
	uint64_t peak_bytes, peak_count;
	uint64_t epoch;
};

/* A stretch of the timeline, as in the record. */
struct keep_stretch {
	uint64_t tracked_bytes;
	uint64_t kind_bytes[VT_N_KINDS];
	bool used_known;
	uint64_t used_bytes;
	int64_t untracked_bytes, others_bytes, unexplained_bytes;
};

#define KEEP_N_STRETCHES 512u

struct keep_device {
	struct keep_device *next;
	int ordinal; /* or VT_DEVICE_* */
	bool described;
	uint64_t page_bytes;
	struct {
		uint64_t live_bytes, n_allocs, peak_bytes, peak_ns;
	} kinds[VT_N_KINDS];
	uint64_t held[VT_N_KINDS]; /* parts of tracked_bytes */
	uint64_t small_array_bytes;
	uint64_t tracked_bytes;
	uint64_t block_bytes;
	uint64_t peak_bytes, peak_block_bytes, peak_ns;
	uint64_t epoch; /* of the peak: one more at each */
	struct {
		bool seen;
		uint64_t time_ns, free_bytes, total_bytes;
		uint64_t held[VT_N_KINDS];
		int64_t untracked[VT_N_CAUSES];
		int64_t unexplained_bytes;
	} sample;
	uint64_t most_used_bytes, most_used_ns;
	bool peak_sampled;
	uint64_t peak_free_bytes, peak_sample_ns;
	bool others_known, others_measured;
	int64_t others_bytes;
	struct kept *listed; /* the last record of others at a refusal */
	int64_t untracked[VT_N_CAUSES];
	uint64_t untracked_ns;
	uint64_t n_contexts;
	struct keep_context *newest_context;
	struct keep_pool *default_pool, *current_pool;
	struct kept *set_current;
	bool graph_sampled;
	uint64_t graph_reserved_bytes, graph_used_bytes;
	struct kept *graph_memory;
	uint64_t stretch_ns; /* length of one */
	size_t stretch;	     /* the last one */
	struct keep_stretch now;
	struct keep_stretch stretches[KEEP_N_STRETCHES];
};

struct keep_site {
	struct keep_site_key {
		uint64_t stack_id;
		int64_t device;
		uint64_t kind;
		uint64_t allocator_id;
	} key;
	struct keep_device *the_device;
	struct keep_amount live; /* without segments of allocators */
	uint64_t n_gone, gone_bytes;
	uint64_t n_teardown, teardown_bytes;
	uint64_t first_ns, last_ns;
	uint64_t n_repeated, repeated_bytes; /* of those gone, in the checkpoint being written */
	UT_hash_handle hh;
};

struct keep_allocator;

/* The first block in memory of the driver made that a segment of its allocator. It may be gone. */
struct keep_founder {
	uint64_t n_segments;
	uint64_t from, to; /* from the first to the last of them, as of the last checkpoint */
	bool is_live;
	uint64_t ended_ns;
	struct kept *alloc;
	struct kept *stream;
	struct keep_site *site;
	struct keep_founder *next; /* of the allocator's */
};

struct holding;

struct keep_segment {
	struct keep_allocator *allocator; /* NULL: it is none */
	struct keep_founder *founder;
	struct holding *holding;
	struct keep_site *site; /* who took it from the driver */
	uint64_t bytes;
};

struct keep_context;
struct keep_physical;

struct keep_block {
	struct tree_node node; /* key: address, or array handle */
	struct kept *kept;     /* alloc */
	uint64_t bytes;
	uint32_t kind;
	struct keep_device *device;
	struct keep_site *site;
	struct keep_pool *pool;
	struct keep_context *context;
	struct keep_block *next_in_context;
	struct keep_block **link_in_context;
	struct keep_segment segment;
	uint64_t launched_ns; /* of graph memory: the last launch that found it live */
};

struct keep_context {
	uint64_t context_id;
	struct keep_device *device;
	struct keep_block *blocks;
	bool holds_memory, released;
	int64_t taken_bytes;
	uint64_t taken_ns;
	uint64_t n_retains;
	struct kept *made, *let_go;
	UT_hash_handle hh;
};

struct keep_pool {
	struct keep_pool_key {
		uint64_t handle, variant;
	} key;
	struct keep_device *device;
	bool imported, destroyed, sampled;
	uint64_t reserved_bytes, live_bytes, n_live, held_bytes;
	struct kept *create, *destroy, *threshold, *memory;
	UT_hash_handle hh;
};

struct keep_mapping {
	struct tree_node node;
	struct kept *kept;
	uint64_t bytes;
	struct keep_physical *physical;
	struct keep_mapping *next; /* of the same physical memory */
	struct keep_segment segment;
};

struct keep_refusal {
	struct keep_refusal_key {
		uint64_t stack_id, api_id, caller_api, result;
		int64_t device;
		uint64_t refused, kind;
	} key;
	uint64_t n_calls, bytes, largest_bytes, first_ns, last_ns;
	uint64_t n_repeated, repeated_bytes;
	UT_hash_handle hh;
};

/* All of it. */
struct keep {
	struct arena arena;
	uint64_t n_events, first_ns;
	uint64_t n_unknown_frees, n_missed_frees, n_graph_launches;
	struct keep_device *devices; /* in the order in which they were seen */
	size_t n_devices, n_described;
	struct keep_device *unknown, *host;
	struct keep_site *sites;
	struct keep_refusal *refusals;
	struct keep_context *contexts;
	struct keep_pool *pools;
	uint64_t n_ended_pools;
	uint64_t teardown_ns; /* when a context last ended */
	struct tree live, arrays, mappings, reservations;
};
extern struct keep keep;

/* kept.c: a copy, and its end; NULL when there is no memory, and may be given back so. */
struct kept *kept_new(const struct keep_event *event);
void kept_free(struct kept *kept);
/* Puts a copy in the place of *at. */
void kept_replace(struct kept **at, const struct keep_event *event);

/* Memory for one struct, zeroed, or NULL. */
void *keep_alloc(size_t bytes);
void keep_free(void *piece, size_t bytes);

/* checkpoint.c: what the others put into the checkpoint that is being written. `time_ns` places the
 * record among the others; what is put first comes first at equal times. */
void checkpoint_put(const struct kept *kept);
void checkpoint_put_new(const struct keep_event *event);
/* Right away, before all of those. */
void checkpoint_figure(const struct vt_rec_figure *figure);
void checkpoint_past(const struct vt_rec_past *past);
void checkpoint_stretch(const struct vt_rec_stretch *stretch);
void checkpoint_write(struct vt_lane *lane, uint64_t number, uint64_t now_ns);
void checkpoint_forget(void);

/* keep.c */
void keep_checkpoint_lasting(void);
bool keep_is_event(uint16_t kind);

/* device.c */
struct keep_device *keep_device_of(int64_t ordinal);
void device_apply(const struct keep_event *event);
void device_hold(struct keep_device *device, uint32_t kind, uint64_t bytes);
/* Something may have grown, or shrunk. */
void device_changed(struct keep_device *device, uint64_t time_ns);
/* Live bytes of a kind. */
void device_add(struct keep_device *device, uint32_t kind, uint64_t bytes, uint64_t time_ns);
void device_remove(struct keep_device *device, uint32_t kind, uint64_t bytes);
void pages_keep(struct keep_block *block, bool add);
void amount_change(
	struct keep_amount *amount, struct keep_device *device, uint64_t bytes, uint64_t count);
uint64_t amount_peak_bytes(const struct keep_amount *amount, const struct keep_device *device);
uint64_t amount_peak_count(const struct keep_amount *amount, const struct keep_device *device);
void device_checkpoint(void);
void device_checkpoint_first(void);
void device_forget(void);

/* ledger.c */
struct keep_site *keep_site_of(
	uint64_t stack_id, struct keep_device *device, uint32_t kind, uint64_t allocator_id);
void site_begin(struct keep_site *site, uint64_t bytes, uint64_t time_ns);
void site_end(struct keep_site *site, uint64_t bytes, bool teardown);
void keep_refused(const struct keep_refusal_key *key, uint64_t bytes, uint64_t time_ns);
struct keep_refusal *keep_refusal_find(const struct keep_refusal_key *key);
struct keep_block *keep_block_at(uint64_t address);
struct keep_block *keep_block_from(uint64_t address);
struct keep_block *keep_block_new(uint32_t kind, uint64_t address, uint64_t time_ns);
void keep_block_begin(struct keep_block *block, const struct keep_event *alloc);
void keep_block_end(struct keep_block *block, bool teardown, uint64_t time_ns);
/* An address or handle was given out at time_ns, which was not seen to be free: its free was
 * missed, or another thread has yet to say that it happened before. True for the latter: then it is
 * no free of what is there now. */
void keep_missed(uint64_t address, uint64_t time_ns);
bool keep_was_missed(uint64_t address, uint64_t freed_ns);
void ledger_keep(const struct keep_event *event);
void ledger_checkpoint(void);
void ledger_checkpoint_first(void);
void ledger_forget(void);

/* context.c */
struct keep_context *keep_context_use(
	uint64_t context_id, struct keep_device *device, uint64_t time_ns);
void keep_context_touch(struct keep_context *context, uint64_t time_ns);
void keep_context_add(struct keep_context *context, struct keep_block *block);
void keep_context_remove(struct keep_block *block);
void context_keep(const struct keep_event *event);
void context_untracked(const struct keep_event *event);
void context_checkpoint(void);
/* What contexts that are repeated take of the device by themselves. */
int64_t context_taken_bytes(const struct keep_device *device);

/* pool.c */
struct keep_pool *keep_pool_of(uint64_t handle, struct keep_device *device);
void pool_keep_block(struct keep_block *block, bool add);
void pool_keep(const struct keep_event *event);
void pool_checkpoint(void);

/* space.c */
void space_keep(const struct keep_event *event);
void space_checkpoint(void);
void space_forget(void);
struct keep_mapping *keep_mapping_of(uint64_t address);
struct keep_site *keep_physical_site(const struct keep_physical *physical);
struct keep_device *keep_physical_device(const struct keep_physical *physical);
uint32_t keep_physical_kind(const struct keep_physical *physical);

/* graph.c */
void graph_keep(const struct keep_event *event);
/* Graph memory of the device came, went or was sampled. */
void graph_settle_device(struct keep_device *device);
void graph_checkpoint(void);
void graph_forget(void);

/* phase.c */
void phase_keep(const struct keep_event *event);
void phase_checkpoint(void);
void phase_forget(void);

/* host.c */
void host_keep(const struct keep_event *event);
void host_checkpoint(void);
void host_checkpoint_first(void);
void host_forget(void);

/* block.c */
struct keep_refusal_key block_refusal_key(const struct vt_rec_block_failure *given);
void block_keep(const struct keep_event *event);
void block_segment_end(struct keep_segment *segment, uint64_t address, uint64_t time_ns);
void block_checkpoint(void);
void block_checkpoint_first(void);
void block_forget(void);

/* bytes in whole units, in bytes. */
static inline uint64_t keep_rounded(uint64_t bytes, uint64_t unit)
{
	return (bytes / unit + !!(bytes % unit)) * unit;
}

static inline uint32_t keep_kind(uint64_t kind)
{
	return kind < VT_N_KINDS ? (uint32_t)kind : VT_KIND_NONE;
}

/* Kinds whose bytes count as device memory of this process. */
static inline bool keep_is_tracked(uint32_t kind)
{
	return kind == VT_KIND_LINEAR || kind == VT_KIND_ARRAY || kind == VT_KIND_POOL ||
	       kind == VT_KIND_VMM || kind == VT_KIND_GRAPH;
}

#endif

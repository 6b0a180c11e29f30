/*
 * What the memory of one traced process looked like, rebuilt record by record: devices, what is
 * live on them and who asked for it, address spaces, copies, refusals. A model can be looked at
 * between any two records; its size follows what is live and how many distinct call sites there
 * are, not the length of the trace. Nothing here prints or judges.
 */
#ifndef VRAMTRACE_MODEL_MODEL_H
#define VRAMTRACE_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/hash.h"
#include "model/phases.h"
#include "model/transfer.h"
#include "trace/tree.h"
#include "vramtrace/format.h"

/* In the place of a device ordinal. */
#define MODEL_DEVICE_UNKNOWN (-1)
#define MODEL_DEVICE_HOST    (-2)
/* More devices than any host has: a trace that names one beyond is damaged. */
#define MODEL_MAX_ORDINAL 1023

/* Taken for a device's page when the driver did not say. */
#define MODEL_PAGE_BYTES (2u << 20)
/* Requests up to this share pages; larger ones take whole pages. */
#define MODEL_SMALL_BYTES (1u << 20)
/* What these are rounded up to. */
#define MODEL_UNIT_BYTES 512u

/* One kind of memory of one device. Bytes are those asked for. */
struct model_totals {
	uint64_t live_bytes;
	uint64_t n_live;
	uint64_t peak_live_bytes;
	uint64_t n_allocs;
	uint64_t alloc_bytes;
	uint64_t n_frees;
	uint64_t free_bytes;
	uint64_t n_teardown; /* given back by the end of a context, not by a free; not in n_frees */
	uint64_t teardown_bytes;
};

/* What the driver said about a device. used_bytes includes what other processes hold. */
struct model_sample {
	bool seen;
	uint64_t time_ns;
	uint64_t free_bytes;
	uint64_t used_bytes;
};

/* What NVML said that other processes use, at the last refusal where it was asked. */
struct model_listed {
	bool seen;
	uint64_t time_ns;
	uint64_t used_bytes;
	uint64_t n_processes;
	uint64_t largest_pid; /* of the one that uses most; 0: none */
	uint64_t largest_bytes;
};

/* What a device holds for the ledgers that are counted once. */
struct model_held {
	uint64_t linear_bytes; /* pages of it */
	uint64_t array_bytes;  /* likewise; which small arrays share a page is not known, they are
				  taken  as packed */
	uint64_t pool_bytes; /* reserved by pools where the driver told, else allocated from them */
	uint64_t vmm_bytes;
	uint64_t graph_bytes; /* reserved for graphs where the driver told, else live */
};

/*
 * A device's memory at the moment of a sample, in rows that add up to it:
 * total = free + others + tracked + untracked + unexplained.
 */
struct model_account {
	bool seen;
	uint64_t time_ns;
	uint64_t total_bytes;
	uint64_t free_bytes;
	uint64_t tracked_bytes;
	struct model_held held; /* tracked_bytes in parts */
	int64_t untracked_bytes[VT_N_CAUSES];
	int64_t untracked_sum_bytes; /* their sum */
	bool context_known;   /* false: what contexts take could not be measured, and is part of
				 others */
	bool others_measured; /* false: what was in use at the first sample and not this process's
				 by any other row */
	bool pools_known;     /* of every pool the driver said what it reserves */
	bool graphs_known;
	int64_t others_bytes;
	int64_t unexplained_bytes;
};

/* How a device came to have a context, and what contexts took there. */
struct model_first_context {
	bool seen;
	uint64_t time_ns;
	uint64_t api_id;
	uint64_t stack_id; /* 0 not known */
	bool measured;
	int64_t taken_bytes; /* by all contexts so far */
	uint64_t gone_ns;    /* when the last one was destroyed; 0: it was not */
	uint64_t let_go_ns; /* last release of a last reference, by which it goes at once, but which
			       may be the end of the process; 0: none since it was made */
};

/* A device; also the host, and the bucket for memory of unknown device. */
struct model_device {
	int ordinal;	/* or MODEL_DEVICE_* */
	bool described; /* the trace has a `device` record for it */
	struct vt_text name;
	struct vt_text uuid;
	uint64_t total_bytes; /* 0 unknown */
	uint64_t page_bytes;  /* of the driver, or MODEL_PAGE_BYTES */
	struct model_totals kinds[VT_N_KINDS];
	struct model_held held;
	uint64_t small_array_bytes; /* of arrays that may share pages */
	uint64_t tracked_bytes;	    /* the sum of held: all kinds, counted once; managed and shared
				       never */
	uint64_t block_bytes;	    /* of that, handed out by allocators, see blocks.h */
	/* The peak: the most that was held; of moments with that, the one with the most handed out.
	 */
	uint64_t peak_tracked_bytes;
	uint64_t peak_block_bytes;
	uint64_t peak_time_ns;
	struct model_place_name peak_place; /* where the program was; .name.data NULL: not known */
	uint64_t peak_place_ns, peak_place_bytes; /* of the peak that this is of */
	struct model_sample last_sample;
	struct model_sample peak_sample; /* taken while tracked_bytes was at its peak */
	struct model_sample most_used;
	struct model_account account;	      /* as of last_sample */
	int64_t untracked_bytes[VT_N_CAUSES]; /* taken without being allocated, as measured; goes
						 with the last context */
	uint64_t n_untracked;
	bool others_measured;
	bool others_known; /* measured, or taken from the first sample */
	int64_t others_bytes;
	struct model_listed listed;
	uint64_t n_contexts; /* that hold memory */
	struct model_context *newest_context;
	struct model_first_context first_context;
	struct model_pool *default_pool; /* NULL: not used yet */
	struct model_pool *current_pool; /* NULL: the default one */
	bool graph_nodes_seen;
	bool graph_sampled;
	uint64_t graph_reserved_bytes; /* for graphs, as of the last sample or less after a trim */
	uint64_t graph_used_bytes;     /* of that, in use, as of the last sample */
	uint64_t n_sets;
	uint64_t set_bytes;
	uint64_t blocking_copy_ns; /* last copy on a stream that the legacy default stream waits
				      for; 0: none yet */
};

/* A site is one stack, device and kind; and, of memory that an allocator hands out, the allocator.
 */
struct model_site_key {
	uint64_t stack_id;
	int32_t device;
	uint32_t kind; /* enum vt_kind; of what an allocator hands out, that of its segment */
	uint64_t allocator_id; /* 0: memory of the driver */
};

struct model_site {
	struct model_site_key key;
	size_t index; /* in the order in which sites were first seen */
	uint64_t live_bytes;
	uint64_t n_live;
	uint64_t n_allocs;
	uint64_t alloc_bytes;
	uint64_t n_teardown;
	uint64_t teardown_bytes;
	uint64_t segment_bytes; /* live, and segments of allocators, whose own sites hold it, too */
	uint64_t n_segments;
	uint64_t as_segment_bytes; /* of its allocations, those that became segments */
	uint64_t n_as_segments;
	uint64_t alloc_ns;	 /* inside its allocations */
	struct model_part again; /* just after as much was freed; ns: in both calls */
	uint64_t first_ns;	 /* of its allocations */
	uint64_t last_ns;
	uint32_t *tids; /* distinct threads, ascending */
	size_t n_tids;
	size_t tids_room;
	uint32_t last_tid;
	/* Without segments, when the device was at its peak before the checkpoint. */
	uint64_t past_peak_bytes;
	uint64_t n_past_peak;
	struct model_totals *group; /* booked too, see model_group_sites; NULL: none */
	UT_hash_handle hh;
};

/* What an allocator held beyond its blocks when the device was at its peak before the checkpoint.
 */
struct model_past_idle {
	uint64_t allocator_id;
	int device;
	uint32_t kind;
	uint64_t n_segments;
	uint64_t bytes;
};

/* What a record did to what a site holds. */
enum model_change_how {
	MODEL_BORN,
	MODEL_FREED,
	MODEL_ENDED, /* with its context */
	MODEL_MOVED, /* the site holds more or less of what is live: an allocator's segment now, or
			none any more, or of another size */
};

struct model_change {
	struct model_site *site;
	enum model_change_how how;
	uint64_t bytes;	  /* not of MODEL_MOVED */
	uint64_t born_ns; /* when what is gone had come */
	uint64_t address; /* of what is gone; 0 not known */
};

struct model;
struct model_event;

/* Called for what happens to memory while a record is applied, in the order in which it does; see
 * events.h. */
typedef void model_listener(void *user, const struct model *model, const struct vt_record *record,
	const struct model_event *event);

/* The group of a site that was just made, or NULL. */
typedef struct model_totals *model_grouper(
	void *user, const struct model *model, const struct model_site_key *key);

struct model_segment;

/* Something live: an allocation, or physical memory behind a VMM handle. */
struct model_block {
	struct tree_node node; /* key: address, in model.live; or array handle, in model.arrays */
	uint64_t bytes;	       /* 0 not known: memory of others whose size the call does not tell */
	uint64_t time_ns;      /* when it came */
	uint64_t number;       /* no other block or mapping of the trace has it */
	struct model_device *device;
	struct model_site *site;
	struct model_pool *pool;       /* of VT_KIND_POOL */
	struct model_context *context; /* whose end takes it along; NULL: none's */
	struct model_block *next_in_context;
	struct model_block **link_in_context; /* what points to it */
	struct model_segment *segment;	      /* it is an allocator's; NULL: none's */
	uint32_t kind;			      /* enum vt_kind */
	uint32_t tid;			      /* who allocated it */
	struct model_host_use *use;	      /* of page-locked host memory, else NULL */
};

/* The block in whose place in model.live or model.arrays node is. */
static inline const struct model_block *model_block_of(const struct tree_node *node)
{
	return (const struct model_block *)(const void *)((const char *)node -
							  offsetof(struct model_block, node));
}

/* Physical memory of cuMemCreate, or somebody else's behind a handle: lives while it has references
 * or mappings. */
struct model_physical {
	uint64_t n_refs; /* over all handles */
	uint64_t n_mappings;
	struct model_block block; /* in no tree */
};

struct model_handle {
	uint64_t handle;
	uint64_t n_refs;
	struct model_physical *physical;
	UT_hash_handle hh;
};

struct model_mapping {
	struct tree_node node; /* key: address */
	uint64_t bytes;
	uint64_t number;		 /* as in model_block */
	struct model_physical *physical; /* NULL: memory that was not seen created */
	struct model_segment *segment;	 /* as in model_block */
};

/* A pool has one current handle; one that was destroyed while allocations live keeps no handle, and
 * a device's default pool has none until it is named. */
struct model_pool_key {
	uint64_t handle;
	uint64_t variant; /* 0, or what tells those apart that cannot be found by their handle */
};

/* Freed on a stream, and not known to be done. */
struct model_pending {
	uint64_t stream;
	uint64_t bytes;
};

/*
 * A pool of stream-ordered memory. What is freed on a stream is pending until the driver says that
 * the pool uses no more than what is live: at each sample, what is in use beyond that bounds what
 * can be pending, on each stream and in all. The figures are upper bounds, and known only where the
 * pool was sampled at all.
 */
struct model_pool {
	struct model_pool_key key;
	struct model_device *device;
	bool imported; /* bytes of another process */
	bool destroyed;
	bool sampled;
	uint64_t sampled_ns;
	uint64_t reserved_bytes; /* as the driver said last, or less after a trim; 0 if it never did
				  */
	uint64_t peak_reserved_bytes;
	uint64_t live_bytes; /* asked for and not freed */
	uint64_t n_live;
	uint64_t held_bytes; /* its part of the device's held.pool_bytes */
	uint64_t pending_bytes;
	struct model_pending *pending;
	size_t n_pending;
	size_t pending_room;
	bool threshold_known;
	uint64_t threshold_bytes; /* it keeps up to so much */
	uint64_t most_bytes;	  /* it may reserve, 0: no limit known */
	UT_hash_handle hh;
};

/* An allocation that a graph makes, or an address that it frees. */
struct model_graph_node {
	uint64_t address;
	uint64_t bytes;
	uint64_t stack_id;
	struct model_device *device;
	uint32_t tid;
	bool frees;
};

struct model_graph_nodes {
	struct model_graph_node *items;
	size_t n_items;
	size_t room;
};

/* Nodes of memory, of a graph that is being built or of an executable one. */
struct model_graph {
	uint64_t handle;
	struct model_graph_nodes nodes;
	UT_hash_handle hh;
};

#define MODEL_N_MIGRATIONS (VT_MIGRATE_DISCARD_PREFETCH + 1) /* enum vt_migrate_action */

/* Calls that tell managed memory where to be. */
struct model_migration {
	uint64_t n_calls;
	uint64_t bytes;
	uint64_t host_time_ns;
};

struct model_reservation {
	struct tree_node node; /* key: address */
	uint64_t bytes;
	uint64_t stack_id;
};

/* The driver refused something. One for each call, error, device, kind and stack. */
enum model_refusal {
	MODEL_REFUSED_ALLOC,
	MODEL_REFUSED_FREE,
	MODEL_REFUSED_COPY,
	MODEL_REFUSED_SET,
	MODEL_REFUSED_ADDRESS_SPACE, /* reserve, unreserve, map, unmap, access, retain */
	MODEL_REFUSED_CONTEXT,
	MODEL_REFUSED_POOL,
	MODEL_REFUSED_GRAPH,
	MODEL_REFUSED_MIGRATE,
	MODEL_REFUSED_BLOCK, /* by an allocator: its id is in the place of the entry point's */
};

struct model_failure_key {
	uint64_t stack_id;
	uint64_t api_id;
	uint64_t caller_api; /* runtime call the program made, 0 not known */
	uint64_t result;     /* CUresult */
	int32_t device;
	uint16_t refusal; /* enum model_refusal */
	uint16_t kind;	  /* enum vt_kind */
};

struct model_failure {
	struct model_failure_key key;
	uint64_t n_calls;
	uint64_t bytes;
	uint64_t largest_bytes;
	uint64_t first_ns;
	uint64_t last_ns;
	UT_hash_handle hh;
};

struct model_stack {
	uint64_t stack_id;
	uint64_t time_ns;
	uint64_t flags; /* VT_STACK_* */
	UT_hash_handle hh;
	size_t n_frames;
	size_t n_python;
	const uint64_t *frames; /* return addresses, innermost first */
	const uint64_t *python; /* as in the record, innermost first */
};

/* A code object of the Python interpreter. */
struct model_code {
	uint64_t code_id;
	uint64_t first_line;
	uint64_t line_table; /* enum vt_line_table */
	struct vt_text file;
	struct vt_text function;
	struct vt_text lines; /* the whole table */
	char *joined;	      /* what lines points to when it came in parts; else NULL */
	UT_hash_handle hh;
};

/* Code of the interpreter's evaluation loop. */
struct model_eval_range {
	uint64_t time_ns;
	uint64_t start;
	uint64_t end; /* first address after it */
};

/* The Python interpreter, and how it went with its stacks. */
struct model_python {
	bool seen;
	uint64_t version; /* PY_VERSION_HEX, 0 unknown */
	bool captured;	  /* its frames are recorded; false: reason says why not */
	struct vt_text reason;
	bool counted;
	uint64_t n_stacks[VT_N_PYTHON_OUTCOMES];
};

struct model_api {
	uint64_t api_id;
	char *name;
	UT_hash_handle hh;
};

struct model_context {
	uint64_t context_id;
	struct model_device *device; /* NULL: not known yet */
	struct model_block *blocks;
	bool holds_memory;   /* counted in device->n_contexts */
	int64_t taken_bytes; /* by itself, as measured */
	uint64_t n_retains;
	bool released; /* the last reference is gone; memory goes when the process moves on, see
			  context.c */
	UT_hash_handle hh;
};

struct model_texts {
	struct vt_text *items;
	size_t n_items;
	size_t room;
};

/* The highest or lowest that a sample told. */
struct model_extreme {
	bool seen;
	uint64_t bytes;
	uint64_t time_ns;
};

/* What the kernel said of the process and the machine. */
struct model_host_samples {
	uint64_t n;
	struct vt_rec_host_memory last;
	struct model_extreme most_resident, most_locked, most_swapped;
	struct model_extreme least_available, most_swap_used; /* of the machine */
};

/* When recording was paused: memory that came then has no stack, and copies are missing. */
struct model_pauses {
	uint64_t n;
	bool now;
	uint64_t since_ns; /* the last one */
	uint64_t total_ns; /* of those that were ended */
};

/* Hash tables are uthash heads: walk them with hh.next. Texts point into the trace. */
struct model {
	/* as the trace says them; not .seen: no such record */
	struct vt_rec_process process;
	struct vt_rec_driver driver;
	struct vt_rec_end end;
	struct vt_rec_unwind_check unwind_check;
	bool process_seen, driver_seen, end_seen, unwind_check_seen;
	struct model_texts environment; /* name, value, name, value, ... */
	struct model_texts uncovered;
	struct model_texts notes;
	struct model_texts runtimes; /* paths of the CUDA runtimes that were mapped */
	bool modules_seen;
	bool torch_mapped; /* PyTorch's CUDA libraries */
	bool hooks_active; /* a call of the driver came through the recorder */

	struct model_device *
		*devices; /* in order of ordinal as first seen; without the two below */
	size_t n_devices;
	size_t devices_room;
	size_t n_described;
	struct model_device unknown;
	struct model_device host;

	struct model_site *sites;
	struct model_site *near_sites[HASH_N_NEAR];
	struct model_change *changes; /* by the last record */
	size_t n_changes, changes_room;
	model_grouper *grouper;
	void *grouper_user;
	model_listener *listener; /* NULL: none */
	void *listener_user;
	const struct vt_record *record; /* being applied */
	struct model_failure *failures;
	struct model_copy *copies;
	struct model_stack *stacks;
	struct model_code *codes;
	struct model_eval_range *eval_ranges;
	size_t n_eval_ranges;
	size_t eval_ranges_room;
	struct model_python python;
	struct model_api *apis;
	struct model_context *contexts;
	struct model_handle *handles;
	struct model_pool *pools;
	uint64_t n_ended_pools;
	struct model_allocator *allocators;	/* see blocks.h */
	struct model_allocator *last_allocator; /* of the last report */
	struct model_piece *spare_pieces;
	struct model_wait *waits;      /* of freed pieces, by event */
	struct model_wait *open_waits; /* those whose free has not come yet */
	struct model_place *places;    /* where waits come from */
	struct model_graph *graphs;
	struct model_graph *execs; /* executable ones */
	uint64_t n_graph_launches;
	struct {
		uint64_t n_copies, copy_bytes;
		uint64_t n_sets, set_bytes;
	} captured; /* became part of a graph: not done when submitted, and in no other number */
	struct model_migration migrations[MODEL_N_MIGRATIONS];
	struct {
		uint64_t time_ns;
		uint64_t api_id;
		uint32_t tid;
	} last_migration;
	struct {
		struct model_copy *copy; /* booked there, NULL: none yet */
		uint64_t bytes;
		uint64_t first_bytes; /* of its first copy */
		uint64_t ns;
		uint64_t timed_id;
		uint32_t tid;
		bool is_close, is_through; /* is booked so */
	} last_call; /* the last copy call: more of the same batch may follow */
	struct model_timed *timed;
	struct model_thread *threads;
	struct model_thread *last_thread;
	uint64_t submit_ns; /* the shortest asynchronous call, not with pageable memory; 0: none */
	struct model_traffic traffic;
	struct model_host_ranges host_ranges;
	struct model_pinning *pinnings;
	struct model_clash clashes[MODEL_MAX_CLASHES];
	size_t n_clashes;
	struct model_freed freed[MODEL_N_FREED]; /* a ring */
	uint64_t n_freed;
	struct model_peer *peers;
	size_t n_peers;
	size_t peers_room;
	struct model_page *pages; /* pages that small blocks share */
	struct tree live;	  /* struct model_block, by address */
	struct tree arrays;	  /* struct model_block, by array handle */
	struct tree mappings;	  /* struct model_mapping, by address */
	struct tree reservations; /* struct model_reservation, by address */
	struct model_phases phases;
	struct model_host_samples host_samples;
	struct model_pauses pauses;
	uint64_t reserved_bytes; /* of address space */

	/* Of a bounded trace: what came before is known from a checkpoint. */
	uint64_t part;	       /* number of the oldest part that is there; 0: all of it is */
	uint64_t kept_from_ns; /* from when on single records are there; 0: from the beginning */
	struct vt_rec_stretch *stretches; /* the timeline before, in order for each device */
	size_t n_stretches;
	size_t stretches_room;
	struct model_past_idle *past_idle;
	size_t n_past_idle;
	size_t past_idle_room;

	uint64_t n_ranges; /* blocks and mappings so far */
	uint64_t first_ns; /* time of the first and last event */
	uint64_t last_ns;
	uint64_t n_events; /* records with a time of their own, from alloc on */
	uint64_t n_by_record[VT_N_RECORDS];
	uint64_t n_unknown_frees; /* of addresses and handles not seen allocated */
	uint64_t n_missed_frees;  /* an address was given out again while it was live here */
};

/* An empty model; model_free releases it. */
struct model *model_new(void);
void model_free(struct model *model);

/* Has what the sites hold booked in groups as well: grouper is called for each site when it is new,
 * and the books it returns, which stay its own, must live as long as the model. For an empty model.
 */
void model_group_sites(struct model *model, model_grouper *grouper, void *user);

/* Has listener called for every event. For an empty model. */
void model_listen(struct model *model, model_listener *listener, void *user);

/* Takes in the next record. Records must come in the order of time, as a reader gives them; texts
 * of record must stay valid as long as the model. Any record is taken: what makes no sense is
 * counted or ignored. */
void model_apply(struct model *model, const struct vt_record *record);

/* Whether a device may hold more after record than before. */
bool model_may_raise(const struct vt_record *record);

/* How long recording was paused, up to the last record. */
uint64_t model_paused_ns(const struct model *model);

/* Swap of the machine that is in use. */
uint64_t model_swap_used(const struct vt_rec_host_memory *sample);
/* True for records of single moments of the program, which have a time of their own; not for what
 * describes it, or sums up what came before. */
static inline bool model_is_event(const struct vt_record *record)
{
	return (record->kind >= VT_REC_alloc && record->kind <= VT_REC_graph_pool &&
		       record->kind != VT_REC_figure && record->kind != VT_REC_past &&
		       record->kind != VT_REC_stretch) ||
	       record->kind == VT_REC_copy_time || record->kind == VT_REC_peer_access;
}

/* True for records of a checkpoint that sum up what came before. */
static inline bool model_is_summary(const struct vt_record *record)
{
	return record->kind == VT_REC_checkpoint || record->kind == VT_REC_figure ||
	       record->kind == VT_REC_past || record->kind == VT_REC_stretch;
}

/* Whether what the memory of a device looked like at this moment is no longer in the trace. */
static inline bool model_is_past(const struct model *model, uint64_t time_ns)
{
	return time_ns < model->kept_from_ns;
}

/* The device with this ordinal, the host or the unknown bucket for MODEL_DEVICE_*; NULL when none
 * was seen. Borrowed. */
const struct model_device *model_device_find(const struct model *model, int ordinal);

/* The stack with this id; NULL when the trace lost it, and for 0. Borrowed. */
const struct model_stack *model_stack_find(const struct model *model, uint64_t stack_id);

/* The code object with this id; NULL when the trace lost it. Borrowed. */
const struct model_code *model_code_find(const struct model *model, uint64_t code_id);

/* Name of an entry point; NULL when unknown. Borrowed. */
const char *model_api_name(const struct model *model, uint64_t api_id);

/* Name of the call that the program made: the runtime's where it is known, else the driver's. NULL
 * when unknown. Borrowed. */
const char *model_call_name(const struct model *model, uint64_t api_id, uint64_t caller_api);

/* Value of a recorded environment variable; .data is NULL when it was not set. Borrowed. */
struct vt_text model_environment_get(const struct model *model, const char *name);

/* Whether both addresses lie in one reserved range of addresses, or none is known for them. */
bool model_in_one_reservation(const struct model *model, uint64_t a, uint64_t b);

/* True when text is among texts. */
bool model_texts_has(const struct model_texts *texts, struct vt_text text);

/* True for kinds whose bytes count as device memory of this process. */
bool model_kind_tracked(uint32_t kind);

/* Names as in the JSON: "linear", "h2d", "pageable"; "unknown" for numbers that have none, NULL for
 * MODEL_HOST_NONE. */
const char *model_kind_name(uint64_t kind);
const char *model_direction_name(uint64_t direction);
const char *model_host_kind_name(uint32_t host_kind);
const char *model_cause_name(uint64_t cause);
const char *model_object_name(uint64_t object);
const char *model_migration_name(uint64_t action);
const char *model_python_outcome_name(uint64_t outcome);

#endif

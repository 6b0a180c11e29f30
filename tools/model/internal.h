/* What the files of the model share. */
#ifndef VRAMTRACE_MODEL_INTERNAL_H
#define VRAMTRACE_MODEL_INTERNAL_H

#include "model/model.h"

/* The struct of this type whose member is at pointer. */
#define container(pointer, type, member)                                                           \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* The device to book memory on that a record says is on `ordinal`; made when new. */
struct model_device *model_device_of(struct model *model, int64_t ordinal);

/* The site, made when new. */
struct model_site *model_site_of(
	struct model *model, uint64_t stack_id, const struct model_device *device, uint32_t kind);

/* The site of what an allocator hands out, made when new. In no group. */
struct model_site *model_block_site_of(struct model *model, uint64_t stack_id,
	const struct model_device *device, uint32_t kind, uint64_t allocator_id);

/* A call that failed. */
void model_note_failure(
	struct model *model, const struct model_failure_key *key, uint64_t bytes, uint64_t time_ns);

/* Where an allocation is recorded. */
struct place_in_trace {
	uint64_t stack_id;
	uint64_t time_ns;
	uint32_t tid;
};

/* Something was freed that is not known to live. */
void model_note_unknown_free(struct model *model, uint64_t time_ns);

/* Calls that failed before a checkpoint. */
void model_note_failures(
	struct model *model, const struct model_failure_key *key, const struct vt_rec_past *given);

/* The allocator, made when new. */
struct model_allocator *model_allocator_of(struct model *model, uint64_t allocator_id);

/* One more allocation at site. */
void site_add(struct model *model, struct model_site *site, uint64_t bytes,
	const struct place_in_trace *place);

/* One that was live, came at born_ns and is at address (0 not known) is gone; not MODEL_BORN. */
void site_remove(struct model *model, struct model_site *site, enum model_change_how how,
	uint64_t bytes, uint64_t born_ns, uint64_t address);

/* What site holds has changed otherwise. */
void site_moved(struct model *model, struct model_site *site);

/* Books block, of which bytes, kind, device and, if it has one, pool are set, as live. Does not
 * enter it into any tree. */
void ledger_add(struct model *model, struct model_block *block, const struct place_in_trace *place);

/* Takes block off the books: freed, or ended with its context. */
void ledger_remove(struct model *model, struct model_block *block, bool teardown);

/* A live block turns out to have more bytes, of a kind that is not counted. */
void ledger_grow(struct model *model, struct model_block *block, uint64_t bytes);

/* A new block at an address, or an array with a handle, that must not be live yet; booked by
 * ledger_add. Whatever the model still holds there is taken off the books first. */
struct model_block *ledger_new_block(struct model *model, uint32_t kind, uint64_t address);

/* The live block that contains address, or NULL; and the one that starts there. */
struct model_block *ledger_block_at(const struct model *model, uint64_t address);
struct model_block *ledger_block_from(const struct model *model, uint64_t address);

/* The live array with this handle, or NULL. */
struct model_block *ledger_array(const struct model *model, uint64_t handle);

/* Takes block off the books and frees it. */
void ledger_end_block(struct model *model, struct model_block *block, bool teardown);

/* *part, a member of device->held, has become `bytes`. */
void ledger_hold(struct model_device *device, uint64_t *part, uint64_t bytes);

/* Something may have grown: is this the peak? */
void ledger_note_peak(struct model_device *device, uint64_t time_ns);

/* Releases every block. */
void ledger_release(struct model *model);

/* Pages: a block of linear memory or an array comes or goes. */
void pages_book(struct model *model, struct model_block *block, bool add);
void pages_release(struct model *model);

/* The records of each file. */
void ledger_apply_alloc(struct model *model, const struct vt_record *record);
void ledger_apply_free(struct model *model, const struct vt_record *record);
void vmm_apply(struct model *model, const struct vt_record *record);
void vmm_release(struct model *model);
void copy_apply(struct model *model, const struct vt_record *record);
void copy_apply_set(struct model *model, const struct vt_record *record);
void copy_apply_migrate(struct model *model, const struct vt_record *record);
void traffic_apply_copy_time(struct model *model, const struct vt_record *record);
void traffic_apply_peer_access(struct model *model, const struct vt_rec_peer_access *given);
void context_apply(struct model *model, const struct vt_record *record);
void pool_apply(struct model *model, const struct vt_record *record);
void graph_apply(struct model *model, const struct vt_record *record);
void graph_release(struct model *model);
void checkpoint_apply(struct model *model, const struct vt_record *record);
void account_apply(struct model *model, const struct vt_record *record);
void stack_apply(struct model *model, const struct vt_record *record);
void stack_release(struct model *model);
void blocks_apply(struct model *model, const struct vt_record *record);

void phases_apply(struct model *model, const struct vt_record *record);
void host_apply(struct model *model, const struct vt_record *record);

/* The record was taken in: books it in the phases that are open. */
void phases_note(struct model *model, const struct vt_record *record);
void phases_release(struct model *model);

/* Releases allocators, their segments and pieces. */
void blocks_release(struct model *model);

/* Memory of the driver is gone that was an allocator's. */
void segment_end(struct model *model, struct model_segment *segment);

/* A copy was made; it begins a call, or is more of the last one. */
void traffic_note_copy(
	struct model *model, const struct model_copy *copy, const struct vt_rec_copy *given);
void traffic_begin_call(
	struct model *model, struct model_copy *copy, const struct vt_record *record);
void traffic_continue_call(struct model *model, const struct vt_rec_copy *given);

/* Whether one of the devices may use the memory of the other. */
bool traffic_has_peer_access(const struct model *model, int device, int peer);

/* Host memory at address was copied from, or to. */
void host_ranges_note_up(
	struct model *model, struct model_copy *copy, uint64_t address, uint64_t bytes);
void host_ranges_note_down(
	struct model *model, struct model_copy *copy, uint64_t address, uint64_t bytes);

/* Host memory is no more what it was. */
void host_ranges_end(struct model *model, uint64_t address, uint64_t bytes);
void host_ranges_release(struct model *model);

/* A block was booked; nothing is done unless it is page-locked host memory. It is copied from or to
 * at address (block may be NULL), and about to be freed. */
void host_use_begin(
	struct model *model, struct model_block *block, const struct vt_rec_alloc *alloc);
void host_use_note_copy(struct model *model, struct model_block *block, struct model_copy *copy,
	const struct vt_rec_copy *given, uint64_t address);
void host_use_end(struct model *model, struct model_block *block, const struct vt_rec_free *given);

/* Something could not be allocated, or registered. */
void host_use_note_refused(struct model *model, const struct vt_rec_failure *given);

/* A block was booked, or is about to be freed. */
void again_note_alloc(
	struct model *model, const struct model_block *block, const struct vt_rec_alloc *given);
void again_note_free(
	struct model *model, const struct model_block *block, const struct vt_rec_free *given);

/* Memory is being obtained in context_id, on device where that is known: if the context had been
 * let go, what it held is gone by now. Returns it, NULL for 0. */
struct model_context *context_use(
	struct model *model, uint64_t context_id, struct model_device *device);

/* If context (NULL allowed) had been let go, it is gone by now. */
void context_touch(struct model *model, struct model_context *context);

/* Enters block into what context, which may be NULL, holds; and takes it out of whatever it is in.
 */
void context_add_block(struct model_context *context, struct model_block *block);
void context_remove_block(struct model_block *block);

/* The pool an allocation comes from; made when new. handle 0: the device's current pool. */
struct model_pool *pool_of(struct model *model, uint64_t handle, struct model_device *device);

/* A block of a pool comes, or goes. */
void pool_book(struct model *model, struct model_block *block, bool add);

/* A block of a pool is about to be freed on a stream. */
void pool_note_pending(struct model_pool *pool, uint64_t stream, uint64_t bytes);

void pool_release(struct model_pool *pool);

/* Graph memory of the device came, went or was sampled. */
void graph_settle(struct model_device *device);

/* The mapping that contains address, or NULL. */
const struct model_mapping *vmm_mapping_at(const struct model *model, uint64_t address);

/* The same to change, and the mapping behind one. */
struct model_mapping *vmm_mapping_of(const struct model *model, uint64_t address);
struct model_mapping *vmm_mapping_next(
	const struct model *model, const struct model_mapping *mapping);

/* a + b, or the greatest number there is. */
static inline uint64_t add_capped(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* a + b and a - b; what does not fit wraps around. */
static inline int64_t add_wrapped(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t subtract_wrapped(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* bytes in whole units, in bytes. */
static inline uint64_t rounded_up(uint64_t bytes, uint64_t unit)
{
	return (bytes / unit + !!(bytes % unit)) * unit;
}

/* enum vt_kind of a record; what this version does not know is of no kind. */
static inline uint32_t kind_from(uint64_t kind)
{
	return kind < VT_N_KINDS ? (uint32_t)kind : VT_KIND_NONE;
}

#endif

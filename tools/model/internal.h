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

/* Books block, of which bytes, kind, device and context_id are set, as live. Does not enter it into
 * any tree. */
void ledger_add(struct model *model, struct model_block *block, uint64_t stack_id, uint64_t time_ns,
	uint32_t tid);

/* Takes block off the books: freed, or ended with its context. */
void ledger_remove(struct model *model, struct model_block *block, bool teardown);

/* The live block that contains address, or NULL. */
struct model_block *ledger_block_at(const struct model *model, uint64_t address);

/* Drops every page count. */
void ledger_release(struct model *model);

/* A call that failed. device as in a record. */
void model_note_failure(struct model *model, enum model_refusal refusal, uint64_t api_id,
	uint32_t kind, int device, uint64_t stack_id, uint64_t result, uint64_t bytes,
	uint64_t time_ns);

/* The records of each file. */
void ledger_apply_alloc(struct model *model, const struct vt_record *record);
void ledger_apply_free(struct model *model, const struct vt_record *record);
void vmm_apply(struct model *model, const struct vt_record *record);
void vmm_release(struct model *model);
void copy_apply(struct model *model, const struct vt_record *record);
void copy_apply_set(struct model *model, const struct vt_record *record);
void context_apply(struct model *model, const struct vt_record *record);

/* Memory is being obtained in context_id: if it had been let go, what it held is gone by now. */
void context_touch(struct model *model, uint64_t context_id);

/* The mapping that contains address, or NULL. */
const struct model_mapping *vmm_mapping_at(const struct model *model, uint64_t address);

/* a + b, or the greatest number there is. */
static inline uint64_t add_capped(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

#endif

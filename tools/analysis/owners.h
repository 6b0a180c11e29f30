/* Who took how much: device memory by the owner of the code that asked for it (PyTorch, NCCL, the
 * program itself), over a whole trace. */
#ifndef VRAMTRACE_ANALYSIS_OWNERS_H
#define VRAMTRACE_ANALYSIS_OWNERS_H

#include "model/model.h"

/* How owners are told: label gives the owner of a stack of the model, NULL when the stack is not
 * known; what it returns must live as long as the list. */
struct owner_source {
	const char *(*label)(void *user, const struct model *model, uint64_t stack_id);
	void *user;
};

struct owner_row {
	int device;	   /* ordinal or MODEL_DEVICE_UNKNOWN */
	const char *owner; /* NULL: of stacks that were not recorded */
	struct model_totals totals;
};

/* All zero is an empty list; release it with owner_list_release. */
struct owner_list {
	struct owner_row **rows;
	size_t n_rows;
	size_t room;
};

/* The books for a site of model, made when its owner is new on the device; NULL for memory that is
 * no tracked memory of a device. */
struct model_totals *owner_list_group(struct owner_list *list, const struct owner_source *source,
	const struct model *model, const struct model_site_key *key);

/* Sorts: by device, then the highest peak first. */
void owner_list_sort(struct owner_list *list);

void owner_list_release(struct owner_list *list);

#endif

/* Allocators that hand out parts of what they have from the driver, as text. */
#ifndef VRAMTRACE_OUTPUT_BLOCKS_TEXT_H
#define VRAMTRACE_OUTPUT_BLOCKS_TEXT_H

#include "output/report.h"

/* Name of an allocator into buffer, cut to size: "torch", or as the program calls it. */
void blocks_name(const struct model *model, uint64_t allocator_id, char *buffer, size_t size);

/* Whose the memory is that no block holds: as in the JSON, NULL unless it is PyTorch's. */
const char *blocks_idle_owner(const struct model *model, uint64_t allocator_id);

/* Lines of the one-screen report: what each allocator has handed out of what. */
void blocks_put(const struct style *style, const struct model *model);

/* Lines of "NOT SEEN": differences between the sums told and those of the replay, and what of
 * PyTorch is not visible. *heading becomes NULL with the first line. */
void blocks_put_not_seen(
	const struct style *style, const struct model *model, const char **heading);

#endif

/* Stacks for the formats of other viewers: frames with names that are fit for any of them. */
#ifndef VRAMTRACE_OUTPUT_EXPORT_STACK_H
#define VRAMTRACE_OUTPUT_EXPORT_STACK_H

#include "analysis/export_sites.h"
#include "output/stack.h"

/* A name without control characters, in valid UTF-8. All zero is an empty one; release it with
 * export_name_release. */
struct export_name {
	char *text;
	size_t bytes; /* without the zero byte */
	size_t room;
};

/* Sets name to the text, NULL: "". What is not UTF-8 becomes U+FFFD, control characters '?'.
 * Returns name->text. */
const char *export_name_set(struct export_name *name, const char *text);
void export_name_release(struct export_name *name);

/* Frames that stand for what has no stack. All zero is an empty list. */
struct export_labels {
	struct export_label *first;
};

void export_labels_release(struct export_labels *labels);

/* A stack, innermost frame first. All zero is an empty one; release it with export_stack_release.
 */
struct export_stack {
	const struct symbol_frame **frames;
	size_t n_frames;
	size_t room;
};

/* The frames of a stack, without the interpreter's own unless all are to be shown; for one that was
 * not recorded a frame that says so. There is always one. The frames live as long as the symbols
 * and labels. */
void export_stack_get(struct export_stack *stack, struct export_labels *labels,
	const struct stack_source *source, uint64_t stack_id);

/* The same of a site: what an allocator keeps has a frame that says so. */
void export_stack_of_site(struct export_stack *stack, struct export_labels *labels,
	const struct stack_source *source, const struct export_site *site);

void export_stack_release(struct export_stack *stack);

/* The function of a frame, else "module+0x12" or the like. Never empty. Returns name->text. */
const char *export_frame_name(
	struct export_name *name, const struct show *show, const struct symbol_frame *frame);

/* The file of a frame, NULL when it is not known; as show has it for documents. */
const char *export_frame_file(
	struct export_name *name, const struct show *show, const struct symbol_frame *frame);

/* What a viewer may group by. */
const char *export_site_owner(const struct stack_source *source, const struct export_site *site);

/* "driver", or the allocator: "torch", "torch, kept". */
const char *export_site_layer(struct export_name *name, const struct stack_source *source,
	const struct export_site *site);

#endif

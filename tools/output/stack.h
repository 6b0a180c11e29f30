/* Call stacks as text and as JSON, and in one line. */
#ifndef VRAMTRACE_OUTPUT_STACK_H
#define VRAMTRACE_OUTPUT_STACK_H

#include "model/model.h"
#include "output/json.h"
#include "output/show.h"
#include "output/style.h"
#include "symbol/stack.h"
#include "symbol/symbol.h"

/* Where stacks are defined and what resolves them, both borrowed; and what to show of them. */
struct stack_source {
	const struct model *model;
	struct symbol_table *symbols;
	struct show show;
};

/* Owner label as in the JSON; NULL when the stack was not recorded. Valid as long as the symbols.
 */
const char *stack_owner(const struct stack_source *source, uint64_t stack_id);

/* One line for the stack into buffer, cut to size: the frame that a user would call theirs (see
 * symbol_stack_headline), and before it the function that called it: "caller > function file:line",
 * in Python "caller:line > function file:line". "function (module)" or "module+0x12" where no more
 * is known, "(no stack recorded)" where nothing is. */
void stack_label(const struct stack_source *source, uint64_t stack_id, char *buffer, size_t size);

/* Calls see with the function, the source file and the module of each frame, as far as they are
 * known, until it returns false. */
void stack_each_name(const struct stack_source *source, uint64_t stack_id,
	bool (*see)(void *user, const char *name), void *user);

/* How many of the model's objects hold a CUDA runtime of their own: those in which a call to the
 * driver came from code of the runtime, though they are not the runtime's file. */
size_t stack_count_static_runtimes(const struct stack_source *source);

/* Prints the frames, one a line, each begun with `indent` spaces; without the interpreter's own,
 * and without most of the middle of a long stack, unless all frames are to be shown. */
void stack_put(const struct style *style, const struct stack_source *source, uint64_t stack_id,
	unsigned int indent);

/* Prints a text that is equal for the same stack of another run: names and lines where they are
 * known, else modules and offsets. */
void stack_put_key(FILE *out, const struct stack_source *source, uint64_t stack_id);

/* Prints the native frames as compute-sanitizer does, one a line. */
void stack_put_host_frames(FILE *out, const struct stack_source *source, uint64_t stack_id);

/* One frame, as an object of an open array. */
void stack_frame_json(struct json *json, const struct show *show, const struct symbol_call *call);

/* Keys "owner", "stack", with all frames, and "stack_missing", why there may be more ("depth",
 * "unwind_info"), of the open object; the last two null when the stack was not recorded. In a
 * document that has a table of stacks, "stack" is a number. */
void stack_json(struct json *json, const struct stack_source *source, uint64_t stack_id);

#endif

#include "output/stack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/memory.h"
#include "output/format.h"
#include "output/stack_table.h"
#include "symbol/stack.h"

/* A stack of more frames than this is folded, all but its innermost and outermost ones and those
 * that name it. */
#define N_UNFOLDED  24u
#define N_INNERMOST 12u
#define N_OUTERMOST 6u

/* A C++ function with all its types can be longer than a screen. */
#define FUNCTION_COLUMNS 100u

const char *stack_owner(const struct stack_source *source, uint64_t stack_id)
{
	const struct model_stack *stack = model_stack_find(source->model, stack_id);

	return stack ? symbol_stack_owner(source->symbols, source->model, stack) : NULL;
}

void stack_each_name(const struct stack_source *source, uint64_t stack_id,
	bool (*see)(void *user, const char *name), void *user)
{
	const struct model_stack *given = model_stack_find(source->model, stack_id);
	const struct symbol_stack *stack =
		given ? symbol_stack_get(source->symbols, source->model, given) : NULL;

	for (size_t i = 0; stack && i < stack->n_calls; i++) {
		const struct symbol_frame *frame = stack->calls[i].frame;
		const char *const names[] = {frame->function, frame->file, frame->module};

		for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
			if (names[k] && !see(user, names[k]))
				return;
	}
}

/* The module of a frame that is the runtime's code in somebody else's file, or NULL. */
static const char *static_runtime(const struct symbol_frame *frame)
{
	bool inside = frame->module_name && strncmp(frame->module_name, "libcudart", 9) &&
		      strncmp(frame->module_name, "libvramtrace", 12) && symbol_is_runtime(frame);

	return inside ? frame->module : NULL;
}

size_t stack_count_static_runtimes(const struct stack_source *source)
{
	const char *modules[16];
	const struct symbol_frame *frames;
	size_t n_modules = 0;

	for (const struct model_stack *stack = source->model->stacks; stack;
		stack = stack->hh.next) {
		const char *module = NULL;
		size_t n = stack->n_frames ? symbol_table_resolve(source->symbols, stack->frames[0],
						     stack->time_ns, &frames)
					   : 0;
		size_t known = 0;

		for (size_t i = 0; i < n && !module; i++)
			module = static_runtime(&frames[i]);
		while (module && known < n_modules && strcmp(modules[known], module))
			known++;
		if (module && known == n_modules && n_modules < sizeof(modules) / sizeof(*modules))
			modules[n_modules++] = module;
	}
	return n_modules;
}

/* Where a frame is, when its file is known. False if not. */
static bool put_line(
	const struct show *show, const struct symbol_frame *frame, char *buffer, size_t size)
{
	const char *file = show_frame_path(show, frame->file);

	if (!file || !(frame->line || frame->python))
		return false;
	if (frame->line)
		snprintf(buffer, size, "%s:%u", file, frame->line);
	else
		snprintf(buffer, size, "%s", file);
	return true;
}

static void frame_label(
	const struct show *show, const struct symbol_frame *frame, char *buffer, size_t size)
{
	char line[512];

	if (frame->function && put_line(show, frame, line, sizeof(line)))
		snprintf(buffer, size, "%s %s", frame->function, line);
	else if (frame->function && frame->module)
		snprintf(buffer, size, "%s (%s)", frame->function,
			show_frame_path(show, frame->module));
	else if (frame->function)
		snprintf(buffer, size, "%s", frame->function);
	else if (frame->module)
		snprintf(buffer, size, "%s+0x%" PRIx64, show_frame_path(show, frame->module),
			frame->offset);
	else if (frame->python)
		snprintf(buffer, size, "(Python code that was not recorded)");
	else
		snprintf(buffer, size, "0x%" PRIx64, frame->address);
}

/* In Python, the name of a function says little without its line: "<lambda>". */
static void caller_label(const struct show *show, const struct symbol_frame *caller,
	const struct symbol_frame *frame, char *buffer, size_t size)
{
	if (caller->python && caller->line && caller->file && frame->file &&
		!strcmp(caller->file, frame->file))
		snprintf(buffer, size, "%s:%u", caller->function, caller->line);
	else if (caller->python)
		frame_label(show, caller, buffer, size);
	else
		snprintf(buffer, size, "%s", caller->function);
}

void stack_label(const struct stack_source *source, uint64_t stack_id, char *buffer, size_t size)
{
	const struct model_stack *stack = model_stack_find(source->model, stack_id);
	const struct symbol_frame *caller, *frame;
	char inner[1024], outer[1024];

	frame = stack ? symbol_stack_headline(source->symbols, source->model, stack, &caller)
		      : NULL;
	if (!frame) {
		snprintf(buffer, size, "(no stack recorded)");
		return;
	}
	frame_label(&source->show, frame, inner, sizeof(inner));
	if (caller && caller->function) {
		caller_label(&source->show, caller, frame, outer, sizeof(outer));
		snprintf(buffer, size, "%s > %s", outer, inner);
	} else {
		snprintf(buffer, size, "%s", inner);
	}
}

static void put_where(
	const struct style *style, const struct show *show, const struct symbol_frame *frame)
{
	char where[512];

	if (put_line(show, frame, where, sizeof(where)))
		;
	else if (frame->module)
		snprintf(where, sizeof(where), "%s+0x%" PRIx64,
			show_frame_path(show, frame->module), frame->offset);
	else if (frame->python)
		snprintf(where, sizeof(where), "(Python code that was not recorded)");
	else
		snprintf(where, sizeof(where), "0x%" PRIx64 " (in no file)", frame->address);
	style_switch(style, STYLE_DIM);
	format_put_text(style->out, (struct vt_text){where, strlen(where)});
	style_switch(style, STYLE_PLAIN);
}

static void put_frame(const struct style *style, const struct show *show,
	const struct symbol_frame *frame, size_t number, unsigned int indent)
{
	fprintf(style->out, "%*s#%-2zu ", (int)indent, "", number);
	if (frame->function) {
		if (show->all_frames)
			format_put_text(style->out,
				(struct vt_text){frame->function, strlen(frame->function)});
		else
			style_put_cut(style, frame->function, FUNCTION_COLUMNS, false);
		fputs("  ", style->out);
	}
	put_where(style, show, frame);
	fputc('\n', style->out);
}

/* What is printed of a stack. */
struct visible {
	const struct symbol_frame **frames;
	size_t n_frames;
	size_t headline; /* indices; n_frames: it is not there */
	size_t caller;
};

/* The first place of frame from start on. */
static size_t place_of(
	const struct visible *visible, size_t start, const struct symbol_frame *frame)
{
	size_t i = start;

	while (i < visible->n_frames && visible->frames[i] != frame)
		i++;
	return i;
}

static void make_visible(struct visible *visible, const struct stack_source *source,
	const struct model_stack *given, const struct symbol_stack *stack)
{
	const struct symbol_frame *caller,
		*headline = symbol_stack_headline(source->symbols, source->model, given, &caller);

	*visible = (struct visible){.frames = memory_new(stack->n_calls, sizeof(*visible->frames))};
	for (size_t i = 0; i < stack->n_calls; i++)
		if (source->show.all_frames || !stack->calls[i].internal)
			visible->frames[visible->n_frames++] = stack->calls[i].frame;
	visible->headline = place_of(visible, 0, headline);
	visible->caller = place_of(visible, visible->headline + 1, caller);
}

static bool is_folded(const struct visible *visible, size_t i)
{
	return visible->n_frames > N_UNFOLDED && i >= N_INNERMOST &&
	       i < visible->n_frames - N_OUTERMOST && i != visible->headline &&
	       i != visible->caller;
}

static void put_visible(const struct style *style, const struct show *show,
	const struct visible *visible, unsigned int indent)
{
	for (size_t i = 0; i < visible->n_frames;) {
		size_t n = 0;

		while (!show->all_frames && is_folded(visible, i + n))
			n++;
		if (n > 1) {
			fprintf(style->out, "%*s%s %zu more frames (--all-frames)\n", (int)indent,
				"", style->ascii ? "..." : "\u2026", n);
			i += n;
		} else {
			put_frame(style, show, visible->frames[i], i, indent);
			i++;
		}
	}
}

void stack_put(const struct style *style, const struct stack_source *source, uint64_t stack_id,
	unsigned int indent)
{
	const struct model_stack *given = model_stack_find(source->model, stack_id);
	const struct symbol_stack *stack;
	struct visible visible;

	if (!given || !(given->n_frames + given->n_python)) {
		fprintf(style->out, "%*s%s\n", (int)indent, "",
			stack_id ? "(stack not recorded)" : "(no stack recorded)");
		return;
	}
	stack = symbol_stack_get(source->symbols, source->model, given);
	make_visible(&visible, source, given, stack);
	put_visible(style, &source->show, &visible, indent);
	if (stack->cut)
		fprintf(style->out, "%*s(frames further out were not kept: run --depth)\n",
			(int)indent, "");
	if (stack->gap)
		fprintf(style->out,
			"%*s(native frames may be missing: some code here has no unwind "
			"information)\n",
			(int)indent, "");
	free(visible.frames);
}

void stack_put_key(FILE *out, const struct stack_source *source, uint64_t stack_id)
{
	const struct model_stack *given = model_stack_find(source->model, stack_id);
	const struct symbol_stack *stack =
		given ? symbol_stack_get(source->symbols, source->model, given) : NULL;

	for (size_t i = 0; stack && i < stack->n_calls; i++) {
		const struct symbol_frame *frame = stack->calls[i].frame;

		if (frame->function && frame->line)
			fprintf(out, "%s %s:%u\n", frame->function, frame->file ? frame->file : "",
				frame->line);
		else if (frame->module_name)
			fprintf(out, "%s+%" PRIx64 "\n", frame->module_name, frame->offset);
		else
			fprintf(out, "%s\n", frame->function ? frame->function : "?");
	}
}

void stack_put_host_frames(FILE *out, const struct stack_source *source, uint64_t stack_id)
{
	const struct model_stack *given = model_stack_find(source->model, stack_id);
	const struct symbol_stack *stack =
		given ? symbol_stack_get(source->symbols, source->model, given) : NULL;

	for (size_t i = 0; stack && i < stack->n_calls; i++) {
		const struct symbol_frame *frame = stack->calls[i].frame;
		const char *function = frame->function ? frame->function : "";
		const char *module = show_frame_path(&source->show, frame->module);
		char line[512];

		fputs("=========     Host Frame: ", out);
		format_put_text(out, (struct vt_text){function, strlen(function)});
		if (put_line(&source->show, frame, line, sizeof(line))) {
			fputs(" in ", out);
			format_put_text(out, (struct vt_text){line, strlen(line)});
		}
		if (!frame->python)
			fprintf(out, " [0x%" PRIx64 "]", frame->offset);
		if (module) {
			fputs(" in ", out);
			format_put_text(out, (struct vt_text){module, strlen(module)});
		}
		fputc('\n', out);
	}
}

void stack_frame_json(struct json *json, const struct show *show, const struct symbol_call *call)
{
	const struct symbol_frame *frame = call->frame;

	json_open(json, NULL, '{');
	json_string(json, "kind", frame->python ? "python" : "native");
	json_string(json, "function", frame->function);
	json_string(json, "file", show_path(show, frame->file));
	json_number_or_null(json, "line", frame->line != 0, frame->line);
	json_string(json, "module", show_path(show, frame->module));
	json_number_or_null(json, "offset", frame->module != NULL, frame->offset);
	if (frame->python)
		json_null(json, "address");
	else
		json_hex(json, "address", frame->address);
	json_bool(json, "internal", call->internal);
	json_close(json, '}');
}

static void put_frames(
	struct json *json, const struct stack_source *source, const struct symbol_stack *stack)
{
	json_open(json, "stack", '[');
	for (size_t i = 0; i < stack->n_calls; i++)
		stack_frame_json(json, &source->show, &stack->calls[i]);
	json_close(json, ']');
}

void stack_json(struct json *json, const struct stack_source *source, uint64_t stack_id)
{
	const struct model_stack *given = model_stack_find(source->model, stack_id);
	const struct symbol_stack *stack;

	json_string(json, "owner", stack_owner(source, stack_id));
	if (!given) {
		json_null(json, "stack");
		json_null(json, "stack_missing");
		return;
	}
	stack = symbol_stack_get(source->symbols, source->model, given);
	if (json->stacks)
		json_number(json, "stack", stack_table_number(json->stacks, source, stack_id));
	else
		put_frames(json, source, stack);
	json_open(json, "stack_missing", '[');
	if (stack->cut)
		json_string(json, NULL, "depth");
	if (stack->gap)
		json_string(json, NULL, "unwind_info");
	json_close(json, ']');
}

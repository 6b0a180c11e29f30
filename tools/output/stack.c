#include "output/stack.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "output/format.h"

static const char *owner_of(
	const struct stack_source *source, const struct model_stack *stack, size_t first, size_t n)
{
	return symbol_owner(source->symbols, stack->frames + first, n, stack->time_ns);
}

const char *stack_owner(const struct stack_source *source, uint64_t stack_id)
{
	const struct model_stack *stack = model_stack_find(source->model, stack_id);

	return stack ? owner_of(source, stack, 0, stack->n_frames) : NULL;
}

static bool starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

/* The CUDA runtime may be linked into the program itself, where only names tell it apart. */
static bool is_runtime(const struct symbol_frame *frame)
{
	const char *name = frame->function;

	if (!name)
		return false;
	if (starts_with(name, "cudart::") || starts_with(name, "__cudart") ||
		starts_with(name, "libcudart_static"))
		return true;
	return starts_with(name, "cuda") && isupper((unsigned char)name[4]);
}

/* Without its Python frames, an interpreter's frame says less than the library below it. */
static bool is_interpreter(const struct symbol_frame *frame)
{
	return frame->module_name && (starts_with(frame->module_name, "python") ||
					     starts_with(frame->module_name, "libpython"));
}

/* Code of no library is owned by its own file. */
static bool is_users(const struct symbol_frame *frame, const char *owner)
{
	return frame->module_name && !strcmp(owner, frame->module_name) && !is_interpreter(frame) &&
	       !(frame->function && !strcmp(frame->function, "_start"));
}

/* The frame to show of a stack, and the user's frame that called it: NULL when there is none. */
static const struct symbol_frame *user_frame(
	const struct stack_source *source, uint64_t stack_id, const struct symbol_frame **caller)
{
	const struct model_stack *stack = model_stack_find(source->model, stack_id);
	const struct symbol_frame *innermost = NULL, *outside = NULL, *users = NULL, *frames;
	size_t n_frames = 0;

	*caller = NULL;
	for (size_t i = 0; stack && i < stack->n_frames; i++) {
		const char *owner = owner_of(source, stack, i, 1);
		size_t n = symbol_table_resolve(
			source->symbols, stack->frames[i], stack->time_ns, &frames);

		for (size_t k = 0; k < n; k++) {
			const struct symbol_frame *frame = &frames[k];

			if (!n_frames++)
				innermost = frame;
			if (!strcmp(owner, "cuda") || is_runtime(frame))
				continue;
			if (!outside)
				outside = frame;
			if (!is_users(frame, owner))
				continue;
			if (users) {
				*caller = frame;
				return users;
			}
			users = frame;
		}
	}
	if (users)
		return users;
	return outside ? outside : innermost;
}

/* The module of a frame that is the runtime's code in somebody else's file, or NULL. */
static const char *static_runtime(const struct symbol_frame *frame)
{
	bool inside = frame->module_name && !starts_with(frame->module_name, "libcudart") &&
		      !starts_with(frame->module_name, "libvramtrace") && is_runtime(frame);

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

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void frame_label(const struct symbol_frame *frame, char *buffer, size_t size)
{
	if (frame->function && frame->file && frame->line)
		snprintf(buffer, size, "%s %s:%u", frame->function, last_part(frame->file),
			frame->line);
	else if (frame->function && frame->module_name)
		snprintf(buffer, size, "%s (%s)", frame->function, frame->module_name);
	else if (frame->function)
		snprintf(buffer, size, "%s", frame->function);
	else if (frame->module_name)
		snprintf(buffer, size, "%s+0x%" PRIx64, frame->module_name, frame->offset);
	else
		snprintf(buffer, size, "0x%" PRIx64, frame->address);
}

void stack_label(const struct stack_source *source, uint64_t stack_id, char *buffer, size_t size)
{
	const struct symbol_frame *caller, *frame = user_frame(source, stack_id, &caller);
	char inner[200];

	if (!frame) {
		snprintf(buffer, size, "(no stack recorded)");
		return;
	}
	frame_label(frame, inner, sizeof(inner));
	if (caller && caller->function)
		snprintf(buffer, size, "%s > %s", caller->function, inner);
	else
		snprintf(buffer, size, "%s", inner);
}

static void put_frame(const struct style *style, const struct symbol_frame *frame,
	unsigned int number, unsigned int indent)
{
	char where[512];

	fprintf(style->out, "%*s#%-2u ", (int)indent, "", number);
	if (frame->file && frame->line)
		snprintf(where, sizeof(where), "%s:%u", frame->file, frame->line);
	else if (frame->module)
		snprintf(where, sizeof(where), "%s+0x%" PRIx64, frame->module, frame->offset);
	else
		snprintf(where, sizeof(where), "0x%" PRIx64, frame->address);
	if (frame->function) {
		format_put_text(
			style->out, (struct vt_text){frame->function, strlen(frame->function)});
		fputs("  ", style->out);
	}
	style_switch(style, STYLE_DIM);
	format_put_text(style->out, (struct vt_text){where, strlen(where)});
	style_switch(style, STYLE_PLAIN);
	fputc('\n', style->out);
}

void stack_put(const struct style *style, const struct stack_source *source, uint64_t stack_id,
	unsigned int indent)
{
	const struct model_stack *stack = model_stack_find(source->model, stack_id);
	const struct symbol_frame *frames;
	unsigned int number = 0;

	if (!stack || !stack->n_frames) {
		fprintf(style->out, "%*s%s\n", (int)indent, "",
			stack_id ? "(stack not recorded)" : "(no stack recorded)");
		return;
	}
	for (size_t i = 0; i < stack->n_frames; i++) {
		size_t n = symbol_table_resolve(
			source->symbols, stack->frames[i], stack->time_ns, &frames);

		for (size_t k = 0; k < n; k++)
			put_frame(style, &frames[k], number++, indent);
	}
}

static void frame_json(struct json *json, const struct symbol_frame *frame)
{
	json_open(json, NULL, '{');
	json_string(json, "kind", frame->python ? "python" : "native");
	json_string(json, "function", frame->function);
	json_string(json, "file", frame->file);
	json_number_or_null(json, "line", frame->line != 0, frame->line);
	json_string(json, "module", frame->module);
	json_number_or_null(json, "offset", frame->module != NULL, frame->offset);
	json_hex(json, "address", frame->address);
	json_close(json, '}');
}

void stack_json(struct json *json, const struct stack_source *source, uint64_t stack_id)
{
	const struct model_stack *stack = model_stack_find(source->model, stack_id);
	const struct symbol_frame *frames;

	json_string(json, "owner", stack_owner(source, stack_id));
	if (!stack) {
		json_null(json, "stack");
		return;
	}
	json_open(json, "stack", '[');
	for (size_t i = 0; i < stack->n_frames; i++) {
		size_t n = symbol_table_resolve(
			source->symbols, stack->frames[i], stack->time_ns, &frames);

		for (size_t k = 0; k < n; k++)
			frame_json(json, &frames[k]);
	}
	json_close(json, ']');
}

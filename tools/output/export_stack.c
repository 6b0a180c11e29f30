#include "output/export_stack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/memory.h"
#include "output/blocks_text.h"
#include "output/format.h"
#include "symbol/stack.h"

struct export_label {
	struct export_label *next;
	struct symbol_frame frame;
	char text[];
};

static void name_add(struct export_name *name, const char *data, size_t bytes)
{
	if (name->room < name->bytes + bytes + 1) {
		name->room = 2 * (name->bytes + bytes + 1);
		name->text = realloc(name->text, name->room);
		if (!name->text)
			memory_exhausted();
	}
	memcpy(name->text + name->bytes, data, bytes);
	name->bytes += bytes;
	name->text[name->bytes] = 0;
}

/* Those of C1 are two bytes. */
static bool is_control(const char *text, size_t length)
{
	unsigned char c = (unsigned char)text[0];

	return c < 0x20 || c == 0x7f || (length == 2 && c == 0xc2 && (unsigned char)text[1] < 0xa0);
}

const char *export_name_set(struct export_name *name, const char *text)
{
	size_t left = text ? strlen(text) : 0;

	name->bytes = 0;
	name_add(name, "", 0);
	while (left) {
		size_t length = format_utf8_length(text, left);

		if (!length)
			name_add(name, "\xef\xbf\xbd", 3);
		else if (is_control(text, length))
			name_add(name, "?", 1);
		else
			name_add(name, text, length);
		text += length ? length : 1;
		left -= length ? length : 1;
	}
	return name->text;
}

void export_name_release(struct export_name *name)
{
	free(name->text);
	*name = (struct export_name){0};
}

static const struct symbol_frame *label_frame(struct export_labels *labels, const char *text)
{
	struct export_label *label = labels->first;

	while (label && strcmp(label->text, text) != 0)
		label = label->next;
	if (label)
		return &label->frame;
	label = memory_new(1, sizeof(*label) + strlen(text) + 1);
	strcpy(label->text, text);
	label->frame.function = label->text;
	label->next = labels->first;
	labels->first = label;
	return &label->frame;
}

void export_labels_release(struct export_labels *labels)
{
	while (labels->first) {
		struct export_label *next = labels->first->next;

		free(labels->first);
		labels->first = next;
	}
}

static void add_frame(struct export_stack *stack, const struct symbol_frame *frame)
{
	stack->frames =
		memory_grow(stack->frames, stack->n_frames, &stack->room, sizeof(*stack->frames));
	stack->frames[stack->n_frames++] = frame;
}

void export_stack_get(struct export_stack *stack, struct export_labels *labels,
	const struct stack_source *source, uint64_t stack_id)
{
	const struct model_stack *given = model_stack_find(source->model, stack_id);
	const struct symbol_stack *merged =
		given ? symbol_stack_get(source->symbols, source->model, given) : NULL;

	stack->n_frames = 0;
	for (size_t i = 0; merged && i < merged->n_calls; i++)
		if (source->show.all_frames || !merged->calls[i].internal)
			add_frame(stack, merged->calls[i].frame);
	if (!stack->n_frames)
		add_frame(stack, label_frame(labels, "[no stack recorded]"));
}

void export_stack_of_site(struct export_stack *stack, struct export_labels *labels,
	const struct stack_source *source, const struct export_site *site)
{
	char name[100], label[128];

	if (site->level != SITE_IDLE) {
		export_stack_get(stack, labels, source, site->stack_id);
		return;
	}
	blocks_name(source->model, site->allocator_id, name, sizeof(name));
	snprintf(label, sizeof(label), "[kept by %s, in no block]", name);
	stack->n_frames = 0;
	add_frame(stack, label_frame(labels, label));
}

void export_stack_release(struct export_stack *stack)
{
	free(stack->frames);
	*stack = (struct export_stack){0};
}

const char *export_frame_name(
	struct export_name *name, const struct show *show, const struct symbol_frame *frame)
{
	char offset[32];

	if (frame->function && *frame->function)
		return export_name_set(name, frame->function);
	if (frame->python)
		return export_name_set(name, "[Python code that was not recorded]");
	if (frame->module) {
		export_name_set(name, show_frame_path(show, frame->module));
		snprintf(offset, sizeof(offset), "+0x%" PRIx64, frame->offset);
	} else {
		export_name_set(name, "");
		snprintf(offset, sizeof(offset), "0x%" PRIx64, frame->address);
	}
	name_add(name, offset, strlen(offset));
	return name->text;
}

const char *export_frame_file(
	struct export_name *name, const struct show *show, const struct symbol_frame *frame)
{
	const char *file = show_path(show, frame->file);

	return file && *file ? export_name_set(name, file) : NULL;
}

const char *export_site_owner(const struct stack_source *source, const struct export_site *site)
{
	const char *owner = site->level == SITE_IDLE
				    ? blocks_idle_owner(source->model, site->allocator_id)
				    : stack_owner(source, site->stack_id);

	return owner ? owner : "unknown";
}

const char *export_site_layer(
	struct export_name *name, const struct stack_source *source, const struct export_site *site)
{
	char text[100];

	if (site->level == SITE_DRIVER)
		return export_name_set(name, "driver");
	blocks_name(source->model, site->allocator_id, text, sizeof(text));
	export_name_set(name, text);
	if (site->level == SITE_IDLE)
		name_add(name, ", kept", 6);
	return name->text;
}

/* Texts, frames and stacks of the page's data, each once. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/memory.h"
#include "output/html_parts.h"

void html_put_number(struct html_data *data, int64_t value)
{
	fprintf(data->json.out, data->json.first ? "%" PRId64 : ",%" PRId64, value);
	data->json.first = false;
}

struct html_series html_series_begin(struct html_data *data, const char *key)
{
	json_open(&data->json, key, '[');
	return (struct html_series){data, 0};
}

void html_series_put(struct html_series *series, uint64_t value)
{
	html_put_number(series->data, (int64_t)(value - series->last));
	series->last = value;
}

void html_series_end(struct html_series *series)
{
	json_close(&series->data->json, ']');
}

uint64_t html_text(struct html_data *data, const char *text)
{
	bool is_new;
	uint64_t number = intern_text(&data->text_numbers, text, &is_new);

	if (is_new) {
		data->texts = memory_grow(
			data->texts, data->n_texts, &data->texts_room, sizeof(*data->texts));
		data->texts[data->n_texts++] = memory_text(text);
	}
	return number - 1;
}

void html_put_text(struct html_data *data, const char *key, const char *text)
{
	if (text)
		json_number(&data->json, key, html_text(data, text));
	else
		json_null(&data->json, key);
}

static uint64_t number_of_frame(
	struct html_data *data, const struct show *show, const struct symbol_frame *frame)
{
	bool is_new;
	uint64_t number = intern_number(&data->frame_numbers, (uintptr_t)frame, &is_new);

	if (is_new) {
		data->frames = memory_grow(
			data->frames, data->n_frames, &data->frames_room, sizeof(*data->frames));
		data->frames[data->n_frames++] = (struct html_frame){frame, *show};
	}
	return number - 1;
}

uint64_t html_stack(struct html_data *data, size_t trace, const struct stack_source *source,
	const struct export_site *site)
{
	uint64_t key[4] = {trace, site->stack_id, site->level == SITE_IDLE,
		site->level == SITE_IDLE ? site->allocator_id : 0};
	bool is_new;
	uint64_t number = intern(&data->stack_numbers, key, sizeof(key), &is_new);
	struct html_stack stack = {0};

	if (!is_new)
		return number - 1;
	export_stack_of_site(&data->stack, &data->labels, source, site);
	stack.n_frames = data->stack.n_frames;
	stack.frames = memory_new(stack.n_frames, sizeof(*stack.frames));
	for (size_t i = 0; i < stack.n_frames; i++)
		stack.frames[i] = number_of_frame(data, &source->show, data->stack.frames[i]);
	data->stacks = memory_grow(
		data->stacks, data->n_stacks, &data->stacks_room, sizeof(*data->stacks));
	data->stacks[data->n_stacks++] = stack;
	return number - 1;
}

/* [name, file, line, module, whether it is Python's]; file, line and module may be null. */
static void put_frame(struct html_data *data, const struct html_frame *shown)
{
	const struct symbol_frame *frame = shown->frame;
	const char *file;

	json_open(&data->json, NULL, '[');
	html_put_number(data,
		(int64_t)html_text(data, export_frame_name(&data->name, &shown->show, frame)));
	file = export_frame_file(&data->name, &shown->show, frame);
	html_put_number(data, file ? (int64_t)html_text(data, file) : -1);
	html_put_number(data, frame->file ? frame->line : 0);
	html_put_number(data,
		frame->module_name
			? (int64_t)html_text(data, export_name_set(&data->name, frame->module_name))
			: -1);
	html_put_number(data, frame->python);
	json_close(&data->json, ']');
}

void html_put_tables(struct html_data *data)
{
	json_open(&data->json, "stacks", '[');
	for (size_t i = 0; i < data->n_stacks; i++) {
		json_open(&data->json, NULL, '[');
		for (size_t k = 0; k < data->stacks[i].n_frames; k++)
			html_put_number(data, (int64_t)data->stacks[i].frames[k]);
		json_close(&data->json, ']');
	}
	json_close(&data->json, ']');
	json_open(&data->json, "frames", '[');
	for (size_t i = 0; i < data->n_frames; i++)
		put_frame(data, &data->frames[i]);
	json_close(&data->json, ']');
	json_open(&data->json, "texts", '[');
	for (size_t i = 0; i < data->n_texts; i++)
		json_string(&data->json, NULL, data->texts[i]);
	json_close(&data->json, ']');
}

void html_data_release(struct html_data *data)
{
	for (size_t i = 0; i < data->n_texts; i++)
		free(data->texts[i]);
	for (size_t i = 0; i < data->n_stacks; i++)
		free(data->stacks[i].frames);
	free(data->texts);
	free(data->frames);
	free(data->stacks);
	intern_release(&data->text_numbers);
	intern_release(&data->frame_numbers);
	intern_release(&data->stack_numbers);
	export_labels_release(&data->labels);
	export_stack_release(&data->stack);
	export_name_release(&data->name);
}

/* What the files about the page share, and the page's parts that the build took from html/. */
#ifndef VRAMTRACE_OUTPUT_HTML_PARTS_H
#define VRAMTRACE_OUTPUT_HTML_PARTS_H

#include "output/export_stack.h"
#include "output/html.h"
#include "output/intern.h"

/* Made by the build. Text without a zero byte at the end. */
extern const unsigned char html_script[], html_style[], html_body[];
extern const size_t html_script_bytes, html_style_bytes, html_body_bytes;
/* Base64 of the SHA-256 of the two. */
extern const char html_script_hash[], html_style_hash[];

/* The page's data, in which texts, frames and stacks have numbers from 0 on. */
struct html_data {
	struct json json;
	struct intern_table text_numbers, frame_numbers, stack_numbers;
	char **texts;
	size_t n_texts, texts_room;
	struct html_frame *frames;
	size_t n_frames, frames_room;
	struct html_stack *stacks;
	size_t n_stacks, stacks_room;
	struct export_labels labels;
	struct export_stack stack;
	struct export_name name;
};

struct html_frame {
	const struct symbol_frame *frame;
	struct show show;
};

/* Numbers of frames, innermost first. */
struct html_stack {
	uint64_t *frames;
	size_t n_frames;
};

/* {"schema": "vramtrace.page", ...} */
void html_data_put(FILE *out, const struct html_trace *traces, size_t n);

/* The key with a number for the text, which may be NULL: then null. */
void html_put_text(struct html_data *data, const char *key, const char *text);

/* The number of a text, of a stack of a trace (trace: its number). */
uint64_t html_text(struct html_data *data, const char *text);
uint64_t html_stack(struct html_data *data, size_t trace, const struct stack_source *source,
	const struct export_site *site);

/* "stacks", "frames", "texts". */
void html_put_tables(struct html_data *data);
void html_data_release(struct html_data *data);

/* One more number of an array, without spaces. */
void html_put_number(struct html_data *data, int64_t value);

/* Numbers as differences, each from the one before: they are short, where little changes. */
struct html_series {
	struct html_data *data;
	uint64_t last;
};
struct html_series html_series_begin(struct html_data *data, const char *key);
void html_series_put(struct html_series *series, uint64_t value);
void html_series_end(struct html_series *series);

/* "levels", "live"; and a scene's "map". */
void html_put_levels(struct html_data *data, const struct html_trace *trace);
void html_put_map(
	struct html_data *data, const struct html_trace *trace, const struct address_map *map);

/* "leaks", "labels": what the report's entries of the trace are about, in their order. */
void html_put_labels(struct html_data *data, const struct html_trace *trace);

#endif

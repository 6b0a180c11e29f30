#include <stdlib.h>
#include <string.h>

#include "symbol/names.h"
#include "symbol/source.h"
#include "symbol/table.h"

/* More functions than this inlined into one another at one address are cut. */
#define MAX_INLINED 16

struct resolved {
	const struct symbol_module *module;
	uint64_t address;
	size_t n_frames;
	struct symbol_frame frames[];
};

struct text {
	struct text *next;
	char data[];
};

struct symbol_table *symbol_table_new(void)
{
	return calloc(1, sizeof(struct symbol_table));
}

void symbol_table_free(struct symbol_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->n_slots; i++)
		free(table->cache[i]);
	free(table->cache);
	stack_release_all(table);
	python_release(table);
	while (table->modules) {
		struct symbol_module *module = table->modules;

		table->modules = module->next;
		elf_file_close(module->file);
		free(module);
	}
	while (table->texts) {
		struct text *text = table->texts;

		table->texts = text->next;
		free(text);
	}
	span_list_release(&table->spans);
	free(table);
}

int symbol_table_add_module(struct symbol_table *table, const struct vt_rec_module *record)
{
	size_t path_bytes = record->path.bytes, build_id_bytes = record->build_id.bytes;
	struct symbol_module *module = malloc(sizeof(*module) + build_id_bytes + path_bytes + 1);
	struct span span = {.start = record->start, .end = record->end, .what = module};
	const char *slash;
	char *path;

	if (!module)
		return VT_E_NO_MEMORY;
	if (!span_list_add(&table->spans, &span)) {
		free(module);
		return VT_E_NO_MEMORY;
	}
	*module = (struct symbol_module){.next = table->modules,
		.bias = record->bias,
		.start = record->start,
		.end = record->end,
		.time_ns = record->time_ns,
		.order = table->n_modules++,
		.build_id_bytes = build_id_bytes};
	if (build_id_bytes)
		memcpy(module->build_id, record->build_id.data, build_id_bytes);
	path = (char *)module->build_id + build_id_bytes;
	if (path_bytes)
		memcpy(path, record->path.data, path_bytes);
	path[path_bytes] = '\0';
	slash = strrchr(path, '/');
	module->path = path;
	module->name = slash ? slash + 1 : path;
	table->modules = module;
	table->indexed = false;
	return 0;
}

/* Whether a is the better guess than b for what lay at an address of both at time_ns. */
static bool is_better(
	const struct symbol_module *a, const struct symbol_module *b, uint64_t time_ns)
{
	bool a_seen = a->time_ns <= time_ns, b_seen = b->time_ns <= time_ns;

	if (a_seen != b_seen)
		return a_seen;
	if (a->time_ns != b->time_ns)
		return a_seen == (a->time_ns > b->time_ns);
	return a_seen == (a->order > b->order);
}

struct symbol_module *symbol_table_find_module(
	struct symbol_table *table, uint64_t address, uint64_t time_ns)
{
	const struct symbol_module *best = NULL;
	const struct span *span;
	size_t position = table->spans.n_items;

	if (!table->indexed) {
		span_list_sort(&table->spans, NULL);
		span_list_index(&table->spans);
		table->indexed = true;
	}
	while ((span = span_list_next(&table->spans, address, &position)))
		if (!best || is_better(span->what, best, time_ns))
			best = span->what;
	return (struct symbol_module *)(uintptr_t)best;
}

const char *symbol_table_keep_text(struct symbol_table *table, const char *data, size_t bytes)
{
	struct text *text = malloc(sizeof(*text) + bytes + 1);

	if (!text)
		return NULL;
	memcpy(text->data, data, bytes);
	text->data[bytes] = '\0';
	text->next = table->texts;
	table->texts = text;
	return text->data;
}

static const char *keep_string(struct symbol_table *table, const char *string)
{
	return symbol_table_keep_text(table, string, strlen(string));
}

static const char *keep_readable(struct symbol_table *table, const char *name)
{
	char *readable = names_readable(name);
	const char *kept = readable ? keep_string(table, readable) : NULL;

	free(readable);
	return kept;
}

/* Names in the file of module for the code at address (in the file). Returns the number of frames,
 * at least 1. */
static size_t look_up(
	struct symbol_module *module, uint64_t address, struct source_frame frames[MAX_INLINED])
{
	struct source *source;
	const char *function;
	size_t n = 0;

	frames[0] = (struct source_frame){0};
	if (module->state == SYMBOL_FILE_UNTRIED)
		module->file = elf_file_open(
			module->path, module->build_id, module->build_id_bytes, &module->state);
	if (!module->file)
		return 1;
	source = elf_file_source(module->file);
	if (source)
		n = source_find(source, address, frames, MAX_INLINED);
	if (!n)
		n = 1;
	/* The linker's name of the function that holds the code also tells its namespace and class.
	 */
	function = n < MAX_INLINED ? elf_file_function(module->file, address) : NULL;
	if (function)
		frames[n - 1].function = function;
	return n;
}

/* n frames at an address of module, which may be NULL, with everything but their names. */
static struct resolved *resolved_new(
	const struct symbol_module *module, uint64_t return_address, size_t n)
{
	struct resolved *resolved = calloc(1, sizeof(*resolved) + n * sizeof(resolved->frames[0]));

	if (!resolved)
		return NULL;
	resolved->module = module;
	resolved->address = return_address;
	resolved->n_frames = n;
	for (size_t i = 0; i < n; i++)
		resolved->frames[i] = (struct symbol_frame){
			.module = module ? module->path : NULL,
			.module_name = module ? module->name : NULL,
			.offset = module ? return_address - 1 - module->bias : 0,
			.address = return_address,
		};
	return resolved;
}

static struct resolved *resolve_new(
	struct symbol_table *table, struct symbol_module *module, uint64_t return_address)
{
	struct source_frame found[MAX_INLINED] = {{0}};
	size_t n = module ? look_up(module, return_address - 1 - module->bias, found) : 1;
	struct resolved *resolved = resolved_new(module, return_address, n);

	for (size_t i = 0; resolved && i < n; i++) {
		struct symbol_frame *frame = &resolved->frames[i];

		frame->file = found[i].file;
		frame->line = found[i].line;
		if (!found[i].function)
			continue;
		frame->function = keep_readable(table, found[i].function);
		if (!frame->function) {
			free(resolved);
			return NULL;
		}
	}
	return resolved;
}

/* Frames that the caller knows, with copies of their texts. */
static struct resolved *resolve_given(struct symbol_table *table,
	const struct symbol_module *module, uint64_t return_address,
	const struct symbol_frame *frames, size_t n)
{
	struct resolved *resolved = resolved_new(module, return_address, n ? n : 1);

	for (size_t i = 0; resolved && i < n; i++) {
		struct symbol_frame *frame = &resolved->frames[i];

		frame->line = frames[i].line;
		frame->function =
			frames[i].function ? keep_string(table, frames[i].function) : NULL;
		frame->file = frames[i].file ? keep_string(table, frames[i].file) : NULL;
		if (!frame->function != !frames[i].function || !frame->file != !frames[i].file) {
			free(resolved);
			return NULL;
		}
	}
	return resolved;
}

static struct resolved **find_slot(struct resolved **cache, size_t n_slots,
	const struct symbol_module *module, uint64_t address)
{
	uint64_t hash = (address ^ ((uint64_t)(uintptr_t)module >> 4)) * 0x9e3779b97f4a7c15u;
	size_t i = (size_t)(hash >> 20) & (n_slots - 1);

	while (cache[i] && (cache[i]->address != address || cache[i]->module != module))
		i = (i + 1) & (n_slots - 1);
	return &cache[i];
}

/* Makes room for one more entry. */
static bool grow_cache(struct symbol_table *table)
{
	size_t n_slots = table->n_slots ? table->n_slots * 2 : 1024;
	struct resolved **cache;

	if (table->n_resolved < table->n_slots / 4 * 3)
		return true;
	cache = calloc(n_slots, sizeof(struct resolved *));
	if (!cache)
		return false;
	for (size_t i = 0; i < table->n_slots; i++) {
		struct resolved *old = table->cache[i];

		if (old)
			*find_slot(cache, n_slots, old->module, old->address) = old;
	}
	free(table->cache);
	table->cache = cache;
	table->n_slots = n_slots;
	return true;
}

/* The cache's place for an address as of time_ns, in *module; NULL when out of memory. */
static struct resolved **slot_of(struct symbol_table *table, uint64_t return_address,
	uint64_t time_ns, struct symbol_module **module)
{
	*module = symbol_table_find_module(table, return_address - 1, time_ns);
	if (!grow_cache(table))
		return NULL;
	return find_slot(table->cache, table->n_slots, *module, return_address);
}

size_t symbol_table_resolve(struct symbol_table *table, uint64_t return_address, uint64_t time_ns,
	const struct symbol_frame **frames)
{
	struct symbol_module *module;
	struct resolved **slot = slot_of(table, return_address, time_ns, &module);

	table->unknown.address = return_address;
	*frames = &table->unknown;
	if (!slot)
		return 1;
	if (!*slot) {
		*slot = resolve_new(table, module, return_address);
		if (!*slot)
			return 1;
		table->n_resolved++;
	}
	*frames = (*slot)->frames;
	return (*slot)->n_frames;
}

int symbol_table_add_resolved(struct symbol_table *table, uint64_t return_address, uint64_t time_ns,
	const struct symbol_frame *frames, size_t n)
{
	struct symbol_module *module;
	struct resolved **slot = slot_of(table, return_address, time_ns, &module);

	if (!slot)
		return VT_E_NO_MEMORY;
	if (!*slot) {
		*slot = resolve_given(table, module, return_address, frames, n);
		if (!*slot)
			return VT_E_NO_MEMORY;
		table->n_resolved++;
	}
	return 0;
}

size_t symbol_table_files(
	const struct symbol_table *table, enum symbol_file state, const char **paths, size_t n_room)
{
	size_t n = 0;

	for (const struct symbol_module *module = table->modules; module; module = module->next) {
		size_t known = 0;

		if (module->state != state)
			continue;
		while (known < n && known < n_room && strcmp(paths[known], module->path))
			known++;
		if (known < n_room && known < n)
			continue;
		if (n < n_room)
			paths[n] = module->path;
		n++;
	}
	return n;
}

/* Heap profiles, and the stacks that they and events name. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/hash.h"
#include "output/perfetto_parts.h"
#include "output/report.h"

enum frame_kind { FRAME_NATIVE = 1, FRAME_INTERPRETED = 3 };

#define SAMPLES_PER_PACKET 1000u

/* A stack in one heap: numbers of a dump must not be less than those of the one before. */
struct perfetto_heap {
	struct heap_key {
		uint64_t callstack;
		uint64_t heap;
	} key;
	uint64_t allocated_bytes, freed_bytes, n_allocated, n_freed;
	uint64_t seen_bytes, seen_freed_bytes, n_seen, n_seen_freed; /* of the dump being made */
	uint64_t dump;						     /* which */
	UT_hash_handle hh;
};

static void put_interned(struct perfetto *perfetto, Perfetto__InternedData *data)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	packet.interned_data = data;
	perfetto_put_packet(perfetto, &packet);
}

/* Into which list of the interned data a text goes. */
enum text_list { TEXT_FUNCTION, TEXT_MAPPING_PATH, TEXT_SOURCE_PATH };

static uint64_t text_of(struct perfetto *perfetto, struct intern_table *table, const char *text,
	enum text_list where)
{
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__InternedString string = PERFETTO__INTERNED_STRING__INIT, *list[] = {&string};
	bool is_new;
	uint64_t iid = intern_text(table, text, &is_new);

	if (!is_new)
		return iid;
	SET(string, iid, iid);
	string.has_str = true;
	string.str.data = (uint8_t *)(uintptr_t)text;
	string.str.len = strlen(text);
	data.n_function_names = where == TEXT_FUNCTION;
	data.n_mapping_paths = where == TEXT_MAPPING_PATH;
	data.n_source_paths = where == TEXT_SOURCE_PATH;
	data.function_names = data.mapping_paths = data.source_paths = list;
	put_interned(perfetto, &data);
	return iid;
}

/* Every frame names a mapping; a file of Python takes the place of a module. */
static uint64_t mapping_of(struct perfetto *perfetto, const struct symbol_frame *frame)
{
	const char *path = show_path(
		&perfetto->trace->source.show, frame->python ? frame->file : frame->module);
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__Mapping mapping = PERFETTO__MAPPING__INIT, *list[] = {&mapping};
	uint64_t path_id, iid;
	bool is_new;

	export_name_set(&perfetto->file, path && *path ? path : "[unknown]");
	iid = intern_text(&perfetto->mappings, perfetto->file.text, &is_new);
	if (!is_new)
		return iid;
	path_id = text_of(perfetto, &perfetto->paths, perfetto->file.text, TEXT_MAPPING_PATH);
	SET(mapping, iid, iid);
	mapping.n_path_string_ids = 1;
	mapping.path_string_ids = &path_id;
	data.n_mappings = 1;
	data.mappings = list;
	put_interned(perfetto, &data);
	return iid;
}

/* Readers tell frames apart by these; and stacks by frames. */
struct frame_key {
	uint64_t function_id, mapping_id, place;
};

static void put_frame(struct perfetto *perfetto, const struct symbol_frame *frame, uint64_t iid,
	const struct frame_key *key)
{
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__Frame message = PERFETTO__FRAME__INIT, *list[] = {&message};
	const char *file = export_frame_file(&perfetto->name, &perfetto->trace->source.show, frame);

	SET(message, iid, iid);
	SET(message, function_name_id, key->function_id);
	SET(message, mapping_id, key->mapping_id);
	SET(message, rel_pc, key->place);
	if (file)
		SET(message, source_path_iid,
			text_of(perfetto, &perfetto->files, file, TEXT_SOURCE_PATH));
	if (frame->line)
		SET(message, line_number, frame->line);
	SET(message, kind, frame->python ? FRAME_INTERPRETED : FRAME_NATIVE);
	data.n_frames = 1;
	data.frames = list;
	put_interned(perfetto, &data);
}

/* In Python's code, lines are the only places there are. */
static uint64_t frame_of(struct perfetto *perfetto, const struct symbol_frame *frame)
{
	const char *name = export_frame_name(&perfetto->name, &perfetto->trace->source.show, frame);
	struct frame_key key = {
		.function_id = text_of(perfetto, &perfetto->functions, name, TEXT_FUNCTION),
		.mapping_id = mapping_of(perfetto, frame),
		.place = frame->python ? frame->line : frame->offset,
	};
	bool is_new;
	uint64_t iid = intern(&perfetto->frames, &key, sizeof(key), &is_new);

	if (is_new)
		put_frame(perfetto, frame, iid, &key);
	return iid;
}

uint64_t perfetto_callstack(struct perfetto *perfetto, const struct export_site *site)
{
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	Perfetto__Callstack message = PERFETTO__CALLSTACK__INIT, *list[] = {&message};
	size_t n;
	bool is_new;
	uint64_t iid;

	export_stack_of_site(&perfetto->stack, &perfetto->labels, &perfetto->trace->source, site);
	n = perfetto->stack.n_frames;
	if (perfetto->frame_ids_room < n) {
		free(perfetto->frame_ids);
		perfetto->frame_ids = memory_new(n, sizeof(*perfetto->frame_ids));
		perfetto->frame_ids_room = n;
	}
	for (size_t i = 0; i < n; i++)
		perfetto->frame_ids[i] = frame_of(perfetto, perfetto->stack.frames[n - 1 - i]);
	iid = intern(
		&perfetto->stacks, perfetto->frame_ids, n * sizeof(*perfetto->frame_ids), &is_new);
	if (!is_new)
		return iid;
	SET(message, iid, iid);
	message.n_frame_ids = n;
	message.frame_ids = perfetto->frame_ids;
	data.n_callstacks = 1;
	data.callstacks = list;
	put_interned(perfetto, &data);
	return iid;
}

/* One heap for each device, kind and layer. */
static struct export_text heap_name(struct perfetto *perfetto, const struct export_site *site)
{
	struct export_text out;

	snprintf(out.text, sizeof(out.text), "%s, %s, %.40s", report_device_name(site->device).text,
		model_kind_name(site->kind),
		export_site_layer(&perfetto->name, &perfetto->trace->source, site));
	return out;
}

static struct perfetto_heap *row_of(struct perfetto *perfetto, uint64_t callstack, uint64_t heap)
{
	struct heap_key key = {callstack, heap};
	struct perfetto_heap *found;

	HASH_FIND(hh, perfetto->heaps, &key, sizeof(key), found);
	if (found)
		return found;
	found = memory_new(1, sizeof(*found));
	found->key = key;
	HASH_ADD(hh, perfetto->heaps, key, sizeof(found->key), found);
	return found;
}

/* What a row that may go on from an earlier dump has: both numbers never fall, and their difference
 * is what is live. */
static void settle(uint64_t *allocated, uint64_t *freed, uint64_t seen, uint64_t seen_freed)
{
	uint64_t live = seen - seen_freed;

	if (*freed < seen_freed)
		*freed = seen_freed;
	if (*allocated > live && *freed < *allocated - live)
		*freed = *allocated - live;
	*allocated = *freed + live;
}

static uint64_t less(uint64_t from, uint64_t part)
{
	return from > part ? from - part : 0;
}

static void put_samples(struct perfetto *perfetto, Perfetto__ProcessHeapSamples *dump,
	uint64_t time_ns, bool is_last)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__ProfilePacket profile = PERFETTO__PROFILE_PACKET__INIT;

	profile.n_process_dumps = 1;
	profile.process_dumps = &dump;
	SET(profile, index, perfetto->n_profile_packets++);
	if (!is_last)
		SET(profile, continued, true);
	SET(packet, timestamp, time_ns);
	packet.profile_packet = &profile;
	perfetto_put_packet(perfetto, &packet);
}

/* The rows of one heap at a moment. */
struct heap_dump {
	struct perfetto_heap **items;
	size_t n_items, room;
};

static void put_dump(struct perfetto *perfetto, const char *name, const struct heap_dump *heap,
	uint64_t time_ns, bool is_last)
{
	Perfetto__HeapSample samples[SAMPLES_PER_PACKET], *list[SAMPLES_PER_PACKET];
	size_t at = 0;

	do {
		Perfetto__ProcessHeapSamples dump = PERFETTO__PROCESS_HEAP_SAMPLES__INIT;
		size_t n = 0;

		for (; n < SAMPLES_PER_PACKET && at < heap->n_items; n++, at++) {
			const struct perfetto_heap *item = heap->items[at];

			perfetto__heap_sample__init(&samples[n]);
			SET(samples[n], callstack_id, item->key.callstack);
			SET(samples[n], self_allocated, item->allocated_bytes);
			SET(samples[n], self_freed, item->freed_bytes);
			SET(samples[n], alloc_count, item->n_allocated);
			SET(samples[n], free_count, item->n_freed);
			list[n] = &samples[n];
		}
		SET(dump, pid, perfetto->pid);
		SET(dump, timestamp, time_ns);
		SET(dump, sampling_interval_bytes, 1);
		SET(dump, orig_sampling_interval_bytes, 1);
		dump.heap_name = (char *)(uintptr_t)name;
		dump.n_samples = n;
		dump.samples = list;
		put_samples(perfetto, &dump, time_ns, is_last && at == heap->n_items);
	} while (at < heap->n_items);
}

/* Heaps are known by their names; those of the trace, in the order in which they first came. */
static uint64_t heap_of(struct perfetto *perfetto, const struct export_site *site)
{
	struct export_text name = heap_name(perfetto, site);
	bool is_new;
	uint64_t number = intern_text(&perfetto->heap_names, name.text, &is_new);

	if (is_new) {
		perfetto->heap_list = memory_grow(perfetto->heap_list, perfetto->n_heaps,
			&perfetto->heaps_room, sizeof(*perfetto->heap_list));
		perfetto->heap_list[perfetto->n_heaps++] =
			(struct perfetto_heap_name){name, site->device};
	}
	return number;
}

static void add_site(
	struct perfetto *perfetto, const struct export_site *site, uint64_t heap, uint64_t dump)
{
	struct perfetto_heap *row = row_of(perfetto, perfetto_callstack(perfetto, site), heap);

	if (row->dump != dump)
		row->seen_bytes = row->seen_freed_bytes = row->n_seen = row->n_seen_freed = 0;
	row->dump = dump;
	/* What is live was asked for. */
	row->seen_freed_bytes += less(site->alloc_bytes, site->live_bytes);
	row->seen_bytes += less(site->alloc_bytes, site->live_bytes) + site->live_bytes;
	row->n_seen_freed += less(site->n_allocs, site->n_live);
	row->n_seen += less(site->n_allocs, site->n_live) + site->n_live;
}

/* All rows of a heap, also those of stacks that have nothing any more. */
static void collect(
	struct perfetto *perfetto, struct heap_dump *dump, uint64_t heap, uint64_t number)
{
	dump->n_items = 0;
	for (struct perfetto_heap *row = perfetto->heaps; row; row = row->hh.next) {
		if (row->key.heap != heap)
			continue;
		if (row->dump != number)
			row->seen_bytes = row->seen_freed_bytes = row->n_seen = row->n_seen_freed =
				0;
		settle(&row->allocated_bytes, &row->freed_bytes, row->seen_bytes,
			row->seen_freed_bytes);
		settle(&row->n_allocated, &row->n_freed, row->n_seen, row->n_seen_freed);
		dump->items =
			memory_grow(dump->items, dump->n_items, &dump->room, sizeof(*dump->items));
		dump->items[dump->n_items++] = row;
	}
}

static void put_moment(
	struct perfetto *perfetto, const struct export_moment *moment, uint64_t number)
{
	struct heap_dump dump = {0};
	size_t last = 0;

	for (size_t i = 0; i < moment->n_sites; i++)
		add_site(perfetto, &moment->sites[i], heap_of(perfetto, &moment->sites[i]), number);
	for (size_t i = 0; i < perfetto->n_heaps; i++)
		if (!moment->one_device || perfetto->heap_list[i].device == moment->moment.device)
			last = i + 1;
	for (size_t i = 0; i < last; i++) {
		if (moment->one_device && perfetto->heap_list[i].device != moment->moment.device)
			continue;
		collect(perfetto, &dump, i + 1, number);
		put_dump(perfetto, perfetto->heap_list[i].name.text, &dump,
			perfetto_time(perfetto, moment->time_ns), i + 1 == last);
	}
	free(dump.items);
}

void perfetto_put_moments(struct perfetto *perfetto)
{
	for (size_t i = 0; i < perfetto->trace->n_moments; i++)
		put_moment(perfetto, &perfetto->trace->moments[i], i + 1);
}

void perfetto_forget(struct perfetto *perfetto)
{
	struct perfetto_heap *row, *next;

	HASH_ITER(hh, perfetto->heaps, row, next)
	{
		HASH_DEL(perfetto->heaps, row);
		free(row);
	}
	free(perfetto->heap_list);
	perfetto->heap_list = NULL;
	perfetto->n_heaps = perfetto->heaps_room = 0;
	intern_release(&perfetto->heap_names);
	intern_release(&perfetto->curves);
	intern_release(&perfetto->functions);
	intern_release(&perfetto->frames);
	intern_release(&perfetto->stacks);
	intern_release(&perfetto->paths);
	intern_release(&perfetto->files);
	intern_release(&perfetto->mappings);
}

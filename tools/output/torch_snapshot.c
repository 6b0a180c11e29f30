#include "output/torch_snapshot.h"

#include <stdlib.h>

#include "model/memory.h"
#include "output/export_stack.h"
#include "output/pickler.h"

/* PyTorch calls segments up to this size small. */
#define SMALL_SEGMENT_BYTES (2u << 20)

struct torch_snapshot {
	struct pickler pickler;
	const struct export_trace *trace;
	struct pickler_list devices, events;
	struct intern_table frames, stacks; /* that have been written */
	uint32_t *frame_memos, *stack_memos;
	size_t frames_room, stacks_room;
	struct export_labels labels;
	struct export_stack stack;
	struct export_name name;
};

struct torch_snapshot *torch_snapshot_new(FILE *out, const struct export_trace *trace)
{
	struct torch_snapshot *snapshot = memory_new(1, sizeof(*snapshot));

	snapshot->trace = trace;
	pickler_begin(&snapshot->pickler, out);
	pickler_open_dict(&snapshot->pickler);
	pickler_text(&snapshot->pickler, "device_traces");
	pickler_open_list(&snapshot->pickler, &snapshot->devices);
	return snapshot;
}

void torch_snapshot_free(struct torch_snapshot *snapshot)
{
	pickler_close_dict(&snapshot->pickler);
	pickler_end(&snapshot->pickler);
	intern_release(&snapshot->frames);
	intern_release(&snapshot->stacks);
	free(snapshot->frame_memos);
	free(snapshot->stack_memos);
	export_labels_release(&snapshot->labels);
	export_stack_release(&snapshot->stack);
	export_name_release(&snapshot->name);
	free(snapshot);
}

/* Whether what has this number in the table was written before, and is written again. Else it is
 * to be written now, and its memo to be set in the place that is returned. */
static uint32_t *again_or_new(struct pickler *pickler, struct intern_table *table, uint64_t key,
	uint32_t **memos, size_t *room)
{
	bool is_new;
	uint64_t number = intern_number(table, key, &is_new);

	if (!is_new) {
		pickler_again(pickler, (*memos)[number - 1]);
		return NULL;
	}
	*memos = memory_grow(*memos, number - 1, room, sizeof(**memos));
	return &(*memos)[number - 1];
}

/* These three keys and no other: readers make records of them. */
static void put_frame(struct torch_snapshot *snapshot, const struct symbol_frame *frame)
{
	const struct show *show = &snapshot->trace->source.show;
	struct pickler *pickler = &snapshot->pickler;
	uint32_t *memo = again_or_new(pickler, &snapshot->frames, (uintptr_t)frame,
		&snapshot->frame_memos, &snapshot->frames_room);
	const char *file = show_path(show, frame->file ? frame->file : frame->module);

	if (!memo)
		return;
	pickler_open_dict(pickler);
	pickler_key_text(pickler, "name", export_frame_name(&snapshot->name, show, frame));
	pickler_key_text(
		pickler, "filename", file && *file ? export_name_set(&snapshot->name, file) : "??");
	pickler_key_integer(pickler, "line", frame->file ? frame->line : 0);
	pickler_close_dict(pickler);
	*memo = pickler_keep(pickler);
}

/* The key with a stack, innermost frame first; nothing where there is none. */
static void put_frames(struct torch_snapshot *snapshot, uint64_t stack_id)
{
	struct pickler *pickler = &snapshot->pickler;
	struct pickler_list list;
	uint32_t *memo;

	if (!stack_id)
		return;
	pickler_text(pickler, "frames");
	memo = again_or_new(pickler, &snapshot->stacks, stack_id, &snapshot->stack_memos,
		&snapshot->stacks_room);
	if (!memo)
		return;
	export_stack_get(&snapshot->stack, &snapshot->labels, &snapshot->trace->source, stack_id);
	pickler_open_list(pickler, &list);
	for (size_t i = 0; i < snapshot->stack.n_frames; i++) {
		pickler_item(pickler, &list);
		put_frame(snapshot, snapshot->stack.frames[i]);
	}
	pickler_close_list(pickler, &list);
	*memo = pickler_keep(pickler);
}

void torch_snapshot_open_device(struct torch_snapshot *snapshot)
{
	pickler_item(&snapshot->pickler, &snapshot->devices);
	pickler_open_list(&snapshot->pickler, &snapshot->events);
}

void torch_snapshot_close_device(struct torch_snapshot *snapshot)
{
	pickler_close_list(&snapshot->pickler, &snapshot->events);
}

/* What PyTorch does not know of memory that is not its own. */
static void put_origin(struct torch_snapshot *snapshot, const struct snapshot_event *event)
{
	const struct stack_source *source = &snapshot->trace->source;
	const char *owner = stack_owner(source, event->stack_id);
	const char *call = event->api_id ? model_api_name(source->model, event->api_id) : NULL;
	char text[200];

	snprintf(text, sizeof(text), "%.80s, %s%s%.80s", owner ? owner : "unknown owner",
		model_kind_name(event->kind), call ? ", " : "", call ? call : "");
	pickler_key_text(
		&snapshot->pickler, "user_metadata", export_name_set(&snapshot->name, text));
}

void torch_snapshot_put_event(struct torch_snapshot *snapshot, const struct snapshot_event *event)
{
	static const char *const names[] = {
		[SNAPSHOT_SEGMENT_ALLOC] = "segment_alloc",
		[SNAPSHOT_SEGMENT_FREE] = "segment_free",
		[SNAPSHOT_SEGMENT_MAP] = "segment_map",
		[SNAPSHOT_SEGMENT_UNMAP] = "segment_unmap",
		[SNAPSHOT_ALLOC] = "alloc",
		[SNAPSHOT_FREE_REQUESTED] = "free_requested",
		[SNAPSHOT_FREE_COMPLETED] = "free_completed",
		[SNAPSHOT_OOM] = "oom",
	};
	struct pickler *pickler = &snapshot->pickler;
	bool is_oom = event->action == SNAPSHOT_OOM;
	uint64_t time_ns = snapshot->trace->facts->start_realtime_ns + event->time_ns;

	pickler_item(pickler, &snapshot->events);
	pickler_open_dict(pickler);
	pickler_key_text(pickler, "action", names[event->action]);
	pickler_key_integer(pickler, is_oom ? "device_free" : "addr",
		(int64_t)(is_oom ? event->free_bytes : event->address));
	pickler_key_integer(pickler, "size", (int64_t)event->bytes);
	pickler_key_integer(pickler, "stream", event->stream);
	pickler_key_integer(pickler, "time_us", (int64_t)(time_ns / 1000));
	put_frames(snapshot, event->stack_id);
	if (event->direct && event->action == SNAPSHOT_ALLOC)
		put_origin(snapshot, event);
	pickler_close_dict(pickler);
}

static void put_block(struct torch_snapshot *snapshot, const struct snapshot_block *block)
{
	static const char *const names[] = {
		[SNAPSHOT_ACTIVE] = "active_allocated",
		[SNAPSHOT_PENDING] = "active_pending_free",
		[SNAPSHOT_INACTIVE] = "inactive",
	};
	struct pickler *pickler = &snapshot->pickler;
	bool is_inactive = block->state == SNAPSHOT_INACTIVE;

	pickler_open_dict(pickler);
	pickler_key_integer(pickler, "address", (int64_t)block->address);
	pickler_key_integer(pickler, "size", (int64_t)block->bytes);
	/* What was asked for before rounding is not recorded. */
	pickler_key_integer(pickler, "requested_size", is_inactive ? 0 : (int64_t)block->bytes);
	pickler_key_text(pickler, "state", names[block->state]);
	if (!is_inactive)
		put_frames(snapshot, block->stack_id);
	pickler_close_dict(pickler);
}

static uint64_t sum_of(const struct snapshot_layout *layout, const struct snapshot_segment *segment,
	enum snapshot_state state)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < segment->n_blocks; i++)
		if (layout->blocks[segment->first_block + i].state == state)
			bytes += layout->blocks[segment->first_block + i].bytes;
	return bytes;
}

static void put_segment(struct torch_snapshot *snapshot, const struct snapshot_layout *layout,
	const struct snapshot_segment *segment, size_t device)
{
	uint64_t allocated = sum_of(layout, segment, SNAPSHOT_ACTIVE);
	uint64_t active = allocated + sum_of(layout, segment, SNAPSHOT_PENDING);
	struct pickler *pickler = &snapshot->pickler;
	struct pickler_list blocks;

	pickler_open_dict(pickler);
	pickler_key_integer(pickler, "device", (int64_t)device);
	pickler_key_integer(pickler, "address", (int64_t)segment->address);
	pickler_key_integer(pickler, "total_size", (int64_t)segment->bytes);
	pickler_key_integer(pickler, "allocated_size", (int64_t)allocated);
	pickler_key_integer(pickler, "active_size", (int64_t)active);
	pickler_key_integer(pickler, "requested_size", (int64_t)allocated);
	pickler_key_integer(pickler, "stream", segment->stream);
	pickler_key_text(
		pickler, "segment_type", segment->bytes <= SMALL_SEGMENT_BYTES ? "small" : "large");
	pickler_text(pickler, "segment_pool_id");
	/* Which of the graphs' pools is not known. */
	pickler_pair(pickler, 0, segment->captured);
	pickler_key_bool(pickler, "is_expandable", segment->expandable);
	put_frames(snapshot, segment->stack_id);
	pickler_text(pickler, "blocks");
	pickler_open_list(pickler, &blocks);
	for (size_t i = 0; i < segment->n_blocks; i++) {
		pickler_item(pickler, &blocks);
		put_block(snapshot, &layout->blocks[segment->first_block + i]);
	}
	pickler_close_list(pickler, &blocks);
	pickler_close_dict(pickler);
}

static void put_settings(struct torch_snapshot *snapshot)
{
	struct vt_text conf = {0};
	struct pickler *pickler = &snapshot->pickler;
	char *text;

	for (size_t i = 0; !conf.data && i < 2; i++)
		conf = model_environment_get(snapshot->trace->source.model,
			(const char *const[]){"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}[i]);
	text = memory_new(conf.bytes + 1, 1);
	for (size_t i = 0; conf.data && i < conf.bytes; i++)
		text[i] = conf.data[i];
	pickler_text(pickler, "allocator_settings");
	pickler_open_dict(pickler);
	pickler_key_text(
		pickler, "PYTORCH_CUDA_ALLOC_CONF", export_name_set(&snapshot->name, text));
	pickler_close_dict(pickler);
	free(text);
}

void torch_snapshot_put_segments(
	struct torch_snapshot *snapshot, const struct snapshot_layout *layouts, size_t n)
{
	struct pickler *pickler = &snapshot->pickler;
	struct pickler_list segments;

	pickler_close_list(pickler, &snapshot->devices);
	pickler_text(pickler, "segments");
	pickler_open_list(pickler, &segments);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < layouts[i].n_segments; k++) {
			pickler_item(pickler, &segments);
			put_segment(snapshot, &layouts[i], &layouts[i].segments[k], i);
		}
	}
	pickler_close_list(pickler, &segments);
	put_settings(snapshot);
}

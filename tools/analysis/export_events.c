#include "analysis/export_events.h"

#include "model/events.h"

static uint64_t call_of(uint64_t api_id, uint64_t caller_api)
{
	return caller_api ? caller_api : api_id;
}

/* The call and stack of the record that an event comes with, where it has them. */
static void note_record(struct export_event *event, const struct vt_record *record)
{
	event->time_ns = record->time_ns;
	event->tid = record->tid;
	switch (record->kind) {
	case VT_REC_alloc:
		event->api_id = call_of(record->alloc.api_id, record->alloc.caller_api);
		event->stack_id = record->alloc.stack_id;
		break;
	case VT_REC_free:
		event->api_id = call_of(record->free.api_id, record->free.caller_api);
		event->stack_id = record->free.stack_id;
		break;
	case VT_REC_failure:
		event->api_id = call_of(record->failure.api_id, record->failure.caller_api);
		event->stack_id = record->failure.stack_id;
		break;
	case VT_REC_handle_create:
		event->api_id = record->handle_create.api_id;
		event->stack_id = record->handle_create.stack_id;
		break;
	case VT_REC_handle_release:
		event->api_id = record->handle_release.api_id;
		event->stack_id = record->handle_release.stack_id;
		break;
	case VT_REC_map:
		event->api_id = record->map.api_id;
		event->stack_id = record->map.stack_id;
		break;
	case VT_REC_unmap:
		event->api_id = record->unmap.api_id;
		event->stack_id = record->unmap.stack_id;
		break;
	case VT_REC_graph:
		event->api_id = record->graph.api_id;
		event->stack_id = record->graph.stack_id;
		break;
	case VT_REC_block_alloc:
		event->stack_id = record->block_alloc.stack_id;
		break;
	case VT_REC_block_failure:
		event->stack_id = record->block_failure.stack_id;
		break;
	default:
		break;
	}
}

static void tell(const struct export_events_request *request, struct export_event *event,
	const struct vt_record *record)
{
	note_record(event, record);
	if (!request->one_device || event->device == request->device)
		request->event(request->user, event);
}

static void fill_block(struct export_event *event, const struct model_event *change)
{
	const struct model_block *block = change->block;

	event->kind = change->kind == MODEL_BLOCK_BEGIN ? EXPORT_ALLOC
		      : change->teardown		? EXPORT_TEARDOWN
							: EXPORT_FREE;
	event->device = block->device->ordinal;
	event->memory_kind = block->kind;
	/* Physical memory has none, and shared memory of that sort is told by its mappings. */
	event->addressed = block->node.key != 0;
	event->address = block->node.key;
	event->bytes = block->bytes;
}

static void fill_mapping(struct export_event *event, const struct model_event *change)
{
	const struct model_mapping *mapping = change->mapping;

	event->kind = change->kind == MODEL_MAPPING_BEGIN ? EXPORT_MAP : EXPORT_UNMAP;
	event->device =
		mapping->physical ? mapping->physical->block.device->ordinal : MODEL_DEVICE_UNKNOWN;
	event->memory_kind = mapping->physical ? mapping->physical->block.kind : VT_KIND_NONE;
	event->addressed = true;
	event->address = mapping->node.key;
	event->bytes = mapping->bytes;
}

static void fill_piece(struct export_event *event, const struct model_event *change)
{
	const struct model_piece *piece = change->piece;
	const struct model_allocator *allocator = change->allocator;
	const struct model_holding *holding =
		piece->segment ? &allocator->holdings[piece->segment->holding] : NULL;

	event->kind = change->kind == MODEL_PIECE_BEGIN ? EXPORT_BLOCK_ALLOC
		      : change->was_pending		? EXPORT_BLOCK_READY
							: EXPORT_BLOCK_FREE;
	event->device = holding ? holding->device->ordinal : allocator->device;
	event->memory_kind = holding ? holding->kind : VT_KIND_NONE;
	event->allocator_id = allocator->allocator_id;
	event->addressed = true;
	event->address = piece->node.key;
	event->bytes = piece->bytes;
}

static void listen(void *user, const struct model *model, const struct vt_record *record,
	const struct model_event *change)
{
	struct export_event event = {0};

	(void)model;
	switch (change->kind) {
	case MODEL_BLOCK_BEGIN:
	case MODEL_BLOCK_END:
		fill_block(&event, change);
		break;
	case MODEL_MAPPING_BEGIN:
	case MODEL_MAPPING_END:
		fill_mapping(&event, change);
		break;
	case MODEL_PIECE_BEGIN:
	case MODEL_PIECE_PENDING:
	case MODEL_PIECE_END:
		fill_piece(&event, change);
		break;
	default:
		return;
	}
	tell(user, &event, record);
}

static void observe(void *user, const struct model *model, const struct vt_record *record)
{
	struct export_event event = {.kind = EXPORT_REFUSED};
	const struct model_allocator *allocator;

	if (record->kind == VT_REC_failure) {
		bool on_host = record->failure.kind == VT_KIND_PINNED ||
			       record->failure.kind == VT_KIND_REGISTERED;

		event.device =
			on_host ? MODEL_DEVICE_HOST
			: record->failure.device < 0 || record->failure.device > MODEL_MAX_ORDINAL
				? MODEL_DEVICE_UNKNOWN
				: (int)record->failure.device;
		event.memory_kind = record->failure.kind < VT_N_KINDS
					    ? (uint32_t)record->failure.kind
					    : VT_KIND_NONE;
		event.bytes = record->failure.bytes;
	} else if (record->kind == VT_REC_block_failure) {
		allocator = model_allocator_find(model, record->block_failure.allocator_id);
		event.device = allocator ? allocator->device : MODEL_DEVICE_UNKNOWN;
		event.allocator_id = record->block_failure.allocator_id;
		event.bytes = record->block_failure.bytes;
	} else {
		return;
	}
	tell(user, &event, record);
}

int export_events_make(struct replay *replay, const struct export_events_request *request)
{
	/* Only read. */
	return replay_follow(replay, &(struct replay_hooks){.observer = observe,
					     .listener = listen,
					     .user = (void *)(uintptr_t)request});
}

const char *export_event_name(enum export_event_kind kind)
{
	static const char *const names[] = {
		[EXPORT_ALLOC] = "alloc",
		[EXPORT_FREE] = "free",
		[EXPORT_TEARDOWN] = "teardown",
		[EXPORT_MAP] = "map",
		[EXPORT_UNMAP] = "unmap",
		[EXPORT_BLOCK_ALLOC] = "block_alloc",
		[EXPORT_BLOCK_FREE] = "block_free",
		[EXPORT_BLOCK_READY] = "block_ready",
		[EXPORT_REFUSED] = "refused",
	};

	return names[kind];
}

/* What came before a refusal. */
#include <inttypes.h>
#include <string.h>

#include "model/blocks.h"
#include "output/format.h"
#include "output/oom_text.h"

#define MAX_LABEL 200u

/* What is shown of a record, whatever its kind. */
struct event {
	uint64_t api_id; /* 0: none */
	uint64_t caller_api;
	const char *what; /* where there is no call */
	uint64_t bytes;	  /* 0: none, or not told */
	uint64_t address; /* or handle; 0: none */
	uint64_t stack_id;
	uint64_t result;
};

static struct event event_of_address_space(const struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_reserve:
		return (struct event){record->reserve.api_id, 0, NULL, record->reserve.bytes,
			record->reserve.address, record->reserve.stack_id, record->reserve.result};
	case VT_REC_unreserve:
		return (struct event){record->unreserve.api_id, 0, NULL, record->unreserve.bytes,
			record->unreserve.address, 0, record->unreserve.result};
	case VT_REC_handle_create:
		return (struct event){record->handle_create.api_id, 0, NULL,
			record->handle_create.bytes, record->handle_create.handle,
			record->handle_create.stack_id, 0};
	case VT_REC_handle_release:
		return (struct event){record->handle_release.api_id, 0, NULL, 0,
			record->handle_release.handle, record->handle_release.stack_id,
			record->handle_release.result};
	case VT_REC_handle_retain:
		return (struct event){record->handle_retain.api_id, 0, NULL, 0,
			record->handle_retain.handle, 0, record->handle_retain.result};
	case VT_REC_map:
		return (struct event){record->map.api_id, 0, NULL, record->map.bytes,
			record->map.address, record->map.stack_id, record->map.result};
	default: /* VT_REC_unmap */
		return (struct event){record->unmap.api_id, 0, NULL, record->unmap.bytes,
			record->unmap.address, record->unmap.stack_id, record->unmap.result};
	}
}

static struct event event_of_device(const struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_pool:
		return (struct event){record->pool.api_id, 0, NULL, 0, record->pool.pool,
			record->pool.stack_id, record->pool.result};
	case VT_REC_graph_alloc:
		return (struct event){record->graph_alloc.api_id, 0, NULL,
			record->graph_alloc.bytes, record->graph_alloc.address,
			record->graph_alloc.stack_id, record->graph_alloc.result};
	case VT_REC_graph_free:
		return (struct event){record->graph_free.api_id, 0, NULL, 0,
			record->graph_free.address, record->graph_free.stack_id,
			record->graph_free.result};
	case VT_REC_graph:
		return (struct event){record->graph.api_id, 0, NULL, 0, record->graph.exec,
			record->graph.stack_id, record->graph.result};
	case VT_REC_migrate:
		return (struct event){record->migrate.api_id, 0, NULL, record->migrate.bytes,
			record->migrate.address, record->migrate.stack_id, record->migrate.result};
	case VT_REC_context:
		return (struct event){record->context.api_id, 0, NULL, 0,
			record->context.context_id, 0, record->context.result};
	default: /* VT_REC_capture */
		return (struct event){record->capture.api_id, 0, NULL, 0, record->capture.stream, 0,
			record->capture.result};
	}
}

static struct event event_of(const struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_alloc:
		return (struct event){record->alloc.api_id, record->alloc.caller_api, NULL,
			record->alloc.bytes, record->alloc.address, record->alloc.stack_id, 0};
	case VT_REC_free:
		return (struct event){record->free.api_id, record->free.caller_api, NULL, 0,
			record->free.address, record->free.stack_id, record->free.result};
	case VT_REC_failure:
		return (struct event){record->failure.api_id, record->failure.caller_api, NULL,
			record->failure.bytes, 0, record->failure.stack_id, record->failure.result};
	case VT_REC_block_alloc:
		return (struct event){0, 0, "block handed out", record->block_alloc.bytes,
			record->block_alloc.address, record->block_alloc.stack_id, 0};
	case VT_REC_block_free:
		return (struct event){0, 0, "block given back", record->block_free.bytes,
			record->block_free.address, 0, 0};
	case VT_REC_block_failure:
		return (struct event){0, 0, "block refused", record->block_failure.bytes, 0,
			record->block_failure.stack_id, VT_RESULT_OUT_OF_MEMORY};
	case VT_REC_reserve:
	case VT_REC_unreserve:
	case VT_REC_handle_create:
	case VT_REC_handle_release:
	case VT_REC_handle_retain:
	case VT_REC_map:
	case VT_REC_unmap:
		return event_of_address_space(record);
	default:
		return event_of_device(record);
	}
}

static void put_event(const struct style *style, const struct stack_source *source,
	const struct vt_record *record, uint64_t refused_ns)
{
	struct event event = event_of(record);
	const char *name = event.what
				   ? event.what
				   : model_call_name(source->model, event.api_id, event.caller_api);
	char label[MAX_LABEL];

	fprintf(style->out, "   %10s before  ",
		format_duration(refused_ns > record->time_ns ? refused_ns - record->time_ns : 0)
			.text);
	style_put_cut(style, name ? name : "a call", 24, true);
	fprintf(style->out, " %10s", event.bytes ? format_bytes(event.bytes).text : "");
	fprintf(style->out, event.address ? "  0x%" PRIx64 : "  -", event.address);
	if (event.result)
		fputs(" failed", style->out);
	if (event.stack_id) {
		stack_label(source, event.stack_id, label, sizeof(label));
		fputs("  ", style->out);
		format_put_text(style->out, (struct vt_text){label, strlen(label)});
	}
	fputc('\n', style->out);
}

void oom_put_events(
	const struct style *style, const struct stack_source *source, const struct oom *oom)
{
	const struct episode *episode = &oom->episode;

	if (!episode->n_events)
		return;
	style_put(style, STYLE_HEADING, "What came before");
	fputc('\n', style->out);
	for (size_t i = 0; i < episode->n_events; i++)
		put_event(style, source, &episode->events[i], episode->first_ns);
}

#include "output/json_blocks.h"

#include "analysis/coverage.h"
#include "analysis/layout.h"
#include "output/blocks_text.h"

static void put_stream(struct json *json, const struct layout_segment *segment)
{
	if (segment->stream_known)
		json_signed(json, "stream", segment->stream);
	else
		json_null(json, "stream");
	if (segment->stream_known)
		json_bool(json, "captured", segment->captured);
	else
		json_null(json, "captured");
}

static void put_layout(
	struct json *json, const struct model *model, const struct model_allocator *allocator)
{
	struct layout layout;

	layout_make(&layout, model, allocator);
	json_open(json, "segment_list", '[');
	for (size_t i = 0; i < layout.n_segments; i++) {
		const struct layout_segment *segment = &layout.segments[i];

		json_open(json, NULL, '{');
		json_hex(json, "address", segment->address);
		json_number(json, "size", segment->bytes);
		json_string(json, "kind", model_kind_name(segment->kind));
		json_bool(json, "expandable", segment->mapped);
		put_stream(json, segment);
		json_open(json, "blocks", '[');
		for (size_t k = 0; k < segment->n_ranges; k++) {
			const struct layout_range *range = &layout.ranges[segment->first_range + k];

			json_open(json, NULL, '{');
			json_hex(json, "address", range->address);
			json_number(json, "size", range->bytes);
			json_string(json, "state", layout_state_name(range->state));
			json_close(json, '}');
		}
		json_close(json, ']');
		json_close(json, '}');
	}
	json_close(json, ']');
	json_number(json, "segments", layout.n_segments);
	layout_release(&layout);
}

static void put_checks(struct json *json, const struct model_check *check)
{
	if (!check->known) {
		json_null(json, "self_check");
		return;
	}
	json_open(json, "self_check", '{');
	json_number(json, "reports", check->n_reports);
	json_number(json, "allocated_differ", check->n_allocated_differ);
	json_number(json, "reserved_differ", check->n_reserved_differ);
	json_number_or_null(json, "first_ns", check->n_allocated_differ || check->n_reserved_differ,
		check->first_ns);
	json_close(json, '}');
}

static void put_sums(struct json *json, const struct model_allocator *allocator, bool whole)
{
	json_number(json, "allocated_bytes", allocator->live_bytes);
	json_number(json, "reserved_bytes", allocator->reserved_bytes);
	json_number(json, "peak_allocated_bytes", allocator->peak_live.bytes);
	json_number(json, "peak_reserved_bytes", allocator->peak_reserved.bytes);
	json_number(json, "active_bytes", allocator->live_bytes + allocator->pending_bytes);
	/* A checkpoint tells neither what waited for streams nor how segments were split. */
	json_number_or_null(json, "peak_active_bytes", whole, allocator->peak_active.bytes);
	json_number(json, "pending_bytes", allocator->pending_bytes);
	json_number(json, "inactive_split_bytes", allocator->split_bytes);
	json_number_or_null(json, "peak_inactive_split_bytes", whole, allocator->peak_split.bytes);
	json_number(json, "outside_bytes", allocator->outside_bytes);
	json_number(json, "blocks", allocator->live.n_nodes);
	json_number(json, "pending_blocks", allocator->pending.n_nodes);
	json_number(json, "allocations", allocator->n_allocs);
	json_number(json, "frees", allocator->n_frees);
	json_number(json, "bytes_allocated", allocator->alloc_bytes);
	json_number(json, "refused", allocator->n_failures);
	json_number(json, "unknown_frees", allocator->n_unknown_frees);
	json_number(json, "missed_frees", allocator->n_missed_frees);
	json_number(json, "lost_blocks", allocator->n_lost_pieces);
}

static void put_allocator(struct json *json, const struct report_trace *trace, size_t index,
	const struct model_allocator *allocator)
{
	json_open(json, NULL, '{');
	json_number(json, "trace", index);
	if (allocator->layer == VT_LAYER_TORCH) {
		json_number_or_null(
			json, "ordinal", allocator->device >= 0, (uint64_t)allocator->device);
		json_text_or_null(json, "version", allocator->version);
		json_text_or_null(json, "path", show_path_text(&trace->show, allocator->path));
	} else {
		json_text(json, "name", allocator->name);
	}
	put_sums(json, allocator, !trace->overview->replay->model->part);
	put_layout(json, trace->overview->replay->model, allocator);
	put_checks(json, &allocator->check);
	json_close(json, '}');
}

static void put_all(struct json *json, const struct report_trace *traces, size_t n, bool torch)
{
	for (size_t i = 0; i < n; i++) {
		const struct model *model = traces[i].overview->replay->model;

		for (const struct model_allocator *allocator = model->allocators; allocator;
			allocator = allocator->hh.next)
			if ((allocator->layer == VT_LAYER_TORCH) == torch)
				put_allocator(json, &traces[i], i, allocator);
	}
}

static bool any_loaded(const struct report_trace *traces, size_t n)
{
	struct torch_coverage coverage;

	for (size_t i = 0; i < n; i++) {
		torch_coverage_get(&coverage, traces[i].overview->replay->model);
		if (coverage.loaded)
			return true;
	}
	return false;
}

void json_torch(struct json *json, const struct report_trace *traces, size_t n)
{
	if (!any_loaded(traces, n)) {
		json_null(json, "torch");
		return;
	}
	json_open(json, "torch", '{');
	json_open(json, "devices", '[');
	put_all(json, traces, n, true);
	json_close(json, ']');
	json_close(json, '}');
}

void json_allocators(struct json *json, const struct report_trace *traces, size_t n)
{
	json_open(json, "allocators", '[');
	put_all(json, traces, n, false);
	json_close(json, ']');
}

void json_torch_coverage(struct json *json, const struct report_trace *traces, size_t n)
{
	bool blocks = false;

	if (!any_loaded(traces, n)) {
		json_null(json, "torch");
		return;
	}
	json_open(json, "torch", '{');
	json_open(json, "limits", '[');
	for (size_t i = 0; i < n; i++) {
		struct torch_coverage coverage;

		torch_coverage_get(&coverage, traces[i].overview->replay->model);
		blocks = blocks || coverage.blocks;
		for (size_t k = 0; k < coverage.n_limits; k++)
			json_string(json, NULL, coverage.limits[k]);
	}
	json_close(json, ']');
	json_bool(json, "blocks", blocks);
	json_close(json, '}');
}

void json_site_level(struct json *json, const struct model *model, const struct site_row *row)
{
	static const char *const levels[] = {
		[SITE_DRIVER] = "driver", [SITE_BLOCK] = "block", [SITE_IDLE] = "idle"};
	const struct model_allocator *allocator = model_allocator_find(model, row->allocator_id);

	json_string(json, "level", levels[row->level]);
	if (allocator)
		json_text(json, "allocator", allocator->name);
	else
		json_null(json, "allocator");
}

void json_site_stack(
	struct json *json, const struct stack_source *source, const struct site_row *row)
{
	if (row->level != SITE_IDLE) {
		stack_json(json, source, row->stack_id);
		return;
	}
	json_string(json, "owner", blocks_idle_owner(source->model, row->allocator_id));
	json_null(json, "stack");
	json_null(json, "stack_missing");
}

#include "analysis/layout.h"

#include <stdlib.h>

#include "model/memory.h"

static void add_range(struct layout *layout, uint64_t address, uint64_t bytes,
	enum layout_state state, const struct model_piece *piece)
{
	if (!bytes)
		return;
	layout->ranges = memory_grow(
		layout->ranges, layout->n_ranges, &layout->ranges_room, sizeof(*layout->ranges));
	layout->ranges[layout->n_ranges++] = (struct layout_range){address, bytes, state, piece};
}

/* Whether more goes on where the last segment ends. */
static bool continues(const struct layout_segment *last, const struct model *model,
	const struct model_segment *segment, const struct model_holding *holding)
{
	return last && last->mapped && segment->mapped &&
	       last->address + last->bytes == segment->node.key &&
	       last->device == holding->device && last->kind == holding->kind &&
	       model_in_one_reservation(model, last->address, segment->node.key);
}

static void add_segment(struct layout *layout, const struct model *model,
	const struct model_allocator *allocator, const struct model_segment *segment)
{
	const struct model_holding *holding = &allocator->holdings[segment->holding];
	struct layout_segment *last =
		layout->n_segments ? &layout->segments[layout->n_segments - 1] : NULL;

	if (continues(last, model, segment, holding)) {
		last->bytes += segment->bytes;
		return;
	}
	layout->segments = memory_grow(layout->segments, layout->n_segments, &layout->segments_room,
		sizeof(*layout->segments));
	layout->segments[layout->n_segments++] = (struct layout_segment){
		.address = segment->node.key,
		.bytes = segment->bytes,
		.device = holding->device,
		.kind = holding->kind,
		.mapped = segment->mapped,
		.stream_known = segment->stream_known,
		.stream = segment->stream,
		.captured = segment->captured,
	};
}

static void fill(struct layout *layout, struct layout_segment *segment,
	const struct model_allocator *allocator)
{
	const struct model_piece *live = model_piece_from(&allocator->live, segment->address);
	const struct model_piece *pending = model_piece_from(&allocator->pending, segment->address);
	uint64_t at = segment->address, end = segment->address + segment->bytes;

	segment->first_range = layout->n_ranges;
	for (;;) {
		bool is_live = live && (!pending || live->node.key <= pending->node.key);
		const struct model_piece *piece = is_live ? live : pending;

		if (!piece || piece->node.key >= end)
			break;
		if (is_live)
			live = model_piece_next(&allocator->live, live);
		else
			pending = model_piece_next(&allocator->pending, pending);
		if (piece->node.key < at || piece->bytes > end - piece->node.key)
			continue;
		add_range(layout, at, piece->node.key - at, LAYOUT_INACTIVE, NULL);
		add_range(layout, piece->node.key, piece->bytes,
			is_live ? LAYOUT_ACTIVE : LAYOUT_PENDING, piece);
		at = piece->node.key + piece->bytes;
	}
	add_range(layout, at, end - at, LAYOUT_INACTIVE, NULL);
	segment->n_ranges = layout->n_ranges - segment->first_range;
}

void layout_make(
	struct layout *layout, const struct model *model, const struct model_allocator *allocator)
{
	*layout = (struct layout){0};
	for (const struct model_segment *segment = model_segment_first(allocator); segment;
		segment = model_segment_next(allocator, segment))
		add_segment(layout, model, allocator, segment);
	for (size_t i = 0; i < layout->n_segments; i++)
		fill(layout, &layout->segments[i], allocator);
}

void layout_release(struct layout *layout)
{
	free(layout->segments);
	free(layout->ranges);
	*layout = (struct layout){0};
}

const char *layout_state_name(enum layout_state state)
{
	static const char *const names[] = {
		[LAYOUT_ACTIVE] = "active",
		[LAYOUT_PENDING] = "pending",
		[LAYOUT_INACTIVE] = "inactive",
	};

	return names[state];
}

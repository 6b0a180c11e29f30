#include "output/blocks_text.h"

#include <string.h>

#include "analysis/coverage.h"
#include "output/line.h"

void blocks_name(const struct model *model, uint64_t allocator_id, char *buffer, size_t size)
{
	const struct model_allocator *allocator = model_allocator_find(model, allocator_id);

	if (allocator && allocator->name.bytes)
		snprintf(buffer, size, "%.*s", (int)allocator->name.bytes, allocator->name.data);
	else
		snprintf(buffer, size, "an allocator");
}

const char *blocks_idle_owner(const struct model *model, uint64_t allocator_id)
{
	const struct model_allocator *allocator = model_allocator_find(model, allocator_id);

	return allocator && allocator->layer == VT_LAYER_TORCH ? "torch" : NULL;
}

static void put_name(const struct style *style, const struct model_allocator *allocator)
{
	if (allocator->layer == VT_LAYER_TORCH) {
		fputs("PyTorch", style->out);
		if (allocator->version.bytes) {
			fputc(' ', style->out);
			format_put_text(style->out, allocator->version);
		}
	} else {
		format_put_text(style->out, allocator->name);
	}
	if (allocator->device >= 0)
		fprintf(style->out, " on %s", report_device_name(allocator->device).text);
}

static void put_allocator(const struct style *style, const struct model_allocator *allocator)
{
	uint64_t used = allocator->live_bytes + allocator->pending_bytes;

	put_name(style, allocator);
	fprintf(style->out, ": %s in %s %s, of %s in %s %s; at most %s of %s\n",
		format_bytes(allocator->live_bytes).text,
		format_count(allocator->live.n_nodes).text,
		line_plural(allocator->live.n_nodes, "block", "blocks"),
		format_bytes(allocator->reserved_bytes).text,
		format_count(allocator->segments.n_nodes).text,
		line_plural(allocator->segments.n_nodes, "segment", "segments"),
		format_bytes(allocator->peak_live.bytes).text,
		format_bytes(allocator->peak_reserved.bytes).text);
	if (allocator->pending_bytes) {
		line_begin(style, NULL, false);
		fprintf(style->out, "%10s  freed in %s %s, waiting for other streams\n",
			format_bytes(allocator->pending_bytes).text,
			format_count(allocator->pending.n_nodes).text,
			line_plural(allocator->pending.n_nodes, "block", "blocks"));
	}
	if (allocator->reserved_bytes > used) {
		line_begin(style, NULL, false);
		fprintf(style->out, "%10s  not in use",
			format_bytes(allocator->reserved_bytes - used).text);
		if (allocator->split_bytes)
			fprintf(style->out, ", %s of it in segments that are",
				format_bytes(allocator->split_bytes).text);
		fputc('\n', style->out);
	}
}

void blocks_put(const struct style *style, const struct model *model)
{
	const char *heading = "BLOCKS";

	for (const struct model_allocator *allocator = model->allocators; allocator;
		allocator = allocator->hh.next) {
		if (!allocator->n_allocs)
			continue;
		line_begin(style, heading, false);
		put_allocator(style, allocator);
		heading = NULL;
	}
}

static void put_line(const struct style *style, const char **heading, const char *text)
{
	line_begin(style, *heading, false);
	fprintf(style->out, "%s\n", text);
	*heading = NULL;
}

static void put_check(
	const struct style *style, const struct model_allocator *allocator, const char **heading)
{
	const struct model_check *check = &allocator->check;
	uint64_t n = check->n_allocated_differ > check->n_reserved_differ
			     ? check->n_allocated_differ
			     : check->n_reserved_differ;

	if (!n)
		return;
	line_begin(style, *heading, true);
	put_name(style, allocator);
	fprintf(style->out,
		": the sums it passes differ from those of its blocks in %s of %s reports, first "
		"at %s\n",
		format_count(n).text, format_count(check->n_reports).text,
		format_moment(check->first_ns).text);
	*heading = NULL;
}

static void put_count(const struct style *style, const struct model_allocator *allocator,
	const char **heading, uint64_t n, const char *what)
{
	if (!n)
		return;
	line_begin(style, *heading, false);
	put_name(style, allocator);
	fprintf(style->out, ": %s %s %s\n", format_count(n).text, line_plural(n, "block", "blocks"),
		what);
	*heading = NULL;
}

void blocks_put_not_seen(const struct style *style, const struct model *model, const char **heading)
{
	struct torch_coverage coverage;

	for (const struct model_allocator *allocator = model->allocators; allocator;
		allocator = allocator->hh.next) {
		put_check(style, allocator, heading);
		put_count(style, allocator, heading, allocator->n_unknown_frees,
			"freed that had not been seen allocated");
		put_count(style, allocator, heading, allocator->n_missed_frees,
			"whose memory was handed out again without a free");
		put_count(style, allocator, heading, allocator->n_lost_pieces,
			"live when their memory went back to the driver");
	}
	torch_coverage_get(&coverage, model);
	for (size_t i = 0; i < coverage.n_limits; i++)
		put_line(style, heading, coverage.limits[i]);
}

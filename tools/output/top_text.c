#include "output/top_text.h"

#include <stdlib.h>
#include <string.h>

#include "model/blocks.h"
#include "model/memory.h"
#include "output/line.h"
#include "output/report.h"

#define MAX_LABEL   200u
#define OWNER_WIDTH 12u
#define MAX_OWNERS  4u

static void put_program(const struct style *style, const struct top_view *view)
{
	const struct trace_facts *facts = view->facts;
	const char *dot = style_dot(style);

	style_switch(style, STYLE_HEADING);
	if (facts->cmdline.bytes)
		format_put_arguments(style->out, facts->cmdline, style->width / 2);
	else
		format_put_text(style->out, facts->exe);
	style_switch(style, STYLE_PLAIN);
	fprintf(style->out, "%spid %llu%s%s%s%s events%s%s\n", dot, (unsigned long long)facts->pid,
		dot, format_duration(view->top->now_ns).text, dot,
		format_count(facts->n_events).text, dot,
		facts->end == TRACE_END_RUNNING ? "running" : "ended");
}

static void put_device(const struct style *style, const struct model_device *device)
{
	fprintf(style->out, "%s  %s held, peak %s at %s", report_device_name(device->ordinal).text,
		format_bytes(device->tracked_bytes).text,
		format_bytes(device->peak_tracked_bytes).text,
		format_moment(device->peak_time_ns).text);
	if (device->account.seen)
		fprintf(style->out, "; %s of %s in use by all",
			format_bytes(device->last_sample.used_bytes).text,
			format_bytes(device->account.total_bytes).text);
	fputc('\n', style->out);
}

struct owner {
	const char *name;
	uint64_t bytes;
};

static const char *owner_of(const struct top_view *view, const struct site_row *site)
{
	const struct model_allocator *allocator =
		site->level == SITE_IDLE
			? model_allocator_find(view->source.model, site->allocator_id)
			: NULL;
	const char *name = allocator && allocator->layer == VT_LAYER_TORCH
				   ? "torch"
				   : stack_owner(&view->source, site->stack_id);

	return name ? name : "(unknown)";
}

static int compare_owners(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	return (y->bytes > x->bytes) - (y->bytes < x->bytes);
}

static void put_owners(const struct style *style, const struct top_view *view)
{
	struct owner *owners = memory_new(view->top->n_rows, sizeof(*owners));
	size_t n = 0;

	for (size_t i = 0; i < view->top->n_rows; i++) {
		const struct site_row *site = &view->top->rows[i].site;
		const char *name = owner_of(view, site);
		size_t k = 0;

		if (!model_kind_tracked(site->kind))
			continue;
		while (k < n && strcmp(owners[k].name, name))
			k++;
		if (k == n)
			owners[n++].name = name;
		owners[k].bytes += site->bytes;
	}
	qsort(owners, n, sizeof(*owners), compare_owners);
	fputs("owners ", style->out);
	for (size_t k = 0; k < n && k < MAX_OWNERS; k++) {
		fprintf(style->out, "%s %s ", k ? "," : "", format_bytes(owners[k].bytes).text);
		format_put_text(
			style->out, (struct vt_text){owners[k].name, strlen(owners[k].name)});
	}
	if (n > MAX_OWNERS)
		fprintf(style->out, ", and %zu more", n - MAX_OWNERS);
	fputs(n ? "\n" : " none\n", style->out);
	free(owners);
}

static void put_rates(const struct style *style, const struct top *top)
{
	double seconds = (double)(top->now_ns - top->since_ns) / 1e9;

	if (seconds > 0)
		fprintf(style->out, "%.1f allocations/s, %.1f frees/s over %s; ",
			(double)top->n_allocs / seconds, (double)top->n_frees / seconds,
			format_duration(top->now_ns - top->since_ns).text);
	style_switch(style, top->n_out_of_memory ? STYLE_WARNING : STYLE_PLAIN);
	fprintf(style->out, "out of memory: %s\n", format_count(top->n_out_of_memory).text);
	style_switch(style, STYLE_PLAIN);
}

void top_put_head(const struct style *style, const struct top_view *view)
{
	const struct model *model = view->source.model;

	put_program(style, view);
	for (size_t i = 0; i < model->n_devices; i++)
		if (model->devices[i]->peak_tracked_bytes || model->devices[i]->n_contexts)
			put_device(style, model->devices[i]);
	put_owners(style, view);
	put_rates(style, view->top);
	fprintf(style->out, "by %s%s%s%s\n", top_order_name(view->order),
		view->filter ? ", with \"" : "", view->filter ? view->filter : "",
		view->filter ? "\"" : "");
	style_put(style, STYLE_HEADING, "      LIVE        GROWTH    COUNT  OWNER         WHERE");
	fputc('\n', style->out);
}

static void put_label(
	const struct top_view *view, const struct site_row *site, char *label, size_t size)
{
	if (site->level == SITE_IDLE)
		snprintf(label, size, "(reserved by the allocator and not in use)");
	else
		stack_label(&view->source, site->stack_id, label, size);
}

bool top_put_row(const struct style *style, const struct top_view *view, const struct top_row *row)
{
	const struct site_row *site = &row->site;
	const char *owner = owner_of(view, site);
	char label[MAX_LABEL];

	put_label(view, site, label, sizeof(label));
	if (view->filter && !strstr(label, view->filter) && !strstr(owner, view->filter))
		return false;
	fprintf(style->out, "%10s  %12s %8s  ", format_bytes(site->bytes).text,
		row->growth_bytes ? format_signed_bytes(row->growth_bytes).text : "",
		format_count(site->count).text);
	style_put_cut(style, owner, OWNER_WIDTH, true);
	fputs("  ", style->out);
	if (view->source.model->n_devices > 1)
		fprintf(style->out, "%s  ", report_device_name(site->device).text);
	style_put_cut(style, label, style->width > 90 ? style->width - 50 : 40, false);
	if (site->kind != VT_KIND_LINEAR)
		fprintf(style->out, " (%s)", model_kind_name(site->kind));
	fputc('\n', style->out);
	return true;
}

void top_put_stack(
	const struct style *style, const struct top_view *view, const struct top_row *row)
{
	fprintf(style->out, "%s live in %s %s, %s of it %s\n", format_bytes(row->site.bytes).text,
		format_count(row->site.count).text, line_plural(row->site.count, "block", "blocks"),
		format_signed_bytes(row->growth_bytes).text,
		row->growth_bytes < 0 ? "less than before" : "new");
	stack_put(style, &view->source, row->site.stack_id, 2);
}

void top_text(const struct style *style, const struct top_view *view, size_t limit)
{
	size_t n = 0;

	top_put_head(style, view);
	for (size_t i = 0; i < view->top->n_rows && (!limit || n < limit); i++)
		n += top_put_row(style, view, &view->top->rows[i]);
}

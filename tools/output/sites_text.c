#include "output/sites_text.h"

#include <string.h>

#include "output/account_text.h"
#include "output/blocks_text.h"
#include "output/line.h"
#include "output/modules.h"

#define OWNER_COLUMNS 20u

/* In how many of what; and which allocator it is of. */
static void put_count(
	const struct style *style, const struct model *model, const struct site_row *row)
{
	bool idle = row->level == SITE_IDLE;
	char name[100];

	fprintf(style->out, "  in %s %s", format_count(row->count).text,
		line_plural(row->count, idle ? "segment" : "block", idle ? "segments" : "blocks"));
	if (!row->allocator_id)
		return;
	blocks_name(model, row->allocator_id, name, sizeof(name));
	fputs(" of ", style->out);
	format_put_text(style->out, (struct vt_text){name, strlen(name)});
}

void sites_put_heading(
	const struct style *style, const struct stack_source *source, const struct site_row *row)
{
	const char *owner = row->stack_id ? stack_owner(source, row->stack_id) : NULL;

	style_switch(style, STYLE_HEADING);
	fprintf(style->out, "%10s", format_bytes(row->bytes).text);
	style_switch(style, STYLE_PLAIN);
	put_count(style, source->model, row);
	if (row->device == MODEL_DEVICE_HOST)
		fprintf(style->out, ", %s host memory", model_kind_name(row->kind));
	else
		fprintf(style->out, ", %s on %s", model_kind_name(row->kind),
			report_device_name(row->device).text);
	if (owner) {
		fputs(", by ", style->out);
		format_put_text(style->out, (struct vt_text){owner, strlen(owner)});
	}
	if (row->teardown)
		fputs(", ended with its context", style->out);
	fprintf(style->out, "; site used from %s to %s", format_moment(row->first_ns).text,
		format_moment(row->last_ns).text);
	if (row->n_threads > 1)
		fprintf(style->out, " by %zu threads", row->n_threads);
	fputc('\n', style->out);
}

void sites_put_stack(
	const struct style *style, const struct stack_source *source, const struct site_row *row)
{
	if (row->level == SITE_IDLE)
		fprintf(style->out, "%*skept by the allocator, in no block\n", (int)SITES_INDENT,
			"");
	else
		stack_put(style, source, row->stack_id, SITES_INDENT);
	fputc('\n', style->out);
}

void sites_put_left_out(const struct style *style, size_t n, uint64_t bytes)
{
	if (n)
		fprintf(style->out, "%10s  at %s more %s (--limit)\n", format_bytes(bytes).text,
			format_count(n).text, line_plural(n, "site", "sites"));
}

static void put_list(const struct style *style, const struct report_trace *trace,
	const struct site_list *list, const char *nothing)
{
	struct stack_source source = report_stacks(trace);

	for (size_t i = 0; i < list->n_rows; i++) {
		sites_put_heading(style, &source, &list->rows[i]);
		sites_put_stack(style, &source, &list->rows[i]);
	}
	if (!list->n_rows)
		fprintf(style->out, "%s\n", nothing);
	sites_put_left_out(style, list->n_left_out, list->left_out_bytes);
}

static void put_heading(
	const struct style *style, const struct report_trace *trace, const struct view *view)
{
	const struct model *model = trace->overview->replay->model;
	bool first = true;

	if (view->moment.at == REPLAY_AT_PEAK) {
		const struct model_device *device = model_device_find(model, view->moment.device);

		style_put(style, STYLE_HEADING, "PEAK");
		fprintf(style->out, " of %s: %s", report_device_name(device->ordinal).text,
			format_bytes(device->peak_tracked_bytes).text);
		if (device->total_bytes)
			fprintf(style->out, " of %s", format_bytes(device->total_bytes).text);
		fprintf(style->out, " at %s\n\n", format_moment(view->time_ns).text);
		return;
	}
	style_put(style, STYLE_HEADING, "LIVE");
	fprintf(style->out, " at %s", format_moment(view->time_ns).text);
	if (view->moment.at == REPLAY_AT_RECORD)
		fprintf(style->out, ", when memory was refused (%s)", view->at);
	fputc(':', style->out);
	for (size_t i = 0; i < view->n_devices; i++, first = false)
		fprintf(style->out, "%s %s on %s", first ? "" : ",",
			format_bytes(view->devices[i].tracked_bytes).text,
			report_device_name(view->devices[i].ordinal).text);
	fputs("\n\n", style->out);
}

static void begin_warning(void *user, const struct style *style)
{
	(void)user;
	style_put(style, STYLE_WARNING, "! ");
}

/* Who took how much of the device over the whole trace. */
static void put_owners(const struct style *style, const struct owner_list *owners, int device)
{
	bool any = false;

	for (size_t i = 0; i < owners->n_rows; i++) {
		const struct owner_row *row = owners->rows[i];
		const char *owner = row->owner ? row->owner : "(no stack recorded)";

		if (row->device != device || !row->totals.peak_live_bytes)
			continue;
		fprintf(style->out, "%10s  at most  ",
			format_bytes(row->totals.peak_live_bytes).text);
		style_put_cut(style, owner, OWNER_COLUMNS, true);
		fprintf(style->out, "  %s %s, %s %s; %s live at the end\n",
			format_count(row->totals.n_allocs).text,
			line_plural(row->totals.n_allocs, "allocation", "allocations"),
			format_count(row->totals.n_frees).text,
			line_plural(row->totals.n_frees, "free", "frees"),
			format_bytes(row->totals.live_bytes).text);
		any = true;
	}
	if (any)
		fputc('\n', style->out);
}

/* What is known of the device itself, beside who held it at its peak. */
static void put_device(const struct style *style, const struct report_trace *trace, int ordinal)
{
	put_owners(style, &trace->overview->owners, ordinal);
	account_put_table(style, model_device_find(trace->overview->replay->model, ordinal));
}

void sites_text_views(const struct style *style, const struct report_trace *trace)
{
	const struct overview *overview = trace->overview;
	const struct model *model = overview->replay->model;

	if (!model->hooks_active)
		report_put_inactive(style);
	report_put_header(style, trace);
	fputc('\n', style->out);
	for (size_t i = 0; i < overview->n_views; i++) {
		put_heading(style, trace, &overview->views[i]);
		if (overview->views[i].moment.at == REPLAY_AT_PEAK)
			put_device(style, trace, overview->views[i].moment.device);
		put_list(style, trace, &overview->views[i].sites, "Nothing was live.");
	}
	if (!overview->n_views && model->hooks_active)
		fputs("No device memory was allocated.\n", style->out);
	modules_put(style, trace, begin_warning, NULL);
}

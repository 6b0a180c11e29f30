#include "output/report.h"

#include <inttypes.h>
#include <string.h>

#include "output/account_text.h"
#include "output/blocks_text.h"
#include "output/fragmentation_text.h"
#include "output/idle_text.h"
#include "output/leaks_text.h"
#include "output/line.h"
#include "output/not_seen.h"
#include "output/oom_text.h"
#include "output/phases_text.h"
#include "output/result.h"
#include "output/transfers_text.h"

#define N_TOP	  5u /* sites shown for a peak and for the end */
#define N_WORST	  3u /* refusals shown */
#define MAX_LABEL 200u
/* What is spare is mentioned when it makes this share of what is held. */
#define SPARE_PART 50u

static bool several_devices(const struct model *model)
{
	return model->n_devices + !!model->unknown.peak_tracked_bytes > 1;
}

static void put_site_label(
	const struct style *style, const struct stack_source *source, uint64_t stack_id)
{
	char label[MAX_LABEL];

	stack_label(source, stack_id, label, sizeof(label));
	style_put_cut(style, label, style->width > 80 ? style->width / 2 : 40, false);
}

static void put_spare_line(
	const struct style *style, uint64_t bytes, uint64_t held_bytes, const char *why)
{
	if (!bytes || bytes < held_bytes / SPARE_PART)
		return;
	line_begin(style, NULL, false);
	fprintf(style->out, "%10s  %s\n", format_bytes(bytes).text, why);
}

/* What is held beyond the bytes asked for, where it is worth a line. */
static void put_spare(
	const struct style *style, const struct device_spare *spare, uint64_t held_bytes)
{
	put_spare_line(
		style, spare->page_bytes, held_bytes, "because the driver gives out whole pages");
	put_spare_line(style, spare->pool_bytes, held_bytes, "reserved by pools and not in use");
	put_spare_line(style, spare->graph_bytes, held_bytes, "reserved for graphs and not in use");
}

static void put_spare_of_view(const struct style *style, const struct view *view, int device)
{
	for (size_t i = 0; i < view->n_devices; i++)
		if (view->devices[i].ordinal == device)
			put_spare(style, &view->devices[i].spare, view->devices[i].tracked_bytes);
}

static void put_peak(
	const struct style *style, const struct report_trace *trace, const struct view *view)
{
	struct stack_source source = report_stacks(trace);
	const struct model_device *device = model_device_find(source.model, view->moment.device);
	uint64_t total = device->total_bytes, peak = device->peak_tracked_bytes;
	struct site_groups groups;

	line_begin(style, "PEAK", false);
	if (several_devices(source.model))
		fprintf(style->out, "%s: ", report_device_name(device->ordinal).text);
	style_put(style, STYLE_HEADING, format_bytes(peak).text);
	if (total)
		fprintf(style->out, " (%s of the card, %s headroom)",
			format_share(peak, total).text,
			format_bytes(total > peak ? total - peak : 0).text);
	fprintf(style->out, " at %s", format_moment(view->time_ns).text);
	phases_put_place(style, &device->peak_place);
	if (device->peak_sample.seen)
		fprintf(style->out, "; in use on the device then, by all: %s",
			format_bytes(device->peak_sample.used_bytes).text);
	fputc('\n', style->out);
	site_groups_make(&groups, &view->sites, device->ordinal, &source);
	line_put_groups(style, &groups, N_TOP);
	put_spare_of_view(style, view, device->ordinal);
	site_groups_release(&groups);
}

/* "1.0 GiB linear, 2.0 MiB pool"; false when nothing is live. */
static bool put_kinds(const struct style *style, const struct model_device *device)
{
	bool any = false;

	for (uint32_t kind = 0; kind < VT_N_KINDS; kind++) {
		const struct model_totals *totals = &device->kinds[kind];

		if (!totals->n_live)
			continue;
		fprintf(style->out, "%s%s %s in %s %s", any ? ", " : "",
			format_bytes(totals->live_bytes).text, model_kind_name(kind),
			format_count(totals->n_live).text,
			line_plural(totals->n_live, "block", "blocks"));
		any = true;
	}
	return any;
}

static void put_end_of(const struct style *style, const struct report_trace *trace,
	const struct model_device *device, const char *heading)
{
	struct stack_source source = report_stacks(trace);
	struct device_spare spare = device_spare_get(device);
	struct site_groups groups;

	line_begin(style, heading, false);
	if (several_devices(source.model) || device->ordinal < 0)
		fprintf(style->out, "%s: ", report_device_name(device->ordinal).text);
	if (device->account.seen) {
		account_put_line(style, &device->account);
		fputc('\n', style->out);
		line_begin(style, NULL, false);
	}
	if (!put_kinds(style, device))
		fputs("nothing is live", style->out);
	fputc('\n', style->out);
	site_groups_make(&groups, &trace->overview->end, device->ordinal, &source);
	line_put_groups(style, &groups, N_TOP);
	put_spare(style, &spare, device->tracked_bytes);
	site_groups_release(&groups);
}

static bool was_used(const struct model_device *device)
{
	for (size_t kind = 0; kind < VT_N_KINDS; kind++)
		if (device->kinds[kind].n_allocs)
			return true;
	return false;
}

static bool is_live(const struct model_device *device)
{
	for (size_t kind = 0; kind < VT_N_KINDS; kind++)
		if (device->kinds[kind].n_live)
			return true;
	return false;
}

static void put_teardown(const struct style *style, const struct report_trace *trace)
{
	uint64_t bytes = 0, count = 0;

	for (size_t i = 0; i < trace->overview->end.n_rows; i++) {
		const struct site_row *row = &trace->overview->end.rows[i];

		if (!row->teardown)
			continue;
		bytes += row->bytes;
		count += row->count;
	}
	if (!count)
		return;
	line_begin(style, NULL, false);
	fprintf(style->out, "%s in %s %s were never freed, but ended with their context\n",
		format_bytes(bytes).text, format_count(count).text,
		line_plural(count, "block", "blocks"));
}

static void put_ends(const struct style *style, const struct report_trace *trace)
{
	const struct model *model = trace->overview->replay->model;
	const char *heading =
		trace->overview->facts.end == TRACE_END_RUNNING ? "LIVE NOW" : "AT THE END";

	for (size_t i = 0; i < model->n_devices; i++) {
		if (!was_used(model->devices[i]))
			continue;
		put_end_of(style, trace, model->devices[i], heading);
		heading = NULL;
	}
	if (was_used(&model->unknown)) {
		put_end_of(style, trace, &model->unknown, heading);
		heading = NULL;
	}
	if (is_live(&model->host)) {
		put_end_of(style, trace, &model->host, heading);
		heading = NULL;
	}
	if (!heading)
		put_teardown(style, trace);
}

/* Managed memory that was told where to be. */
static void put_migrations(const struct style *style, const struct model *model)
{
	static const char *const what[MODEL_N_MIGRATIONS] = {
		[VT_MIGRATE_PREFETCH] = "of managed memory prefetched",
		[VT_MIGRATE_ADVISE] = "of managed memory advised on",
		[VT_MIGRATE_DISCARD] = "of managed memory discarded",
		[VT_MIGRATE_DISCARD_PREFETCH] = "of managed memory discarded and prefetched",
	};
	const char *heading = "MIGRATED";

	for (size_t i = 0; i < MODEL_N_MIGRATIONS; i++) {
		const struct model_migration *migration = &model->migrations[i];

		if (!migration->n_calls)
			continue;
		line_begin(style, heading, false);
		fprintf(style->out, "%s %s in %s %s, %s of host time\n",
			format_bytes(migration->bytes).text, what[i],
			format_count(migration->n_calls).text,
			line_plural(migration->n_calls, "call", "calls"),
			format_duration(migration->host_time_ns).text);
		heading = NULL;
	}
}

static void put_failure(const struct style *style, const struct stack_source *source,
	const struct model_failure *failure, const char *heading)
{
	bool block = failure->key.refusal == MODEL_REFUSED_BLOCK;
	const char *api = block ? NULL
				: model_call_name(source->model, failure->key.api_id,
					  failure->key.caller_api);
	const char *text = result_text(failure->key.result);

	char allocator[100];

	if (block) {
		blocks_name(source->model, failure->key.api_id, allocator, sizeof(allocator));
		strcat(allocator, "'s allocation");
		api = allocator;
	} else if (!api) {
		api = "a call";
	}
	line_begin(style, heading, true);
	format_put_text(style->out, (struct vt_text){api, strlen(api)});
	fprintf(style->out, " failed %s %s (", format_count(failure->n_calls).text,
		line_plural(failure->n_calls, "time", "times"));
	if (text)
		fputs(text, style->out);
	else
		fprintf(style->out, "error %" PRIu64, failure->key.result);
	fputc(')', style->out);
	if (failure->largest_bytes)
		fprintf(style->out, ", %s%s", failure->n_calls > 1 ? "at most " : "",
			format_bytes(failure->largest_bytes).text);
	fprintf(style->out, ", first at %s  ", format_moment(failure->first_ns).text);
	put_site_label(style, source, failure->key.stack_id);
	fputc('\n', style->out);
}

/* What was refused for lack of memory has a section of its own. */
static bool is_episode(const struct model_failure *failure)
{
	switch (failure->key.refusal) {
	case MODEL_REFUSED_ALLOC:
	case MODEL_REFUSED_ADDRESS_SPACE:
	case MODEL_REFUSED_CONTEXT:
	case MODEL_REFUSED_GRAPH:
	case MODEL_REFUSED_BLOCK:
		return failure->key.result == VT_RESULT_OUT_OF_MEMORY;
	default:
		return false;
	}
}

static void put_failures(const struct style *style, const struct report_trace *trace)
{
	struct stack_source source = report_stacks(trace);
	size_t n = 0, n_more = 0;

	for (size_t i = 0; i < trace->overview->n_failures; i++) {
		const struct model_failure *failure = trace->overview->failures[i];

		if (trace->overview->watched && is_episode(failure))
			continue;
		/* Whoever frees while the process ends is told that the driver is gone: no news. */
		if (failure->key.result == RESULT_DEINITIALIZED)
			continue;
		if (n == N_WORST) {
			n_more++;
			continue;
		}
		put_failure(style, &source, failure, n ? NULL : "FAILED");
		n++;
	}
	if (!n_more)
		return;
	line_begin(style, NULL, false);
	fprintf(style->out, "and %s more %s (report --json)\n", format_count(n_more).text,
		line_plural(n_more, "sort of failure", "sorts of failure"));
}

static bool is_fragmented(const struct fragmentation *list)
{
	for (size_t i = 0; i < list->n_rows; i++)
		if (list->rows[i].verdict != FRAGMENTATION_NONE)
			return true;
	return false;
}

/* What there is news of comes first. */
static void put_next(const struct style *style, const struct report_trace *trace)
{
	const struct overview *overview = trace->overview;
	const struct {
		const char *name;
		bool shown;
	} commands[] = {
		{"oom", overview->ooms.n_items},
		{"fragmentation", is_fragmented(&overview->fragmentation)},
		{"leaks", true},
		{"peak", true},
		{"transfers", true},
		{"timeline", true},
		{"html", true},
	};
	const char *before = "\nnext: ";

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (!commands[i].shown)
			continue;
		fprintf(style->out, "%svramtrace %s ", before, commands[i].name);
		format_put_file(style->out, show_path(&trace->show, overview->facts.file));
		before = style_dot(style);
	}
	fputc('\n', style->out);
}

static void put_totals(const struct style *style, const struct report_trace *trace)
{
	const struct overview *overview = trace->overview;

	if (!overview->facts.n_events)
		fputs("No memory call was recorded.\n", style->out);
	for (size_t i = 0; i < overview->n_views; i++)
		put_peak(style, trace, &overview->views[i]);
	put_ends(style, trace);
	blocks_put(style, overview->replay->model);
	oom_put_section(style, trace);
	fragmentation_put_section(style, trace);
	leaks_put_section(style, trace);
	transfers_text_report(style, trace);
	idle_put_section(style, trace, 1);
	put_migrations(style, overview->replay->model);
	phases_put_section(style, overview->replay->model);
	host_put_line(style, overview->replay->model);
}

void report_text(const struct style *style, const struct report_trace *trace)
{
	const struct overview *overview = trace->overview;
	bool active = overview->replay->model->hooks_active;

	if (!active)
		report_put_inactive(style);
	report_put_header(style, trace);
	report_put_devices(style, trace);
	fputc('\n', style->out);
	if (active)
		put_totals(style, trace);
	put_failures(style, trace);
	not_seen_put(style, trace);
	put_next(style, trace);
}

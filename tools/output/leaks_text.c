#include "output/leaks_text.h"

#include <string.h>

#include "analysis/account.h"
#include "output/line.h"
#include "output/modules.h"
#include "output/sites_text.h"

#define N_GROWING 3u /* shown in the report */
#define N_OTHERS  3u
#define MAX_LABEL 200u

struct format_text leaks_rate(uint64_t bytes_per_s)
{
	struct format_text text;
	uint64_t per_minute = bytes_per_s < UINT64_MAX / 60 ? bytes_per_s * 60 : UINT64_MAX;

	snprintf(text.text, sizeof(text.text), "%.24s/min", format_bytes(per_minute).text);
	return text;
}

/* What the verdict says, after its name. */
static void put_reason(const struct style *style, const struct leak *leak)
{
	FILE *out = style->out;

	switch (leak->verdict) {
	case LEAK_PER_THREAD:
		fprintf(out, "kept for threads: %zu of the %zu that asked for it have ended",
			leak->n_ended_threads, leak->row.n_threads);
		break;
	case LEAK_RETAINED_BY_FAILURE:
		fputs("left by failures: most of it is of attempts that ended in an error", out);
		break;
	case LEAK_BURSTS:
		fprintf(out,
			"bursts: piled up and went %s times, %s at once: reference cycles, or a "
			"collector",
			format_count(leak->n_bursts).text, format_count(leak->burst_deaths).text);
		break;
	case LEAK_SATURATING:
		fputs("saturating: it grew, and does not any more", out);
		break;
	case LEAK_ONE_TIME:
		fputs("one-time: it came at once, and has not grown since", out);
		break;
	default:
		fputs(leak->in_use ? "in use: it comes and goes"
				   : "no verdict: too little was seen",
			out);
		break;
	}
}

static void put_growth(const struct style *style, const struct leak *leak)
{
	fprintf(style->out, "growing %s: +%s since %s", leaks_rate(leak->rate_bytes_per_s).text,
		format_bytes(leak->growth_bytes).text, format_moment(leak->since_ns).text);
	if (leak->bytes_per_mark)
		fprintf(style->out, ", %s for each ", format_bytes(leak->bytes_per_mark).text);
	if (leak->bytes_per_mark)
		format_put_text(style->out, (struct vt_text){leak->mark, strlen(leak->mark)});
}

static void put_verdict(const struct style *style, const struct leak *leak)
{
	if (leak->row.level == SITE_IDLE && leak->verdict == LEAK_CACHE)
		return;
	if (leak->verdict == LEAK_FREED_AT_TEARDOWN)
		return;
	fprintf(style->out, "%*s", (int)SITES_INDENT, "");
	if (leak->grows || leak->verdict == LEAK_RETAINED_BY_FAILURE)
		style_put(style, STYLE_WARNING, "! ");
	if (leak->grows)
		put_growth(style, leak);
	if (leak->grows && leak->verdict != LEAK_GROWING)
		fputs("; ", style->out);
	if (!leak->grows || leak->verdict != LEAK_GROWING)
		put_reason(style, leak);
	if (leak->n_deaths)
		fprintf(style->out, "; %s of %s were freed", format_count(leak->n_deaths).text,
			format_count(leak->n_births).text);
	if (leak->longest_lifetime_ns)
		fprintf(style->out, ", after %s on average",
			format_duration(leak->mean_lifetime_ns).text);
	fputc('\n', style->out);
}

static void put_suppressions(const struct style *style, const struct leak_list *list)
{
	for (size_t i = 0; i < list->n_suppressions; i++) {
		const struct leak_suppression *item = &list->suppressions[i];

		fprintf(style->out,
			"%10s  at %s %s suppressed by leak:", format_bytes(item->bytes).text,
			format_count(item->n_sites).text,
			line_plural(item->n_sites, "site", "sites"));
		format_put_text(style->out, (struct vt_text){item->pattern, strlen(item->pattern)});
		fprintf(style->out, "%s\n", item->built_in ? " (built in)" : "");
	}
}

static const char *cause_label(uint32_t cause)
{
	return cause ? account_cause_label(cause) : "not explained";
}

/* "graph executables: 1,000 created, 0 destroyed" */
static void put_objects(const struct style *style, const struct untracked_growth *growth)
{
	if (growth->n_execs_made)
		fprintf(style->out, "; graph executables: %s created, %s destroyed",
			format_count(growth->n_execs_made).text,
			format_count(growth->n_execs_destroyed).text);
	if (growth->n_modules_loaded)
		fprintf(style->out, "; modules: %s loaded, %s unloaded",
			format_count(growth->n_modules_loaded).text,
			format_count(growth->n_modules_unloaded).text);
}

/* "; with it grows the number of graph executables, by 1,000" */
static void put_rising(const struct style *style, const struct untracked_growth *growth)
{
	static const char *const names[] = {[VT_OBJECT_STREAM] = "streams",
		[VT_OBJECT_EVENT] = "events",
		[VT_OBJECT_MODULE] = "modules",
		[VT_OBJECT_GRAPH_EXEC] = "graph executables"};
	const char *before = "; with it grows the number of ";

	for (size_t object = 0; object < VT_N_OBJECTS; object++) {
		const struct untracked_count *count = &growth->counts[object];

		if (!count->grows)
			continue;
		fprintf(style->out, "%s%s, by %s", before, names[object],
			format_count(count->n_more).text);
		before = ", of ";
	}
}

static void put_causes(const struct style *style, const struct untracked_growth *growth)
{
	const char *before = " (";

	for (uint32_t i = 1; i <= VT_N_CAUSES; i++) {
		uint32_t cause = i % VT_N_CAUSES;

		if (!growth->cause_bytes[cause])
			continue;
		fprintf(style->out, "%s%s %s", before, cause_label(cause),
			format_bytes(growth->cause_bytes[cause]).text);
		before = ", ";
	}
	fputc(')', style->out);
}

/* The end of a line about it. */
static void put_untracked(const struct style *style, const struct untracked_growth *growth)
{
	fprintf(style->out, "%s: memory that nobody allocated grows %s: +%s since %s",
		report_device_name(growth->device).text, leaks_rate(growth->rate_bytes_per_s).text,
		format_bytes(growth->growth_bytes).text, format_moment(growth->since_ns).text);
	put_causes(style, growth);
	put_objects(style, growth);
	put_rising(style, growth);
	if (growth->cause_bytes[0] > growth->growth_bytes / 2)
		fputs("; another process may be the cause", style->out);
	fputc('\n', style->out);
}

static void put_makers(const struct style *style, const struct stack_source *source,
	const struct untracked_growth *growth)
{
	for (size_t i = 0; i < growth->n_makers; i++) {
		const struct untracked_maker *maker = &growth->makers[i];

		fprintf(style->out, "%10s  %s, by %s %s\n", format_bytes(maker->taken_bytes).text,
			cause_label(maker->cause), format_count(maker->n_made).text,
			line_plural(maker->n_made, "call", "calls"));
		stack_put(style, source, maker->stack_id, SITES_INDENT);
		fputc('\n', style->out);
	}
}

static const char *verdict_words(const struct leak_owner *owner)
{
	static const char *const words[LEAK_N_VERDICTS] = {
		[LEAK_NONE] = "without a verdict",
		[LEAK_PER_THREAD] = "kept for threads",
		[LEAK_RETAINED_BY_FAILURE] = "left by failures",
		[LEAK_BURSTS] = "bursts",
		[LEAK_SATURATING] = "saturating",
		[LEAK_ONE_TIME] = "one-time",
		[LEAK_CACHE] = "cache",
	};

	return words[owner->verdict];
}

/* "  1.2 GiB  nccl on GPU 0, 8 blocks at 2 sites: growing 3.4 MiB/min" */
static void put_owner(const struct style *style, const struct leak_owner *owner)
{
	const char *name = owner->name ? owner->name : "(unknown)";

	fprintf(style->out, "%10s  ", format_bytes(owner->bytes).text);
	format_put_text(style->out, (struct vt_text){name, strlen(name)});
	fprintf(style->out,
		"%s%s, in %s %s at %s %s: ", owner->device == MODEL_DEVICE_HOST ? ", " : " on ",
		report_device_name(owner->device).text, format_count(owner->count).text,
		line_plural(owner->count, "block", "blocks"), format_count(owner->n_sites).text,
		line_plural(owner->n_sites, "site", "sites"));
	if (owner->grows)
		fprintf(style->out, "growing %s: +%s\n", leaks_rate(owner->rate_bytes_per_s).text,
			format_bytes(owner->growth_bytes).text);
	else
		fprintf(style->out, "%s%s\n",
			owner->verdict_bytes[owner->verdict] < owner->bytes ? "mostly " : "",
			verdict_words(owner));
}

static void begin_warning(void *user, const struct style *style)
{
	(void)user;
	style_put(style, STYLE_WARNING, "! ");
}

void leaks_text(const struct style *style, const struct report_trace *trace)
{
	const struct overview *overview = trace->overview;
	struct stack_source source = report_stacks(trace);
	bool active = overview->replay->model->hooks_active;
	size_t n = 0;

	if (!active)
		report_put_inactive(style);
	report_put_header(style, trace);
	fputc('\n', style->out);
	for (size_t i = 0; i < overview->untracked.n_items; i++) {
		style_put(style, STYLE_WARNING, "! ");
		put_untracked(style, &overview->untracked.items[i]);
		put_makers(style, &source, &overview->untracked.items[i]);
	}
	style_put(style, STYLE_HEADING,
		overview->facts.end == TRACE_END_RUNNING ? "LIVE NOW" : "LIVE AT THE END");
	fputs("\n\n", style->out);
	for (size_t i = 0; i < overview->leaks.n_owners; i++)
		put_owner(style, &overview->leaks.owners[i]);
	if (overview->leaks.n_owners)
		fputc('\n', style->out);
	for (size_t i = 0; i < overview->leaks.n_items; i++) {
		const struct leak *leak = &overview->leaks.items[i];

		if (leak->suppressed_by)
			continue;
		sites_put_heading(style, &source, &leak->row);
		put_verdict(style, leak);
		sites_put_stack(style, &source, &leak->row);
		n++;
	}
	if (!n)
		fprintf(style->out, "%s\n", active ? "Nothing is live: no leak." : "Not known.");
	sites_put_left_out(style, overview->leaks.n_left_out, overview->leaks.left_out_bytes);
	put_suppressions(style, &overview->leaks);
	modules_put(style, trace, begin_warning, NULL);
}

/* One line of the report: what, and where. */
static void put_line(const struct style *style, const struct stack_source *source,
	const struct leak *leak, const char **heading)
{
	char label[MAX_LABEL];

	line_begin(style, *heading, leak->grows || leak->verdict == LEAK_RETAINED_BY_FAILURE);
	*heading = NULL;
	if (leak->grows)
		put_growth(style, leak);
	else
		put_reason(style, leak);
	fprintf(style->out, "; %s in %s %s  ", format_bytes(leak->row.bytes).text,
		format_count(leak->row.count).text,
		line_plural(leak->row.count, "block", "blocks"));
	stack_label(source, leak->row.stack_id, label, sizeof(label));
	style_put_cut(style, label, style->width > 80 ? style->width / 2 : 40, false);
	fputc('\n', style->out);
}

static bool is_odd(const struct leak *leak)
{
	return leak->verdict == LEAK_PER_THREAD || leak->verdict == LEAK_RETAINED_BY_FAILURE ||
	       leak->verdict == LEAK_BURSTS;
}

void leaks_put_section(const struct style *style, const struct report_trace *trace)
{
	const struct overview *overview = trace->overview;
	struct stack_source source = report_stacks(trace);
	const char *heading = "LEAKS";
	size_t n_growing = 0, n_others = 0;

	for (size_t i = 0; i < overview->leaks.n_items; i++) {
		const struct leak *leak = &overview->leaks.items[i];

		if (leak->suppressed_by)
			continue;
		if (leak->grows ? n_growing++ < N_GROWING : is_odd(leak) && n_others++ < N_OTHERS)
			put_line(style, &source, leak, &heading);
	}
	if (n_growing > N_GROWING) {
		line_begin(style, NULL, true);
		fprintf(style->out, "and %s more %s (vramtrace leaks)\n",
			format_count(n_growing - N_GROWING).text,
			line_plural(n_growing - N_GROWING, "site grows", "sites grow"));
	}
	for (size_t i = 0; i < overview->untracked.n_items; i++) {
		line_begin(style, heading, true);
		heading = NULL;
		put_untracked(style, &overview->untracked.items[i]);
	}
}

void leaks_sanitizer(FILE *out, const struct report_trace *trace)
{
	const struct leak_list *list = &trace->overview->leaks;
	struct stack_source source = report_stacks(trace);
	uint64_t bytes = 0, count = 0, n = 0;

	fputs("========= COMPUTE-SANITIZER\n", out);
	for (size_t i = 0; i < list->n_items; i++) {
		const struct leak *leak = &list->items[i];

		if (leak->suppressed_by || leak->row.level == SITE_IDLE)
			continue;
		fprintf(out, "========= Leaked %s bytes at 0x%llx\n",
			format_count(leak->row.bytes).text, (unsigned long long)leak->address);
		fputs("=========     Saved host backtrace up to driver entry point at allocation "
		      "time\n",
			out);
		stack_put_host_frames(out, &source, leak->row.stack_id);
		fputs("=========\n", out);
		bytes += leak->row.bytes;
		count += leak->row.count;
		n++;
	}
	bytes += list->left_out_bytes;
	n += list->n_left_out;
	fprintf(out, "========= LEAK SUMMARY: %s bytes leaked in %s allocations\n",
		format_count(bytes).text, format_count(count).text);
	fprintf(out, "========= ERROR SUMMARY: %s %s\n", format_count(n).text,
		line_plural(n, "error", "errors"));
}

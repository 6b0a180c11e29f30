#include "output/together_text.h"

#include <stdlib.h>
#include <string.h>

#include "model/memory.h"
#include "output/idle_text.h"
#include "output/line.h"

#define MAX_SHARES    16u
#define MAX_PROCESSES 40u

/* The program without its folder: its arguments are what tells processes apart. */
static void put_program(const struct style *style, const struct report_trace *trace)
{
	size_t columns = style->width > 100 ? style->width / 3 : 33;
	struct vt_text arguments = trace->overview->facts.cmdline;
	size_t first = arguments.bytes ? strnlen(arguments.data, arguments.bytes) : 0;
	const char *slash = first ? memrchr(arguments.data, '/', first) : NULL;

	if (!slash || !show_is_open(&trace->show)) {
		report_put_program(style, trace, columns);
		return;
	}
	arguments.bytes -= (size_t)(slash + 1 - arguments.data);
	arguments.data = slash + 1;
	format_put_arguments(style->out, arguments, columns);
}

/* "pid 4242, rank 0". */
static void put_name(const struct style *style, const struct trace_facts *facts)
{
	fprintf(style->out, "pid %llu", (unsigned long long)facts->pid);
	if (facts->rank >= 0)
		fprintf(style->out, ", rank %lld", (long long)facts->rank);
}

static uint64_t tracked_at_end(const struct together *together, size_t process)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < together->gpus.n_items; i++)
		for (size_t k = 0; k < together->gpus.items[i].n_shares; k++)
			if (together->gpus.items[i].shares[k].process == process)
				bytes += together->gpus.items[i].shares[k].device->tracked_bytes;
	return bytes;
}

static void put_process(const struct style *style, const struct report_trace *trace,
	const struct together *together, size_t i)
{
	const struct process *process = &together->processes.items[i];
	uint64_t at_end = tracked_at_end(together, i);
	const char *dot = style_dot(style);

	put_name(style, process->facts);
	fputs(dot, style->out);
	put_program(style, trace);
	fprintf(style->out, "%s%s", dot, format_duration(process->facts->duration_ns).text);
	if (process->start_ns)
		fprintf(style->out, " from %s", format_moment(process->start_ns).text);
	fputs(dot, style->out);
	report_put_end(style, process->facts);
	fprintf(style->out, "%speak %s", dot, format_bytes(process->tracked.peak_bytes).text);
	if (at_end)
		fprintf(style->out, ", %s at its end", format_bytes(at_end).text);
	if (process->exec_from != PROCESS_NONE)
		fprintf(style->out, "%sthe process above, after exec", dot);
	fputc('\n', style->out);
	if (!process->outlived_parent)
		return;
	line_begin(style, NULL, true);
	fprintf(style->out, "pid %llu outlived its parent, pid %llu\n",
		(unsigned long long)process->facts->pid, (unsigned long long)process->facts->ppid);
}

/* Of which parent the processes that follow are; nothing where all are of one tree. */
static bool put_orphans(
	const struct style *style, const struct together *together, size_t k, const char *heading)
{
	const struct process_list *list = &together->processes;
	const struct process *process = &list->items[list->order[k]];
	size_t before = k;
	bool several = process_has_siblings(list, list->order[k]);

	/* The root before this one. */
	while (before && list->items[list->order[before - 1]].depth)
		before--;
	if (before && list->items[list->order[before - 1]].facts->ppid == process->facts->ppid)
		return false;
	line_begin(style, heading, false);
	fprintf(style->out, "%s of pid %llu, which left no trace:\n",
		several ? "orphans" : "orphan", (unsigned long long)process->facts->ppid);
	return true;
}

static void put_processes(const struct style *style, const struct report_trace *traces,
	const struct together *together)
{
	const struct process_list *list = &together->processes;
	const char *heading = "PROCESSES";
	size_t n_roots = 0;

	for (size_t i = 0; i < list->n_items; i++)
		n_roots += !list->items[i].depth;
	for (size_t k = 0; k < list->n_items && k < MAX_PROCESSES; k++) {
		size_t i = list->order[k], indent = list->items[i].depth + (n_roots > 1);

		if (n_roots > 1 && !list->items[i].depth &&
			put_orphans(style, together, k, heading))
			heading = NULL;
		line_begin(style, heading, false);
		fprintf(style->out, "%*s", (int)(indent < 10 ? 2 * indent : 20), "");
		put_process(style, &traces[i], together, i);
		heading = NULL;
	}
	if (list->n_items <= MAX_PROCESSES)
		return;
	line_begin(style, NULL, false);
	fprintf(style->out, "and %s more (report --json)\n",
		format_count(list->n_items - MAX_PROCESSES).text);
}

static int compare_shares(const void *a, const void *b)
{
	const struct gpu_share *x = *(const struct gpu_share *const *)a;
	const struct gpu_share *y = *(const struct gpu_share *const *)b;

	if (x->peak_tracked_bytes != y->peak_tracked_bytes)
		return x->peak_tracked_bytes > y->peak_tracked_bytes ? -1 : 1;
	if (x->device->peak_tracked_bytes != y->device->peak_tracked_bytes)
		return x->device->peak_tracked_bytes > y->device->peak_tracked_bytes ? -1 : 1;
	return (x->process > y->process) - (x->process < y->process);
}

static void put_share(const struct style *style, const struct report_trace *traces,
	const struct gpu *gpu, const struct gpu_share *share)
{
	/* Without a peak, what contexts take is shown as of the end. */
	int64_t untracked_bytes =
		gpu->tracked.peak_bytes ? share->peak_untracked_bytes : share->end_untracked_bytes;
	const struct model_totals *others = &share->device->kinds[VT_KIND_SHARED];
	const struct report_trace *trace = &traces[share->process];

	line_begin(style, NULL, false);
	fprintf(style->out, "%10s  %10s  %10s  %10s  ",
		format_bytes(share->peak_tracked_bytes).text,
		format_signed_bytes(untracked_bytes).text,
		format_bytes(share->device->peak_tracked_bytes).text,
		format_bytes(share->device->tracked_bytes).text);
	put_name(style, &trace->overview->facts);
	fprintf(style->out, ", its %s", report_device_name(share->device->ordinal).text);
	if (others->n_allocs)
		fprintf(style->out, "; sees %s %s of others, not counted here",
			format_count(others->n_allocs).text,
			line_plural(others->n_allocs, "block", "blocks"));
	fputc('\n', style->out);
}

static void put_shares(
	const struct style *style, const struct report_trace *traces, const struct gpu *gpu)
{
	const struct gpu_share **sorted = memory_new(gpu->n_shares, sizeof(struct gpu_share *));
	char uuid[FORMAT_UUID_BYTES];

	for (size_t i = 0; i < gpu->n_shares; i++)
		sorted[i] = &gpu->shares[i];
	qsort(sorted, gpu->n_shares, sizeof(struct gpu_share *), compare_shares);
	line_begin(style, NULL, false);
	style_switch(style, STYLE_DIM);
	fputs("   at peak   untracked    own peak  at its end", style->out);
	if (format_uuid(uuid, gpu->uuid))
		fprintf(style->out, "  of %s", uuid);
	style_switch(style, STYLE_PLAIN);
	fputc('\n', style->out);
	for (size_t i = 0; i < gpu->n_shares && i < MAX_SHARES; i++)
		put_share(style, traces, gpu, sorted[i]);
	if (gpu->n_shares > MAX_SHARES) {
		line_begin(style, NULL, false);
		fprintf(style->out, "and %s more processes (report --json)\n",
			format_count(gpu->n_shares - MAX_SHARES).text);
	}
	free(sorted);
}

/* By its ordinal, where that is the same to all, and no other GPU's; else as nvidia-smi begins its
 * UUID. */
static struct format_text gpu_label(const struct gpu_list *list, const struct gpu *gpu)
{
	int ordinal = gpu->shares[0].device->ordinal;
	char uuid[FORMAT_UUID_BYTES];
	struct format_text label;
	bool unclear = false;

	for (size_t i = 0; i < list->n_items; i++)
		for (size_t k = 0; k < list->items[i].n_shares; k++)
			if ((list->items[i].shares[k].device->ordinal == ordinal) !=
				(gpu == &list->items[i]))
				unclear = true;
	if (!unclear || !format_uuid(uuid, gpu->uuid))
		return report_device_name(ordinal);
	snprintf(label.text, sizeof(label.text), "%.12s", uuid);
	return label;
}

/* "peak 1.0 GiB (0.7 % of the card) in 2 processes at 0:01.200, and 1.1 GiB untracked". */
static void put_gpu_peak(const struct style *style, const struct gpu *gpu)
{
	uint64_t total = gpu->shares[0].device->total_bytes, n_holding = 0, untracked = 0;

	for (size_t i = 0; i < gpu->n_shares; i++) {
		untracked += (uint64_t)gpu->shares[i].peak_untracked_bytes;
		n_holding += gpu->shares[i].peak_tracked_bytes != 0;
	}
	if (!n_holding) {
		fputs("nothing was allocated", style->out);
		return;
	}
	fputs("peak ", style->out);
	style_put(style, STYLE_HEADING, format_bytes(gpu->tracked.peak_bytes).text);
	if (total)
		fprintf(style->out, " (%s of the card)",
			format_share(gpu->tracked.peak_bytes, total).text);
	fprintf(style->out, " in %s %s at %s, and %s untracked", format_count(n_holding).text,
		line_plural(n_holding, "process", "processes"),
		format_moment(gpu->tracked.peak_ns).text,
		format_signed_bytes((int64_t)untracked).text);
}

static void put_gpu(const struct style *style, const struct report_trace *traces,
	const struct gpu_list *list, const struct gpu *gpu)
{
	const struct model_device *device = gpu->shares[0].device;
	uint64_t end = 0;

	for (size_t i = 0; i < gpu->n_shares; i++)
		end += gpu->shares[i].device->tracked_bytes;
	line_begin(style, gpu_label(list, gpu).text, false);
	if (device->name.bytes) {
		format_put_text(style->out, device->name);
		fputs(": ", style->out);
	}
	put_gpu_peak(style, gpu);
	if (gpu->tracked.peak_bytes)
		fprintf(style->out, "; %s as they ended", format_bytes(end).text);
	fputc('\n', style->out);
	if (list->kept_from_ns) {
		line_begin(style, NULL, false);
		fprintf(style->out, "the peak is known from %s on (VRAMTRACE_MAX_SIZE)\n",
			format_moment(list->kept_from_ns).text);
	}
	put_shares(style, traces, gpu);
}

static void put_heading(const struct style *style, const struct report_trace *traces,
	const struct together *together)
{
	const struct process_list *list = &together->processes;
	uint64_t last_ns = 0, n_damaged = 0;

	for (size_t i = 0; i < list->n_items; i++) {
		if (list->items[i].last_ns > last_ns)
			last_ns = list->items[i].last_ns;
		n_damaged += traces[i].overview->facts.damaged;
	}
	style_switch(style, STYLE_HEADING);
	fprintf(style->out, "%s processes", format_count(list->n_items).text);
	style_switch(style, STYLE_PLAIN);
	fprintf(style->out, "%s%s %s%s%s", style_dot(style),
		format_count(together->gpus.n_items).text,
		line_plural(together->gpus.n_items, "GPU", "GPUs"), style_dot(style),
		format_duration(last_ns).text);
	if (n_damaged) {
		style_switch(style, STYLE_WARNING);
		fprintf(style->out, "%s%s damaged, good up to there", style_dot(style),
			format_count(n_damaged).text);
		style_switch(style, STYLE_PLAIN);
	}
	fputs("\n\n", style->out);
}

/* First the one that stands out, else the one that held most. */
static void put_next(const struct style *style, const struct report_trace *traces,
	const struct together *together)
{
	const struct process *processes = together->processes.items;
	size_t best = 0;

	for (size_t i = 1; i < together->processes.n_items; i++)
		if (processes[i].tracked.peak_bytes > processes[best].tracked.peak_bytes)
			best = i;
	for (size_t i = together->jobs.n_items; i-- > 0;) {
		const struct job *job = &together->jobs.items[i];

		if (job->n_outliers)
			best = job->ranks[job->outliers[0].rank].first_process;
	}
	fputs("\nnext: vramtrace report ", style->out);
	format_put_file(style->out, show_path(&traces[best].show, processes[best].facts->file));
	fputc('\n', style->out);
}

void together_text(const struct style *style, const struct report_trace *traces, size_t n,
	const struct together *together)
{
	if (n == 1) {
		report_text(style, traces);
		return;
	}
	put_heading(style, traces, together);
	put_processes(style, traces, together);
	for (size_t i = 0; i < together->gpus.n_items; i++)
		put_gpu(style, traces, &together->gpus, &together->gpus.items[i]);
	ranks_put_section(style, traces, together);
	idle_put_section(style, traces, n);
	if (n > TOGETHER_MAX_SCREENS) {
		put_next(style, traces, together);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		fputc('\n', style->out);
		report_text(style, &traces[i]);
	}
}

/* Ranks side by side. */
#include <string.h>

#include "output/line.h"
#include "output/together_text.h"

#define MAX_MISSING 8u

/* The GPUs of a rank, by their ordinals in its first process. */
static void put_gpus(const struct style *style, const struct together *together, size_t process)
{
	char text[32] = "";
	size_t used = 0;

	for (size_t i = 0; i < together->gpus.n_items; i++)
		for (size_t k = 0; k < together->gpus.items[i].n_shares; k++) {
			const struct gpu_share *share = &together->gpus.items[i].shares[k];

			if (share->process == process && share->device->n_contexts &&
				used + 6 < sizeof(text))
				used += (size_t)sprintf(text + used, "%s%d", used ? "," : "",
					share->device->ordinal);
		}
	fprintf(style->out, "%5s", text);
}

static void put_rank(const struct style *style, const struct report_trace *traces,
	const struct together *together, const struct rank *rank)
{
	FILE *out = style->out;

	line_begin(style, NULL, false);
	fprintf(out, "%4lld  %8llu ", (long long)rank->rank,
		(unsigned long long)traces[rank->first_process].overview->facts.pid);
	put_gpus(style, together, rank->first_process);
	fprintf(out, "  %10s  %10s  %10s  %4s  %5s  ", format_bytes(rank->tracked.peak_bytes).text,
		format_bytes(rank->live_bytes).text,
		rank->reserved_known ? format_bytes(rank->reserved_bytes).text : "-",
		format_count(rank->n_ooms).text, format_count(rank->n_leaks).text);
	if (rank->owner) {
		format_put_text(out, (struct vt_text){rank->owner, strlen(rank->owner)});
		fprintf(out, " %s", format_bytes(rank->owner_bytes).text);
	} else {
		fputc('-', out);
	}
	if (rank->n_processes > 1)
		fprintf(out, " (%s processes)", format_count(rank->n_processes).text);
	fputc('\n', out);
}

static void put_metric(
	const struct style *style, const struct job *job, const struct rank_outlier *outlier)
{
	static const char *const words[] = {
		[RANK_PEAK] = "peak",
		[RANK_LIVE] = "live at the end",
		[RANK_RESERVED] = "reserved",
		[RANK_LEAK_BYTES] = "in leaks that grow",
	};

	if (outlier->metric == RANK_OOMS) {
		fprintf(style->out, "was refused memory %s %s", format_count(outlier->value).text,
			line_plural(outlier->value, "time", "times"));
		return;
	}
	fprintf(style->out, "%s %s, %s %s", words[outlier->metric],
		format_bytes(outlier->value).text, job->n_ranks > 2 ? "median" : "the other",
		format_bytes(outlier->median).text);
}

/* All that a rank stands out in, in one line. */
static void put_outlier(const struct style *style, const struct job *job, size_t first)
{
	const struct rank *rank = &job->ranks[job->outliers[first].rank];

	for (size_t i = 0; i < first; i++)
		if (job->outliers[i].rank == job->outliers[first].rank)
			return;
	line_begin(style, NULL, true);
	fprintf(style->out, "rank %lld stands out: ", (long long)rank->rank);
	for (size_t i = first; i < job->n_outliers; i++) {
		if (job->outliers[i].rank != job->outliers[first].rank)
			continue;
		if (i > first)
			fputs("; ", style->out);
		put_metric(style, job, &job->outliers[i]);
	}
	fputc('\n', style->out);
}

static void put_missing(const struct style *style, const struct job *job)
{
	int64_t at = job_next_missing(job, 0);
	size_t n = 0;

	if (at < 0)
		return;
	line_begin(style, NULL, true);
	fputs("no trace of rank", style->out);
	for (; at >= 0 && n < MAX_MISSING; at = job_next_missing(job, at + 1))
		fprintf(style->out, "%s %lld", n++ ? "," : "", (long long)at);
	if (at >= 0)
		fputs(", ...", style->out);
	fputc('\n', style->out);
}

void ranks_put_section(const struct style *style, const struct report_trace *traces,
	const struct together *together)
{
	for (size_t i = 0; i < together->jobs.n_items; i++) {
		const struct job *job = &together->jobs.items[i];

		if (job->n_ranks < 2)
			continue;
		line_begin(style, "RANKS", false);
		style_switch(style, STYLE_DIM);
		fputs("rank       pid    GPU        peak live at end    reserved  OOMs  leaks  "
		      "largest owner",
			style->out);
		style_switch(style, STYLE_PLAIN);
		fputc('\n', style->out);
		for (size_t k = 0; k < job->n_ranks; k++)
			put_rank(style, traces, together, &job->ranks[k]);
		for (size_t k = 0; k < job->n_outliers; k++)
			put_outlier(style, job, k);
		put_missing(style, job);
	}
}

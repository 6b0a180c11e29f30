#include "output/phases_text.h"

#include <string.h>

#include "analysis/phases.h"
#include "output/line.h"

#define N_SHOWN	 5u /* names in the report */
#define MAX_NAME 520u

static void put_name(const struct style *style, const char *name)
{
	fputc('"', style->out);
	format_put_text(style->out, (struct vt_text){name, strlen(name)});
	fputc('"', style->out);
}

void phases_put_place(const struct style *style, const struct model_place_name *place)
{
	char name[MAX_NAME];

	if (!place->name.data)
		return;
	fputs(place->is_mark ? ", after mark " : ", phase ", style->out);
	put_name(style, model_place_text(place, name, sizeof(name)));
}

/* Highest on any device. */
static uint64_t peak_bytes(const struct model_phase *phase)
{
	uint64_t most = 0;

	for (size_t i = 0; i < phase->n_peaks; i++)
		if (phase->peaks[i].tracked_bytes > most)
			most = phase->peaks[i].tracked_bytes;
	return most;
}

static void put_phase(const struct style *style, const struct phase_row *row, const char *heading)
{
	const struct model_phase *phase = row->phase;

	line_begin(style, heading, false);
	fprintf(style->out, "%10s  ", format_duration(row->time_ns).text);
	put_name(style, phase->name);
	fprintf(style->out, ", %s %s", format_count(phase->n).text,
		line_plural(phase->n, "time", "times"));
	if (phase->n_open)
		fprintf(style->out, ", %s open", format_count(phase->n_open).text);
	if (peak_bytes(phase))
		fprintf(style->out, "; peak %s", format_bytes(peak_bytes(phase)).text);
	if (phase->copies.n)
		fprintf(style->out, "; %s of host time in copies",
			format_duration(phase->copies.ns + phase->waits.ns).text);
	fputc('\n', style->out);
}

static void put_marks(const struct style *style, const struct phase_list *list, const char *heading)
{
	uint64_t n = 0;

	for (size_t i = 0; i < list->n_marks; i++)
		n += list->marks[i].phase->n;
	if (!n)
		return;
	line_begin(style, heading, false);
	fprintf(style->out, "%s %s: ", format_count(n).text, line_plural(n, "mark", "marks"));
	for (size_t i = 0; i < list->n_marks && i < N_SHOWN; i++) {
		fputs(i ? ", " : "", style->out);
		put_name(style, list->marks[i].phase->name);
	}
	fputs(list->n_marks > N_SHOWN ? ", ...\n" : "\n", style->out);
}

void phases_put_section(const struct style *style, const struct model *model)
{
	struct phase_list list;
	size_t n_more;

	phase_list_make(&list, model);
	for (size_t i = 0; i < list.n_phases && i < N_SHOWN; i++)
		put_phase(style, &list.phases[i], i ? NULL : "PHASES");
	n_more = list.n_phases > N_SHOWN ? list.n_phases - N_SHOWN : 0;
	if (n_more) {
		line_begin(style, NULL, false);
		fprintf(style->out, "and %s more (report --json)\n", format_count(n_more).text);
	}
	put_marks(style, &list, list.n_phases ? NULL : "PHASES");
	phase_list_release(&list);
}

static void put_copies(const struct style *style, const struct phase_row *row)
{
	const struct model_phase *phase = row->phase;

	fprintf(style->out, "%8s%12s", format_count(phase->n).text,
		format_duration(row->time_ns).text);
	fprintf(style->out, "%9s%11s", format_count(phase->copies.n).text,
		format_bytes(phase->copies.bytes).text);
	fprintf(style->out, "%12s%12s", format_duration(phase->copies.ns).text,
		phase->waits.n ? format_duration(phase->waits.ns).text : "-");
	fprintf(style->out, "%8s  ",
		format_share(phase->copies.ns + phase->waits.ns, row->time_ns).text);
	format_put_text(style->out, (struct vt_text){phase->name, strlen(phase->name)});
	fputc('\n', style->out);
}

void phases_put_copies(const struct style *style, const struct model *model, size_t limit)
{
	struct phase_list list;
	size_t n;

	phase_list_make(&list, model);
	phase_list_sort_by_copies(&list);
	n = limit && limit < list.n_phases ? limit : list.n_phases;
	if (n) {
		style_put(style, STYLE_HEADING, "PHASES");
		fprintf(style->out, "%2s%12s%9s%11s%12s%12s%8s\n", "n", "time", "calls", "bytes",
			"host time", "waiting", "share");
	}
	for (size_t i = 0; i < n; i++)
		put_copies(style, &list.phases[i]);
	if (n < list.n_phases)
		fprintf(style->out, "  and %s more (--limit)\n",
			format_count(list.n_phases - n).text);
	if (n)
		fputc('\n', style->out);
	phase_list_release(&list);
}

void host_put_line(const struct style *style, const struct model *model)
{
	const struct model_host_samples *samples = &model->host_samples;

	if (!samples->most_resident.seen && !samples->least_available.seen)
		return;
	line_begin(style, "HOST", false);
	if (samples->most_resident.seen)
		fprintf(style->out, "process: %s resident at most",
			format_bytes(samples->most_resident.bytes).text);
	if (samples->most_locked.bytes)
		fprintf(style->out, ", %s locked", format_bytes(samples->most_locked.bytes).text);
	if (samples->most_swapped.bytes)
		fprintf(style->out, ", %s swapped out",
			format_bytes(samples->most_swapped.bytes).text);
	if (samples->least_available.seen)
		fprintf(style->out, "%smachine: %s available at least",
			samples->most_resident.seen ? "; " : "",
			format_bytes(samples->least_available.bytes).text);
	if (samples->most_swap_used.bytes)
		fprintf(style->out, ", %s of swap in use",
			format_bytes(samples->most_swap_used.bytes).text);
	fputc('\n', style->out);
}

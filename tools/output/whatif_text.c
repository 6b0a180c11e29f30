#include "output/whatif_text.h"

#include <inttypes.h>
#include <string.h>

#include "output/format.h"
#include "output/line.h"

#define MAX_LABEL   200u
#define CELL_WIDTH  34
#define N_CELL	    80u
#define LABEL_WIDTH 20

const char *whatif_class_name(enum whatif_class class)
{
	static const char *const names[] = {
		[WHATIF_EXACT] = "exact",
		[WHATIF_ABOUT] = "about",
		[WHATIF_RANGE] = "range",
		[WHATIF_LOWER_BOUND] = "lower_bound",
		[WHATIF_NO_ANSWER] = "no_answer",
	};

	return names[class];
}

const char *whatif_why_name(unsigned int why, unsigned int i)
{
	static const char *const names[WHATIF_N_WHYS] = {
		"large sizes are known to 1 MiB only",
		"equal-size blocks: depends on the driver's addresses",
		"frees were pending on other streams",
		"the rules of this version of PyTorch were not tried against real runs",
		"nothing is known after the first refusal that the recording did not have",
		"nothing is known after a refusal of the recording that would not have been",
		"cudaMallocAsync: the driver's pool decides",
		"whether a request is refused depends on what is not known",
		"how long they are pending decides, which is not the same in each run",
		"what is needed to finish depends on what is not known, as on addresses",
	};

	return why & 1u << i ? names[i] : "";
}

void whatif_where(const struct stack_source *source, const struct whatif_report *report,
	const struct whatif_step *step, char *label, size_t room)
{
	if (report->built.entries)
		whatif_snapshot_where(&report->built, step, label, room);
	else
		stack_label(source, step->stack_id, label, room);
}

static void put_label(const struct style *style, const char *label)
{
	style_switch(style, STYLE_DIM);
	fprintf(style->out, "%-*s", LABEL_WIDTH, label);
	style_switch(style, STYLE_PLAIN);
}

static void put_recording(const struct style *style, const struct whatif_report *report)
{
	const struct whatif_built *built = &report->built;
	const struct whatif_recording *recording = &built->recording;

	put_label(style, "recorded");
	fprintf(style->out, "PyTorch %s, %s%s, GPU %d, %s %s, %zu %s\n",
		*built->version_text ? built->version_text : "of unknown version",
		*built->settings_text ? "" : "default settings", built->settings_text,
		built->device, format_count(recording->n_gets).text,
		line_plural(recording->n_gets, "allocation", "allocations"), built->n_streams,
		line_plural(built->n_streams, "stream", "streams"));
	if (built->cap_is_guessed)
		fprintf(style->out,
			"%-*sPyTorch refused requests without asking the driver: its program "
			"limits it to about %" PRIu64 " MiB\n",
			LABEL_WIDTH, "", recording->cap_bytes / SETTINGS_MIB);
	if (built->has_user_pools)
		fprintf(style->out,
			"%-*smemory pools of the program's own are not told apart from the "
			"ordinary ones\n",
			LABEL_WIDTH, "");
	if (!built->streams_known)
		fprintf(style->out,
			"%-*sof some memory the stream is not known; it is taken as the default "
			"one\n",
			LABEL_WIDTH, "");
}

static void put_check(const struct style *style, const struct stack_source *source,
	const struct whatif_report *report)
{
	const struct whatif_check *check = &report->check;
	const struct whatif_recording *recording = &report->built.recording;
	char label[MAX_LABEL];

	put_label(style, "model");
	fprintf(style->out, "%s the recording: %s of %s requests to the driver, ",
		check->is_equal ? "reproduces" : "does not reproduce",
		format_count(check->n_answers).text, format_count(recording->n_answers).text);
	fprintf(style->out, "%s of %s block addresses\n", format_count(check->n_addresses).text,
		format_count(check->n_gets).text);
	if (check->is_equal)
		return;
	fprintf(style->out,
		"%-*sreserved at most %" PRIu64 " bytes, in the recording %" PRIu64 "\n",
		LABEL_WIDTH, "", check->result.stats.peak_reserved_bytes,
		report->built.peak_reserved_bytes);
	if (check->first_different != SIZE_MAX) {
		const struct whatif_step *step = &recording->steps[check->first_different];

		whatif_where(source, report, step, label, sizeof(label));
		fprintf(style->out, "%-*sfirst difference at %s: %s%s for %s\n", LABEL_WIDTH, "",
			format_moment(step->time_ns).text, format_bytes(step->bytes).text,
			step->kind == WHATIF_REFUSED ? ", refused in the recording," : "", label);
	}
	fputs("So nothing is predicted: this run followed rules, or had settings, that the model "
	      "does not know.\n",
		style->out);
}

/* "2674 MiB exact", "902..938 MiB", "at least 2336 MiB". */
static void write_mib(char cell[N_CELL], const struct whatif_value *value, enum whatif_class class)
{
	uint64_t low = value->low / SETTINGS_MIB, high = value->high / SETTINGS_MIB;
	uint64_t mib = value->value / SETTINGS_MIB;

	if (class == WHATIF_LOWER_BOUND)
		snprintf(cell, N_CELL, "at least %" PRIu64 " MiB", low);
	else if (low != high)
		snprintf(cell, N_CELL, "%" PRIu64 "..%" PRIu64 " MiB", low, high);
	else
		snprintf(cell, N_CELL, "%" PRIu64 " MiB %s", mib,
			class == WHATIF_EXACT ? "exact" : "about");
}

static void write_count(
	char cell[N_CELL], const struct whatif_value *value, enum whatif_class class)
{
	if (class == WHATIF_LOWER_BOUND)
		snprintf(cell, N_CELL, "not known");
	else if (value->low != value->high)
		snprintf(cell, N_CELL, "%" PRIu64 "..%" PRIu64, value->low, value->high);
	else
		snprintf(cell, N_CELL, "%" PRIu64, value->value);
}

static void write_needed(char cell[N_CELL], const struct whatif_prediction *prediction)
{
	if (prediction->has_needed && prediction->class != WHATIF_LOWER_BOUND)
		write_mib(cell, &prediction->needed, prediction->needed_class);
	else
		snprintf(cell, N_CELL, "not known");
}

static bool is_open(const struct whatif_prediction *prediction)
{
	return prediction->class == WHATIF_LOWER_BOUND || prediction->class == WHATIF_NO_ANSWER;
}

static void write_fits(char cell[N_CELL], const struct whatif_prediction *prediction)
{
	if (prediction->why & WHATIF_WHY_BACKEND)
		snprintf(cell, N_CELL, "not known");
	else if (prediction->fits_unsure)
		snprintf(cell, N_CELL, "perhaps");
	else if (!prediction->fits)
		snprintf(cell, N_CELL, "no");
	else if (is_open(prediction))
		snprintf(cell, N_CELL,
			prediction->why & WHATIF_WHY_TIME ? "not known"
							  : "not known after the refusal");
	else
		snprintf(cell, N_CELL, "yes, %" PRIu64 " %s", prediction->n_retries,
			line_plural(prediction->n_retries, "retry", "retries"));
}

static void put_cells(
	const struct style *style, const char *label, const char *recorded, const char *predicted)
{
	put_label(style, label);
	if (predicted)
		fprintf(style->out, "%-*s%s\n", CELL_WIDTH, recorded, predicted);
	else
		fprintf(style->out, "%s\n", recorded);
}

/* The recording's own peak and count are no prediction. */
static void put_table(
	const struct style *style, const struct whatif_report *report, const struct whatif_row *row)
{
	const struct allocator_stats *stats = &report->check.result.stats;
	const struct whatif_row *own = &report->rows[0];
	char left[N_CELL], right[N_CELL], label[64];

	fputc('\n', style->out);
	put_cells(style, "", "recorded", row ? row->label : NULL);
	snprintf(left, sizeof(left), "%" PRIu64 " MiB", stats->peak_reserved_bytes / SETTINGS_MIB);
	if (row)
		write_mib(right, &row->prediction.peak_reserved, row->prediction.class);
	put_cells(style, "peak reserved", left, row ? right : NULL);
	write_needed(left, &own->prediction);
	if (row)
		write_needed(right, &row->prediction);
	put_cells(style, "needed to finish", left, row ? right : NULL);
	snprintf(left, sizeof(left), "%" PRIu64, stats->n_device_allocs);
	if (row)
		write_count(right, &row->prediction.n_device_allocs, row->prediction.class);
	put_cells(style, "device allocations", left, row ? right : NULL);
	if (!report->capacity_bytes)
		return;
	snprintf(label, sizeof(label), "fits in %s", format_bytes(report->capacity_bytes).text);
	write_fits(left, &own->prediction);
	if (row)
		write_fits(right, &row->prediction);
	put_cells(style, label, left, row ? right : NULL);
}

static void put_step(const struct style *style, const struct stack_source *source,
	const struct whatif_report *report, size_t i)
{
	const struct whatif_step *step = &report->built.recording.steps[i];
	char label[MAX_LABEL];

	whatif_where(source, report, step, label, sizeof(label));
	fprintf(style->out, "%s for %s at %s", format_bytes(step->bytes).text,
		*label ? label : "an unknown place", format_moment(step->time_ns).text);
}

static void put_whys(const struct style *style, const struct whatif_report *report,
	const struct whatif_prediction *prediction)
{
	const struct whatif_recording *recording = &report->built.recording;

	for (unsigned int i = 0; i < WHATIF_N_WHYS; i++) {
		const char *why = whatif_why_name(prediction->why, i);

		if (!*why)
			continue;
		put_label(style, "  why not exact");
		fputs(why, style->out);
		if (1u << i == WHATIF_WHY_SIZES)
			fprintf(style->out, " (%s of %s)", format_count(recording->n_unsure).text,
				format_count(recording->n_gets).text);
		if (1u << i == WHATIF_WHY_PENDING)
			fprintf(style->out, " (%s)", format_count(recording->n_pending).text);
		fputc('\n', style->out);
	}
}

void whatif_put_hint(FILE *out, const struct whatif_hint *hint)
{
	const struct whatif_prediction *prediction = &hint->prediction;
	struct format_text peak = format_bytes(prediction->peak_reserved.value);
	struct format_text recorded = format_bytes(hint->recorded_peak_bytes);
	const char *about = prediction->class == WHATIF_EXACT ? "" : "about ";

	fputs(WHATIF_HINT_SETTINGS " would have ", out);
	if (prediction->why & WHATIF_WHY_REFUSED)
		fputs("run out of memory as well", out);
	else if (prediction->n_refused)
		fputs("been refused the same", out);
	else if (prediction->why & WHATIF_WHY_PASSED)
		fputs("passed the point of failure; nothing is known after it", out);
	else if (prediction->peak_reserved.value < hint->recorded_peak_bytes)
		fprintf(out, "served every request of this recording, peak %s%s instead of %s",
			about, peak.text, recorded.text);
	else
		fprintf(out, "not lowered the peak: %s%s, recorded %s", about, peak.text,
			recorded.text);
}

static void put_served(
	const struct style *style, const struct whatif_report *report, const struct whatif_row *row)
{
	const struct whatif_prediction *prediction = &row->prediction;

	fprintf(style->out, "%s: ", row->label);
	if (report->capacity_bytes)
		fprintf(style->out, "%s ", format_bytes(report->capacity_bytes).text);
	if (prediction->why & WHATIF_WHY_PASSED)
		fputs("would have passed the point of failure; nothing is known after it\n",
			style->out);
	else if (prediction->n_refused)
		fprintf(style->out,
			"would have been refused what the recording was (%s %s), and served the "
			"rest\n",
			format_count(prediction->n_refused).text,
			line_plural(prediction->n_refused, "request", "requests"));
	else
		fprintf(style->out, "would have served every request of this recording%s\n",
			prediction->class == WHATIF_EXACT || prediction->class == WHATIF_ABOUT
				? ""
				: ", as far as can be told");
}

/* In words, what the table says of one set of settings. */
static void put_verdict(const struct style *style, const struct stack_source *source,
	const struct whatif_report *report, const struct whatif_row *row)
{
	const struct whatif_prediction *prediction = &row->prediction;
	bool is_capped = report->capacity_bytes && prediction->class != WHATIF_NO_ANSWER;

	if (prediction->why & WHATIF_WHY_BACKEND)
		return;
	if (is_capped && prediction->fits_unsure) {
		fprintf(style->out,
			"%s: whether %s would have served every request depends on what is not "
			"known\n",
			row->label, format_bytes(report->capacity_bytes).text);
	} else if (is_capped && !prediction->fits) {
		fprintf(style->out,
			"%s: %s would not have served every request; the first refused: ",
			row->label, format_bytes(report->capacity_bytes).text);
		put_step(style, source, report, prediction->refused_step);
		fputc('\n', style->out);
	} else if (prediction->why & WHATIF_WHY_REFUSED) {
		fprintf(style->out, "%s: would have run out of this GPU's memory\n", row->label);
	} else {
		put_served(style, report, row);
	}
	if (!prediction->has_needed || prediction->needed_step == SIZE_MAX || is_open(prediction))
		return;
	fprintf(style->out,
		"  first refusal below %" PRIu64 " MiB: ", prediction->needed.value / SETTINGS_MIB);
	put_step(style, source, report, prediction->needed_step);
	fputc('\n', style->out);
}

static bool put_problem(const struct style *style, const struct whatif_row *row)
{
	if (*row->problem) {
		style_put(style, STYLE_WARNING, row->is_legal ? "note: " : "not possible: ");
		fprintf(style->out, "%s\n", row->problem);
	}
	return row->is_legal;
}

static void put_together(const struct style *style, const struct stack_source *source,
	const struct whatif_report *report, const struct whatif_row *row)
{
	if (row && !put_problem(style, row))
		row = NULL;
	put_table(style, report, row);
	put_whys(style, report, row ? &row->prediction : &report->rows[0].prediction);
	fputc('\n', style->out);
	put_verdict(style, source, report, &report->rows[0]);
	if (row)
		put_verdict(style, source, report, row);
}

static void put_sweep(const struct style *style, const struct whatif_report *report, size_t first)
{
	fprintf(style->out, "\n%-34s%-26s%-24s%s\n", "setting", "needed to finish", "peak reserved",
		report->capacity_bytes ? "fits" : "");
	for (size_t i = first; i < report->n_rows; i++) {
		const struct whatif_row *row = &report->rows[i];
		char needed[N_CELL], peak[N_CELL], fits[N_CELL] = "";

		write_needed(needed, &row->prediction);
		write_mib(peak, &row->prediction.peak_reserved, row->prediction.class);
		if (report->capacity_bytes)
			write_fits(fits, &row->prediction);
		fprintf(style->out, *fits ? "%-34s%-26s%-24s%s\n" : "%-34s%-26s%s%s\n", row->label,
			needed, peak, fits);
	}
}

void whatif_text(const struct style *style, const struct stack_source *source,
	const struct whatif_report *report)
{
	const struct whatif_row *row = NULL;
	size_t first = 1;

	if (report->built.refusal != WHATIF_FINE) {
		fprintf(style->out, "no answer: %s\n", report->built.reason);
		return;
	}
	put_recording(style, report);
	put_check(style, source, report);
	if (!report->rows)
		return;
	if (report->has_together)
		row = &report->rows[first++];
	put_together(style, source, report, row);
	if (report->is_sweep)
		put_sweep(style, report, first);
}

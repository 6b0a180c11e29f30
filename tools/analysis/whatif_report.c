#include "analysis/whatif_report.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analysis/order.h"
#include "model/memory.h"
#include "model/progress.h"

#define MAX_TEXT    512u
#define MAX_THREADS 16u

/* What users try. Those that the version does not know, or that change nothing, are left out. */
static const char *const common_settings[] = {
	"expandable_segments=True",
	"expandable_segments=False",
	"max_split_size_mb=32",
	"max_split_size_mb=128",
	"max_split_size_mb=512",
	"roundup_power2_divisions=4",
	"roundup_power2_divisions=8",
	"large_segment_size_mb=64",
	"garbage_collection_threshold=0.6",
	"garbage_collection_threshold=0.8",
};

#define N_COMMON (sizeof(common_settings) / sizeof(*common_settings))

/* The recorded run as the model did it: what differs from the trace is in no step. */
static void compare_totals(struct whatif_report *report)
{
	const struct whatif_built *built = &report->built;
	const struct allocator_stats *stats = &report->check.result.stats;

	if (stats->peak_reserved_bytes != built->peak_reserved_bytes ||
		(!built->recording.settings.expandable &&
			stats->n_device_frees != built->n_device_frees))
		report->check.is_equal = false;
}

static struct whatif_row *add_row(struct whatif_report *report, const char *label)
{
	struct whatif_row *row = &report->rows[report->n_rows++];

	snprintf(row->label, sizeof(row->label), "%s", label);
	return row;
}

/* What is said of garbage collection without a memory fraction does not hold where the program set
 * one. */
static bool parse(const struct whatif_report *report, struct whatif_row *row, const char *text,
	struct settings *settings)
{
	const struct whatif_recording *recording = &report->built.recording;

	*settings = recording->settings;
	row->is_legal = settings_apply(
		settings, text, recording->version, row->problem, sizeof(row->problem));
	if (row->is_legal && recording->cap_bytes && settings->collection_threshold > 0)
		*row->problem = 0;
	return row->is_legal;
}

static void try_together(struct whatif_report *report, const struct whatif_request *request)
{
	char text[MAX_TEXT] = "";
	struct settings settings;
	struct whatif_row *row;
	size_t used = 0;

	for (size_t i = 0; i < request->n_settings && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? "," : "",
			request->settings[i]);
	row = add_row(report, text);
	if (parse(report, row, text, &settings))
		row->prediction.settings = settings;
}

static int compare_rows(const void *a, const void *b)
{
	const struct whatif_prediction *x = &((const struct whatif_row *)a)->prediction;
	const struct whatif_prediction *y = &((const struct whatif_row *)b)->prediction;
	int order = (int)y->has_needed - (int)x->has_needed;

	if (!order)
		order = order_of(x->needed.value, y->needed.value);
	if (!order)
		order = order_of(x->peak_reserved.value, y->peak_reserved.value);
	return order ? order
		     : strcmp(((const struct whatif_row *)a)->label,
			       ((const struct whatif_row *)b)->label);
}

static void add_common(struct whatif_report *report)
{
	for (size_t i = 0; i < N_COMMON; i++) {
		struct whatif_row *row = add_row(report, common_settings[i]);
		struct settings settings;

		if (!parse(report, row, common_settings[i], &settings) || *row->problem ||
			settings_equal(&settings, &report->built.recording.settings))
			memset(&report->rows[--report->n_rows], 0, sizeof(*row));
		else
			row->prediction.settings = settings;
	}
}

/* Rows are predicted by as many threads as there are processors. */
struct work {
	struct whatif_report *report;
	_Atomic size_t n_taken, n_done, n_replays;
};

static void *work_on_rows(void *arg)
{
	struct work *work = arg;
	struct whatif_report *report = work->report;
	size_t i;

	while ((i = work->n_taken++) < report->n_rows) {
		struct whatif_row *row = &report->rows[i];
		const struct settings settings = row->prediction.settings;

		if (row->is_legal)
			whatif_predict(&report->built.recording, &settings, report->capacity_bytes,
				&row->prediction);
		work->n_done++;
	}
	return NULL;
}

static void show(struct progress *progress, const struct work *work, const char *path)
{
	size_t n_rows = work->report->n_rows, n_done = work->n_done, n = work->n_replays;
	size_t n_left = (n_rows - n_done) * (n_done ? n / n_done : WHATIF_REPLAYS);
	size_t n_all = n_done * WHATIF_REPLAYS + n_left;

	progress_step(progress, "trying settings on", path, n < n_all ? n : n_all, n_all);
}

static void predict_rows(struct whatif_report *report, const char *path)
{
	struct progress progress = progress_start();
	struct work work = {.report = report};
	pthread_t threads[MAX_THREADS];
	size_t n_threads = 0, n_wanted = (size_t)sysconf(_SC_NPROCESSORS_ONLN);

	report->built.recording.n_replays = &work.n_replays;
	n_wanted = n_wanted < MAX_THREADS ? n_wanted : MAX_THREADS;
	n_wanted = n_wanted < report->n_rows ? n_wanted : report->n_rows;
	while (n_threads < n_wanted &&
		!pthread_create(&threads[n_threads], NULL, work_on_rows, &work))
		n_threads++;
	if (!n_threads)
		work_on_rows(&work);
	while (work.n_done < report->n_rows) {
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
		show(&progress, &work, path);
	}
	while (n_threads)
		pthread_join(threads[--n_threads], NULL);
	progress_end(&progress);
	report->built.recording.n_replays = NULL;
}

static struct whatif_report report_for(const struct whatif_request *request)
{
	return (struct whatif_report){
		.capacity_bytes = request->capacity_bytes,
		.is_sweep = request->sweep,
		.has_together = request->n_settings,
	};
}

/* When built is there. */
static void fill(
	struct whatif_report *report, const char *path, const struct whatif_request *request)
{
	struct whatif_recording *recording = &report->built.recording;
	size_t n_fixed;

	if (report->built.refusal)
		return;
	whatif_check(recording, &report->check);
	compare_totals(report);
	if (!report->check.is_equal)
		return;
	report->rows = memory_new(N_COMMON + 2, sizeof(*report->rows));
	add_row(report, "as recorded")->is_legal = true;
	report->rows[0].prediction.settings = recording->settings;
	if (request->n_settings)
		try_together(report, request);
	n_fixed = report->n_rows;
	if (request->sweep)
		add_common(report);
	predict_rows(report, path);
	qsort(report->rows + n_fixed, report->n_rows - n_fixed, sizeof(*report->rows),
		compare_rows);
}

int whatif_report_make(
	struct whatif_report *report, struct replay *replay, const struct whatif_request *request)
{
	int error;

	*report = report_for(request);
	error = whatif_build(&report->built, replay, request->device);
	if (!error)
		fill(report, replay->path, request);
	return error;
}

void whatif_report_snapshot(struct whatif_report *report, const struct pickle_value *snapshot,
	const char *path, const struct whatif_request *request)
{
	*report = report_for(request);
	whatif_snapshot_build(&report->built, snapshot, request->device);
	fill(report, path, request);
}

void whatif_report_release(struct whatif_report *report)
{
	whatif_built_release(&report->built);
	free(report->rows);
	*report = (struct whatif_report){0};
}

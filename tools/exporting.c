#include "exporting.h"

#include <stdlib.h>

#include "analysis/counters.h"
#include "analysis/export_events.h"
#include "analysis/export_snapshot.h"
#include "model/memory.h"
#include "output/export_events.h"
#include "output/perfetto.h"
#include "output/torch_snapshot.h"

static size_t add_peaks(const struct model *model, struct export_moment *moments)
{
	size_t n = 0;

	for (size_t i = 0; i <= model->n_devices; i++) {
		const struct model_device *device =
			i < model->n_devices ? model->devices[i] : &model->unknown;

		if (device->peak_tracked_bytes)
			moments[n++] = (struct export_moment){
				.moment = {.at = REPLAY_AT_PEAK, .device = device->ordinal},
				.one_device = true};
	}
	return n;
}

static size_t add_ooms(
	const struct export_source *source, size_t number, struct export_moment *moments)
{
	struct replay_moment found[EPISODES_MAX];
	size_t n = input_ooms(source->input, number, found);

	for (size_t i = 0; i < n; i++)
		moments[i] = (struct export_moment){
			.moment = found[i], .oom_number = number ? number : i + 1};
	return n;
}

/* The moments that --at asks for; of those that are not of one device, only what --device says. */
void exporting_plan(struct export_source *source, const struct options *options)
{
	const struct model *model = source->input->replay->model;
	size_t n;

	source->moments = memory_new(model->n_devices + 2 + EPISODES_MAX, sizeof(*source->moments));
	if (options->at_given && options->at == REPLAY_AT_RECORD) {
		n = add_ooms(source, options->oom_number, source->moments);
	} else if (options->at_given && options->at != REPLAY_AT_PEAK) {
		source->moments[0].moment =
			(struct replay_moment){.at = options->at, .time_ns = options->at_ns};
		n = 1;
	} else {
		n = add_peaks(model, source->moments);
	}
	source->trace.n_moments = 0;
	for (size_t i = 0; i < n; i++) {
		struct export_moment *moment = &source->moments[i];

		if (options->filter.one_device && moment->one_device &&
			moment->moment.device != options->filter.device)
			continue;
		if (options->filter.one_device) {
			moment->one_device = true;
			moment->moment.device = options->filter.device;
		}
		source->moments[source->trace.n_moments++] = *moment;
	}
}

uint64_t exporting_time(const struct export_source *source, const struct export_moment *moment)
{
	const struct model_device *device =
		model_device_find(source->input->replay->model, moment->moment.device);

	if (moment->moment.at == REPLAY_AT_PEAK)
		return device ? device->peak_time_ns : 0;
	return moment->moment.at == REPLAY_AT_END ? UINT64_MAX : moment->moment.time_ns;
}

static int compare_times(const void *a, const void *b)
{
	const struct replay_moment *x = &((const struct export_moment *)a)->moment;
	const struct replay_moment *y = &((const struct export_moment *)b)->moment;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* Peaks, refusals and the end, in the order of time. */
void exporting_plan_all(struct export_source *source, const struct options *options)
{
	struct export_moment *moments;
	size_t n;

	exporting_plan(source, options);
	moments = source->moments;
	n = source->trace.n_moments;
	n += add_ooms(source, 0, &moments[n]);
	for (size_t i = 0; i < n; i++)
		moments[i].moment.time_ns = exporting_time(source, &moments[i]);
	moments[n++].moment = (struct replay_moment){.at = REPLAY_AT_END, .time_ns = UINT64_MAX};
	qsort(moments, n, sizeof(*moments), compare_times);
	source->trace.n_moments = n;
	for (size_t i = 0; i < n && options->filter.one_device; i++) {
		moments[i].one_device = true;
		moments[i].moment.device = options->filter.device;
	}
}

static int export_sites(
	struct exporter *exporter, void (*put)(FILE *, const struct export_trace *, size_t))
{
	struct export_trace *traces = memory_new(exporter->n, sizeof(*traces));
	int error = 0;

	for (size_t i = 0; i < exporter->n && !error; i++) {
		struct export_source *source = &exporter->sources[i];

		error = export_moments_make(
			source->input->replay, source->moments, source->trace.n_moments);
		traces[i] = source->trace;
	}
	if (!error)
		put(exporter->out, traces, exporter->n);
	free(traces);
	return error;
}

int exporting_pprof(struct exporter *exporter)
{
	return export_sites(exporter, export_pprof);
}

int exporting_speedscope(struct exporter *exporter)
{
	return export_sites(exporter, export_speedscope);
}

int exporting_collapsed(struct exporter *exporter)
{
	return export_sites(exporter, export_collapsed);
}

/* After the first pass's model was taken out of the way of others. */
static void take_names(struct export_source *source, const struct options *options)
{
	source->names = replay_take_model(source->input->replay);
	source->trace.source =
		(struct stack_source){source->names, source->input->symbols, options->show};
}

static void put_event(void *user, const struct export_event *event)
{
	export_table_put(user, event);
}

static int export_events_of(struct exporter *exporter, bool json)
{
	struct export_table *table = export_table_new(exporter->out, json);
	struct export_events_request request = {
		.one_device = exporter->options->filter.one_device,
		.device = exporter->options->filter.device,
		.event = put_event,
		.user = table,
	};
	int error = 0;

	for (size_t i = 0; i < exporter->n && !error; i++) {
		take_names(&exporter->sources[i], exporter->options);
		export_table_set_trace(table, &exporter->sources[i].trace);
		error = export_events_make(exporter->sources[i].input->replay, &request);
	}
	export_table_free(table);
	return error;
}

int exporting_csv(struct exporter *exporter)
{
	return export_events_of(exporter, false);
}

int exporting_jsonl(struct exporter *exporter)
{
	return export_events_of(exporter, true);
}

struct counters {
	struct perfetto *perfetto;
	const struct options *options;
};

static void put_point(void *user, const struct counter_point *point)
{
	const struct counters *counters = user;
	const struct site_filter *filter = &counters->options->filter;

	if (!filter->one_device || point->device == filter->device)
		perfetto_put_point(counters->perfetto, point);
}

/* Where the program was: a timeline of one column has all phases and marks. */
static int put_places(const struct export_source *source, struct perfetto *perfetto)
{
	const struct model *model = source->names;
	const struct timeline_also nothing = {NULL, NULL};
	struct timeline timeline;
	int error;

	if (!model->n_by_record[VT_REC_phase] && !model->n_by_record[VT_REC_mark])
		return 0;
	error = timeline_make(&timeline, source->input->replay, 1, &nothing);
	if (error)
		return error;
	perfetto_put_phases(perfetto, &timeline.phases);
	perfetto_put_marks(perfetto, &timeline.marks);
	timeline_release(&timeline);
	return 0;
}

/* Counters of all of it, and who held what at each peak, at each refusal and at the end. */
static int export_perfetto_trace(
	struct exporter *exporter, struct export_source *source, struct perfetto *perfetto)
{
	const struct episodes *episodes = &source->input->watch->episodes;
	struct owner_source owners = input_owners(source->input);
	struct counters counters = {perfetto, exporter->options};
	struct counters_request request = {
		.owners = &owners, .point = put_point, .user = &counters};
	int error = export_moments_make(
		source->input->replay, source->moments, source->trace.n_moments);

	if (error)
		return error;
	request.step_ns = counters_step(source->input->replay->model);
	take_names(source, exporter->options);
	request.names = source->names;
	perfetto_set_trace(perfetto, &source->trace);
	error = counters_make(source->input->replay, &request);
	for (size_t i = 0; i < episodes->n_items && !error; i++)
		if (!exporter->options->filter.one_device ||
			episodes->items[i].device == exporter->options->filter.device)
			perfetto_put_episode(perfetto, &episodes->items[i]);
	if (!error)
		perfetto_put_moments(perfetto);
	return error ? error : put_places(source, perfetto);
}

int exporting_perfetto(struct exporter *exporter)
{
	struct perfetto *perfetto = perfetto_new(exporter->out);
	int error = 0;

	for (size_t i = 0; i < exporter->n && !error; i++)
		error = export_perfetto_trace(exporter, &exporter->sources[i], perfetto);
	perfetto_free(perfetto);
	return error;
}

static void put_snapshot_event(void *user, const struct snapshot_event *event)
{
	torch_snapshot_put_event(user, event);
}

/* Devices are told one after the other, each in a pass of its own. */
static int put_devices(struct exporter *exporter, struct torch_snapshot *snapshot,
	struct snapshot_layout *layouts, size_t n)
{
	struct export_source *source = exporter->sources;
	struct snapshot_request request = {.until_ns = exporter->until_ns,
		.episodes = &source->input->watch->episodes,
		.event = put_snapshot_event,
		.user = snapshot};
	struct snapshot_fates *fates;
	int error;

	fates = snapshot_fates_new(source->input->replay, &error);
	request.fates = fates;
	for (size_t i = 0; i < n && !error; i++) {
		const struct model_device *device = model_device_find(source->names, (int)i);
		const struct site_filter *filter = &exporter->options->filter;

		torch_snapshot_open_device(snapshot);
		request.device = (int)i;
		if (device && device->peak_tracked_bytes &&
			(!filter->one_device || filter->device == (int)i))
			error = snapshot_make(&layouts[i], source->input->replay, &request);
		torch_snapshot_close_device(snapshot);
	}
	snapshot_fates_free(fates);
	return error;
}

int exporting_torch_snapshot(struct exporter *exporter)
{
	struct export_source *source = exporter->sources;
	struct torch_snapshot *snapshot;
	struct snapshot_layout *layouts;
	size_t n = 0;
	int error;

	take_names(source, exporter->options);
	for (size_t i = 0; i < source->names->n_devices; i++)
		if (source->names->devices[i]->ordinal >= (int)n)
			n = (size_t)source->names->devices[i]->ordinal + 1;
	layouts = memory_new(n, sizeof(*layouts));
	snapshot = torch_snapshot_new(exporter->out, &source->trace);
	error = put_devices(exporter, snapshot, layouts, n);
	torch_snapshot_put_segments(snapshot, layouts, n);
	torch_snapshot_free(snapshot);
	for (size_t i = 0; i < n; i++)
		snapshot_layout_release(&layouts[i]);
	free(layouts);
	return error;
}

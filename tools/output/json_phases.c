#include "output/json_phases.h"

#include "analysis/phases.h"

#define MAX_NAME 520u

void json_place(struct json *json, const struct model_place_name *place)
{
	const char *text = NULL;
	char name[MAX_NAME];

	if (place->name.data)
		text = model_place_text(place, name, sizeof(name));
	json_string(json, "phase", place->is_mark ? NULL : text);
	json_string(json, "mark", place->is_mark ? text : NULL);
}

static void put_peaks(struct json *json, const struct model_phase *phase)
{
	json_open(json, "peaks", '[');
	for (size_t i = 0; i < phase->n_peaks; i++) {
		const struct model_phase_peak *peak = &phase->peaks[i];

		json_open(json, NULL, '{');
		json_number_or_null(json, "device", peak->device >= 0, (uint64_t)peak->device);
		json_number(json, "tracked_bytes", peak->tracked_bytes);
		json_number(json, "tracked_ns", peak->tracked_ns);
		json_number(json, "block_bytes", peak->block_bytes);
		json_number_or_null(json, "block_ns", peak->block_bytes != 0, peak->block_ns);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_phase(struct json *json, const struct phase_row *row, size_t trace)
{
	const struct model_phase *phase = row->phase;

	json_open(json, NULL, '{');
	json_number(json, "trace", trace);
	json_string(json, "name", phase->name);
	json_number(json, "count", phase->n);
	json_number(json, "open", phase->n_open);
	json_number(json, "time_ns", row->time_ns);
	json_number(json, "longest_ns", phase->longest_ns);
	json_number(json, "first_ns", phase->first_ns);
	json_number(json, "last_ns", phase->last_ns);
	put_peaks(json, phase);
	json_open(json, "copies", '{');
	json_number(json, "calls", phase->copies.n);
	json_number(json, "bytes", phase->copies.bytes);
	json_number(json, "host_time_ns", phase->copies.ns);
	json_number(json, "waits", phase->waits.n);
	json_number(json, "wait_ns", phase->waits.ns);
	json_close(json, '}');
	json_close(json, '}');
}

static void put_mark(struct json *json, const struct phase_row *row, size_t trace)
{
	json_open(json, NULL, '{');
	json_number(json, "trace", trace);
	json_string(json, "name", row->phase->name);
	json_number(json, "count", row->phase->n);
	json_number(json, "first_ns", row->phase->first_ns);
	json_number(json, "last_ns", row->phase->last_ns);
	json_close(json, '}');
}

static void put_all(
	struct json *json, const char *key, const struct report_trace *traces, size_t n, bool marks)
{
	json_open(json, key, '[');
	for (size_t i = 0; i < n; i++) {
		struct phase_list list;

		phase_list_make(&list, traces[i].overview->replay->model);
		for (size_t k = 0; marks && k < list.n_marks; k++)
			put_mark(json, &list.marks[k], i);
		for (size_t k = 0; !marks && k < list.n_phases; k++)
			put_phase(json, &list.phases[k], i);
		phase_list_release(&list);
	}
	json_close(json, ']');
}

void json_phases(struct json *json, const struct report_trace *traces, size_t n)
{
	put_all(json, "phases", traces, n, false);
}

void json_marks(struct json *json, const struct report_trace *traces, size_t n)
{
	put_all(json, "marks", traces, n, true);
}

void json_host_sample(struct json *json, const struct vt_rec_host_memory *sample)
{
	uint64_t known = sample->known;

	json_number_or_null(
		json, "resident_bytes", known & VT_HOST_RESIDENT, sample->resident_bytes);
	json_number_or_null(json, "locked_bytes", known & VT_HOST_LOCKED, sample->locked_bytes);
	json_number_or_null(json, "swapped_bytes", known & VT_HOST_SWAPPED, sample->swapped_bytes);
	json_number_or_null(json, "machine_available_bytes", known & VT_HOST_AVAILABLE,
		sample->available_bytes);
	json_number_or_null(
		json, "machine_swap_used_bytes", known & VT_HOST_SWAP, model_swap_used(sample));
	json_number_or_null(
		json, "machine_swap_total_bytes", known & VT_HOST_SWAP, sample->swap_total_bytes);
}

static void put_extreme(struct json *json, const char *key, const struct model_extreme *extreme)
{
	json_open(json, key, '{');
	json_number_or_null(json, "bytes", extreme->seen, extreme->bytes);
	json_number_or_null(json, "time_ns", extreme->seen, extreme->time_ns);
	json_close(json, '}');
}

void json_host_samples(struct json *json, const struct report_trace *traces, size_t n)
{
	json_open(json, "host_samples", '[');
	for (size_t i = 0; i < n; i++) {
		const struct model_host_samples *samples =
			&traces[i].overview->replay->model->host_samples;

		if (!samples->n)
			continue;
		json_open(json, NULL, '{');
		json_number(json, "trace", i);
		json_number(json, "samples", samples->n);
		json_open(json, "last", '{');
		json_number(json, "time_ns", samples->last.time_ns);
		json_host_sample(json, &samples->last);
		json_close(json, '}');
		put_extreme(json, "most_resident", &samples->most_resident);
		put_extreme(json, "most_locked", &samples->most_locked);
		put_extreme(json, "most_swapped", &samples->most_swapped);
		put_extreme(json, "least_machine_available", &samples->least_available);
		put_extreme(json, "most_machine_swap_used", &samples->most_swap_used);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void json_pauses(struct json *json, const struct report_trace *traces, size_t n)
{
	uint64_t count = 0, ns = 0;
	bool now = false;

	for (size_t i = 0; i < n; i++) {
		const struct model *model = traces[i].overview->replay->model;

		count += model->pauses.n;
		ns += model_paused_ns(model);
		now = now || model->pauses.now;
	}
	json_open(json, "paused", '{');
	json_number(json, "count", count);
	json_number(json, "duration_ns", ns);
	json_bool(json, "now", now);
	json_close(json, '}');
}

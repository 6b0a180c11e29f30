#include "output/json.h"
#include "output/whatif_text.h"

static void put_value(struct json *json, const char *key, const struct whatif_value *value)
{
	json_open(json, key, '{');
	json_number(json, "value", value->value);
	json_number(json, "low", value->low);
	json_number(json, "high", value->high);
	json_close(json, '}');
}

static void put_step(struct json *json, const char *key, const struct stack_source *source,
	const struct whatif_report *report, size_t i)
{
	const struct whatif_step *step;
	char where[256];

	if (i == SIZE_MAX) {
		json_null(json, key);
		return;
	}
	step = &report->built.recording.steps[i];
	json_open(json, key, '{');
	json_number(json, "bytes", step->bytes);
	json_number(json, "time_ns", step->time_ns);
	whatif_where(source, report, step, where, sizeof(where));
	json_string(json, "where", *where ? where : NULL);
	if (report->built.entries)
		json_null(json, "stack");
	else
		stack_json(json, source, step->stack_id);
	json_close(json, '}');
}

static void put_prediction(struct json *json, const struct stack_source *source,
	const struct whatif_report *report, const struct whatif_prediction *prediction)
{
	bool has_counts =
		prediction->class != WHATIF_NO_ANSWER && !(prediction->why & WHATIF_WHY_BACKEND);

	json_string(json, "class", whatif_class_name(prediction->class));
	json_string(json, "needed_class",
		prediction->has_needed ? whatif_class_name(prediction->needed_class) : NULL);
	json_open(json, "reasons", '[');
	for (unsigned int i = 0; i < WHATIF_N_WHYS; i++)
		if (prediction->why & 1u << i)
			json_string(json, NULL, whatif_why_name(prediction->why, i));
	json_close(json, ']');
	put_value(json, "peak_reserved_bytes", &prediction->peak_reserved);
	if (has_counts)
		put_value(json, "device_allocations", &prediction->n_device_allocs);
	else
		json_null(json, "device_allocations");
	if (prediction->has_needed)
		put_value(json, "needed_bytes", &prediction->needed);
	else
		json_null(json, "needed_bytes");
	put_step(json, "first_refused_below", source, report, prediction->needed_step);
	if (report->capacity_bytes && has_counts) {
		if (prediction->fits_unsure)
			json_null(json, "fits");
		else
			json_bool(json, "fits", prediction->fits);
		json_number(json, "retries", prediction->n_retries);
	} else {
		json_null(json, "fits");
		json_null(json, "retries");
	}
	put_step(json, "first_refused", source, report, prediction->refused_step);
}

static void put_row(struct json *json, const struct stack_source *source,
	const struct whatif_report *report, size_t i)
{
	const struct whatif_row *row = &report->rows[i];

	json_open(json, NULL, '{');
	json_string(json, "settings", row->label);
	json_bool(json, "possible", row->is_legal);
	json_string(json, "remark", *row->problem ? row->problem : NULL);
	if (row->is_legal)
		put_prediction(json, source, report, &row->prediction);
	json_close(json, '}');
}

static void put_recording(struct json *json, const struct whatif_report *report)
{
	const struct whatif_built *built = &report->built;
	const struct whatif_recording *recording = &built->recording;

	json_open(json, "recording", '{');
	json_signed_or_null(json, "device", built->device >= 0, built->device);
	json_string(json, "pytorch", *built->version_text ? built->version_text : NULL);
	json_string(json, "settings", built->settings_text);
	json_number(json, "allocations", recording->n_gets);
	json_number(json, "sizes_known_to_1_mib", recording->n_unsure);
	json_number(json, "pending_frees", recording->n_pending);
	json_number(json, "streams", built->n_streams);
	json_bool(json, "streams_known", built->streams_known);
	json_bool(json, "user_pools", built->has_user_pools);
	json_number(json, "peak_reserved_bytes", built->peak_reserved_bytes);
	json_number_or_null(json, "limit_bytes", recording->cap_bytes != 0, recording->cap_bytes);
	json_close(json, '}');
}

static void put_check(struct json *json, const struct whatif_report *report)
{
	const struct whatif_check *check = &report->check;
	const struct allocator_stats *stats = &check->result.stats;

	json_open(json, "self_check", '{');
	json_bool(json, "equal", check->is_equal);
	json_number(json, "driver_requests", report->built.recording.n_answers);
	json_number(json, "driver_requests_equal", check->n_answers);
	json_number(json, "addresses", check->n_gets);
	json_number(json, "addresses_equal", check->n_addresses);
	json_number(json, "peak_reserved_bytes", stats->peak_reserved_bytes);
	json_number(json, "peak_allocated_bytes", stats->peak_allocated_bytes);
	json_number(json, "device_allocations", stats->n_device_allocs);
	json_number(json, "device_frees", stats->n_device_frees);
	json_number(json, "retries", stats->n_retries);
	json_number(json, "refused", stats->n_refused);
	json_close(json, '}');
}

void whatif_json(FILE *out, const struct stack_source *source, const struct whatif_report *report)
{
	bool is_refused = report->built.refusal != WHATIF_FINE;
	struct json json;

	json_init(&json, out, false);
	json_open(&json, NULL, '{');
	json_string(&json, "schema", "vramtrace.whatif");
	json_number(&json, "version", 1);
	json_string(&json, "no_answer", is_refused ? report->built.reason : NULL);
	put_recording(&json, report);
	if (is_refused)
		json_null(&json, "self_check");
	else
		put_check(&json, report);
	json_number_or_null(
		&json, "capacity_bytes", report->capacity_bytes != 0, report->capacity_bytes);
	json_open(&json, "predictions", '[');
	for (size_t i = 0; i < report->n_rows; i++)
		put_row(&json, source, report, i);
	json_close(&json, ']');
	json_close(&json, '}');
	json_end(&json);
}

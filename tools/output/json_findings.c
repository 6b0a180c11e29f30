#include "output/json_findings.h"

#include <stdlib.h>

#include "analysis/account.h"
#include "model/memory.h"
#include "output/dump.h"
#include "output/fragmentation_text.h"
#include "output/json_blocks.h"
#include "output/oom_text.h"
#include "output/whatif_text.h"

/* Words that go to a stream elsewhere. */
struct words {
	FILE *out;
	char *text;
	size_t bytes;
};

static void words_begin(struct words *words)
{
	words->out = open_memstream(&words->text, &words->bytes);
	if (!words->out)
		memory_exhausted();
}

static void words_end(struct words *words, struct json *json, const char *key)
{
	if (fclose(words->out))
		memory_exhausted();
	json_text_or_null(json, key, (struct vt_text){words->text, words->bytes});
	free(words->text);
}

static void put_holes(struct json *json, const struct fragmentation_row *row)
{
	json_number_or_null(json, "largest_hole_bytes", row->holes_known, row->largest_hole_bytes);
	if (!row->holes_known) {
		json_null(json, "holes");
		json_null(json, "requests");
		return;
	}
	json_open(json, "holes", '[');
	for (size_t i = 0; i < row->n_hole_sizes; i++) {
		json_open(json, NULL, '{');
		json_number(json, "bytes", row->holes[i].bytes);
		json_number(json, "count", row->holes[i].count);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_open(json, "requests", '{');
	json_number(json, "count", row->requests.n_requests);
	json_number(json, "fit_largest_hole", row->requests.n_fitting);
	json_number_or_null(
		json, "median_bytes", row->requests.n_requests != 0, row->requests.median_bytes);
	json_number(json, "drifting_sites", row->n_drifting);
	json_close(json, '}');
}

static void put_streams(struct json *json, const struct fragmentation_row *row)
{
	json_open(json, "pending", '[');
	for (size_t i = 0; i < row->n_pending; i++) {
		json_open(json, NULL, '{');
		json_hex(json, "stream", row->pending[i].stream);
		json_number(json, "bytes", row->pending[i].bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_pinners(
	struct json *json, const struct stack_source *source, const struct fragmentation_row *row)
{
	json_open(json, "pinners", '[');
	for (size_t i = 0; i < row->n_pinners; i++) {
		const struct fragmentation_pinner *pinner = &row->pinners[i];

		json_open(json, NULL, '{');
		json_hex(json, "address", pinner->address);
		json_number(json, "size", pinner->bytes);
		json_number(json, "count", pinner->count);
		json_number(json, "live_bytes", pinner->live_bytes);
		json_number(json, "pins_bytes", pinner->pins_bytes);
		json_number(json, "shared_bytes", pinner->shared_bytes);
		json_number(json, "first_ns", pinner->first_ns);
		stack_json(json, source, pinner->stack_id);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_segments(
	struct json *json, const struct stack_source *source, const struct fragmentation_row *row)
{
	json_open(json, "segments", '[');
	for (size_t i = 0; i < row->n_segments; i++) {
		const struct fragmentation_segment *segment = &row->segments[i];

		json_open(json, NULL, '{');
		json_hex(json, "address", segment->address);
		json_number(json, "size", segment->bytes);
		json_number(json, "live_bytes", segment->live_bytes);
		json_number(json, "live", segment->n_live);
		json_number(json, "idle_bytes", segment->idle_bytes);
		json_number(json, "largest_hole_bytes", segment->largest_hole_bytes);
		json_open(json, "smallest", '[');
		for (size_t k = 0; k < segment->n_holders; k++) {
			json_open(json, NULL, '{');
			json_hex(json, "address", segment->holders[k].address);
			json_number(json, "size", segment->holders[k].bytes);
			json_number(json, "time_ns", segment->holders[k].time_ns);
			stack_json(json, source, segment->holders[k].stack_id);
			json_close(json, '}');
		}
		json_close(json, ']');
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_judgement(
	struct json *json, const struct stack_source *source, const struct fragmentation_row *row)
{
	struct words words;

	json_string(json, "verdict", fragmentation_verdict_name(row->verdict));
	words_begin(&words);
	fragmentation_put_verdict(words.out, source, row);
	words_end(&words, json, "verdict_text");
	words_begin(&words);
	fragmentation_put_advice(words.out, row);
	words_end(&words, json, "advice");
	json_number_or_null(json, "advice_bytes", row->advice != ADVICE_NONE, row->advice_bytes);
}

static void put_row(struct json *json, const struct stack_source *source,
	const struct fragmentation_row *row, size_t index)
{
	bool pool = row->level == FRAGMENTATION_POOL;

	json_open(json, NULL, '{');
	json_number(json, "trace", index);
	json_number_or_null(json, "device", row->device >= 0, (uint64_t)row->device);
	json_string(json, "level", fragmentation_level_name(row));
	if (pool && !row->graphs)
		json_hex(json, "pool", row->pool);
	else
		json_null(json, "pool");
	json_text_or_null(json, "allocator", row->name);
	json_string(json, "at", row->at);
	json_number(json, "time_ns", row->time_ns);
	json_number(json, "page_bytes", row->page_bytes);
	json_number(json, "reserved_bytes", row->reserved_bytes);
	json_number(json, "live_bytes", row->live_bytes);
	json_number(json, "live", row->n_live);
	json_number_or_null(json, "rounding_bytes", row->rounding_known, row->rounding_bytes);
	json_number(json, "pending_bytes", row->pending_bytes);
	json_number(json, "idle_bytes", row->idle_bytes);
	json_number(json, "returnable_bytes", row->returnable_bytes);
	json_number(json, "pinned_bytes", row->pinned_bytes);
	json_number_or_null(
		json, "captured_bytes", row->level == FRAGMENTATION_FRAMEWORK, row->captured_bytes);
	json_number_or_null(
		json, "pinned_pages", row->level == FRAGMENTATION_DRIVER, row->n_pinned);
	json_number_or_null(
		json, "pinned_segments", row->level == FRAGMENTATION_FRAMEWORK, row->n_pinned);
	put_holes(json, row);
	json_number_or_null(json, "threshold_bytes", row->threshold_known, row->threshold_bytes);
	json_number_or_null(json, "most_bytes", row->most_bytes != 0, row->most_bytes);
	put_streams(json, row);
	put_pinners(json, source, row);
	put_segments(json, source, row);
	put_judgement(json, source, row);
	json_close(json, '}');
}

static void put_rows(struct json *json, const struct report_trace *trace,
	const struct fragmentation *list, size_t index)
{
	struct stack_source source = report_stacks(trace);

	for (size_t i = 0; i < list->n_rows; i++)
		put_row(json, &source, &list->rows[i], index);
}

void json_fragmentation(struct json *json, const struct report_trace *trace, size_t index)
{
	const struct overview *overview = trace->overview;

	put_rows(json, trace, &overview->fragmentation, index);
	for (size_t i = 0; i < overview->ooms.n_items; i++)
		put_rows(json, trace, &overview->ooms.items[i].levels, index);
}

static void put_request(struct json *json, const struct stack_source *source, const struct oom *oom)
{
	const struct episode *episode = &oom->episode;
	uint64_t bytes = episode->reported ? episode->report_bytes : episode->bytes;

	json_number(json, "time_ns", episode->last_ns);
	json_number(json, "first_ns", episode->first_ns);
	json_number(json, "thread", episode->tid);
	json_number_or_null(json, "device", episode->device >= 0, (uint64_t)episode->device);
	json_string(json, "api", oom_call_name(source->model, oom));
	json_string(json, "driver_api", model_api_name(source->model, episode->api_id));
	json_string(json, "kind", episode->kind ? model_kind_name(episode->kind) : NULL);
	json_number_or_null(json, "requested_bytes", bytes != 0, bytes);
	json_number(json, "refused_calls", episode->n_calls);
	json_bool(json, "reported_by_allocator", episode->reported);
	json_number_or_null(json, "free_bytes", oom->free_known, oom->free_bytes);
	json_bool(json, "free_measured", oom->free_measured);
	json_number_or_null(json, "total_bytes", oom->total_bytes != 0, oom->total_bytes);
	json_bool(json, "recovered", episode->recovered);
}

static void put_reason(struct json *json, const struct stack_source *source, const struct oom *oom)
{
	struct words words;

	json_string(json, "class", oom_class_name(oom->class));
	words_begin(&words);
	oom_put_reason(words.out, source, oom);
	words_end(&words, json, "reason");
	json_open(json, "would_suffice", '[');
	for (size_t i = 0; i < oom->n_remedies; i++) {
		const struct oom_remedy *remedy = &oom->remedies[i];

		json_open(json, NULL, '{');
		json_string(json, "action", oom_action_name(remedy->action));
		json_number(json, "bytes", remedy->bytes);
		words_begin(&words);
		oom_put_remedy(words.out, source, oom, remedy);
		words_end(&words, json, "text");
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_hint(struct json *json, const struct whatif_hint *hint)
{
	struct words words;

	if (!hint) {
		json_null(json, "whatif");
		return;
	}
	json_open(json, "whatif", '{');
	json_string(json, "settings", WHATIF_HINT_SETTINGS);
	json_string(json, "class", whatif_class_name(hint->prediction.class));
	json_bool(json, "served", whatif_hint_serves(hint));
	json_number(json, "recorded_peak_bytes", hint->recorded_peak_bytes);
	json_number(json, "peak_bytes", hint->prediction.peak_reserved.value);
	words_begin(&words);
	whatif_put_hint(words.out, hint);
	words_end(&words, json, "text");
	json_close(json, '}');
}

static void put_others(struct json *json, const struct oom *oom)
{
	bool listed = oom->listed.seen;

	json_open(json, "other_processes", '{');
	json_number_or_null(
		json, "bytes", oom->others_known || oom->account.seen, oom->others_bytes);
	json_bool(json, "measured", oom->others_known);
	json_number_or_null(json, "count", listed, oom->listed.n_processes);
	json_number_or_null(
		json, "largest_pid", listed && oom->listed.largest_pid, oom->listed.largest_pid);
	json_number_or_null(json, "largest_bytes", listed, oom->listed.largest_bytes);
	json_close(json, '}');
}

static void put_account(struct json *json, const struct oom *oom)
{
	struct account_row rows[ACCOUNT_MAX_ROWS];
	size_t n;

	if (!oom->account.seen) {
		json_null(json, "account");
		return;
	}
	n = account_rows(&oom->account, rows);
	json_open(json, "account", '{');
	for (size_t i = 0; i < n; i++)
		json_signed(json, rows[i].key, rows[i].bytes);
	json_close(json, '}');
}

static void put_ledgers(struct json *json, const struct oom *oom)
{
	bool known = !oom->is_past;

	json_number_or_null(json, "tracked_bytes", known, oom->tracked_bytes);
	json_open(json, "by_kind", '{');
	for (uint32_t kind = VT_KIND_LINEAR; kind < VT_N_KINDS; kind++)
		json_number_or_null(json, model_kind_name(kind), known,
			kind == VT_KIND_PINNED || kind == VT_KIND_REGISTERED
				? oom->host_kinds[kind].live_bytes
				: oom->kinds[kind].live_bytes);
	json_close(json, '}');
	json_number_or_null(json, "reserved_address_bytes", known, oom->reserved_address_bytes);
	json_number_or_null(json, "mapped_bytes", known, oom->mapped_bytes);
}

static void put_holders(struct json *json, const struct stack_source *source, const struct oom *oom)
{
	json_open(json, "holders", '[');
	for (size_t i = 0; i < oom->holders.n_rows; i++) {
		const struct site_row *row = &oom->holders.rows[i];

		json_open(json, NULL, '{');
		json_number(json, "bytes", row->bytes);
		json_number(json, "count", row->count);
		json_string(json, "kind", row->kind ? model_kind_name(row->kind) : "address_space");
		json_bool(json, "growing_sizes", row->grows);
		json_site_level(json, source->model, row);
		json_site_stack(json, source, row);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_events(struct json *json, const struct model *model, const struct oom *oom)
{
	struct words words;

	json_open(json, "events", '[');
	for (size_t i = 0; i < oom->episode.n_events; i++) {
		words_begin(&words);
		dump_text(words.out, model, &oom->episode.events[i]);
		fflush(words.out);
		if (words.bytes)
			words.bytes--; /* without the end of the line */
		json_text(json, NULL, (struct vt_text){words.text, words.bytes});
		fclose(words.out);
		free(words.text);
	}
	json_close(json, ']');
}

void json_ooms(struct json *json, const struct report_trace *trace, size_t index)
{
	struct stack_source source = report_stacks(trace);

	for (size_t i = 0; i < trace->overview->ooms.n_items; i++) {
		const struct oom *oom = &trace->overview->ooms.items[i];

		json_open(json, NULL, '{');
		json_number(json, "trace", index);
		json_number(json, "number", oom->number);
		put_request(json, &source, oom);
		put_reason(json, &source, oom);
		put_hint(json, oom->hint);
		put_others(json, oom);
		put_account(json, oom);
		put_ledgers(json, oom);
		put_holders(json, &source, oom);
		put_events(json, source.model, oom);
		stack_json(json, &source,
			oom->episode.reported ? oom->episode.report_stack_id
					      : oom->episode.stack_id);
		json_close(json, '}');
	}
}

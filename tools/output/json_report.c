#include "output/report.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/coverage.h"
#include "output/format.h"
#include "output/json_blocks.h"
#include "output/json_coverage.h"
#include "output/json_devices.h"
#include "output/json_findings.h"
#include "output/json_leaks.h"
#include "output/modules.h"
#include "output/json_phases.h"
#include "output/json_together.h"
#include "output/json_transfers.h"
#include "output/result.h"
#include "output/stack_table.h"

/* Which trace an item is of: an index into traces[]. */
static void put_trace(struct json *json, size_t trace)
{
	json_number(json, "trace", trace);
}

static void put_device(struct json *json, const char *key, int ordinal)
{
	json_number_or_null(json, key, ordinal >= 0, (uint64_t)ordinal);
}

static void put_argument(void *user, struct vt_text argument)
{
	json_text(user, NULL, argument);
}

static void put_arguments(
	struct json *json, const char *key, const struct show *show, struct vt_text arguments)
{
	json_open(json, key, '[');
	show_arguments(show, arguments, put_argument, json);
	json_close(json, ']');
}

static void put_damage(struct json *json, const struct trace_facts *facts)
{
	const struct vt_damage *damage = &facts->damage;

	json_open(json, "damage", '{');
	json_number(json, "chunks_skipped", damage->n_chunks_skipped);
	json_number(json, "chunks_cut", damage->n_chunks_cut);
	json_number(json, "missing_bytes", damage->missing_bytes);
	json_bool(json, "pack_damaged", facts->pack_damaged);
	json_number(json, "unknown_records", damage->n_unknown);
	json_close(json, '}');
}

static void put_host_memory(
	struct json *json, const char *key, const struct report_trace *traces, size_t n)
{
	uint64_t pinned = 0, registered = 0, peak_pinned = 0, peak_registered = 0;

	for (size_t i = 0; i < n; i++) {
		const struct model_totals *kinds = traces[i].overview->replay->model->host.kinds;

		pinned += kinds[VT_KIND_PINNED].live_bytes;
		registered += kinds[VT_KIND_REGISTERED].live_bytes;
		peak_pinned = kinds[VT_KIND_PINNED].peak_live_bytes;
		peak_registered = kinds[VT_KIND_REGISTERED].peak_live_bytes;
	}
	json_open(json, key, '{');
	json_number(json, "pinned_bytes", pinned);
	json_number(json, "registered_bytes", registered);
	/* Peaks of several processes do not fall together. */
	json_number_or_null(json, "peak_pinned_bytes", n == 1, peak_pinned);
	json_number_or_null(json, "peak_registered_bytes", n == 1, peak_registered);
	json_close(json, '}');
}

static void put_runtimes(struct json *json, const struct model *model, const struct show *show)
{
	if (!model->modules_seen) {
		json_null(json, "runtimes");
		return;
	}
	json_open(json, "runtimes", '[');
	for (size_t i = 0; i < model->runtimes.n_items; i++)
		json_text(json, NULL, show_path_text(show, model->runtimes.items[i]));
	json_close(json, ']');
}

static void put_trace_facts(struct json *json, const struct report_trace *trace)
{
	const struct trace_facts *facts = &trace->overview->facts;
	const struct model *model = trace->overview->replay->model;
	const struct show *show = &trace->show;

	json_open(json, NULL, '{');
	json_string(json, "file", show_path(show, facts->file));
	json_number(json, "pid", facts->pid);
	json_number_or_null(json, "ppid", model->process_seen, facts->ppid);
	json_text_or_null(json, "exe", show_path_text(show, facts->exe));
	put_arguments(json, "cmdline", show, facts->cmdline);
	json_text_or_null(
		json, "host", show_is_open(show) ? facts->host : (struct vt_text){NULL, 0});
	json_number_or_null(json, "rank", facts->rank >= 0, (uint64_t)facts->rank);
	json_number_or_null(
		json, "local_rank", facts->local_rank >= 0, (uint64_t)facts->local_rank);
	json_number_or_null(
		json, "world_size", facts->world_size >= 0, (uint64_t)facts->world_size);
	json_string(json, "start_time", format_utc(facts->start_realtime_ns).text);
	json_number(json, "duration_ns", facts->duration_ns);
	json_string(json, "end", trace_end_name(facts->end));
	json_number_or_null(json, "end_status", facts->status >= 0, (uint64_t)facts->status);
	json_bool(json, "complete", facts->complete);
	json_number(json, "events", facts->n_events);
	json_number(json, "lost_events", facts->n_lost);
	json_number_or_null(json, "kept_from_ns", model->part, model->kept_from_ns);
	json_string(json, "stopped", facts->stopped ? vt_error_text(facts->stopped) : NULL);
	put_damage(json, facts);
	json_number_or_null(json, "driver_version", model->driver_seen, model->driver.version);
	put_runtimes(json, model, show);
	json_text_or_null(json, "torch", torch_version(model));
	json_string(json, "python",
		model->python.version ? format_python(model->python.version).text : NULL);
	if (model->hooks_active)
		put_host_memory(json, "host_memory", trace, 1);
	else
		json_null(json, "host_memory");
	json_close(json, '}');
}

static void put_peak_sites(struct json *json, const struct report_trace *trace, size_t index)
{
	struct stack_source source = report_stacks(trace);

	for (size_t i = 0; i < trace->overview->n_views; i++) {
		const struct view *view = &trace->overview->views[i];

		for (size_t k = 0; k < view->sites.n_rows; k++) {
			const struct site_row *row = &view->sites.rows[k];

			json_open(json, NULL, '{');
			put_trace(json, index);
			json_string(json, "at", view->at);
			json_number(json, "time_ns", view->time_ns);
			put_device(json, "device", row->device);
			json_number(json, "bytes", row->bytes);
			json_number(json, "count", row->count);
			json_string(json, "kind", model_kind_name(row->kind));
			json_site_level(json, source.model, row);
			json_site_stack(json, &source, row);
			json_close(json, '}');
		}
	}
}

static void put_error(struct json *json, uint64_t result)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRIu64, result);
	json_string(json, "error", result_name(result) ? result_name(result) : number);
}

static const char *refusal_name(enum model_refusal refusal)
{
	static const char *const names[] = {
		[MODEL_REFUSED_ALLOC] = "alloc",
		[MODEL_REFUSED_FREE] = "free",
		[MODEL_REFUSED_COPY] = "copy",
		[MODEL_REFUSED_SET] = "set",
		[MODEL_REFUSED_ADDRESS_SPACE] = "address_space",
		[MODEL_REFUSED_CONTEXT] = "context",
		[MODEL_REFUSED_POOL] = "pool",
		[MODEL_REFUSED_GRAPH] = "graph",
		[MODEL_REFUSED_MIGRATE] = "migrate",
		[MODEL_REFUSED_BLOCK] = "block",
	};

	return names[refusal];
}

/* Where an allocator refused, its name stands for the program's call. */
static void put_failed_call(
	struct json *json, const struct model *model, const struct model_failure_key *key)
{
	const struct model_allocator *allocator = key->refusal == MODEL_REFUSED_BLOCK
							  ? model_allocator_find(model, key->api_id)
							  : NULL;

	if (allocator) {
		json_text(json, "api", allocator->name);
		json_null(json, "driver_api");
		return;
	}
	json_string(json, "api", model_call_name(model, key->api_id, key->caller_api));
	json_string(json, "driver_api", model_api_name(model, key->api_id));
}

/* Failed frees, or everything else that failed. */
static void put_failures(
	struct json *json, const struct report_trace *trace, size_t index, bool frees)
{
	struct stack_source source = report_stacks(trace);

	for (size_t i = 0; i < trace->overview->n_failures; i++) {
		const struct model_failure *failure = trace->overview->failures[i];

		if ((failure->key.refusal == MODEL_REFUSED_FREE) != frees)
			continue;
		json_open(json, NULL, '{');
		put_trace(json, index);
		put_failed_call(json, source.model, &failure->key);
		put_error(json, failure->key.result);
		json_number(json, "count", failure->n_calls);
		json_number(json, "bytes", failure->bytes);
		if (!frees) {
			json_string(json, "call", refusal_name(failure->key.refusal));
			json_string(json, "kind",
				failure->key.kind ? model_kind_name(failure->key.kind) : NULL);
			put_device(json, "device", failure->key.device);
			json_number(json, "largest_bytes", failure->largest_bytes);
		}
		json_number(json, "first_ns", failure->first_ns);
		json_number(json, "last_ns", failure->last_ns);
		stack_json(json, &source, failure->key.stack_id);
		json_close(json, '}');
	}
}

static void put_migrations(struct json *json, const struct report_trace *trace, size_t index)
{
	const struct model *model = trace->overview->replay->model;

	for (size_t i = 0; i < MODEL_N_MIGRATIONS; i++) {
		const struct model_migration *migration = &model->migrations[i];

		if (!migration->n_calls)
			continue;
		json_open(json, NULL, '{');
		put_trace(json, index);
		json_string(json, "action", model_migration_name(i));
		json_number(json, "calls", migration->n_calls);
		json_number(json, "bytes", migration->bytes);
		json_number(json, "host_time_ns", migration->host_time_ns);
		json_close(json, '}');
	}
}

static void put_failed_frees(struct json *json, const struct report_trace *trace, size_t index)
{
	put_failures(json, trace, index, true);
}

static void put_other_failures(struct json *json, const struct report_trace *trace, size_t index)
{
	put_failures(json, trace, index, false);
}

static bool any_active(const struct report_trace *traces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (traces[i].overview->replay->model->hooks_active)
			return true;
	return false;
}

/* An array with what `put` has to say of each trace. */
static void put_each(struct json *json, const char *key, const struct report_trace *traces,
	size_t n, void (*put)(struct json *, const struct report_trace *, size_t))
{
	json_open(json, key, '[');
	for (size_t i = 0; i < n; i++)
		put(json, &traces[i], i);
	json_close(json, ']');
}

/* The same for what is known only where calls of the driver were seen. */
static void put_findings(struct json *json, const char *key, const struct report_trace *traces,
	size_t n, void (*put)(struct json *, const struct report_trace *, size_t))
{
	if (any_active(traces, n))
		put_each(json, key, traces, n, put);
	else
		json_null(json, key);
}

static void put_unknown_frees(struct json *json, const struct report_trace *traces, size_t n)
{
	uint64_t n_unknown = 0, n_missed = 0;

	for (size_t i = 0; i < n; i++) {
		n_unknown += traces[i].overview->replay->model->n_unknown_frees;
		n_missed += traces[i].overview->replay->model->n_missed_frees;
	}
	json_number(json, "unknown_frees", n_unknown);
	json_number(json, "missed_frees", n_missed);
}

/* together: NULL without it. */
static void put_report(struct json *json, const struct report_trace *traces, size_t n,
	unsigned int parts, const struct together *together)
{
	json_open(json, NULL, '{');
	json_string(json, "schema", "vramtrace.report");
	json_number(json, "version", 1);
	json_open(json, "traces", '[');
	for (size_t i = 0; i < n; i++)
		put_trace_facts(json, &traces[i]);
	json_close(json, ']');
	if (parts == REPORT_ALL)
		json_coverage(json, traces, n);
	if (together)
		json_together(json, together);
	/* What no hook saw is not nothing. */
	if (any_active(traces, n)) {
		json_devices(json, traces, n);
		put_host_memory(json, "host_memory", traces, n);
	} else {
		json_null(json, "devices");
		json_null(json, "host_memory");
	}
	if (parts & REPORT_PEAKS)
		put_each(json, "peak_sites", traces, n, put_peak_sites);
	if (parts & REPORT_LEAKS) {
		put_each(json, "leaks", traces, n, json_leaks);
		put_each(json, "leak_owners", traces, n, json_leak_owners);
		put_each(json, "suppressions", traces, n, json_suppressions);
		put_findings(json, "untracked_growth", traces, n, json_untracked);
		put_each(json, "failed_frees", traces, n, put_failed_frees);
		put_unknown_frees(json, traces, n);
	}
	if (parts & REPORT_FRAGMENTATION)
		put_findings(json, "fragmentation", traces, n, json_fragmentation);
	if (parts & REPORT_OOM)
		put_findings(json, "oom", traces, n, json_ooms);
	if (parts == REPORT_ALL) {
		put_each(json, "failures", traces, n, put_other_failures);
		put_each(json, "idle_contexts", traces, n, json_idle_contexts);
	}
	if (parts & REPORT_TRANSFERS)
		json_transfers(json, traces, n);
	if (parts & (REPORT_TRANSFERS | REPORT_PEAKS))
		json_phases(json, traces, n);
	if (parts == REPORT_ALL) {
		put_each(json, "migrations", traces, n, put_migrations);
		json_torch(json, traces, n);
		json_allocators(json, traces, n);
		json_marks(json, traces, n);
		json_host_samples(json, traces, n);
	}
	/* Known when every stack was looked up. */
	modules_json(json, traces, n);
	if (json->stacks)
		stack_table_json(json, json->stacks);
	json_close(json, '}');
	json_end(json);
}

void report_json(FILE *out, const struct report_trace *traces, size_t n, unsigned int parts)
{
	struct json json;

	json_init(&json, out, false);
	put_report(&json, traces, n, parts, NULL);
}

void report_json_together(
	FILE *out, const struct report_trace *traces, size_t n, const struct together *together)
{
	struct json json;

	json_init(&json, out, false);
	put_report(&json, traces, n, REPORT_ALL, together);
}

void report_json_in_html(
	FILE *out, const struct report_trace *traces, size_t n, const struct together *together)
{
	struct json json;

	json_init(&json, out, true);
	json.in_html = true;
	json.stacks = stack_table_new();
	put_report(&json, traces, n, REPORT_ALL, together);
	stack_table_free(json.stacks);
}

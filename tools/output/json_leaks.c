#include "output/json_leaks.h"

#include "output/json_blocks.h"

static void put_device(struct json *json, int ordinal)
{
	json_number_or_null(json, "device", ordinal >= 0, (uint64_t)ordinal);
}

static void put_growth(struct json *json, const struct leak *leak)
{
	json_number_or_null(json, "rate_bytes_per_s", leak->grows, leak->rate_bytes_per_s);
	json_number_or_null(json, "growth_bytes", leak->grows, leak->growth_bytes);
	json_number_or_null(json, "growth_since_ns", leak->grows, leak->since_ns);
	json_number_or_null(json, "bytes_per_mark", leak->bytes_per_mark, leak->bytes_per_mark);
	json_string(json, "mark", leak->mark);
}

/* What is known of the lives of what a site allocated. */
static void put_lives(struct json *json, const struct leak *leak)
{
	json_number_or_null(json, "births", leak->n_births, leak->n_births);
	json_number_or_null(json, "deaths", leak->n_births, leak->n_deaths);
	json_number_or_null(
		json, "mean_lifetime_ns", leak->longest_lifetime_ns, leak->mean_lifetime_ns);
	json_number_or_null(
		json, "longest_lifetime_ns", leak->longest_lifetime_ns, leak->longest_lifetime_ns);
	json_number_or_null(json, "oldest_ns", leak->oldest_ns, leak->oldest_ns);
	json_number(json, "bursts", leak->n_bursts);
	json_number_or_null(json, "burst_count", leak->n_bursts, leak->burst_deaths);
}

void json_leaks(struct json *json, const struct report_trace *trace, size_t index)
{
	struct stack_source source = report_stacks(trace);

	for (size_t i = 0; i < trace->overview->leaks.n_items; i++) {
		const struct leak *leak = &trace->overview->leaks.items[i];
		const struct site_row *row = &leak->row;

		json_open(json, NULL, '{');
		json_number(json, "trace", index);
		put_device(json, row->device);
		json_string(json, "kind", model_kind_name(row->kind));
		json_site_level(json, source.model, row);
		json_number(json, "bytes", row->bytes);
		json_number(json, "count", row->count);
		json_string(json, "verdict", leak_verdict_name(leak->verdict));
		json_bool(json, "leak", leak_is_leak(leak));
		json_string(json, "suppressed_by", leak->suppressed_by);
		put_growth(json, leak);
		put_lives(json, leak);
		json_number(json, "first_ns", row->first_ns);
		json_number(json, "last_ns", row->last_ns);
		json_number(json, "threads", row->n_threads);
		json_number(json, "ended_threads", leak->n_ended_threads);
		json_site_stack(json, &source, row);
		json_close(json, '}');
	}
}

void json_leak_owners(struct json *json, const struct report_trace *trace, size_t index)
{
	for (size_t i = 0; i < trace->overview->leaks.n_owners; i++) {
		const struct leak_owner *owner = &trace->overview->leaks.owners[i];

		json_open(json, NULL, '{');
		json_number(json, "trace", index);
		put_device(json, owner->device);
		json_string(json, "owner", owner->name);
		json_number(json, "bytes", owner->bytes);
		json_number(json, "count", owner->count);
		json_number(json, "sites", owner->n_sites);
		json_string(json, "verdict", leak_verdict_name(owner->verdict));
		json_bool(json, "leak", owner->is_leak);
		json_number_or_null(
			json, "rate_bytes_per_s", owner->grows, owner->rate_bytes_per_s);
		json_number_or_null(json, "growth_bytes", owner->grows, owner->growth_bytes);
		json_close(json, '}');
	}
}

void json_suppressions(struct json *json, const struct report_trace *trace, size_t index)
{
	const struct leak_list *list = &trace->overview->leaks;

	for (size_t i = 0; i < list->n_suppressions; i++) {
		json_open(json, NULL, '{');
		json_number(json, "trace", index);
		json_string(json, "pattern", list->suppressions[i].pattern);
		json_bool(json, "built_in", list->suppressions[i].built_in);
		json_number(json, "sites", list->suppressions[i].n_sites);
		json_number(json, "bytes", list->suppressions[i].bytes);
		json_close(json, '}');
	}
}

static void put_counts(struct json *json, const char *key, const char *made, uint64_t n_made,
	const char *ended, uint64_t n_ended)
{
	json_open(json, key, '{');
	json_number(json, made, n_made);
	json_number(json, ended, n_ended);
	json_close(json, '}');
}

static void put_objects(struct json *json, const struct untracked_growth *growth)
{
	json_open(json, "objects", '[');
	for (size_t object = 0; object < VT_N_OBJECTS; object++) {
		const struct untracked_count *count = &growth->counts[object];

		if (!count->n_created)
			continue;
		json_open(json, NULL, '{');
		json_string(json, "object", model_object_name(object));
		json_number(json, "created", count->n_created);
		json_number(json, "destroyed", count->n_destroyed);
		json_number(json, "growth", count->n_more);
		json_bool(json, "grows", count->grows);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_makers(
	struct json *json, const struct stack_source *source, const struct untracked_growth *growth)
{
	json_open(json, "made_by", '[');
	for (size_t i = 0; i < growth->n_makers; i++) {
		const struct untracked_maker *maker = &growth->makers[i];

		json_open(json, NULL, '{');
		json_string(json, "cause", model_cause_name(maker->cause));
		json_number(json, "count", maker->n_made);
		json_number(json, "bytes", maker->taken_bytes);
		stack_json(json, source, maker->stack_id);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void json_untracked(struct json *json, const struct report_trace *trace, size_t index)
{
	struct stack_source source = report_stacks(trace);

	for (size_t i = 0; i < trace->overview->untracked.n_items; i++) {
		const struct untracked_growth *growth = &trace->overview->untracked.items[i];

		json_open(json, NULL, '{');
		json_number(json, "trace", index);
		put_device(json, growth->device);
		json_number(json, "bytes", growth->bytes);
		json_number(json, "growth_bytes", growth->growth_bytes);
		json_number(json, "growth_since_ns", growth->since_ns);
		json_number(json, "rate_bytes_per_s", growth->rate_bytes_per_s);
		json_open(json, "by_cause", '{');
		for (uint32_t cause = 1; cause < VT_N_CAUSES; cause++)
			json_number(json, model_cause_name(cause), growth->cause_bytes[cause]);
		json_number(json, "unexplained", growth->cause_bytes[0]);
		json_close(json, '}');
		put_counts(json, "graph_execs", "created", growth->n_execs_made, "destroyed",
			growth->n_execs_destroyed);
		put_counts(json, "modules", "loaded", growth->n_modules_loaded, "unloaded",
			growth->n_modules_unloaded);
		put_objects(json, growth);
		put_makers(json, &source, growth);
		json_close(json, '}');
	}
}

#include "output/json_devices.h"

#include "analysis/account.h"
#include "output/json_phases.h"

static void put_uuid(struct json *json, struct vt_text uuid)
{
	char text[FORMAT_UUID_BYTES];

	json_string(json, "uuid", format_uuid(text, uuid) ? text : NULL);
}

/* What pools reserve is known once the driver said it of any; without pools it is nothing. */
static bool reserved_known(const struct model *model, const struct model_device *device)
{
	bool sampled = false, any = false;

	for (const struct model_pool *pool = model->pools; pool; pool = pool->hh.next) {
		if (pool->device != device || pool->imported)
			continue;
		any = true;
		sampled = sampled || pool->sampled;
	}
	return sampled || !any;
}

/* Live bytes by kind, as asked for; of pools and graphs also what they reserve. */
static void put_by_kind(
	struct json *json, const struct model *model, const struct model_device *device)
{
	const struct model_totals *kinds = device->kinds;

	json_open(json, "by_kind", '{');
	json_number(json, "linear", kinds[VT_KIND_LINEAR].live_bytes);
	json_number(json, "array", kinds[VT_KIND_ARRAY].live_bytes);
	json_number_or_null(
		json, "pool_reserved", reserved_known(model, device), device->held.pool_bytes);
	json_number(json, "pool_used", kinds[VT_KIND_POOL].live_bytes);
	json_number(json, "vmm", kinds[VT_KIND_VMM].live_bytes);
	json_number(json, "managed", kinds[VT_KIND_MANAGED].live_bytes);
	json_number_or_null(json, "graph", device->graph_sampled || !device->graph_nodes_seen,
		device->held.graph_bytes);
	json_number(json, "shared", kinds[VT_KIND_SHARED].live_bytes);
	json_number(json, "shared_count", kinds[VT_KIND_SHARED].n_live);
	json_close(json, '}');
}

/* The rows of the account and what they add up to, as of its moment. */
static void put_account(struct json *json, const struct model_account *account)
{
	struct account_row rows[ACCOUNT_MAX_ROWS];
	size_t n = account->seen ? account_rows(account, rows) : 0;

	if (!n) {
		json_null(json, "account");
		return;
	}
	json_open(json, "account", '{');
	json_number(json, "at_ns", account->time_ns);
	json_number(json, "total_bytes", account->total_bytes);
	json_number(json, "tracked_bytes", account->tracked_bytes);
	json_open(json, "rows", '[');
	for (size_t i = 0; i < n; i++) {
		json_open(json, NULL, '{');
		json_string(json, "row", rows[i].key);
		json_signed(json, "bytes", rows[i].bytes);
		json_string(json, "source", rows[i].measured ? "measured" : "inferred");
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

/* As of the last sample, like what is unexplained: with the free and the tracked memory of that
 * moment they add up. */
static void put_causes(struct json *json, const struct model_account *account)
{
	json_open(json, "untracked_by_cause", '{');
	for (uint32_t cause = VT_CAUSE_CONTEXT; cause < VT_N_CAUSES; cause++)
		json_signed_or_null(json, model_cause_name(cause),
			account->seen && (cause != VT_CAUSE_CONTEXT || account->context_known),
			account->untracked_bytes[cause]);
	json_signed_or_null(json, "unexplained", account->seen, account->unexplained_bytes);
	json_close(json, '}');
}

static void put_totals(struct json *json, const char *key, const struct model_totals *totals)
{
	json_open(json, key, '{');
	json_number(json, "live_bytes", totals->live_bytes);
	json_number(json, "live", totals->n_live);
	json_number(json, "peak_live_bytes", totals->peak_live_bytes);
	json_number(json, "allocations", totals->n_allocs);
	json_number(json, "bytes_allocated", totals->alloc_bytes);
	json_number(json, "frees", totals->n_frees);
	json_number(json, "bytes_freed", totals->free_bytes);
	json_number(json, "freed_at_teardown", totals->n_teardown);
	json_number(json, "bytes_freed_at_teardown", totals->teardown_bytes);
	json_close(json, '}');
}

static void put_kinds(struct json *json, const struct model_device *device)
{
	json_open(json, "kinds", '{');
	for (uint32_t kind = 0; kind < VT_N_KINDS; kind++)
		if (device->kinds[kind].n_allocs)
			put_totals(json, model_kind_name(kind), &device->kinds[kind]);
	json_close(json, '}');
}

static void put_device_end(
	struct json *json, const struct model *model, const struct model_device *device)
{
	const struct model_account *account = &device->account;

	json_open(json, "end", '{');
	json_number(json, "tracked_bytes", device->tracked_bytes);
	json_signed_or_null(json, "untracked_bytes", account->seen,
		(int64_t)((uint64_t)account->untracked_sum_bytes +
			  (uint64_t)account->unexplained_bytes));
	json_signed_or_null(json, "other_processes_bytes", account->seen, account->others_bytes);
	json_string(json, "other_processes_source",
		!account->seen		   ? NULL
		: account->others_measured ? "measured"
					   : "inferred");
	json_number_or_null(json, "free_bytes", account->seen, account->free_bytes);
	json_number_or_null(json, "sampled_at_ns", account->seen, account->time_ns);
	json_number(json, "linear_held_bytes", device->held.linear_bytes);
	json_number(json, "array_held_bytes", device->held.array_bytes);
	put_by_kind(json, model, device);
	put_causes(json, account);
	put_account(json, account);
	json_close(json, '}');
}

static void put_pending(struct json *json, const struct model_pool *pool)
{
	json_number_or_null(json, "pending_bytes", pool->sampled, pool->pending_bytes);
	if (!pool->sampled) {
		json_null(json, "pending_by_stream");
		return;
	}
	json_open(json, "pending_by_stream", '[');
	for (size_t i = 0; i < pool->n_pending; i++) {
		json_open(json, NULL, '{');
		json_hex(json, "stream", pool->pending[i].stream);
		json_number(json, "bytes", pool->pending[i].bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_pools(
	struct json *json, const struct model *model, const struct model_device *device)
{
	json_open(json, "pools", '[');
	for (const struct model_pool *pool = model->pools; pool; pool = pool->hh.next) {
		if (pool->device != device)
			continue;
		json_open(json, NULL, '{');
		if (pool->key.handle)
			json_hex(json, "pool", pool->key.handle);
		else
			json_null(json, "pool");
		json_bool(json, "default", pool == device->default_pool);
		json_bool(json, "imported", pool->imported);
		json_bool(json, "destroyed", pool->destroyed);
		json_number_or_null(json, "reserved_bytes", pool->sampled, pool->held_bytes);
		json_number_or_null(
			json, "peak_reserved_bytes", pool->sampled, pool->peak_reserved_bytes);
		json_number_or_null(json, "sampled_at_ns", pool->sampled, pool->sampled_ns);
		json_number(json, "used_bytes", pool->live_bytes);
		put_pending(json, pool);
		json_number_or_null(json, "release_threshold_bytes", pool->threshold_known,
			pool->threshold_bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_owners(struct json *json, const struct overview *overview, int device)
{
	bool whole = !overview->replay->model->part;

	if (!overview->owners_known) {
		json_null(json, "owners");
		return;
	}
	json_open(json, "owners", '[');
	for (size_t i = 0; i < overview->owners.n_rows; i++) {
		const struct owner_row *row = overview->owners.rows[i];

		if (row->device != device)
			continue;
		json_open(json, NULL, '{');
		json_string(json, "owner", row->owner);
		json_number(json, "allocations", row->totals.n_allocs);
		json_number(json, "frees", row->totals.n_frees);
		json_number(json, "live_bytes", row->totals.live_bytes);
		/* Owners are told apart by readers: a checkpoint knows of none. */
		json_number_or_null(json, "peak_bytes", whole, row->totals.peak_live_bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_one_device(struct json *json, const struct report_trace *trace, size_t index,
	const struct model_device *device)
{
	const struct model *model = trace->overview->replay->model;
	uint64_t n_allocs = 0, n_frees = 0, alloc_bytes = 0;

	for (size_t kind = 0; kind < VT_N_KINDS; kind++) {
		/* Bytes of others that become visible are not allocated. */
		if (kind == VT_KIND_SHARED)
			continue;
		n_allocs += device->kinds[kind].n_allocs;
		n_frees += device->kinds[kind].n_frees;
		alloc_bytes += device->kinds[kind].alloc_bytes;
	}
	json_open(json, NULL, '{');
	json_number(json, "trace", index);
	json_number_or_null(json, "ordinal", device->ordinal >= 0, (uint64_t)device->ordinal);
	json_text_or_null(json, "name", device->name);
	put_uuid(json, device->uuid);
	json_number_or_null(json, "total_bytes", device->total_bytes != 0, device->total_bytes);
	json_number(json, "page_bytes", device->page_bytes);
	json_open(json, "peak", '{');
	json_number(json, "time_ns", device->peak_time_ns);
	json_number(json, "tracked_bytes", device->peak_tracked_bytes);
	json_number_or_null(json, "device_used_bytes", device->peak_sample.seen,
		device->peak_sample.used_bytes);
	json_place(json, &device->peak_place);
	json_close(json, '}');
	json_number_or_null(
		json, "most_used_bytes", device->most_used.seen, device->most_used.used_bytes);
	put_device_end(json, model, device);
	put_kinds(json, device);
	put_pools(json, model, device);
	put_owners(json, trace->overview, device->ordinal);
	json_number(json, "allocations", n_allocs);
	json_number(json, "frees", n_frees);
	json_number(json, "bytes_allocated", alloc_bytes);
	json_number(json, "sets", device->n_sets);
	json_number(json, "bytes_set", device->set_bytes);
	json_close(json, '}');
}

static bool is_used(const struct model_device *device)
{
	for (size_t kind = 0; kind < VT_N_KINDS; kind++)
		if (device->kinds[kind].n_allocs)
			return true;
	return false;
}

void json_devices(struct json *json, const struct report_trace *traces, size_t n)
{
	json_open(json, "devices", '[');
	for (size_t i = 0; i < n; i++) {
		const struct model *model = traces[i].overview->replay->model;

		if (!model->hooks_active)
			continue;
		for (size_t k = 0; k < model->n_devices; k++)
			put_one_device(json, &traces[i], i, model->devices[k]);
		if (is_used(&model->unknown))
			put_one_device(json, &traces[i], i, &model->unknown);
	}
	json_close(json, ']');
}

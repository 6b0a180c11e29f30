#include "output/json_devices.h"

static void put_uuid(struct json *json, struct vt_text uuid)
{
	char text[48] = "GPU-", *to = text + 4;

	if (uuid.bytes != 16) {
		json_null(json, "uuid");
		return;
	}
	for (size_t i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*to++ = '-';
		to += sprintf(to, "%02x", (unsigned char)uuid.data[i]);
	}
	json_string(json, "uuid", text);
}

/* Live bytes by kind, as asked for. A kind that was never seen may just not be recorded. */
static void put_by_kind(struct json *json, const struct model_device *device)
{
	static const struct {
		const char *key;
		uint32_t kind; /* VT_KIND_NONE: not known to this version */
	} rows[] = {
		{"linear", VT_KIND_LINEAR},
		{"array", VT_KIND_ARRAY},
		{"pool_reserved", VT_KIND_NONE},
		{"pool_used", VT_KIND_POOL},
		{"vmm", VT_KIND_VMM},
		{"managed", VT_KIND_MANAGED},
		{"graph", VT_KIND_GRAPH},
		{"shared", VT_KIND_SHARED},
	};

	json_open(json, "by_kind", '{');
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint32_t kind = rows[i].kind;
		bool recorded = kind == VT_KIND_LINEAR || kind == VT_KIND_POOL ||
				kind == VT_KIND_VMM || kind == VT_KIND_MANAGED;

		json_number_or_null(json, rows[i].key,
			kind != VT_KIND_NONE && (recorded || device->kinds[kind].n_allocs),
			device->kinds[kind].live_bytes);
	}
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

static void put_device_end(struct json *json, const struct model_device *device)
{
	json_open(json, "end", '{');
	json_number(json, "tracked_bytes", device->tracked_bytes);
	json_null(json, "untracked_bytes");
	json_null(json, "other_processes_bytes");
	json_number_or_null(
		json, "free_bytes", device->last_sample.seen, device->last_sample.free_bytes);
	json_number_or_null(
		json, "sampled_at_ns", device->last_sample.seen, device->last_sample.time_ns);
	json_number(json, "linear_held_bytes", device->held_bytes);
	put_by_kind(json, device);
	json_null(json, "untracked_by_cause");
	json_close(json, '}');
}

static void put_owners(struct json *json, const struct overview *overview, int device)
{
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
		json_number(json, "peak_bytes", row->totals.peak_live_bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void put_one_device(struct json *json, const struct report_trace *trace, size_t index,
	const struct model_device *device)
{
	uint64_t n_allocs = 0, n_frees = 0, alloc_bytes = 0;

	for (size_t kind = 0; kind < VT_N_KINDS; kind++) {
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
	json_close(json, '}');
	json_number_or_null(
		json, "most_used_bytes", device->most_used.seen, device->most_used.used_bytes);
	put_device_end(json, device);
	put_kinds(json, device);
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

		for (size_t k = 0; k < model->n_devices; k++)
			put_one_device(json, &traces[i], i, model->devices[k]);
		if (is_used(&model->unknown))
			put_one_device(json, &traces[i], i, &model->unknown);
	}
	json_close(json, ']');
}

#include "output/json_transfers.h"

#include <stdlib.h>

#include "model/memory.h"

static const struct transfers *transfers_of(const struct report_trace *trace)
{
	return &trace->overview->transfers;
}

static void put_devices(struct json *json, int src, int dst)
{
	json_open(json, "devices", '[');
	if (src >= 0)
		json_signed(json, NULL, src);
	if (dst >= 0 && dst != src)
		json_signed(json, NULL, dst);
	json_close(json, ']');
}

static void put_sum(struct json *json, const struct transfer_sum *sum)
{
	uint64_t rate = transfer_sum_rate(sum);

	json_number(json, "calls", sum->n_calls);
	json_number(json, "copies", sum->n_copies);
	json_number(json, "async_calls", sum->n_async);
	json_number(json, "bytes", sum->bytes);
	json_number(json, "host_time_ns", sum->host_time_ns);
	json_number(json, "waits", sum->waited.n);
	json_number(json, "wait_ns", sum->waited.ns);
	json_number(json, "timed_calls", sum->timed.n);
	json_number(json, "timed_bytes", sum->timed.bytes);
	json_number_or_null(json, "gpu_time_ns", sum->timed.n != 0, sum->timed.ns);
	json_number_or_null(json, "bytes_per_s", rate != 0, rate);
	json_number(json, "async_blocking_calls", sum->blocked.n);
	json_number(json, "small_calls", sum->n_small);
}

static void put_size(struct json *json, unsigned int size_class, const struct transfer_sum *sum)
{
	json_open(json, NULL, '{');
	json_number(json, "size_class", size_class);
	json_number(json, "from_bytes", size_class ? 1ull << (size_class - 1) : 0);
	put_sum(json, sum);
	json_close(json, '}');
}

static void put_row_sizes(struct json *json, const struct transfer_row *row)
{
	json_open(json, "sizes", '[');
	for (size_t i = 0; i < row->n_copies; i++) {
		const struct model_copy *copy = row->copies[i];

		json_open(json, NULL, '{');
		json_number(json, "size_class", copy->key.size_class);
		json_number(json, "calls", copy->n_calls);
		json_number(json, "copies", copy->n_copies);
		json_number(json, "bytes", copy->bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
}

/* null: these are no copies between two devices. */
static void put_peer_access(struct json *json, const struct transfer_row *row)
{
	uint64_t n_unpeered = 0;

	for (size_t i = 0; i < row->n_copies; i++)
		n_unpeered += row->copies[i]->unpeered.n;
	if (row->key.direction != VT_DIR_P2P || row->key.dst_device == row->key.src_device ||
		row->key.dst_device < 0 || row->key.src_device < 0)
		json_null(json, "copies_without_peer_access");
	else
		json_number(json, "copies_without_peer_access", n_unpeered);
}

static void put_rows(struct json *json, const struct report_trace *trace, size_t index)
{
	struct stack_source source = report_stacks(trace);

	for (size_t i = 0; i < transfers_of(trace)->n_rows; i++) {
		const struct transfer_row *row = &transfers_of(trace)->rows[i];

		json_open(json, NULL, '{');
		json_number(json, "trace", index);
		json_string(json, "direction", model_direction_name(row->key.direction));
		json_string(json, "host_kind", model_host_kind_name(row->key.host_kind));
		put_devices(json, row->key.src_device, row->key.dst_device);
		put_sum(json, &row->sum);
		json_number(json, "redundant_bytes", row->redundant_bytes);
		put_peer_access(json, row);
		json_number(json, "lost_time_ns", row->lost_ns);
		json_string(json, "advice", row->advice);
		put_row_sizes(json, row);
		stack_json(json, &source, row->key.stack_id);
		json_close(json, '}');
	}
}

/* --- Totals of all traces --- */

static void add_up(struct transfer_sum *totals, struct transfer_sum *sizes,
	const struct report_trace *traces, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct transfers *transfers = transfers_of(&traces[i]);
		const struct transfer_sum *from = &transfers->totals[0][0];

		for (size_t k = 0; k < VT_N_DIRECTIONS * MODEL_N_HOST_KINDS; k++)
			transfer_sum_add(&totals[k], &from[k]);
		for (size_t k = 0; k < TRANSFER_N_SIZES; k++)
			transfer_sum_add(&sizes[k], &transfers->sizes[k]);
	}
}

static void put_total(struct json *json, uint32_t direction, uint32_t host_kind,
	const struct transfer_sum *total, const struct transfer_sum *sizes)
{
	json_open(json, NULL, '{');
	json_string(json, "direction", model_direction_name(direction));
	json_string(json, "host_kind", model_host_kind_name(host_kind));
	put_sum(json, total);
	json_open(json, "sizes", '[');
	for (unsigned int c = 0; c < MODEL_N_SIZE_CLASSES; c++) {
		const struct transfer_sum *size =
			&sizes[transfer_size_index(direction, host_kind, c)];

		if (size->n_copies)
			put_size(json, c, size);
	}
	json_close(json, ']');
	json_close(json, '}');
}

static void put_totals(struct json *json, const struct report_trace *traces, size_t n)
{
	struct transfer_sum *totals =
		memory_new(VT_N_DIRECTIONS * MODEL_N_HOST_KINDS, sizeof(*totals));
	struct transfer_sum *sizes = memory_new(TRANSFER_N_SIZES, sizeof(*sizes));

	add_up(totals, sizes, traces, n);
	json_open(json, "transfer_totals", '[');
	for (uint32_t d = 0; d < VT_N_DIRECTIONS; d++)
		for (uint32_t k = 0; k < MODEL_N_HOST_KINDS; k++)
			if (totals[d * MODEL_N_HOST_KINDS + k].n_copies)
				put_total(json, d, k, &totals[d * MODEL_N_HOST_KINDS + k], sizes);
	json_close(json, ']');
	free(totals);
	free(sizes);
}

/* --- Findings --- */

static void put_stack(
	struct json *json, const char *key, const struct stack_source *source, uint64_t stack_id)
{
	json_open(json, key, '{');
	stack_json(json, source, stack_id);
	json_close(json, '}');
}

static void put_finding(struct json *json, const struct report_trace *trace, size_t index,
	const struct transfer_finding *finding)
{
	struct stack_source source = report_stacks(trace);
	bool copies = finding->direction != VT_DIR_UNIFIED;

	json_open(json, NULL, '{');
	json_number(json, "trace", index);
	json_string(json, "finding", transfer_finding_name(finding->kind));
	json_string(json, "direction", copies ? model_direction_name(finding->direction) : NULL);
	json_string(json, "host_kind", model_host_kind_name(finding->host_kind));
	json_string(json, "memory_kind",
		finding->memory_kind ? model_kind_name(finding->memory_kind) : NULL);
	put_devices(json, finding->src_device, finding->dst_device);
	json_number(json, "count", finding->n);
	json_number(json, "bytes", finding->bytes);
	json_number_or_null(json, "lost_time_ns", finding->is_lost, finding->lost_ns);
	json_bool(json, "typical_rate", finding->is_typical);
	json_bool(json, "if_unchanged", finding->is_possible);
	json_number_or_null(json, "ranges", finding->n_ranges != 0, finding->n_ranges);
	json_number_or_null(json, "used_bytes", finding->used_bytes != 0, finding->used_bytes);
	json_number_or_null(json, "release_threshold_bytes", finding->is_threshold_known,
		finding->threshold_bytes);
	json_string(json, "advice", transfer_finding_fix(finding));
	if (finding->other_stack_id)
		put_stack(json, "other", &source, finding->other_stack_id);
	else
		json_null(json, "other");
	stack_json(json, &source, finding->stack_id);
	json_close(json, '}');
}

struct item {
	size_t trace;
	const struct transfer_finding *finding;
};

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return transfer_finding_order(x->finding, y->finding);
}

static void put_findings(struct json *json, const struct report_trace *traces, size_t n)
{
	struct item *items;
	size_t n_items = 0;

	for (size_t i = 0; i < n; i++)
		n_items += transfers_of(&traces[i])->n_findings;
	items = memory_new(n_items + 1, sizeof(*items));
	n_items = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < transfers_of(&traces[i])->n_findings; k++)
			items[n_items++] = (struct item){i, &transfers_of(&traces[i])->findings[k]};
	qsort(items, n_items, sizeof(*items), compare_items);
	json_open(json, "transfer_findings", '[');
	for (size_t i = 0; i < n_items; i++)
		put_finding(json, &traces[items[i].trace], items[i].trace, items[i].finding);
	json_close(json, ']');
	free(items);
}

/* --- Of each trace --- */

static void put_rates(struct json *json, const struct report_trace *trace, size_t index)
{
	static const char *const sources[] = {
		[TRANSFER_TYPICAL] = "typical",
		[TRANSFER_SYNCHRONOUS] = "synchronous_copies",
		[TRANSFER_TIMED] = "timed_copies",
	};
	static const uint32_t directions[] = {VT_DIR_H2D, VT_DIR_D2H, VT_DIR_P2P};

	for (size_t i = 0; i < sizeof(directions) / sizeof(*directions); i++) {
		const struct transfer_rate *rate = &transfers_of(trace)->rates[directions[i]];

		json_open(json, NULL, '{');
		json_number(json, "trace", index);
		json_string(json, "direction", model_direction_name(directions[i]));
		json_number(json, "bytes_per_s", rate->bytes_per_s);
		json_string(json, "source", sources[rate->source]);
		json_close(json, '}');
	}
}

static void put_stretches(struct json *json, const struct report_trace *trace, size_t index)
{
	const struct model_traffic *traffic = &transfers_of(trace)->model->traffic;

	for (size_t i = 0; i < MODEL_N_STRETCHES && traffic->stretch_ns; i++) {
		const struct model_stretch *stretch = &traffic->stretches[i];
		uint64_t any = stretch->host_time_ns;

		for (uint32_t d = 0; d < VT_N_DIRECTIONS; d++)
			any |= stretch->bytes[d];
		if (!any)
			continue;
		json_open(json, NULL, '{');
		json_number(json, "trace", index);
		json_number(json, "time_ns", traffic->start_ns + traffic->stretch_ns * i);
		json_number(json, "length_ns", traffic->stretch_ns);
		for (uint32_t d = VT_DIR_H2D; d < VT_N_DIRECTIONS; d++) {
			char key[32];

			snprintf(key, sizeof(key), "%s_bytes", model_direction_name(d));
			json_number(json, key, stretch->bytes[d]);
		}
		json_number(json, "host_time_ns", stretch->host_time_ns);
		json_close(json, '}');
	}
}

static void put_locked(struct json *json, const struct report_trace *trace, size_t index)
{
	struct stack_source source = report_stacks(trace);

	for (size_t i = 0; i < transfers_of(trace)->n_pinnings; i++) {
		const struct transfer_pinning *place = &transfers_of(trace)->pinnings[i];
		const struct model_pinning *pinning = place->pinning;

		json_open(json, NULL, '{');
		json_number(json, "trace", index);
		json_string(json, "kind", model_kind_name(pinning->key.kind));
		json_number(json, "count", pinning->n_locked);
		json_number(json, "bytes", pinning->locked_bytes);
		json_number(json, "lock_time_ns", pinning->lock_ns);
		json_number(json, "copied_count", pinning->used.n);
		json_number(json, "copied_block_bytes", pinning->used.bytes);
		json_number(json, "used_bytes", pinning->touched_bytes);
		json_number(json, "live", place->n_live);
		json_number(json, "live_bytes", place->live_bytes);
		json_number(json, "first_ns", pinning->first_ns);
		json_number(json, "last_ns", pinning->last_ns);
		stack_json(json, &source, pinning->key.stack_id);
		json_close(json, '}');
	}
}

static void put_each(struct json *json, const char *key, const struct report_trace *traces,
	size_t n, void (*put)(struct json *, const struct report_trace *, size_t))
{
	json_open(json, key, '[');
	for (size_t i = 0; i < n; i++)
		put(json, &traces[i], i);
	json_close(json, ']');
}

void json_transfers(struct json *json, const struct report_trace *traces, size_t n)
{
	put_each(json, "transfers", traces, n, put_rows);
	put_totals(json, traces, n);
	put_findings(json, traces, n);
	put_each(json, "transfer_rates", traces, n, put_rates);
	put_each(json, "transfer_timeline", traces, n, put_stretches);
	put_each(json, "page_locked", traces, n, put_locked);
}

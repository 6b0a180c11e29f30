#include "analysis/transfers.h"

#include <stdlib.h>

#include "analysis/order.h"
#include "analysis/transfer_rules.h"
#include "model/memory.h"

/* A link of PCIe 4 x16, in use since 2019; and one of its peers'. */
#define TYPICAL_BYTES_PER_S	 25000000000u
#define TYPICAL_PEER_BYTES_PER_S 48000000000u
/* Copies from 1 MiB on show the rate rather than what each call costs. */
#define RATE_CLASS 21u
#define N_FOR_RATE 3u

static void add_part(struct model_part *to, const struct model_part *from)
{
	to->n += from->n;
	to->bytes += from->bytes;
	to->ns += from->ns;
}

void transfer_sum_add(struct transfer_sum *to, const struct transfer_sum *from)
{
	to->n_calls += from->n_calls;
	to->n_copies += from->n_copies;
	to->n_async += from->n_async;
	to->n_small += from->n_small;
	to->bytes += from->bytes;
	to->host_time_ns += from->host_time_ns;
	add_part(&to->through, &from->through);
	add_part(&to->blocked, &from->blocked);
	add_part(&to->timed, &from->timed);
	add_part(&to->waited, &from->waited);
	if (from->fastest_ps && (!to->fastest_ps || from->fastest_ps < to->fastest_ps))
		to->fastest_ps = from->fastest_ps;
}

static struct transfer_sum sum_of(const struct model_copy *copy)
{
	return (struct transfer_sum){
		.n_calls = copy->n_calls,
		.n_copies = copy->n_copies,
		.n_async = copy->n_async,
		.n_small = copy->n_small,
		.bytes = copy->bytes,
		.host_time_ns = copy->host_time_ns,
		.through = copy->through,
		.blocked = copy->blocked,
		.timed = copy->timed,
		.waited = copy->waited,
		.fastest_ps = copy->fastest_ps,
	};
}

static uint64_t rate_of(const struct model_part *part)
{
	double rate = part->ns ? (double)part->bytes * 1e9 / (double)part->ns : 0;

	return rate < 1e18 ? (uint64_t)rate : 0;
}

uint64_t transfer_sum_rate(const struct transfer_sum *sum)
{
	return rate_of(sum->timed.bytes ? &sum->timed : &sum->through);
}

uint64_t transfer_share_ns(uint64_t ns, uint64_t bytes, uint64_t of_bytes)
{
	double share = of_bytes ? (double)ns * (double)bytes / (double)of_bytes : 0;

	return share < 0x1p63 ? (uint64_t)share : (uint64_t)INT64_MAX;
}

uint64_t transfer_pinned_ns(const struct transfers *transfers, uint32_t direction, uint64_t bytes)
{
	return transfer_share_ns(1000000000u, bytes, transfers->rates[direction].bytes_per_s);
}

uint64_t transfer_copying_ns(const struct transfers *transfers, const struct model_copy *copy)
{
	const struct model_part *through = &copy->through;
	const struct transfer_sum *alike = &transfers->sizes[transfer_size_index(
		copy->key.direction, copy->key.host_kind, copy->key.size_class)];
	uint64_t most_ns;

	if (copy->timed.bytes)
		most_ns = transfer_share_ns(copy->timed.ns, through->bytes, copy->timed.bytes) +
			  through->n * transfers->model->submit_ns;
	else
		most_ns = transfer_share_ns(2 * alike->fastest_ps, through->bytes, 1000);
	return most_ns < through->ns ? most_ns : through->ns;
}

uint64_t transfer_moving_ns(
	const struct transfers *transfers, const struct model_copy *copy, uint64_t bytes)
{
	if (copy->timed.bytes)
		return transfer_share_ns(copy->timed.ns, bytes, copy->timed.bytes);
	if (copy->through.bytes)
		return transfer_share_ns(
			transfer_copying_ns(transfers, copy), bytes, copy->through.bytes);
	return transfer_pinned_ns(transfers, copy->key.direction, bytes);
}

/* --- Rows --- */

static int compare_keys(const struct model_copy_key *x, const struct model_copy_key *y)
{
	int order = order_of(x->stack_id, y->stack_id);

	if (!order)
		order = order_of(x->direction, y->direction);
	if (!order)
		order = order_of(x->host_kind, y->host_kind);
	if (!order)
		order = (x->dst_device > y->dst_device) - (x->dst_device < y->dst_device);
	return order ? order : (x->src_device > y->src_device) - (x->src_device < y->src_device);
}

static int compare_copies(const void *a, const void *b)
{
	const struct model_copy *x = *(const struct model_copy *const *)a;
	const struct model_copy *y = *(const struct model_copy *const *)b;
	int order = compare_keys(&x->key, &y->key);

	return order ? order : order_of(x->key.size_class, y->key.size_class);
}

static int compare_rows(const void *a, const void *b)
{
	const struct transfer_row *x = a, *y = b;
	int order = order_of(
		y->sum.host_time_ns + y->sum.waited.ns, x->sum.host_time_ns + x->sum.waited.ns);

	if (!order)
		order = order_of(y->sum.bytes, x->sum.bytes);
	return order ? order : compare_keys(&x->key, &y->key);
}

static void take_copies(struct transfers *transfers)
{
	const struct model *model = transfers->model;

	transfers->copies = memory_new(HASH_COUNT(model->copies) + 1, sizeof(*transfers->copies));
	for (const struct model_copy *copy = model->copies; copy; copy = copy->hh.next) {
		struct transfer_sum sum = sum_of(copy);
		const struct model_copy_key *key = &copy->key;

		transfers->copies[transfers->n_copies++] = copy;
		transfer_sum_add(&transfers->totals[key->direction][key->host_kind], &sum);
		transfer_sum_add(&transfers->sizes[transfer_size_index(
					 key->direction, key->host_kind, key->size_class)],
			&sum);
	}
	if (transfers->n_copies)
		qsort(transfers->copies, transfers->n_copies, sizeof(*transfers->copies),
			compare_copies);
}

static void make_rows(struct transfers *transfers)
{
	struct transfer_row *row = NULL;

	transfers->rows = memory_new(transfers->n_copies + 1, sizeof(*transfers->rows));
	for (size_t i = 0; i < transfers->n_copies; i++) {
		const struct model_copy *copy = transfers->copies[i];
		struct transfer_sum sum = sum_of(copy);

		if (!row || compare_keys(&row->key, &copy->key)) {
			row = &transfers->rows[transfers->n_rows++];
			row->copies = &transfers->copies[i];
			row->key = copy->key;
		}
		row->n_copies++;
		transfer_sum_add(&row->sum, &sum);
		row->redundant_bytes += copy->repeats.bytes + copy->trips.bytes;
	}
	if (transfers->n_rows)
		qsort(transfers->rows, transfers->n_rows, sizeof(*transfers->rows), compare_rows);
}

/* --- Rates --- */

static bool is_locked(uint32_t host_kind)
{
	return host_kind == MODEL_HOST_PINNED || host_kind == MODEL_HOST_REGISTERED;
}

/* Whether copies of this host memory show how fast the link is. */
static bool shows_rate(uint32_t direction, uint32_t host_kind)
{
	return direction == VT_DIR_P2P ? host_kind == MODEL_HOST_NONE : is_locked(host_kind);
}

static void take_rate(struct transfer_rate *rate, uint64_t bytes_per_s, enum transfer_source source)
{
	if (bytes_per_s && (source > rate->source ||
				   (source == rate->source && bytes_per_s > rate->bytes_per_s)))
		*rate = (struct transfer_rate){bytes_per_s, source};
}

static void find_rates(struct transfers *transfers)
{
	for (uint32_t d = 0; d < VT_N_DIRECTIONS; d++)
		transfers->rates[d].bytes_per_s =
			d == VT_DIR_P2P ? TYPICAL_PEER_BYTES_PER_S : TYPICAL_BYTES_PER_S;
	for (size_t i = 0; i < transfers->n_copies; i++) {
		const struct model_copy *copy = transfers->copies[i];

		if (copy->key.size_class < RATE_CLASS || copy->unpeered.n ||
			!shows_rate(copy->key.direction, copy->key.host_kind))
			continue;
		if (copy->timed.n >= N_FOR_RATE)
			take_rate(&transfers->rates[copy->key.direction], rate_of(&copy->timed),
				TRANSFER_TIMED);
		if (copy->through.n >= N_FOR_RATE && copy->fastest_ps)
			take_rate(&transfers->rates[copy->key.direction],
				1000000000000u / copy->fastest_ps, TRANSFER_SYNCHRONOUS);
	}
}

/* --- Page-locked memory --- */

static int compare_pinnings(const void *a, const void *b)
{
	const struct transfer_pinning *x = a, *y = b;
	int order = order_of(y->pinning->locked_bytes, x->pinning->locked_bytes);

	if (!order)
		order = order_of(x->pinning->key.stack_id, y->pinning->key.stack_id);
	return order ? order : order_of(x->pinning->key.kind, y->pinning->key.kind);
}

static void take_pinnings(struct transfers *transfers)
{
	const struct model *model = transfers->model;

	transfers->pinnings =
		memory_new(HASH_COUNT(model->pinnings) + 1, sizeof(*transfers->pinnings));
	for (const struct model_pinning *p = model->pinnings; p; p = p->hh.next) {
		struct model_site_key key = {.stack_id = p->key.stack_id,
			.device = MODEL_DEVICE_HOST,
			.kind = (uint32_t)p->key.kind};
		const struct model_site *site;

		HASH_FIND(hh, model->sites, &key, sizeof(key), site);
		transfers->pinnings[transfers->n_pinnings++] = (struct transfer_pinning){
			p, site ? site->n_live : 0, site ? site->live_bytes : 0};
	}
	if (transfers->n_pinnings)
		qsort(transfers->pinnings, transfers->n_pinnings, sizeof(*transfers->pinnings),
			compare_pinnings);
}

int transfer_finding_order(const void *a, const void *b)
{
	const struct transfer_finding *x = a, *y = b;
	int order = y->is_lost - x->is_lost;

	if (!order)
		order = order_of(y->lost_ns, x->lost_ns);
	if (!order)
		order = order_of(y->bytes, x->bytes);
	if (!order)
		order = order_of(x->kind, y->kind);
	return order ? order : order_of(x->stack_id, y->stack_id);
}

void transfers_make(
	struct transfers *transfers, const struct model *model, const struct owner_source *owners)
{
	*transfers = (struct transfers){
		.model = model,
		.sizes = memory_new(TRANSFER_N_SIZES, sizeof(*transfers->sizes)),
		.span_ns = model->last_ns > model->first_ns ? model->last_ns - model->first_ns : 0,
	};
	take_copies(transfers);
	make_rows(transfers);
	find_rates(transfers);
	take_pinnings(transfers);
	transfer_find(transfers, owners);
	if (transfers->n_findings)
		qsort(transfers->findings, transfers->n_findings, sizeof(*transfers->findings),
			transfer_finding_order);
}

static bool is_wanted(const struct site_filter *filter, int dst, int src, uint64_t bytes)
{
	return bytes >= filter->min_bytes &&
	       (!filter->one_device || dst == filter->device || src == filter->device);
}

static size_t at_most(size_t n, size_t limit)
{
	return limit && limit < n ? limit : n;
}

void transfers_filter(struct transfers *transfers, const struct site_filter *filter)
{
	size_t n_rows = 0, n_findings = 0;

	for (size_t i = 0; i < transfers->n_rows; i++) {
		const struct transfer_row *row = &transfers->rows[i];

		if (is_wanted(filter, row->key.dst_device, row->key.src_device, row->sum.bytes))
			transfers->rows[n_rows++] = *row;
	}
	for (size_t i = 0; i < transfers->n_findings; i++) {
		const struct transfer_finding *finding = &transfers->findings[i];

		if (is_wanted(filter, finding->dst_device, finding->src_device, finding->bytes))
			transfers->findings[n_findings++] = *finding;
	}
	transfers->n_rows = at_most(n_rows, filter->limit);
	transfers->n_findings = at_most(n_findings, filter->limit);
}

void transfers_release(struct transfers *transfers)
{
	free(transfers->copies);
	free(transfers->rows);
	free(transfers->sizes);
	free(transfers->pinnings);
	free(transfers->findings);
	*transfers = (struct transfers){0};
}

/* The rules. Each looks at one row, one place that locks memory, or one site that allocates. */
#include <stdlib.h>
#include <string.h>

#include "analysis/transfer_rules.h"
#include "model/memory.h"

/* What is less than this, or a smaller part of the trace, is not worth a user's time. */
#define MIN_LOST_NS   1000000u
#define MIN_LOST_PART 200u
#define MIN_BYTES     (16u << 20) /* the same of memory, and of copies whose time is not known */
/* Copies of at most 64 KiB are small, of less than 256 bytes a few numbers. */
#define SMALL_CLASS  16u
#define SCALAR_CLASS 8u
#define MIN_SMALL    32u
#define MIN_SCALAR   16u
/* A small call costs at most this; what it takes beyond is waiting. */
#define SMALL_CALL_NS 20000u
/* A few buffers of one size or two that take turns are how a pipeline stages its input. */
#define MAX_RING	 32u
#define MAX_RING_SIZES	 2u
#define MIN_RANGES	 8u
#define MIN_TRIP_RANGES	 4u
#define MIN_REPEATS	 8u
#define MIN_PINS	 8u
#define MIN_NOT_REUSED	 16u
#define MAX_ONCE	 2u
#define NOT_REUSED_BYTES (64u << 20)
#define MIN_KEPT	 8u
#define MIN_AGAIN	 64u
#define MIN_SERIAL	 64u
/* Through the host, where the trace does not tell. */
#define STAGED_BYTES_PER_S 20000000000u

static struct transfer_finding *add(struct transfers *transfers, enum transfer_finding_kind kind,
	uint64_t stack_id, uint64_t n, uint64_t bytes)
{
	struct transfer_finding *finding;

	transfers->findings = memory_grow(transfers->findings, transfers->n_findings,
		&transfers->room, sizeof(*transfers->findings));
	finding = &transfers->findings[transfers->n_findings++];
	*finding = (struct transfer_finding){
		.kind = kind,
		.stack_id = stack_id,
		.dst_device = MODEL_DEVICE_UNKNOWN,
		.src_device = MODEL_DEVICE_UNKNOWN,
		.n = n,
		.bytes = bytes,
	};
	return finding;
}

/* The same for a row, which is told of it. */
static struct transfer_finding *add_row(struct transfers *transfers, struct transfer_row *row,
	enum transfer_finding_kind kind, uint64_t n, uint64_t bytes)
{
	struct transfer_finding *finding = add(transfers, kind, row->key.stack_id, n, bytes);

	finding->direction = row->key.direction;
	finding->host_kind = row->key.host_kind;
	finding->dst_device = row->key.dst_device;
	finding->src_device = row->key.src_device;
	if (!row->advice)
		row->advice = transfer_finding_fix(finding);
	return finding;
}

static bool is_worth(const struct transfers *transfers, uint64_t lost_ns)
{
	return lost_ns >= MIN_LOST_NS && lost_ns >= transfers->span_ns / MIN_LOST_PART;
}

static struct transfer_finding *add_lost(struct transfers *transfers, struct transfer_row *row,
	enum transfer_finding_kind kind, const struct model_part *lost)
{
	struct transfer_finding *finding = add_row(transfers, row, kind, lost->n, lost->bytes);

	finding->is_lost = true;
	finding->lost_ns = lost->ns;
	if (!row->is_lost || lost->ns > row->lost_ns) {
		row->is_lost = true;
		row->lost_ns = lost->ns;
		row->advice = transfer_finding_fix(finding);
	}
	return finding;
}

static uint64_t excess(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static bool is_typical(const struct transfers *transfers, const struct transfer_row *row)
{
	return transfers->rates[row->key.direction].source == TRANSFER_TYPICAL;
}

static bool crosses_link(const struct transfer_row *row)
{
	return row->key.direction == VT_DIR_H2D || row->key.direction == VT_DIR_D2H;
}

static void find_pageable(struct transfers *transfers, struct transfer_row *row)
{
	struct model_part lost = {0};

	if (row->key.host_kind != MODEL_HOST_PAGEABLE || !crosses_link(row))
		return;
	for (size_t i = 0; i < row->n_copies; i++) {
		const struct model_copy *copy = row->copies[i];

		if (copy->key.size_class <= SMALL_CLASS)
			continue;
		lost.n += copy->n_copies;
		lost.bytes += copy->bytes;
		lost.ns += excess(transfer_copying_ns(transfers, copy),
			transfer_pinned_ns(transfers, row->key.direction, copy->through.bytes) +
				copy->through.n * transfers->model->submit_ns);
	}
	if (is_worth(transfers, lost.ns))
		add_lost(transfers, row, TRANSFER_PAGEABLE, &lost)->is_typical =
			is_typical(transfers, row);
}

/* A call now and then is the machine's doing, not the program's. */
#define BLOCKED_LEAST 2u
#define BLOCKED_PART  8u

static void find_blocked(struct transfers *transfers, struct transfer_row *row)
{
	struct model_part lost = row->sum.blocked;

	/* Within a device or the host it is no matter of the link. */
	if (row->key.host_kind == MODEL_HOST_PAGEABLE || row->key.direction == VT_DIR_H2H ||
		row->key.direction == VT_DIR_D2D)
		return;
	if (lost.n < BLOCKED_LEAST || lost.n < row->sum.n_async / BLOCKED_PART)
		return;
	lost.ns = excess(lost.ns, lost.n * transfers->model->submit_ns);
	if (is_worth(transfers, lost.ns))
		add_lost(transfers, row, TRANSFER_BLOCKED, &lost);
}

static bool is_scalar(const struct model_copy *copy)
{
	return copy->key.direction == VT_DIR_D2H && copy->key.size_class <= SCALAR_CLASS;
}

static void find_small(struct transfers *transfers, struct transfer_row *row)
{
	struct model_part lost = {0};

	if (row->key.direction == VT_DIR_H2H)
		return;
	for (size_t i = 0; i < row->n_copies; i++) {
		const struct model_part *close = &row->copies[i]->close;
		uint64_t most_ns = close->n * SMALL_CALL_NS;

		if (is_scalar(row->copies[i]))
			continue;
		lost.n += close->n;
		lost.bytes += close->bytes;
		lost.ns += close->ns < most_ns ? close->ns : most_ns;
	}
	if (crosses_link(row))
		lost.ns = excess(
			lost.ns, transfer_pinned_ns(transfers, row->key.direction, lost.bytes));
	if (lost.n >= MIN_SMALL && is_worth(transfers, lost.ns))
		add_lost(transfers, row, TRANSFER_SMALL, &lost);
}

static void find_read_back(struct transfers *transfers, struct transfer_row *row)
{
	struct model_part lost = {0};

	for (size_t i = 0; i < row->n_copies; i++) {
		const struct model_copy *copy = row->copies[i];

		if (!is_scalar(copy))
			continue;
		lost.n += copy->n_calls;
		lost.bytes += copy->bytes;
		lost.ns += copy->host_time_ns + copy->waited.ns;
	}
	if (lost.n >= MIN_SCALAR && is_worth(transfers, lost.ns))
		add_lost(transfers, row, TRANSFER_READ_BACK, &lost);
}

static void find_repeated(struct transfers *transfers, struct transfer_row *row)
{
	struct model_part lost = {0};
	uint64_t n_ranges = 0, n_sizes = 0;
	struct transfer_finding *finding;

	for (size_t i = 0; i < row->n_copies; i++) {
		const struct model_copy *copy = row->copies[i];

		n_ranges += copy->n_repeat_ranges;
		n_sizes += copy->repeat_bytes_vary ? 2u : copy->n_repeat_ranges ? 1u : 0u;
		lost.n += copy->repeats.n;
		lost.bytes += copy->repeats.bytes;
		lost.ns += transfer_moving_ns(transfers, copy, copy->repeats.bytes);
	}
	if (lost.n < MIN_REPEATS || !n_ranges || lost.bytes < MIN_BYTES ||
		!is_worth(transfers, lost.ns))
		return;
	if (n_ranges >= MIN_RANGES && (n_sizes > MAX_RING_SIZES || n_ranges > MAX_RING)) {
		finding = add_lost(transfers, row, TRANSFER_REPEATED, &lost);
	} else if (2 * row->sum.through.n > row->sum.n_calls) {
		/* A pipeline stages its input in memory that is pinned, with asynchronous calls;
		 * this does not. */
		finding = add_row(transfers, row, TRANSFER_REPEATED, lost.n, lost.bytes);
		finding->is_possible = true;
	} else {
		return;
	}
	finding->n_ranges = n_ranges;
}

static void find_round_trips(struct transfers *transfers, struct transfer_row *row)
{
	struct model_part lost = {0};
	struct transfer_finding *finding;
	uint64_t n_ranges = 0, up = 0;

	for (size_t i = 0; i < row->n_copies; i++) {
		const struct model_copy *copy = row->copies[i];

		n_ranges += copy->n_trip_ranges;
		lost.n += copy->trips.n;
		lost.bytes += copy->trips.bytes;
		lost.ns += transfer_moving_ns(transfers, copy, copy->trips.bytes);
		if (copy->trips.n)
			up = copy->trip_stack_id;
	}
	if (lost.n < MIN_REPEATS || lost.bytes < MIN_BYTES || !is_worth(transfers, lost.ns))
		return;
	if (n_ranges >= MIN_TRIP_RANGES) {
		finding = add_lost(transfers, row, TRANSFER_ROUND_TRIP, &lost);
	} else {
		/* One buffer that is filled, worked on and read is as likely. */
		finding = add_row(transfers, row, TRANSFER_ROUND_TRIP, lost.n, lost.bytes);
		finding->is_possible = true;
	}
	finding->n_ranges = n_ranges;
	finding->other_stack_id = up;
}

static void find_pin_churn(struct transfers *transfers, struct transfer_row *row)
{
	struct model_part lost = {0};

	for (size_t i = 0; i < row->n_copies; i++) {
		lost.n += row->copies[i]->pins.n;
		lost.bytes += row->copies[i]->pins.bytes;
		lost.ns += row->copies[i]->pins.ns;
	}
	if (lost.n < MIN_PINS)
		return;
	/* One buffer would have to be locked in any case. */
	lost.ns -= lost.ns / lost.n;
	if (is_worth(transfers, lost.ns))
		add_lost(transfers, row, TRANSFER_PIN_CHURN, &lost);
}

static void find_staged(struct transfers *transfers, struct transfer_row *row)
{
	struct model_part lost = {0};
	bool typical = true;

	for (size_t i = 0; i < row->n_copies; i++) {
		const struct model_copy *copy = row->copies[i];
		/* The fastest of such copies may be one with access. */
		const struct model_part *measured =
			copy->timed.bytes ? &copy->timed : &copy->through;
		uint64_t ns;

		if (!copy->unpeered.n)
			continue;
		typical = !measured->bytes;
		ns = typical ? transfer_share_ns(
				       1000000000u, copy->unpeered.bytes, STAGED_BYTES_PER_S)
			     : transfer_share_ns(
				       measured->ns, copy->unpeered.bytes, measured->bytes);
		lost.n += copy->unpeered.n;
		lost.bytes += copy->unpeered.bytes;
		lost.ns +=
			excess(ns, transfer_pinned_ns(transfers, VT_DIR_P2P, copy->unpeered.bytes));
	}
	if (lost.n && is_worth(transfers, lost.ns))
		add_lost(transfers, row, TRANSFER_STAGED, &lost)->is_typical =
			typical || is_typical(transfers, row);
}

static void find_serial(struct transfers *transfers, struct transfer_row *row)
{
	struct model_part serial = {0};

	for (size_t i = 0; i < row->n_copies; i++) {
		serial.n += row->copies[i]->serial.n;
		serial.bytes += row->copies[i]->serial.bytes;
	}
	if (serial.n >= MIN_SERIAL)
		add_row(transfers, row, TRANSFER_SERIAL, serial.n, serial.bytes);
}

/* --- Page-locked memory --- */

static bool is_torch(
	const struct transfers *transfers, const struct owner_source *owners, uint64_t stack_id)
{
	const char *owner = owners ? owners->label(owners->user, transfers->model, stack_id) : NULL;

	return owner && !strcmp(owner, "torch");
}

/* The allocator that rounds up to powers of two does not say what was asked for, but copies show
 * what is used. */
static void find_rounded(struct transfers *transfers, const struct model_pinning *pinning,
	const struct owner_source *owners)
{
	uint64_t waste_bytes = excess(pinning->used.bytes, pinning->touched_bytes);
	struct transfer_finding *finding;

	if (pinning->key.kind != VT_KIND_PINNED || pinning->round.n < pinning->n_locked)
		return;
	if (pinning->used.n) {
		if (waste_bytes < MIN_BYTES || waste_bytes < pinning->used.bytes / 8)
			return;
		finding = add(transfers, TRANSFER_ROUNDED, pinning->key.stack_id, pinning->used.n,
			pinning->used.bytes);
		finding->used_bytes = pinning->touched_bytes;
	} else {
		if (pinning->locked_bytes < 2 * MIN_BYTES ||
			!is_torch(transfers, owners, pinning->key.stack_id))
			return;
		finding = add(transfers, TRANSFER_ROUNDED, pinning->key.stack_id, pinning->n_locked,
			pinning->locked_bytes);
		finding->is_possible = true;
	}
	finding->memory_kind = VT_KIND_PINNED;
}

/* Live blocks that were copied once or twice and then left alone: of one place, and the oldest of
 * all, behind which the others may wait. */
struct once {
	const struct model_pinning *place;
	uint64_t first_copy_ns;
	struct model_part blocks; /* ns: to lock them */
	const struct model_block *oldest;
};

static bool is_there(const struct once *once, const struct model_block *block)
{
	return block->site->key.stack_id == once->place->key.stack_id;
}

static void look_for_first(struct once *once, const struct model_block *block)
{
	const struct model_host_use *use = block->use;

	if (use->n_copies <= MAX_ONCE &&
		(!once->oldest || use->last_copy_ns < once->oldest->use->last_copy_ns))
		once->oldest = block;
	if (is_there(once, block) &&
		(!once->first_copy_ns || use->first_copy_ns < once->first_copy_ns))
		once->first_copy_ns = use->first_copy_ns;
}

/* What was locked before the first copy could not have been spared. */
static void look_for_later(struct once *once, const struct model_block *block)
{
	const struct model_host_use *use = block->use;

	if (!is_there(once, block) || use->n_copies > MAX_ONCE ||
		use->made_ns < once->first_copy_ns)
		return;
	once->blocks.n++;
	once->blocks.bytes += block->bytes;
	once->blocks.ns += use->lock_ns;
}

static void look_at_copied(const struct transfers *transfers, struct once *once,
	void (*look)(struct once *once, const struct model_block *block))
{
	const struct tree *live = &transfers->model->live;

	for (struct tree_node *node = tree_ceiling(live, 0); node; node = tree_next(live, node)) {
		const struct model_block *block = model_block_of(node);

		if (block->use && block->use->n_copies && block->kind == VT_KIND_PINNED)
			look(once, block);
	}
}

static void find_not_reused(struct transfers *transfers, const struct transfer_pinning *place)
{
	const struct model_pinning *pinning = place->pinning;
	struct transfer_finding *finding;
	struct once once = {.place = pinning};

	if (pinning->key.kind != VT_KIND_PINNED || place->n_live < MIN_NOT_REUSED)
		return;
	look_at_copied(transfers, &once, look_for_first);
	look_at_copied(transfers, &once, look_for_later);
	if (once.blocks.n < MIN_NOT_REUSED || once.blocks.bytes < NOT_REUSED_BYTES ||
		2 * once.blocks.n < place->n_live)
		return;
	finding = add(transfers, TRANSFER_NOT_REUSED, pinning->key.stack_id, once.blocks.n,
		once.blocks.bytes);
	finding->memory_kind = VT_KIND_PINNED;
	finding->is_lost = true;
	finding->lost_ns = once.blocks.ns;
	finding->stream = once.oldest->use->stream;
	finding->time_ns = once.oldest->use->last_copy_ns;
	finding->other_stack_id = once.oldest->use->copy->key.stack_id;
}

static void find_kept(struct transfers *transfers, const struct transfer_pinning *place)
{
	const struct model_pinning *pinning = place->pinning;
	bool grows = place->n_live >= MIN_KEPT &&
		     pinning->last_ns - pinning->first_ns > transfers->span_ns / 10;
	struct transfer_finding *finding;

	if (pinning->key.kind != VT_KIND_REGISTERED || (!grows && !pinning->late.n))
		return;
	finding = add(transfers, TRANSFER_KEPT, pinning->key.stack_id,
		grows ? place->n_live : pinning->late.n,
		grows ? place->live_bytes : pinning->late.bytes);
	finding->memory_kind = VT_KIND_REGISTERED;
	finding->time_ns = grows ? 0 : pinning->late.ns / pinning->late.n;
}

static void find_clashes(struct transfers *transfers)
{
	for (size_t i = 0; i < transfers->model->n_clashes; i++) {
		const struct model_clash *clash = &transfers->model->clashes[i];
		struct transfer_finding *finding =
			add(transfers, TRANSFER_CLASH, clash->stack_id, clash->n, clash->bytes);

		finding->memory_kind = VT_KIND_REGISTERED;
		finding->other_stack_id = clash->earlier_stack_id;
		finding->address = clash->address;
		finding->time_ns = clash->first_ns;
	}
}

/* --- Allocations --- */

static const struct model_pool *pool_of_device(const struct model *model, int ordinal)
{
	const struct model_device *device = model_device_find(model, ordinal);

	if (!device)
		return NULL;
	return device->current_pool ? device->current_pool : device->default_pool;
}

static void find_alloc_churn(struct transfers *transfers, const struct model_site *site)
{
	const struct model_pool *pool = NULL;
	struct transfer_finding *finding;

	if (site->again.n < MIN_AGAIN || !is_worth(transfers, site->again.ns))
		return;
	finding = add(transfers, TRANSFER_ALLOC_CHURN, site->key.stack_id, site->again.n,
		site->again.bytes);
	finding->memory_kind = site->key.kind;
	finding->dst_device = site->key.device;
	finding->is_lost = true;
	finding->lost_ns = site->again.ns;
	if (site->key.kind == VT_KIND_POOL)
		pool = pool_of_device(transfers->model, site->key.device);
	finding->is_threshold_known = pool && pool->threshold_known;
	finding->threshold_bytes = pool ? pool->threshold_bytes : 0;
}

void transfer_find(struct transfers *transfers, const struct owner_source *owners)
{
	for (size_t i = 0; i < transfers->n_rows; i++) {
		struct transfer_row *row = &transfers->rows[i];

		find_pageable(transfers, row);
		find_blocked(transfers, row);
		find_small(transfers, row);
		find_read_back(transfers, row);
		find_repeated(transfers, row);
		find_round_trips(transfers, row);
		find_pin_churn(transfers, row);
		find_staged(transfers, row);
		find_serial(transfers, row);
	}
	for (size_t i = 0; i < transfers->n_pinnings; i++) {
		find_rounded(transfers, transfers->pinnings[i].pinning, owners);
		find_not_reused(transfers, &transfers->pinnings[i]);
		find_kept(transfers, &transfers->pinnings[i]);
	}
	find_clashes(transfers);
	for (const struct model_site *site = transfers->model->sites; site; site = site->hh.next)
		find_alloc_churn(transfers, site);
}

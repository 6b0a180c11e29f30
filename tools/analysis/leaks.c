#include "analysis/leaks.h"

#include <stdlib.h>

#include "analysis/leak_parts.h"
#include "model/blocks.h"
#include "model/memory.h"

/* What is known of a site's live memory. */
struct live {
	uint64_t address;
	uint64_t oldest_ns;
	uint64_t ended_bytes;  /* of threads that have ended */
	uint64_t failed_bytes; /* of attempts that failed */
};

static uint64_t less(uint64_t from, uint64_t part)
{
	return from > part ? from - part : 0;
}

/* Allocations of the whole process that ended in the columns from `first` to `last`. */
static uint64_t count_ends(const struct curve_axis *axis, uint32_t first, uint32_t last)
{
	uint64_t n = 0;

	for (uint32_t column = first; column <= last; column++)
		n += axis->n_ends[column];
	return n;
}

static uint64_t column_ns(const struct curve_axis *axis)
{
	return axis->unit << axis->shift;
}

uint64_t leak_min_ns(const struct history *history)
{
	return history->is_running ? LEAK_MIN_RUNNING_NS : LEAK_MIN_NS;
}

uint64_t leak_rate(uint64_t bytes, uint64_t ns)
{
	double rate = ns ? (double)bytes * 1e9 / (double)ns : 0;

	return rate < 0x1p63 ? (uint64_t)rate : UINT64_MAX;
}

/* Whether it goes on to the end: that it has not risen for so long happens by chance as well. */
static bool goes_on(const struct series *series, const struct shape *shape)
{
	size_t n = series->n - shape->from;

	return (series->n - 1 - shape->last_rise) * shape->n_rises <= 5 * n;
}

/* Whether growth that the shape has is what the program does, and not how it begins. */
static bool is_work(
	const struct history *history, const struct series *series, const struct shape *shape)
{
	uint32_t first = series->columns[shape->from], last = series->columns[series->n - 1];
	uint64_t ns = (last - first) * column_ns(&history->time);
	uint64_t n_more = shape->n_growth ? shape->n_growth : shape->n_rises;

	if (ns < leak_min_ns(history))
		return false;
	return count_ends(&history->time, first, last) >= LEAK_WORK * n_more ||
	       (ns >= LEAK_PATIENCE_NS && goes_on(series, shape));
}

static void take_growth(struct leak *leak, const struct curve_axis *axis,
	const struct series *series, const struct shape *shape)
{
	leak->grows = true;
	leak->growth_bytes = shape->growth_bytes;
	leak->since_ns = axis->start + series->columns[shape->from] * column_ns(axis);
	leak->rate_bytes_per_s = leak_rate(shape->bytes_per_step, column_ns(axis));
}

/* Growth from mark to mark; the time between them is taken as always the same. */
static bool judge_by_marks(
	struct leak *leak, struct history *history, struct history_site *site, enum shape_stay stay)
{
	struct series series;
	struct shape shape;
	uint64_t ns, n;

	if (history->n_marks < LEAK_MIN_MARKS ||
		(history->is_running &&
			history->last_mark_ns - history->first_mark_ns < LEAK_MIN_RUNNING_NS))
		return false;
	series_make(&series, &site->by_mark, &history->marks, history->n_marks);
	shape_judge(&shape, &series, stay);
	if (shape.kind != SHAPE_GROWING)
		return false;
	ns = history->last_mark_ns - history->first_mark_ns;
	n = history->n_marks - 1;
	leak->grows = true;
	leak->growth_bytes = shape.growth_bytes;
	leak->mark = history->step->name;
	leak->bytes_per_mark = shape.bytes_per_step >> history->marks.shift;
	leak->since_ns =
		history->first_mark_ns +
		(uint64_t)((double)ns / (double)n *
			   (double)((uint64_t)series.columns[shape.from] << history->marks.shift));
	leak->rate_bytes_per_s = leak_rate(leak->bytes_per_mark * n, ns);
	return true;
}

/* The verdict of the curve alone. */
static enum leak_verdict judge_curve(
	struct leak *leak, struct history *history, struct history_site *site)
{
	uint64_t end_ns = site->ended_ns ? site->ended_ns : history->last_event_ns;
	enum shape_stay stay;
	struct series series;
	struct shape shape;

	series_make(&series, &site->by_time, &history->time, end_ns);
	if (!series.n)
		return LEAK_NONE;
	stay = shape_find_stay(&series);
	shape_judge(&shape, &series, stay);
	if (judge_by_marks(leak, history, site, stay))
		return LEAK_GROWING;
	switch (shape.kind) {
	case SHAPE_GROWING:
		if (!is_work(history, &series, &shape))
			return LEAK_NONE;
		take_growth(leak, &history->time, &series, &shape);
		return LEAK_GROWING;
	case SHAPE_ONE_TIME:
		return LEAK_ONE_TIME;
	case SHAPE_SATURATING:
		return LEAK_SATURATING;
	default:
		return LEAK_NONE;
	}
}

static void take_site(
	struct leak *leak, const struct model_site *of, const struct history_site *site)
{
	leak->n_births = of->n_allocs;
	leak->n_deaths = of->n_allocs - of->n_teardown - of->n_live;
	leak->mean_lifetime_ns = site->n_deaths ? site->lifetime_sum_ns / site->n_deaths : 0;
	leak->longest_lifetime_ns = site->longest_lifetime_ns;
	leak->n_bursts = site->n_bursts;
	leak->burst_deaths = site->n_bursts ? site->burst_deaths / site->n_bursts : 0;
}

/* Most of what was freed went in bursts. */
static bool has_bursts(const struct history_site *site)
{
	return site->n_bursts >= LEAK_MIN_BURSTS && site->burst_deaths >= site->n_deaths / 4 * 3;
}

static bool is_most(uint64_t part, uint64_t of)
{
	return part && part >= of / 100 * LEAK_MOST_PERCENT;
}

/* Whether what the thread got at time_ns is of an attempt that then failed: what succeeds is freed
 * again sooner than that. */
static bool is_of_failure(const struct history *history, const struct history_site *site,
	uint32_t tid, uint64_t time_ns)
{
	uint64_t failed_ns, longest_ns = site->longest_lifetime_ns;

	if (!history->n_failures || !site->n_deaths)
		return false;
	failed_ns = history_next_failure(history, tid, time_ns);
	return failed_ns != UINT64_MAX && failed_ns - time_ns <= longest_ns &&
	       history->last_event_ns - time_ns > 2 * longest_ns;
}

static bool is_in_use(const struct leak *leak, uint64_t end_ns)
{
	return leak->n_deaths >= leak->n_births / 2 && leak->oldest_ns &&
	       end_ns - leak->oldest_ns <= leak->longest_lifetime_ns;
}

static enum leak_verdict judge(struct leak *leak, struct history *history,
	const struct model_site *of, struct history_site *site, const struct live *live)
{
	enum leak_verdict verdict = judge_curve(leak, history, site);

	take_site(leak, of, site);
	if (leak->row.teardown) {
		leak->address = site->ended_address;
		/* What came since is another row's. */
		leak->grows = leak->grows && site->ended_ns;
		return leak->grows ? verdict : LEAK_FREED_AT_TEARDOWN;
	}
	leak->address = live->address;
	leak->oldest_ns = live->oldest_ns;
	if (is_most(live->failed_bytes, leak->row.bytes))
		return LEAK_RETAINED_BY_FAILURE;
	if (leak->n_ended_threads >= LEAK_MIN_THREADS &&
		is_most(live->ended_bytes, leak->row.bytes))
		return LEAK_PER_THREAD;
	if (verdict == LEAK_GROWING)
		return verdict;
	if (has_bursts(site))
		return LEAK_BURSTS;
	leak->in_use = verdict == LEAK_NONE && is_in_use(leak, history->last_event_ns);
	return verdict;
}

/* Books one live allocation of a site. */
static void see_live(struct live *lives, const struct history *history,
	const struct model_site *site, uint64_t address, uint64_t bytes, uint32_t tid,
	uint64_t time_ns)
{
	struct live *live = &lives[site->index];
	const struct history_site *past = history_site(history, site);

	if (!live->oldest_ns || time_ns < live->oldest_ns) {
		live->oldest_ns = time_ns;
		live->address = address;
	}
	if (history_thread_ended(history, tid))
		live->ended_bytes += bytes;
	if (past && is_of_failure(history, past, tid, time_ns))
		live->failed_bytes += bytes;
}

static void see_blocks(struct live *lives, const struct history *history, const struct tree *tree)
{
	for (const struct tree_node *node = tree_ceiling(tree, 0); node;
		node = tree_next(tree, node)) {
		const struct model_block *block = model_block_of(node);

		if (!block->segment)
			see_live(lives, history, block->site, node->key, block->bytes, block->tid,
				block->time_ns);
	}
}

/* Physical memory of VMM is left out: a handle has no address, and may be behind several. */
static struct live *find_live(const struct model *model, const struct history *history)
{
	struct live *lives = memory_new(HASH_COUNT(model->sites) + 1, sizeof(*lives));

	see_blocks(lives, history, &model->live);
	see_blocks(lives, history, &model->arrays);
	for (const struct model_allocator *allocator = model->allocators; allocator;
		allocator = allocator->hh.next)
		for (const struct model_piece *piece = model_piece_first(&allocator->live); piece;
			piece = model_piece_next(&allocator->live, piece))
			if (piece->site)
				see_live(lives, history, piece->site, piece->node.key, piece->bytes,
					piece->tid, piece->time_ns);
	return lives;
}

static size_t count_ended(const struct history *history, const struct model_site *site)
{
	size_t n = 0;

	for (size_t i = 0; i < site->n_tids; i++)
		n += history_thread_ended(history, site->tids[i]);
	return n;
}

static const struct model_site *site_of_row(const struct model *model, const struct site_row *row)
{
	struct model_site_key key = {row->stack_id, row->device, row->kind, row->allocator_id};
	const struct model_site *site;

	HASH_FIND(hh, model->sites, &key, sizeof(key), site);
	return site;
}

/* What an allocator keeps; what it keeps for graphs whose capture failed is a row of its own. */
static void take_idle(struct leak_list *list, const struct model *model,
	const struct history *history, const struct site_row *row)
{
	const struct model_allocator *allocator = model_allocator_find(model, row->allocator_id);
	struct leak idle = {.row = *row, .verdict = LEAK_CACHE}, failed = idle;

	failed.verdict = LEAK_RETAINED_BY_FAILURE;
	failed.row.bytes = failed.row.count = 0;
	for (const struct model_segment *segment = model_segment_first(allocator); segment;
		segment = model_segment_next(allocator, segment)) {
		const struct model_holding *holding = &allocator->holdings[segment->holding];

		if (holding->device->ordinal != row->device || holding->kind != row->kind ||
			!segment->captured || segment->mapped || segment->used_bytes ||
			!history_capture_failed(history, segment->time_ns))
			continue;
		failed.row.bytes += segment->bytes;
		failed.row.count++;
	}
	idle.row.bytes = less(row->bytes, failed.row.bytes);
	idle.row.count = less(row->count, failed.row.count);
	if (failed.row.count)
		*leak_new(list) = failed;
	if (idle.row.bytes)
		*leak_new(list) = idle;
}

void leak_list_make(struct leak_list *list, const struct model *model, struct history *history,
	const struct site_list *end)
{
	struct live *lives = find_live(model, history);

	for (size_t i = 0; i < end->n_rows; i++) {
		const struct site_row *row = &end->rows[i];
		const struct model_site *site;
		struct history_site *past;
		struct leak *leak;

		if (row->level == SITE_IDLE) {
			take_idle(list, model, history, row);
			continue;
		}
		leak = leak_new(list);
		*leak = (struct leak){
			.row = *row, .verdict = row->teardown ? LEAK_FREED_AT_TEARDOWN : LEAK_NONE};
		site = site_of_row(model, row);
		past = site ? history_site(history, site) : NULL;
		if (!past)
			continue;
		leak->n_ended_threads = count_ended(history, site);
		leak->verdict = judge(leak, history, site, past, &lives[site->index]);
	}
	free(lives);
	leak_list_sort(list);
}

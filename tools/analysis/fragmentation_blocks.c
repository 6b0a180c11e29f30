/* Fragmentation inside the segments of an allocator that reports its blocks: PyTorch's, or one that
 * the program tells of. */
#include <stdlib.h>

#include "analysis/fragmentation_parts.h"
#include "analysis/layout.h"
#include "analysis/order.h"
#include "model/memory.h"

/* PyTorch serves requests up to 1 MiB from segments of this size, and larger ones from others. */
#define SMALL_SEGMENT_BYTES (2u << 20)
#define SMALL_REQUEST_BYTES (1u << 20)
/* A segment made for one large request, and cut up for blocks of less than such a part of it. */
#define LARGE_SEGMENT_BYTES (128u << 20)
#define CUT_PART	    8u
#define MAX_HOLE_SIZES	    64u

struct block_walk {
	struct fragmentation_row *row;
	const struct layout *layout;
	struct pin_book book;
	uint64_t whole_page_bytes; /* of holes: pages that hold nothing */
	uint64_t large_hole_bytes; /* the largest in segments for large requests */
	uint64_t *holes;	   /* sizes */
	size_t n_holes, hole_room;
	bool expandable;
};

static uint64_t whole_pages(const struct layout_range *range, uint64_t page_bytes)
{
	uint64_t start = (range->address + page_bytes - 1) / page_bytes * page_bytes;
	uint64_t end = (range->address + range->bytes) / page_bytes * page_bytes;

	return end > start ? end - start : 0;
}

/* Keeps the smallest ones. */
static void add_holder(
	struct fragmentation_segment *segment, const struct fragmentation_holder *holder)
{
	size_t at = segment->n_holders;

	while (at > 0 && segment->holders[at - 1].bytes > holder->bytes)
		at--;
	if (at == FRAGMENTATION_N_HOLDERS)
		return;
	if (segment->n_holders < FRAGMENTATION_N_HOLDERS)
		segment->n_holders++;
	for (size_t i = segment->n_holders - 1; i > at; i--)
		segment->holders[i] = segment->holders[i - 1];
	segment->holders[at] = *holder;
}

/* The parts of one segment, in a row and in what is said of it alone. */
struct segment_sums {
	struct fragmentation_segment segment;
	uint64_t pending_bytes;
	uint64_t page_bytes; /* in holes */
};

static struct segment_sums sum_up(struct block_walk *walk, const struct layout_segment *segment)
{
	struct segment_sums sums = {
		.segment = {.address = segment->address, .bytes = segment->bytes}};

	pin_book_begin(&walk->book);
	for (size_t i = 0; i < segment->n_ranges; i++) {
		const struct layout_range *range = &walk->layout->ranges[segment->first_range + i];
		struct fragmentation_holder holder;

		if (range->state == LAYOUT_INACTIVE) {
			sums.segment.idle_bytes += range->bytes;
			sums.page_bytes += whole_pages(range, walk->row->page_bytes);
			if (range->bytes > sums.segment.largest_hole_bytes)
				sums.segment.largest_hole_bytes = range->bytes;
		} else if (range->state == LAYOUT_PENDING) {
			sums.pending_bytes += range->bytes;
		} else {
			holder = (struct fragmentation_holder){
				range->piece->site ? range->piece->site->key.stack_id : 0,
				range->address, range->bytes, range->piece->time_ns};
			sums.segment.live_bytes += range->bytes;
			sums.segment.n_live++;
			add_holder(&sums.segment, &holder);
			pin_book_add(&walk->book, &holder);
		}
	}
	return sums;
}

static void add_holes(struct block_walk *walk, const struct layout_segment *segment)
{
	for (size_t i = 0; i < segment->n_ranges; i++) {
		const struct layout_range *range = &walk->layout->ranges[segment->first_range + i];

		if (range->state != LAYOUT_INACTIVE)
			continue;
		walk->holes = memory_grow(
			walk->holes, walk->n_holes, &walk->hole_room, sizeof(*walk->holes));
		walk->holes[walk->n_holes++] = range->bytes;
	}
}

/* What of the segment's idle bytes could be given back: all, if nothing else is in it; of pages
 * that were mapped one by one those that hold nothing; nothing of what a graph keeps. */
static uint64_t returnable_of(const struct layout_segment *segment, const struct segment_sums *sums)
{
	if (segment->captured)
		return 0;
	if (segment->mapped)
		return sums->page_bytes;
	return sums->segment.n_live || sums->pending_bytes ? 0 : sums->segment.idle_bytes;
}

static void note_cut_up(struct fragmentation_row *row, const struct segment_sums *sums)
{
	const struct fragmentation_segment *segment = &sums->segment;

	if (segment->bytes >= LARGE_SEGMENT_BYTES && segment->n_live &&
		segment->live_bytes / segment->n_live < segment->bytes / CUT_PART &&
		(!row->split_bytes || segment->bytes < row->split_bytes))
		row->split_bytes = segment->bytes;
}

static void add_segment(struct block_walk *walk, const struct layout_segment *segment)
{
	struct fragmentation_row *row = walk->row;
	struct segment_sums sums = sum_up(walk, segment);
	uint64_t returnable = returnable_of(segment, &sums);
	uint64_t pinned = sums.segment.idle_bytes - returnable;

	row->n_containers++;
	row->reserved_bytes += segment->bytes;
	row->live_bytes += sums.segment.live_bytes;
	row->n_live += sums.segment.n_live;
	row->pending_bytes += sums.pending_bytes;
	row->idle_bytes += sums.segment.idle_bytes;
	row->returnable_bytes += returnable;
	row->pinned_bytes += pinned;
	walk->expandable = walk->expandable || segment->mapped;
	if (segment->captured)
		row->captured_bytes += pinned;
	if (pinned && sums.segment.n_live)
		pin_book_end(&walk->book, pinned);
	else
		pin_book_end(&walk->book, 0);
	if (sums.segment.largest_hole_bytes > row->largest_free_bytes)
		row->largest_free_bytes = sums.segment.largest_hole_bytes;
	if (sums.segment.n_live || sums.pending_bytes)
		add_holes(walk, segment);
	if (!pinned)
		return;
	row->n_pinned++;
	row->pinning_bytes += sums.segment.live_bytes;
	walk->whole_page_bytes += segment->mapped ? 0 : sums.page_bytes;
	note_cut_up(row, &sums);
	if (segment->bytes > SMALL_SEGMENT_BYTES &&
		sums.segment.largest_hole_bytes > walk->large_hole_bytes)
		walk->large_hole_bytes = sums.segment.largest_hole_bytes;
	row->segments = memory_grow(
		row->segments, row->n_segments, &row->segment_room, sizeof(*row->segments));
	row->segments[row->n_segments++] = sums.segment;
}

static int compare_numbers(const void *a, const void *b)
{
	return order_of(*(const uint64_t *)b, *(const uint64_t *)a);
}

/* Puts holes of one size together. */
static void group_holes(struct block_walk *walk)
{
	struct fragmentation_row *row = walk->row;

	if (!walk->n_holes)
		return;
	qsort(walk->holes, walk->n_holes, sizeof(*walk->holes), compare_numbers);
	row->n_holes = walk->n_holes;
	row->largest_hole_bytes = walk->holes[0];
	for (size_t i = 0; i < walk->n_holes; i++) {
		if (!row->n_hole_sizes ||
			row->holes[row->n_hole_sizes - 1].bytes != walk->holes[i]) {
			row->holes = memory_grow(row->holes, row->n_hole_sizes, &row->hole_room,
				sizeof(*row->holes));
			row->holes[row->n_hole_sizes++] =
				(struct fragmentation_hole){walk->holes[i], 0};
		}
		row->holes[row->n_hole_sizes - 1].count++;
	}
	free(walk->holes);
}

static int compare_holes(const void *a, const void *b)
{
	const struct fragmentation_hole *x = a, *y = b;
	int order = order_of(y->bytes * y->count, x->bytes * x->count);

	return order ? order : order_of(y->bytes, x->bytes);
}

static double held_back_for_each(const struct fragmentation_segment *segment)
{
	return (double)segment->idle_bytes /
	       (double)(segment->live_bytes ? segment->live_bytes : 1);
}

static int compare_segments(const void *a, const void *b)
{
	const struct fragmentation_segment *x = a, *y = b;
	double of_x = held_back_for_each(x), of_y = held_back_for_each(y);

	if (of_x != of_y)
		return of_x < of_y ? 1 : -1;
	return order_of(x->address, y->address);
}

static void sort(struct fragmentation_row *row)
{
	if (row->n_hole_sizes)
		qsort(row->holes, row->n_hole_sizes, sizeof(*row->holes), compare_holes);
	if (row->n_hole_sizes > MAX_HOLE_SIZES)
		row->n_hole_sizes = MAX_HOLE_SIZES;
	if (row->n_segments)
		qsort(row->segments, row->n_segments, sizeof(*row->segments), compare_segments);
}

/* PyTorch's small and large requests come from different segments. */
static void compare_with_requests(
	struct block_walk *walk, const struct model_device *device, const struct requests *requests)
{
	struct fragmentation_row *row = walk->row;
	bool large = row->layer == VT_LAYER_TORCH && walk->large_hole_bytes;

	row->requests = requests_span(requests, REQUEST_FRAMEWORK, device->ordinal,
		large ? SMALL_REQUEST_BYTES : 0,
		large ? walk->large_hole_bytes : row->largest_hole_bytes);
	/* Smaller ones than half a hole would fit in it, whatever they grow to. */
	row->n_drifting = requests_count_drifting(
		requests, REQUEST_FRAMEWORK, device->ordinal, row->largest_free_bytes / 2);
}

static void judge_idle(struct block_walk *walk)
{
	struct fragmentation_row *row = walk->row;
	bool torch = row->layer == VT_LAYER_TORCH;

	row->verdict = row->n_drifting				   ? FRAGMENTATION_DRIFT
		       : row->pinned_bytes < row->returnable_bytes ? FRAGMENTATION_CACHED
								   : FRAGMENTATION_PINNED;
	if (torch && row->verdict == FRAGMENTATION_CACHED) {
		row->advice = ADVICE_EMPTY_CACHE;
		row->advice_bytes = row->returnable_bytes;
	} else if (torch && !walk->expandable &&
		   row->returnable_bytes + walk->whole_page_bytes >= row->idle_bytes / 2) {
		row->advice = ADVICE_EXPANDABLE;
		row->advice_bytes = row->returnable_bytes + walk->whole_page_bytes;
	}
}

static void judge(struct block_walk *walk, const struct model_device *device)
{
	struct fragmentation_row *row = walk->row;

	if (fragmentation_matters(row, device, row->pending_bytes) &&
		row->pending_bytes >= row->idle_bytes) {
		row->verdict = FRAGMENTATION_PENDING;
		row->advice = ADVICE_SYNCHRONISE;
		row->advice_bytes = row->pending_bytes;
	} else if (fragmentation_matters(row, device, row->idle_bytes)) {
		judge_idle(walk);
	}
	if (row->advice != ADVICE_EXPANDABLE)
		row->split_bytes = 0;
}

static void add_allocator(struct fragmentation *list, const struct fragmentation_row *blank,
	const struct layout *layout, const struct model_allocator *allocator,
	const struct model_device *device, const struct requests *requests)
{
	struct block_walk walk = {.layout = layout, .row = fragmentation_new_row(list, blank)};

	walk.row->level = FRAGMENTATION_FRAMEWORK;
	walk.row->allocator_id = allocator->allocator_id;
	walk.row->layer = allocator->layer;
	walk.row->name = allocator->name;
	walk.row->holes_known = true;
	for (size_t i = 0; i < layout->n_segments; i++)
		if (layout->segments[i].device == device &&
			model_kind_tracked(layout->segments[i].kind))
			add_segment(&walk, &layout->segments[i]);
	pin_book_finish(&walk.book, walk.row);
	group_holes(&walk);
	sort(walk.row);
	if (requests)
		compare_with_requests(&walk, device, requests);
	judge(&walk, device);
}

static bool has_memory_on(
	const struct model_allocator *allocator, const struct model_device *device)
{
	for (size_t i = 0; i < allocator->n_holdings; i++)
		if (allocator->holdings[i].device == device && allocator->holdings[i].n_segments &&
			model_kind_tracked(allocator->holdings[i].kind))
			return true;
	return false;
}

void fragmentation_add_blocks(struct fragmentation *list, const struct fragmentation_row *blank,
	const struct model *model, const struct model_device *device,
	const struct requests *requests)
{
	struct layout layout;

	for (const struct model_allocator *allocator = model->allocators; allocator;
		allocator = allocator->hh.next) {
		if (!has_memory_on(allocator, device))
			continue;
		layout_make(&layout, model, allocator);
		add_allocator(list, blank, &layout, allocator, device, requests);
		layout_release(&layout);
	}
}

/* What the files of the fragmentation analysis share. */
#ifndef VRAMTRACE_ANALYSIS_FRAGMENTATION_PARTS_H
#define VRAMTRACE_ANALYSIS_FRAGMENTATION_PARTS_H

#include "analysis/fragmentation.h"

/* One container, page or segment, after the other: which sites have live blocks in it, and then how
 * much of it is idle. */
struct pin_book {
	struct pin_site *sites; /* of all containers */
	struct pin_site **here; /* of this one */
	size_t n_here, room;
};

void pin_book_begin(struct pin_book *book);
void pin_book_add(struct pin_book *book, const struct fragmentation_holder *block);
void pin_book_end(struct pin_book *book, uint64_t idle_bytes);

/* Moves what was booked into row, and leaves the book empty. Those that hold back most come first;
 * of a framework's blocks those that hold back most for each live byte, after which come those that
 * hold back little. */
void pin_book_finish(struct pin_book *book, struct fragmentation_row *row);

/* The levels: each fills a row, or appends rows that hold something. */
void fragmentation_add_driver(struct fragmentation *list, const struct fragmentation_row *blank,
	const struct model *model, const struct model_device *device);
void fragmentation_add_pools(struct fragmentation *list, const struct fragmentation_row *blank,
	const struct model *model, const struct model_device *device);

void fragmentation_add_blocks(struct fragmentation *list, const struct fragmentation_row *blank,
	const struct model *model, const struct model_device *device,
	const struct requests *requests);

/* A copy of blank at the end of the list. Borrowed, until the next one. */
struct fragmentation_row *fragmentation_new_row(
	struct fragmentation *list, const struct fragmentation_row *blank);

/* Whether so much of what the row has reserved on the device is worth a word. */
bool fragmentation_matters(
	const struct fragmentation_row *row, const struct model_device *device, uint64_t bytes);

#endif

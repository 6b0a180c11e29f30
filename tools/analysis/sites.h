/* Who holds memory: the sites of a model with something live, or with something that a context's
 * end gave back. */
#ifndef VRAMTRACE_ANALYSIS_SITES_H
#define VRAMTRACE_ANALYSIS_SITES_H

#include "model/model.h"

/* Whose bytes a row counts; no byte is in two rows of a list. */
enum site_level {
	SITE_DRIVER, /* memory of the driver, without what an allocator's rows hold */
	SITE_BLOCK,  /* blocks that an allocator handed out */
	SITE_IDLE,   /* what an allocator has beyond that; without a stack */
};

struct site_row {
	uint64_t stack_id;
	int device; /* ordinal or MODEL_DEVICE_* */
	uint32_t kind;
	enum site_level level;
	uint64_t allocator_id; /* 0: of the driver */
	uint64_t bytes;
	uint64_t count;	   /* of SITE_IDLE: segments */
	uint64_t first_ns; /* first and last allocation of the site */
	uint64_t last_ns;
	size_t n_threads;
	bool grows;    /* asks for a little more each time; only in post-mortems */
	bool teardown; /* not live: given back when its context ended */
};

/* All zero is an empty list; release it with site_list_release. */
struct site_list {
	struct site_row *rows;
	size_t n_rows;
	size_t room;
	size_t n_left_out; /* by a limit */
	uint64_t left_out_bytes;
};

/* What to keep of a list. All zero keeps everything. */
struct site_filter {
	bool one_device;
	int device; /* ordinal, when one_device */
	uint64_t min_bytes;
	size_t limit; /* most rows; 0: no limit */
};

/* Appends what is live in model, or what ended with a context, in no order. */
void site_list_add_live(struct site_list *list, const struct model *model);
void site_list_add_teardown(struct site_list *list, const struct model *model);

/* Appends what was live when each device was at its peak, of peaks that lie before what single
 * records of the trace tell (model_is_past). */
void site_list_add_past_peak(struct site_list *list, const struct model *model);

/* Appends the rows of another list. */
void site_list_append(struct site_list *list, const struct site_list *other);

/* For qsort: live before given back, then the most bytes first. */
int site_row_compare(const void *a, const void *b);

/* Sorts so. */
void site_list_sort(struct site_list *list);

/* Keeps of a sorted list what filter says. */
void site_list_filter(struct site_list *list, const struct site_filter *filter);

void site_list_release(struct site_list *list);

#endif

/* The phases and marks of a trace, in an order to be shown in. */
#ifndef VRAMTRACE_ANALYSIS_PHASES_H
#define VRAMTRACE_ANALYSIS_PHASES_H

#include "model/model.h"

/* The phases, or marks, of one name. */
struct phase_row {
	const struct model_phase *phase; /* borrowed from the model */
	uint64_t time_ns;		 /* in all, with those that are open so far */
};

struct phase_list {
	struct phase_row *phases; /* longest in all first */
	size_t n_phases;
	struct phase_row *marks; /* as they came first; without a time */
	size_t n_marks;
};

/* Lists what model, which must outlive the list, holds. Release with phase_list_release. */
void phase_list_make(struct phase_list *list, const struct model *model);
void phase_list_release(struct phase_list *list);

/* Another order: most host time in copies, and in waits for them, first. */
void phase_list_sort_by_copies(struct phase_list *list);

#endif

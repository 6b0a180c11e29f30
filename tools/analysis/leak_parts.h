/* Between leaks.c and leak_list.c. */
#ifndef VRAMTRACE_ANALYSIS_LEAK_PARTS_H
#define VRAMTRACE_ANALYSIS_LEAK_PARTS_H

#include "analysis/leaks.h"

/* A new item, not set, at the end of the list. Borrowed, until the next one. */
struct leak *leak_new(struct leak_list *list);

void leak_list_sort(struct leak_list *list);

#endif

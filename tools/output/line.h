/* Lines of the one-screen report: a label in the margin, then what it is about. */
#ifndef VRAMTRACE_OUTPUT_LINE_H
#define VRAMTRACE_OUTPUT_LINE_H

#include "output/groups.h"
#include "output/style.h"

#define LINE_MARGIN 15u

/* Begins a line: the label (NULL: none) in the margin, with a mark before the text when it is bad
 * news. */
void line_begin(const struct style *style, const char *label, bool bad);

/* The first `limit` groups, one a line, and one line for the rest. */
void line_put_groups(const struct style *style, const struct site_groups *groups, size_t limit);

/* "blocks", "block": by n. A constant. */
const char *line_plural(uint64_t n, const char *one, const char *many);

#endif

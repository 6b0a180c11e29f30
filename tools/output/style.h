/* How text output looks: colour, the characters at hand, the width. */
#ifndef VRAMTRACE_OUTPUT_STYLE_H
#define VRAMTRACE_OUTPUT_STYLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum style_role {
	STYLE_PLAIN,
	STYLE_HEADING,
	STYLE_WARNING,
	STYLE_DIM,
	STYLE_BAND_1, /* parts of a drawing */
	STYLE_BAND_2,
	STYLE_BAND_3,
	STYLE_BAND_4,
};

struct style {
	FILE *out;
	bool color;
	bool ascii;
	size_t width; /* columns */
};

/* For out: colour and the terminal's width when it is a terminal and NO_COLOR is not set, else
 * plain and 100 columns. ascii forces plain ASCII, which is also taken where the locale says that
 * nothing else can be shown. */
void style_init(struct style *style, FILE *out, bool ascii);

/* Switches to role, until the next switch. */
void style_switch(const struct style *style, enum style_role role);

/* Prints text in role, then goes back to plain. */
void style_put(const struct style *style, enum style_role role, const char *text);

/* " · ", or what stands for it. */
const char *style_dot(const struct style *style);

/* Prints text in at most `columns` columns, cut in the middle when it is longer, and padded when
 * pad is set. */
void style_put_cut(const struct style *style, const char *text, size_t columns, bool pad);

#endif

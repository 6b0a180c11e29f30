/* What-if: tables and sentences for people, and the same as JSON. */
#ifndef VRAMTRACE_OUTPUT_WHATIF_TEXT_H
#define VRAMTRACE_OUTPUT_WHATIF_TEXT_H

#include "analysis/whatif_hint.h"
#include "analysis/whatif_report.h"
#include "output/stack.h"
#include "output/style.h"

void whatif_text(const struct style *style, const struct stack_source *source,
	const struct whatif_report *report);

/* One document: "recording", "self_check", "capacity_bytes", "predictions". */
void whatif_json(FILE *out, const struct stack_source *source, const struct whatif_report *report);

/* Who asked for the memory of a step. */
void whatif_where(const struct stack_source *source, const struct whatif_report *report,
	const struct whatif_step *step, char *label, size_t room);

/* What the hint says, in a line without its end. */
void whatif_put_hint(FILE *out, const struct whatif_hint *hint);

/* "exact", "about", "range", "lower_bound", "no_answer". */
const char *whatif_class_name(enum whatif_class class);

/* The i-th bit of `why`, in words, with what is known of how much; "" when it is not set. */
#define WHATIF_N_WHYS 10u
const char *whatif_why_name(unsigned int why, unsigned int i);

#endif

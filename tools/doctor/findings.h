/*
 * What would keep a program from being traced: examined without running any of it.
 *
 * A finding is one line for a person and one entry of the JSON: what was seen, and for what is not
 * well, what to do.
 */
#ifndef VRAMTRACE_DOCTOR_FINDINGS_H
#define VRAMTRACE_DOCTOR_FINDINGS_H

#include <stddef.h>

enum finding_level {
	FINDING_OK,
	FINDING_WARNING, /* a trace will be there, and less is in it */
	FINDING_PROBLEM, /* there will be no trace */
};

struct finding {
	enum finding_level level;
	const char *check;  /* a word for scripts: which check it is of */
	char *text;	    /* what was seen */
	const char *advice; /* what to do; NULL where all is well */
};

struct findings {
	struct finding *items;
	size_t n_items;
	size_t room;
};

/* Adds one. check and advice must outlive the list; text is formatted into memory of the list. */
void findings_add(struct findings *findings, enum finding_level level, const char *check,
	const char *advice, const char *format, ...) __attribute__((format(printf, 5, 6)));

size_t findings_count(const struct findings *findings, enum finding_level level);

void findings_release(struct findings *findings);

#endif

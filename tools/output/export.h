/* Traces in the formats of other viewers. */
#ifndef VRAMTRACE_OUTPUT_EXPORT_H
#define VRAMTRACE_OUTPUT_EXPORT_H

#include "analysis/export_sites.h"
#include "analysis/facts.h"
#include "output/stack.h"

/* One trace to export, all of it borrowed. */
struct export_trace {
	struct stack_source source;
	const struct trace_facts *facts;
	const struct export_moment *moments; /* of the formats that show moments */
	size_t n_moments;
};

/* "peak of GPU 0, at 2:41", "end", "at 2:41", "out of memory 2, at 2:41". */
struct export_text {
	char text[96];
};

struct export_text export_moment_name(const struct export_moment *moment);

/* "python 4242", with ", rank 3" where there is one. */
struct export_text export_process_name(const struct trace_facts *facts);

/* Each writes a whole document of the n traces. What goes wrong with out is for the caller to see
 * there. */

/* pprof's profile.proto, gzip: alloc_objects, alloc_space, inuse_objects, inuse_space. */
void export_pprof(FILE *out, const struct export_trace *traces, size_t n);

/* speedscope's JSON: a profile for each trace, moment and device. */
void export_speedscope(FILE *out, const struct export_trace *traces, size_t n);

/* "root;...;leaf BYTES", a line for each site with something live. */
void export_collapsed(FILE *out, const struct export_trace *traces, size_t n);

#endif

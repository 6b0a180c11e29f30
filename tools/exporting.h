/* How each format is made: from passes over the traces to what writes it. */
#ifndef VRAMTRACE_EXPORTING_H
#define VRAMTRACE_EXPORTING_H

#include "input.h"
#include "output/export.h"

/* One trace being exported. The model of the first pass stays, to name what later passes meet. */
struct export_source {
	struct input_trace *input;
	struct model *names;
	struct trace_facts facts;
	struct export_moment *moments;
	struct export_trace trace;
};

struct exporter {
	const struct options *options;
	struct export_source *sources;
	size_t n;
	FILE *out;
	uint64_t until_ns; /* exporting_torch_snapshot: of what moment */
};

/* Plans the moments that options ask for with --at and --device, by default each device's peak. */
void exporting_plan(struct export_source *source, const struct options *options);

/* Plans every peak, every refusal and the end, in the order of time. */
void exporting_plan_all(struct export_source *source, const struct options *options);

/* When a planned moment is, since the trace's start; UINT64_MAX: the end. */
uint64_t exporting_time(const struct export_source *source, const struct export_moment *moment);

/* Each writes the document. Returns 0, or VT_E_* of a trace that could not be read again. */
int exporting_pprof(struct exporter *exporter);
int exporting_speedscope(struct exporter *exporter);
int exporting_collapsed(struct exporter *exporter);
int exporting_perfetto(struct exporter *exporter);
int exporting_csv(struct exporter *exporter);
int exporting_jsonl(struct exporter *exporter);
int exporting_torch_snapshot(struct exporter *exporter); /* of the one trace */

#endif

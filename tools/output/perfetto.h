/* Perfetto's native trace format: counters, instants and heap profiles, written as they come. */
#ifndef VRAMTRACE_OUTPUT_PERFETTO_H
#define VRAMTRACE_OUTPUT_PERFETTO_H

#include "analysis/counters.h"
#include "analysis/episodes.h"
#include "analysis/timeline.h"
#include "output/export.h"

struct perfetto;

/* Begins a document; perfetto_free ends it. */
struct perfetto *perfetto_new(FILE *out);
void perfetto_free(struct perfetto *perfetto);

/* What is put next is of this trace, which is borrowed until the next call. Times are put on one
 * scale by the wall clock. */
void perfetto_set_trace(struct perfetto *perfetto, const struct export_trace *trace);

/* A point of a curve of the trace. */
void perfetto_put_point(struct perfetto *perfetto, const struct counter_point *point);

/* An out-of-memory episode of the trace. */
void perfetto_put_episode(struct perfetto *perfetto, const struct episode *episode);

/* The trace's phases and marks, each once; both in the order of their begin. */
void perfetto_put_phases(struct perfetto *perfetto, const struct timeline_events *phases);
void perfetto_put_marks(struct perfetto *perfetto, const struct timeline_events *marks);

/* Who holds what at each moment of the trace; moments in the order of time. */
void perfetto_put_moments(struct perfetto *perfetto);

#endif

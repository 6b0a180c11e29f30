/* Allocations and frees as a table (CSV) and as JSON, one object a line. */
#ifndef VRAMTRACE_OUTPUT_EXPORT_EVENTS_H
#define VRAMTRACE_OUTPUT_EXPORT_EVENTS_H

#include "analysis/export_events.h"
#include "output/export.h"

struct export_table;

/* Begins a document, CSV or JSON lines; export_table_free ends it. */
struct export_table *export_table_new(FILE *out, bool json);
void export_table_free(struct export_table *table);

/* What is put next is of this trace, which is borrowed until the next call. */
void export_table_set_trace(struct export_table *table, const struct export_trace *trace);
void export_table_put(struct export_table *table, const struct export_event *event);

#endif

/* Numbers for a monitoring system, in the text format of OpenMetrics. */
#ifndef VRAMTRACE_OUTPUT_METRICS_TEXT_H
#define VRAMTRACE_OUTPUT_METRICS_TEXT_H

#include <stdio.h>

#include "output/report.h"

/*
 * Gauges and counters of each trace, by device and owner. What has one value per call site is left
 * out: there would be no end of labels. Counters carry no TYPE line: OpenMetrics and the older text
 * format name their families differently, and without it both take them.
 */
void metrics_text(FILE *out, const struct report_trace *traces, size_t n);

#endif

/* The JSON about copies. */
#ifndef VRAMTRACE_OUTPUT_JSON_TRANSFERS_H
#define VRAMTRACE_OUTPUT_JSON_TRANSFERS_H

#include "output/report.h"

/* Keys of the open object: "transfers" (one a call site), "transfer_totals", "transfer_findings",
 * and for each trace "transfer_rates", "transfer_timeline" and "page_locked". */
void json_transfers(struct json *json, const struct report_trace *traces, size_t n);

#endif

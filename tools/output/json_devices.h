/* Part of the report's JSON: devices[]. */
#ifndef VRAMTRACE_OUTPUT_JSON_DEVICES_H
#define VRAMTRACE_OUTPUT_JSON_DEVICES_H

#include "output/report.h"

/* Key "devices" of the open object: the devices of each of the n traces, and the unknown one where
 * it was used. Traces in which no call of the driver was seen have none. */
void json_devices(struct json *json, const struct report_trace *traces, size_t n);

#endif

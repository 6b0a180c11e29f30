/* The arrays phases, marks and host_samples of the report's JSON, and the places of others. */
#ifndef VRAMTRACE_OUTPUT_JSON_PHASES_H
#define VRAMTRACE_OUTPUT_JSON_PHASES_H

#include "output/report.h"

/* What is in an item of each array, of all traces. */
void json_phases(struct json *json, const struct report_trace *traces, size_t n);
void json_marks(struct json *json, const struct report_trace *traces, size_t n);
void json_host_samples(struct json *json, const struct report_trace *traces, size_t n);

/* "phase" and "mark": at most one of them is not null. */
void json_place(struct json *json, const struct model_place_name *place);

/* The fields of a sample of the host. */
void json_host_sample(struct json *json, const struct vt_rec_host_memory *sample);

/* "paused": how often, and how long, recording was. */
void json_pauses(struct json *json, const struct report_trace *traces, size_t n);

#endif

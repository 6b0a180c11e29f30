/* Everything that `vramtrace whatif` says of one trace. */
#ifndef VRAMTRACE_ANALYSIS_WHATIF_REPORT_H
#define VRAMTRACE_ANALYSIS_WHATIF_REPORT_H

#include "analysis/whatif_snapshot.h"

struct whatif_request {
	int device;		     /* ordinal, -1: the first one with blocks of PyTorch */
	uint64_t capacity_bytes;     /* 0: none given */
	const char *const *settings; /* "KEY=VALUE", tried together */
	size_t n_settings;
	bool sweep; /* each of the common settings as well */
};

/* The run under other settings. */
struct whatif_row {
	char label[256];
	char problem[160]; /* why PyTorch would not take them, or what of them does nothing; "" */
	bool is_legal;	   /* else there is no prediction */
	struct whatif_prediction prediction;
};

struct whatif_report {
	struct whatif_built built;
	struct whatif_check check; /* when the trace was not refused */
	uint64_t capacity_bytes;
	bool is_sweep, has_together; /* the second row is of the settings asked for together */
	/* When the replay under the recorded settings equals the recording. The first row is of
	 * those settings; those of a sweep are sorted by what they need. */
	struct whatif_row *rows;
	size_t n_rows;
};

/* Makes passes over the trace, as whatif_build does. Returns 0 or VT_E_*. */
int whatif_report_make(
	struct whatif_report *report, struct replay *replay, const struct whatif_request *request);
/* The same of a snapshot of PyTorch's (whatif_snapshot.h); path is what it is called. */
void whatif_report_snapshot(struct whatif_report *report, const struct pickle_value *snapshot,
	const char *path, const struct whatif_request *request);
void whatif_report_release(struct whatif_report *report);

#endif

/* Where the memory of a device went, in rows that add up to it. */
#ifndef VRAMTRACE_ANALYSIS_ACCOUNT_H
#define VRAMTRACE_ANALYSIS_ACCOUNT_H

#include "model/model.h"

/* What a row is part of. */
enum account_part {
	ACCOUNT_TRACKED,
	ACCOUNT_UNTRACKED,
	ACCOUNT_OTHERS,
	ACCOUNT_FREE,
};

struct account_row {
	enum account_part part;
	const char *key;   /* as in the JSON */
	const char *label; /* in words */
	int64_t bytes;	   /* may be negative: more is accounted for than is in use */
	bool measured;	   /* else inferred: by a rule of the driver, or as a difference */
};

#define ACCOUNT_MAX_ROWS (5 + VT_N_CAUSES + 3)

/* Fills rows from an account that was made (account->seen) and returns how many: rows that hold
 * nothing are left out, but for what is unexplained, other processes and free memory. */
size_t account_rows(const struct model_account *account, struct account_row rows[ACCOUNT_MAX_ROWS]);

/* In words: "code" for VT_CAUSE_MODULES. */
const char *account_cause_label(uint32_t cause);

#endif

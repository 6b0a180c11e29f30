/* Where the memory of a device went, as text: in one line and as a table. */
#ifndef VRAMTRACE_OUTPUT_ACCOUNT_TEXT_H
#define VRAMTRACE_OUTPUT_ACCOUNT_TEXT_H

#include "analysis/account.h"
#include "output/style.h"

/* "139.8 GiB = 74.1 GiB tracked + 0.9 GiB untracked (code 0.3 GiB, ...) + ... + 53.8 GiB free, at
 * 2:41"; nothing after it. The account must have been made. */
void account_put_line(const struct style *style, const struct model_account *account);

/* The same as a table, a row a line, each marked measured or inferred, with the sum below. Nothing
 * when the device was never asked for its free memory. */
void account_put_table(const struct style *style, const struct model_device *device);

#endif

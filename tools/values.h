/* Values as people write them. Each returns false, and leaves the result alone or not, when the
 * text makes no sense. */
#ifndef VRAMTRACE_VALUES_H
#define VRAMTRACE_VALUES_H

#include <stdbool.h>
#include <stdint.h>

/* A whole number without a sign, `most` at most. */
bool value_number(const char *text, uint64_t most, uint64_t *number);

/* "4096", "512M", "1.5G", "20GiB". */
bool value_bytes(const char *text, uint64_t *bytes);

/* "12.5", "300ms", "2:41", "1:02:41". */
bool value_time(const char *text, uint64_t *ns);

/* "1M/min", "512/s", "2G/h", "10G/d". */
bool value_rate(const char *text, uint64_t *bytes_per_s);

#endif

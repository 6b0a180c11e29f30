/*
 * What the command prints: text for people, JSON for machines. Fed with the result structs of
 * tools/analysis. This one: numbers a person can read, and recorded text that is safe to print.
 */
#ifndef VRAMTRACE_OUTPUT_FORMAT_H
#define VRAMTRACE_OUTPUT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "vramtrace/format.h"

/* A short text by value: format_bytes(n).text lives to the end of the expression. */
struct format_text {
	char text[32];
};

/* "512 B", "1.5 MiB", "118.4 GiB". */
struct format_text format_bytes(uint64_t bytes);
/* The same with a sign where it is negative: "-1.5 MiB". */
struct format_text format_signed_bytes(int64_t bytes);
/* "54.6 GB/s": powers of ten, as links are rated. */
struct format_text format_rate(uint64_t bytes_per_s);
/* "1,204,331" */
struct format_text format_count(uint64_t n);
/* A length of time: "812 ns", "3.2 ms", "14.2 s", "3 min 12 s", "2 h 5 min". */
struct format_text format_duration(uint64_t ns);
/* A moment, since the start: "0:00.412", "2:41", "1:02:41". */
struct format_text format_moment(uint64_t ns);
/* "85 %", "0.3 %"; of 0 is "0 %". */
struct format_text format_share(uint64_t part, uint64_t of);
/* Wall-clock time as ISO 8601 in UTC, from CLOCK_REALTIME nanoseconds. */
struct format_text format_utc(uint64_t realtime_ns);

/* "GPU-7a0f3c21-...", as nvidia-smi has it. False when uuid is none. */
#define FORMAT_UUID_BYTES 41u
bool format_uuid(char text[FORMAT_UUID_BYTES], struct vt_text uuid);

/* A version of Python, "3.12.1" or "3.13.0rc2", from PY_VERSION_HEX. */
struct format_text format_python(uint64_t version);

/* Length of the valid UTF-8 character at the start of the bytes; 0 when there is none. Control
 * characters are valid. */
size_t format_utf8_length(const char *data, size_t bytes);

/* Prints recorded text: control characters and what is not UTF-8 become '?', so that it cannot
 * drive a terminal. */
void format_put_text(FILE *out, struct vt_text text);

/* Arguments, each ended by a zero byte, with spaces between; cut to about `width` columns, 0:
 * whole. */
void format_put_arguments(FILE *out, struct vt_text arguments, size_t width);

/* A file name to be pasted into a shell: quoted when it has to be. */
void format_put_file(FILE *out, const char *name);

#endif

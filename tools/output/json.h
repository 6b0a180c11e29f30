/* Writes JSON to a stream: commas, indentation and escaping. Recorded text that is not UTF-8 keeps
 * its shape with U+FFFD. */
#ifndef VRAMTRACE_OUTPUT_JSON_H
#define VRAMTRACE_OUTPUT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "vramtrace/format.h"

struct stack_table;

struct json {
	FILE *out;
	bool lines;   /* everything on one line */
	bool first;   /* nothing in the open bracket yet */
	bool in_html; /* inside of a script element, which no text may end */
	unsigned int depth;
	struct stack_table *stacks; /* borrowed; NULL: stacks are written in whole */
};

void json_init(struct json *json, FILE *out, bool lines);

/* In all of these, key is NULL inside arrays and at the top. */
void json_open(struct json *json, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *json, char bracket);		  /* '}' or ']' */
void json_number(struct json *json, const char *key, uint64_t value);
void json_signed(struct json *json, const char *key, int64_t value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
void json_text(struct json *json, const char *key, struct vt_text value);
void json_bytes(struct json *json, const char *key, struct vt_text value); /* as hex digits */
void json_string(struct json *json, const char *key, const char *value);   /* NULL gives null */
void json_hex(struct json *json, const char *key, uint64_t value); /* "0x7f00", as a string */

/* The number when known, else null. */
void json_number_or_null(struct json *json, const char *key, bool known, uint64_t value);
void json_signed_or_null(struct json *json, const char *key, bool known, int64_t value);

/* The text, null when it is empty. */
void json_text_or_null(struct json *json, const char *key, struct vt_text value);

/* Ends the document with a newline. */
void json_end(struct json *json);

#endif

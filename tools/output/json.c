#include "output/json.h"

#include <inttypes.h>
#include <string.h>

#include "output/format.h"

void json_init(struct json *json, FILE *out, bool lines)
{
	*json = (struct json){.out = out, .lines = lines, .first = true};
}

static void put_newline(const struct json *json)
{
	if (json->lines)
		return;
	fputc('\n', json->out);
	for (unsigned int i = 0; i < json->depth; i++)
		fputc(' ', json->out);
}

/* Characters that HTML, or JavaScript, takes for more than text; those of the latter are U+2028 and
 * U+2029. */
static bool is_for_html(const char *data, size_t length)
{
	return (length == 1 && strchr("<>&", *data)) ||
	       (length == 3 && !memcmp(data, "\xe2\x80", 2) &&
		       ((unsigned char)data[2] & 0xfe) == 0xa8);
}

static unsigned int code_of(const char *data, size_t length)
{
	return length == 1 ? (unsigned char)*data : 0x2000 + ((unsigned char)data[2] & 0x3fu);
}

static void put_escaped(const struct json *json, const char *data, size_t bytes)
{
	FILE *out = json->out;

	fputc('"', out);
	while (bytes) {
		size_t length = format_utf8_length(data, bytes);
		unsigned char c = (unsigned char)*data;

		if (!length)
			fputs("\\ufffd", out);
		else if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\u%04x", c);
		else if (json->in_html && is_for_html(data, length))
			fprintf(out, "\\u%04x", code_of(data, length));
		else
			fwrite(data, 1, length, out);
		data += length ? length : 1;
		bytes -= length ? length : 1;
	}
	fputc('"', out);
}

/* What stands before a value. */
static void begin(struct json *json, const char *key)
{
	if (!json->first)
		fputs(json->lines ? ", " : ",", json->out);
	if (json->depth)
		put_newline(json);
	json->first = false;
	if (!key)
		return;
	put_escaped(json, key, strlen(key));
	fputs(": ", json->out);
}

void json_open(struct json *json, const char *key, char bracket)
{
	begin(json, key);
	fputc(bracket, json->out);
	json->first = true;
	json->depth++;
}

void json_close(struct json *json, char bracket)
{
	json->depth--;
	if (!json->first)
		put_newline(json);
	fputc(bracket, json->out);
	json->first = false;
}

void json_number(struct json *json, const char *key, uint64_t value)
{
	begin(json, key);
	fprintf(json->out, "%" PRIu64, value);
}

void json_signed(struct json *json, const char *key, int64_t value)
{
	begin(json, key);
	fprintf(json->out, "%" PRId64, value);
}

void json_bool(struct json *json, const char *key, bool value)
{
	begin(json, key);
	fputs(value ? "true" : "false", json->out);
}

void json_null(struct json *json, const char *key)
{
	begin(json, key);
	fputs("null", json->out);
}

void json_text(struct json *json, const char *key, struct vt_text value)
{
	begin(json, key);
	put_escaped(json, value.data, value.bytes);
}

void json_bytes(struct json *json, const char *key, struct vt_text value)
{
	begin(json, key);
	fputc('"', json->out);
	for (size_t i = 0; i < value.bytes; i++)
		fprintf(json->out, "%02x", (unsigned char)value.data[i]);
	fputc('"', json->out);
}

void json_string(struct json *json, const char *key, const char *value)
{
	if (value)
		json_text(json, key, (struct vt_text){value, strlen(value)});
	else
		json_null(json, key);
}

void json_hex(struct json *json, const char *key, uint64_t value)
{
	begin(json, key);
	fprintf(json->out, "\"0x%" PRIx64 "\"", value);
}

void json_number_or_null(struct json *json, const char *key, bool known, uint64_t value)
{
	if (known)
		json_number(json, key, value);
	else
		json_null(json, key);
}

void json_signed_or_null(struct json *json, const char *key, bool known, int64_t value)
{
	if (known)
		json_signed(json, key, value);
	else
		json_null(json, key);
}

void json_text_or_null(struct json *json, const char *key, struct vt_text value)
{
	if (value.bytes)
		json_text(json, key, value);
	else
		json_null(json, key);
}

void json_end(struct json *json)
{
	fputc('\n', json->out);
	json->first = true;
}

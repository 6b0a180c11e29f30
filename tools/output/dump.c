#include "output/dump.h"

#include <inttypes.h>
#include <string.h>

#include "output/format.h"
#include "output/json.h"
#include "output/result.h"
#include "trace/schema.h"

/* Any field's value. */
struct value {
	enum vt_field_type type;
	uint64_t number; /* TIME, NUMBER, ADDR, and SIGNED as its bits */
	struct vt_text text;
	struct vt_list list;
};

static struct value value_of(const struct vt_record *record, const struct vt_field *field)
{
	const char *at = (const char *)record + VT_RECORD_BASE + field->offset;
	struct value value = {.type = field->type};

	if (field->type == VT_FIELD_TEXT)
		memcpy(&value.text, at, sizeof(value.text));
	else if (field->type == VT_FIELD_LIST)
		memcpy(&value.list, at, sizeof(value.list));
	else
		memcpy(&value.number, at, sizeof(value.number));
	return value;
}

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* What a record says was done; NULL when its number is not known. */
static const char *action_of(enum vt_record_kind kind, uint64_t number)
{
	static const char *const contexts[] = {[VT_CONTEXT_CREATE] = "create",
		[VT_CONTEXT_DESTROY] = "destroy",
		[VT_CONTEXT_RETAIN] = "retain",
		[VT_CONTEXT_RELEASE] = "release",
		[VT_CONTEXT_RESET] = "reset"};
	static const char *const pools[] = {[VT_POOL_CREATE] = "create",
		[VT_POOL_DESTROY] = "destroy",
		[VT_POOL_TRIM] = "trim",
		[VT_POOL_SET_CURRENT] = "set_current",
		[VT_POOL_IMPORT] = "import",
		[VT_POOL_THRESHOLD] = "threshold"};
	static const char *const graphs[] = {[VT_GRAPH_INSTANTIATE] = "instantiate",
		[VT_GRAPH_LAUNCH] = "launch",
		[VT_GRAPH_EXEC_DESTROY] = "exec_destroy",
		[VT_GRAPH_TRIM] = "trim",
		[VT_GRAPH_DESTROY] = "destroy",
		[VT_GRAPH_CAPTURED] = "captured"};

	static const char *const events[] = {[VT_EVENT_WAIT] = "wait",
		[VT_EVENT_QUERIED] = "queried",
		[VT_EVENT_SYNCHRONISED] = "synchronised",
		[VT_EVENT_DESTROYED] = "destroyed"};
	static const char *const graph_pools[] = {[VT_GRAPH_POOL_BEGIN] = "begin",
		[VT_GRAPH_POOL_END] = "end",
		[VT_GRAPH_POOL_NAMED] = "named",
		[VT_GRAPH_POOL_RESET] = "reset",
		[VT_GRAPH_POOL_DESTROYED] = "destroyed",
		[VT_GRAPH_POOL_USER_MADE] = "user_made",
		[VT_GRAPH_POOL_USER_GONE] = "user_gone"};

	switch (kind) {
	case VT_REC_phase:
		return number == VT_PHASE_BEGIN ? "begin" : number == VT_PHASE_END ? "end" : NULL;
	case VT_REC_stream_event:
		return number < LENGTH(events) ? events[number] : NULL;
	case VT_REC_graph_pool:
		return number < LENGTH(graph_pools) ? graph_pools[number] : NULL;
	case VT_REC_context:
		return number < LENGTH(contexts) ? contexts[number] : NULL;
	case VT_REC_pool:
		return number < LENGTH(pools) ? pools[number] : NULL;
	case VT_REC_graph:
		return number < LENGTH(graphs) ? graphs[number] : NULL;
	case VT_REC_migrate:
		return number && number < MODEL_N_MIGRATIONS ? model_migration_name(number) : NULL;
	default:
		return NULL;
	}
}

/* What a number stands for, by the name of its field; NULL when it is just a number. */
static const char *meaning_of(const struct model *model, const struct vt_record *record,
	const char *field, uint64_t number)
{
	static const char *const told[] = {[VT_TOLD_API] = "api",
		[VT_TOLD_NVTX] = "nvtx",
		[VT_TOLD_NVTX_RANGE] = "nvtx_range"};
	static const char *const sharing[] = {[VT_SHARING_OWN] = "own",
		[VT_SHARING_IMPORTED] = "imported",
		[VT_SHARING_MULTICAST] = "multicast"};

	if (!strcmp(field, "api_id"))
		return model_api_name(model, number);
	if (!strcmp(field, "caller_api"))
		return number ? model_api_name(model, number) : NULL;
	if (!strcmp(field, "kind"))
		return number < VT_N_KINDS ? model_kind_name(number) : NULL;
	if (!strcmp(field, "direction"))
		return number < VT_N_DIRECTIONS ? model_direction_name(number) : NULL;
	if (!strcmp(field, "result"))
		return number ? result_text(number) : NULL;
	if (!strcmp(field, "cause"))
		return number && number < VT_N_CAUSES ? model_cause_name(number) : NULL;
	if (!strcmp(field, "told"))
		return number < LENGTH(told) ? told[number] : NULL;
	if (!strcmp(field, "sharing"))
		return number < LENGTH(sharing) ? sharing[number] : NULL;
	return !strcmp(field, "action") ? action_of(record->kind, number) : NULL;
}

static bool is_text(struct vt_text text)
{
	for (size_t at = 0; at < text.bytes;) {
		size_t length = format_utf8_length(text.data + at, text.bytes - at);

		if (!length)
			return false;
		at += length;
	}
	return true;
}

static bool is_binary(const char *field)
{
	return !strcmp(field, "uuid") || !strcmp(field, "build_id") || !strcmp(field, "lines");
}

static void put_hex(FILE *out, struct vt_text text)
{
	for (size_t i = 0; i < text.bytes; i++)
		fprintf(out, "%02x", (unsigned char)text.data[i]);
}

static void put_quoted(FILE *out, struct vt_text text)
{
	fputc('"', out);
	for (size_t i = 0; i < text.bytes; i++) {
		unsigned char c = (unsigned char)text.data[i];

		bool c1 = c == 0xc2 && i + 1 < text.bytes && (unsigned char)text.data[i + 1] < 0xa0;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c1)
			fprintf(out, "\\u%04x", (unsigned char)text.data[++i]);
		else if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\x%02x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static bool shown_in_hex(const struct vt_field *field)
{
	static const char *const names[] = {"stream", "pool", "handle", "graph", "exec",
		"context_id", "bias", "start", "end", "event", "caller", "object"};

	if (field->type == VT_FIELD_ADDR)
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(field->name, names[i]))
			return true;
	return false;
}

static void put_value(FILE *out, const struct model *model, const struct vt_record *record,
	const struct vt_field *field)
{
	struct value value = value_of(record, field);
	const char *meaning;

	switch (value.type) {
	case VT_FIELD_TEXT:
		if (is_binary(field->name) || !is_text(value.text))
			put_hex(out, value.text);
		else
			put_quoted(out, value.text);
		return;
	case VT_FIELD_LIST:
		fputc('[', out);
		for (size_t i = 0; i < value.list.n_items; i++)
			fprintf(out, "%s0x%" PRIx64, i ? " " : "", value.list.items[i]);
		fputc(']', out);
		return;
	case VT_FIELD_SIGNED:
		fprintf(out, "%" PRId64, (int64_t)value.number);
		return;
	default:
		break;
	}
	meaning = meaning_of(model, record, field->name, value.number);
	if (meaning)
		format_put_text(out, (struct vt_text){meaning, strlen(meaning)});
	else
		fprintf(out, shown_in_hex(field) && value.number ? "0x%" PRIx64 : "%" PRIu64,
			value.number);
}

void dump_text(FILE *out, const struct model *model, const struct vt_record *record)
{
	const struct vt_schema *schema = vt_schema_get(record->kind);

	fprintf(out, "%" PRIu64 ".%09" PRIu64 " %" PRIu32 " %s", record->time_ns / 1000000000u,
		record->time_ns % 1000000000u, record->tid, schema->name);
	for (size_t i = 0; i < schema->n_fields; i++) {
		if (schema->fields[i].type == VT_FIELD_TIME)
			continue;
		fprintf(out, " %s=", schema->fields[i].name);
		put_value(out, model, record, &schema->fields[i]);
	}
	fputc('\n', out);
}

static void field_json(struct json *json, const struct model *model, const struct vt_record *record,
	const struct vt_field *field)
{
	struct value value = value_of(record, field);
	const char *meaning;
	char name[64];

	switch (value.type) {
	case VT_FIELD_TEXT:
		if (is_binary(field->name))
			json_bytes(json, field->name, value.text);
		else
			json_text(json, field->name, value.text);
		return;
	case VT_FIELD_LIST:
		json_open(json, field->name, '[');
		for (size_t i = 0; i < value.list.n_items; i++)
			json_hex(json, NULL, value.list.items[i]);
		json_close(json, ']');
		return;
	case VT_FIELD_SIGNED:
		json_signed(json, field->name, (int64_t)value.number);
		return;
	default:
		break;
	}
	if (shown_in_hex(field))
		json_hex(json, field->name, value.number);
	else
		json_number(json, field->name, value.number);
	meaning = meaning_of(model, record, field->name, value.number);
	if (!meaning)
		return;
	snprintf(name, sizeof(name), "%s_name", field->name);
	json_string(json, name, meaning);
}

void dump_json(FILE *out, const struct model *model, const struct vt_record *record)
{
	const struct vt_schema *schema = vt_schema_get(record->kind);
	struct json json;

	json_init(&json, out, true);
	json_open(&json, NULL, '{');
	json_string(&json, "record", schema->name);
	json_number(&json, "tid", record->tid);
	if (schema->fields[0].type != VT_FIELD_TIME)
		json_number(&json, "near_ns", record->time_ns);
	for (size_t i = 0; i < schema->n_fields; i++)
		field_json(&json, model, record, &schema->fields[i]);
	json_close(&json, '}');
	json_end(&json);
}

#include "output/export_events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/memory.h"
#include "output/blocks_text.h"
#include "output/csv.h"
#include "output/export_stack.h"
#include "output/intern.h"
#include "output/json.h"

struct export_table {
	FILE *out;
	bool is_json;
	struct json json;
	const struct export_trace *trace;
	size_t n_traces;
	struct intern_table stacks; /* of the trace, that have been looked up */
	char **labels;		    /* of CSV: "owner,where" of each */
	size_t labels_room;
	struct export_name name;
};

struct export_table *export_table_new(FILE *out, bool json)
{
	struct export_table *table = memory_new(1, sizeof(*table));

	table->out = out;
	table->is_json = json;
	if (!json)
		fputs("time_ns,pid,rank,tid,device,layer,event,kind,address,bytes,call,owner,where,"
		      "stack_id\n",
			out);
	return table;
}

static void forget(struct export_table *table)
{
	for (uint64_t i = 0; table->labels && i < table->stacks.n_entries; i++)
		free(table->labels[i]);
	free(table->labels);
	table->labels = NULL;
	table->labels_room = 0;
	intern_release(&table->stacks);
}

void export_table_free(struct export_table *table)
{
	forget(table);
	export_name_release(&table->name);
	free(table);
}

static void put_trace(struct export_table *table)
{
	const struct trace_facts *facts = table->trace->facts;
	const struct model *model = table->trace->source.model;
	const struct show *show = &table->trace->source.show;
	struct json *json = &table->json;

	json_init(json, table->out, true);
	json_open(json, NULL, '{');
	json_string(json, "type", "trace");
	json_string(json, "schema", "vramtrace.events");
	json_number(json, "version", 1);
	json_number(json, "trace", table->n_traces);
	json_string(json, "file", show_path(show, facts->file));
	json_number(json, "pid", facts->pid);
	json_signed_or_null(json, "rank", facts->rank >= 0, facts->rank);
	json_text_or_null(json, "exe", show_path_text(show, facts->exe));
	if (show_is_open(show))
		json_text_or_null(json, "host", facts->host);
	else
		json_null(json, "host");
	json_number(json, "start_realtime_ns", facts->start_realtime_ns);
	json_open(json, "devices", '[');
	for (size_t i = 0; i < model->n_devices; i++) {
		json_open(json, NULL, '{');
		json_signed(json, "ordinal", model->devices[i]->ordinal);
		json_text_or_null(json, "name", model->devices[i]->name);
		json_number_or_null(json, "total_bytes", model->devices[i]->total_bytes != 0,
			model->devices[i]->total_bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
	json_end(json);
}

void export_table_set_trace(struct export_table *table, const struct export_trace *trace)
{
	forget(table);
	table->trace = trace;
	table->n_traces++;
	if (table->is_json)
		put_trace(table);
}

/* "owner,where" of a stack, looked up once. */
static const char *label_of(struct export_table *table, uint64_t stack_id)
{
	const struct stack_source *source = &table->trace->source;
	char where[400], *label;
	const char *owner;
	bool is_new;
	uint64_t number = intern_number(&table->stacks, stack_id, &is_new);
	size_t bytes;
	FILE *out;

	if (!is_new)
		return table->labels[number - 1];
	owner = stack_owner(source, stack_id);
	*where = 0;
	if (owner)
		stack_label(source, stack_id, where, sizeof(where));
	out = open_memstream(&label, &bytes);
	if (!out)
		memory_exhausted();
	csv_put(out, export_name_set(&table->name, owner));
	fputc(',', out);
	csv_put(out, export_name_set(&table->name, where));
	if (fclose(out))
		memory_exhausted();
	table->labels =
		memory_grow(table->labels, number - 1, &table->labels_room, sizeof(*table->labels));
	return table->labels[number - 1] = label;
}

static const char *layer_of(struct export_table *table, uint64_t allocator_id)
{
	char text[100] = "driver";

	if (allocator_id)
		blocks_name(table->trace->source.model, allocator_id, text, sizeof(text));
	return export_name_set(&table->name, text);
}

static void put_row(struct export_table *table, const struct export_event *event)
{
	const struct trace_facts *facts = table->trace->facts;
	const char *call =
		event->api_id ? model_api_name(table->trace->source.model, event->api_id) : NULL;
	FILE *out = table->out;

	fprintf(out, "%" PRIu64 ",%" PRIu64 ",", event->time_ns, facts->pid);
	if (facts->rank >= 0)
		fprintf(out, "%" PRId64, facts->rank);
	fprintf(out, ",%u,", event->tid);
	if (event->device >= 0)
		fprintf(out, "%d", event->device);
	else if (event->device == MODEL_DEVICE_HOST)
		fputs("host", out);
	fputc(',', out);
	csv_put(out, layer_of(table, event->allocator_id));
	fprintf(out, ",%s,%s,", export_event_name(event->kind),
		model_kind_name(event->memory_kind));
	if (event->addressed)
		fprintf(out, "0x%" PRIx64, event->address);
	fprintf(out, ",%" PRIu64 ",", event->bytes);
	csv_put(out, export_name_set(&table->name, call));
	fprintf(out, ",%s,", label_of(table, event->stack_id));
	if (event->stack_id)
		fprintf(out, "%" PRIu64, event->stack_id);
	fputc('\n', out);
}

/* A stack is written in whole before the first event that names it. */
static void put_stack(struct export_table *table, uint64_t stack_id)
{
	bool is_new;

	if (!stack_id)
		return;
	intern_number(&table->stacks, stack_id, &is_new);
	if (!is_new)
		return;
	json_init(&table->json, table->out, true);
	json_open(&table->json, NULL, '{');
	json_string(&table->json, "type", "stack");
	json_number(&table->json, "trace", table->n_traces);
	json_number(&table->json, "stack_id", stack_id);
	stack_json(&table->json, &table->trace->source, stack_id);
	json_close(&table->json, '}');
	json_end(&table->json);
}

static void put_object(struct export_table *table, const struct export_event *event)
{
	const struct model *model = table->trace->source.model;
	struct json *json = &table->json;

	put_stack(table, event->stack_id);
	json_init(json, table->out, true);
	json_open(json, NULL, '{');
	json_string(json, "type", "event");
	json_number(json, "trace", table->n_traces);
	json_number(json, "time_ns", event->time_ns);
	json_number(json, "tid", event->tid);
	if (event->device == MODEL_DEVICE_HOST)
		json_string(json, "device", "host");
	else
		json_number_or_null(json, "device", event->device >= 0, (uint64_t)event->device);
	json_string(json, "layer", layer_of(table, event->allocator_id));
	json_string(json, "event", export_event_name(event->kind));
	json_string(json, "kind", model_kind_name(event->memory_kind));
	if (event->addressed)
		json_hex(json, "address", event->address);
	else
		json_null(json, "address");
	json_number(json, "bytes", event->bytes);
	json_string(json, "call", event->api_id ? model_api_name(model, event->api_id) : NULL);
	json_number_or_null(json, "stack_id", event->stack_id != 0, event->stack_id);
	json_close(json, '}');
	json_end(json);
}

void export_table_put(struct export_table *table, const struct export_event *event)
{
	if (table->is_json)
		put_object(table, event);
	else
		put_row(table, event);
}

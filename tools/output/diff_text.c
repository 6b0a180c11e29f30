#include "output/diff_text.h"

#include <inttypes.h>
#include <string.h>

#include "model/memory.h"
#include "output/blocks_text.h"
#include "output/json_blocks.h"
#include "output/line.h"
#include "output/sites_text.h"

#define OWNER_COLUMNS 20u

char *diff_key(void *user, const struct site_row *row)
{
	const struct report_trace *trace = user;
	struct stack_source source = report_stacks(trace);
	char name[100] = "", *key = NULL;
	size_t bytes;
	FILE *out = open_memstream(&key, &bytes);

	if (!out)
		memory_exhausted();
	if (row->allocator_id)
		blocks_name(source.model, row->allocator_id, name, sizeof(name));
	fprintf(out, "%d %d %" PRIu32 " %s\n", (int)row->level, row->device, row->kind, name);
	if (row->level != SITE_IDLE)
		stack_put_key(out, &source, row->stack_id);
	if (fclose(out))
		memory_exhausted();
	return key;
}

const char *diff_owner(void *user, const struct site_row *row)
{
	struct stack_source source = report_stacks(user);

	return row->level == SITE_IDLE ? blocks_idle_owner(source.model, row->allocator_id)
				       : stack_owner(&source, row->stack_id);
}

static struct format_text change(uint64_t from, uint64_t to)
{
	struct format_text text;

	snprintf(text.text, sizeof(text.text), "%c%.30s", to < from ? '-' : '+',
		format_bytes(to < from ? from - to : to - from).text);
	return text;
}

static void put_change(const struct style *style, const struct diff_row *row)
{
	style_switch(style, STYLE_HEADING);
	fprintf(style->out, "%12s", change(row->bytes[0], row->bytes[1]).text);
	style_switch(style, STYLE_PLAIN);
}

/* "from 1.0 MiB in 1 block to 3.0 MiB in 3" */
static void put_both(const struct style *style, const struct diff_row *row)
{
	fprintf(style->out, "from %s in %s to %s in %s, on %s", format_bytes(row->bytes[0]).text,
		format_count(row->counts[0]).text, format_bytes(row->bytes[1]).text,
		format_count(row->counts[1]).text, report_device_name(row->device).text);
}

static uint64_t tracked_of(const struct view *view, int ordinal)
{
	for (size_t i = 0; i < view->n_devices; i++)
		if (view->devices[i].ordinal == ordinal)
			return view->devices[i].tracked_bytes;
	return 0;
}

static void put_moment(const struct style *style, const struct diff_shown *shown)
{
	const char *file = shown->trace->overview->facts.file;

	format_put_file(style->out, show_path(&shown->trace->show, file));
	fprintf(style->out, " at %s", format_moment(shown->view->time_ns).text);
	if (strcmp(shown->view->at, "time") != 0)
		fprintf(style->out, " (%s)", shown->view->at);
}

static void put_owners(const struct style *style, const struct diff *diff)
{
	style_put(style, STYLE_HEADING, "BY OWNER");
	fputc('\n', style->out);
	for (size_t i = 0; i < diff->owners.n_items; i++) {
		const struct diff_row *row = &diff->owners.items[i];

		put_change(style, row);
		fputs("  ", style->out);
		style_put_cut(style, row->owner ? row->owner : "(no stack recorded)", OWNER_COLUMNS,
			true);
		fputs("  ", style->out);
		put_both(style, row);
		fputc('\n', style->out);
	}
	fputc('\n', style->out);
}

/* The side that the stack of a row is shown of: where it is now, else where it was. */
static size_t side_of(const struct diff_row *row)
{
	return row->sites[1] ? 1 : 0;
}

static void put_site(
	const struct style *style, const struct diff_row *row, const struct diff_shown shown[2])
{
	size_t side = side_of(row);
	struct stack_source source = report_stacks(shown[side].trace);

	put_change(style, row);
	fputs("  ", style->out);
	put_both(style, row);
	fprintf(style->out, ", %s", model_kind_name(row->sites[side]->kind));
	if (row->owner) {
		fputs(", by ", style->out);
		format_put_text(style->out, (struct vt_text){row->owner, strlen(row->owner)});
	}
	fputc('\n', style->out);
	sites_put_stack(style, &source, row->sites[side]);
}

void diff_text(const struct style *style, const struct diff *diff, const struct diff_shown shown[2])
{
	fputs("from ", style->out);
	put_moment(style, &shown[0]);
	fputs("\nto   ", style->out);
	put_moment(style, &shown[1]);
	fputs("\n\n", style->out);
	for (size_t i = 0; i < shown[1].view->n_devices; i++) {
		const struct view_device *device = &shown[1].view->devices[i];
		uint64_t before = tracked_of(shown[0].view, device->ordinal);

		fprintf(style->out, "%s: from %s to %s held, %s\n",
			report_device_name(device->ordinal).text, format_bytes(before).text,
			format_bytes(device->tracked_bytes).text,
			change(before, device->tracked_bytes).text);
	}
	fputc('\n', style->out);
	if (!diff->sites.n_items && !diff->sites.n_left_out) {
		fputs("Nothing became more or less.\n", style->out);
		return;
	}
	put_owners(style, diff);
	style_put(style, STYLE_HEADING, "BY CALL STACK");
	fputs("\n\n", style->out);
	for (size_t i = 0; i < diff->sites.n_items; i++)
		put_site(style, &diff->sites.items[i], shown);
	if (diff->sites.n_left_out)
		fprintf(style->out, "and %s more (--limit)\n",
			format_count(diff->sites.n_left_out).text);
}

static void put_numbers(struct json *json, const struct diff_row *row)
{
	json_number_or_null(json, "device", row->device >= 0, (uint64_t)row->device);
	json_number(json, "from_bytes", row->bytes[0]);
	json_number(json, "to_bytes", row->bytes[1]);
	json_signed(json, "growth_bytes", (int64_t)(row->bytes[1] - row->bytes[0]));
	json_number(json, "from_count", row->counts[0]);
	json_number(json, "to_count", row->counts[1]);
}

static void put_json_moment(struct json *json, const char *key, const struct diff_shown *shown)
{
	const struct trace_facts *facts = &shown->trace->overview->facts;

	json_open(json, key, '{');
	json_string(json, "file", show_path(&shown->trace->show, facts->file));
	json_number(json, "pid", facts->pid);
	json_string(json, "at", shown->view->at);
	json_number(json, "time_ns", shown->view->time_ns);
	json_close(json, '}');
}

static void put_json_devices(struct json *json, const struct diff_shown shown[2])
{
	json_open(json, "devices", '[');
	for (size_t i = 0; i < shown[1].view->n_devices; i++) {
		const struct view_device *device = &shown[1].view->devices[i];

		json_open(json, NULL, '{');
		json_number_or_null(
			json, "ordinal", device->ordinal >= 0, (uint64_t)device->ordinal);
		json_number(json, "from_tracked_bytes", tracked_of(shown[0].view, device->ordinal));
		json_number(json, "to_tracked_bytes", device->tracked_bytes);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void diff_json(FILE *out, const struct diff *diff, const struct diff_shown shown[2])
{
	struct json json;

	json_init(&json, out, false);
	json_open(&json, NULL, '{');
	json_string(&json, "schema", "vramtrace.diff");
	json_number(&json, "version", 1);
	put_json_moment(&json, "from", &shown[0]);
	put_json_moment(&json, "to", &shown[1]);
	put_json_devices(&json, shown);
	json_open(&json, "owners", '[');
	for (size_t i = 0; i < diff->owners.n_items; i++) {
		json_open(&json, NULL, '{');
		put_numbers(&json, &diff->owners.items[i]);
		json_string(&json, "owner", diff->owners.items[i].owner);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_open(&json, "sites", '[');
	for (size_t i = 0; i < diff->sites.n_items; i++) {
		const struct diff_row *row = &diff->sites.items[i];
		struct stack_source source = report_stacks(shown[side_of(row)].trace);
		const struct site_row *site = row->sites[side_of(row)];

		json_open(&json, NULL, '{');
		put_numbers(&json, row);
		json_string(&json, "kind", model_kind_name(site->kind));
		json_site_level(&json, source.model, site);
		json_site_stack(&json, &source, site);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	json_close(&json, '}');
	json_end(&json);
}

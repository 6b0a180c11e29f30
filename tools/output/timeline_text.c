#include "output/timeline_text.h"

#include <inttypes.h>

#include "output/json_phases.h"
#include "output/report.h"

#define ROWS	12u
#define MARGIN	12u /* for the scale */
#define EIGHTHS 8u  /* a block character is drawn in this many steps */

size_t timeline_columns(const struct style *style)
{
	return style->width - MARGIN - 2;
}

/* A cell that is filled to `eighths` of 8. */
static const char *bar(const struct style *style, uint64_t eighths)
{
	static const char *const blocks[] = {" ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585",
		"\u2586", "\u2587", "\u2588"};

	if (style->ascii)
		return eighths >= EIGHTHS / 2 ? "#" : eighths ? "." : " ";
	return blocks[eighths];
}

/* Height of value in eighths of a cell, of ROWS cells that stand for top. Something is never shown
 * as nothing. */
static uint64_t height_of(uint64_t value, uint64_t top)
{
	uint64_t height = top ? (uint64_t)((double)value / (double)top * ROWS * EIGHTHS + 0.5) : 0;

	if (height > ROWS * EIGHTHS)
		height = ROWS * EIGHTHS;
	return value && !height ? 1 : height;
}

/* Where in the row, counted from the bottom, a figure of a sample stands; false when elsewhere. */
static bool marks(const struct timeline_column *column, uint64_t bytes, uint64_t top, uint64_t row)
{
	uint64_t height = height_of(bytes, top);

	return column->used_known && height && (height - 1) / EIGHTHS == row;
}

/* All that is accounted for at the sample: what is in use beyond it is not explained. */
static uint64_t explained_bytes(const struct timeline_column *column)
{
	int64_t explained = (int64_t)(column->used_bytes - (uint64_t)column->unexplained_bytes);

	return explained > 0 ? (uint64_t)explained : 0;
}

static void draw_row(const struct style *style, const struct timeline *timeline,
	const struct timeline_device *device, uint64_t top, uint64_t row)
{
	if (row == ROWS - 1 || row == ROWS / 2 - 1)
		fprintf(style->out, "%10s ", format_bytes(row == ROWS - 1 ? top : top / 2).text);
	else
		fprintf(style->out, "%10s ", row ? "" : "0 B");
	fputs(style->ascii ? "|" : "\u2502", style->out);
	for (size_t i = 0; i < timeline->n_columns; i++) {
		const struct timeline_column *column = &device->columns[i];
		uint64_t height = height_of(column->tracked_bytes, top), below = row * EIGHTHS;
		uint64_t eighths = height <= below ? 0 : height - below;

		if (!eighths && marks(column, column->used_bytes, top, row))
			style_put(style, STYLE_DIM, style->ascii ? "-" : "\u2500");
		else if (!eighths && marks(column, explained_bytes(column), top, row))
			style_put(style, STYLE_DIM, style->ascii ? ":" : "\u2508");
		else
			fputs(bar(style, eighths < EIGHTHS ? eighths : EIGHTHS), style->out);
	}
	fputc('\n', style->out);
}

static void draw_axis(const struct style *style, const struct timeline *timeline)
{
	struct format_text first = format_moment(timeline->start_ns);
	struct format_text last =
		format_moment(timeline->start_ns + timeline->column_ns * timeline->n_columns);
	int room = (int)timeline->n_columns;
	int used = fprintf(style->out, "%*s%s", (int)MARGIN, "", first.text) - (int)MARGIN;

	fprintf(style->out, "%*s\n", room > used ? room - used : 0, last.text);
}

/* Where marks fall, below the axis. */
static void draw_marks(const struct style *style, const struct timeline *timeline)
{
	const struct timeline_events *marks = &timeline->marks;
	size_t at = 0;

	if (!marks->n_items)
		return;
	fprintf(style->out, "%*s", (int)MARGIN, "");
	for (size_t i = 0; i < timeline->n_columns; i++) {
		uint64_t end = timeline->start_ns + (i + 1) * timeline->column_ns;
		size_t before = at;

		while (at < marks->n_items && marks->items[at].begin_ns < end)
			at++;
		fputs(at > before ? "^" : " ", style->out);
	}
	fputs(" marks\n", style->out);
}

static void draw(const struct style *style, const struct timeline *timeline,
	const struct timeline_device *columns, const struct model *model)
{
	const struct model_device *device = model_device_find(model, columns->ordinal);
	uint64_t top = device->peak_tracked_bytes;
	const struct timeline_column *last = &columns->columns[timeline->n_columns - 1];
	bool sampled = false;

	for (size_t i = 0; i < timeline->n_columns; i++) {
		const struct timeline_column *column = &columns->columns[i];

		sampled = sampled || column->used_known;
		if (column->used_known && column->used_bytes > top)
			top = column->used_bytes;
	}
	style_put(style, STYLE_HEADING, report_device_name(device->ordinal).text);
	fprintf(style->out, ": %s tracked memory", style->ascii ? "#" : "\u2588");
	if (sampled)
		fprintf(style->out, ", %s in use on the device, by all, %s of that explained",
			style->ascii ? "-" : "\u2500", style->ascii ? ":" : "\u2508");
	fprintf(style->out, "; peak %s at %s", format_bytes(device->peak_tracked_bytes).text,
		format_moment(device->peak_time_ns).text);
	if (device->total_bytes)
		fprintf(style->out, ", of %s", format_bytes(device->total_bytes).text);
	fputc('\n', style->out);
	for (uint64_t row = ROWS; row--;)
		draw_row(style, timeline, columns, top, row);
	draw_axis(style, timeline);
	draw_marks(style, timeline);
	if (!last->used_known)
		return;
	fprintf(style->out, "%*slast sample: %s in use = %s tracked", (int)MARGIN, "",
		format_bytes(last->used_bytes).text,
		format_bytes(device->account.tracked_bytes).text);
	fprintf(style->out, " + %s untracked + %s unexplained",
		format_signed_bytes(last->untracked_bytes).text,
		format_signed_bytes(last->unexplained_bytes).text);
	fprintf(style->out, " + %s of others\n", format_signed_bytes(last->others_bytes).text);
}

void timeline_text(
	const struct style *style, const struct timeline *timeline, const struct model *model)
{
	if (!model->hooks_active)
		report_put_inactive(style);
	for (size_t i = 0; i < timeline->n_devices; i++) {
		if (i)
			fputc('\n', style->out);
		draw(style, timeline, &timeline->devices[i], model);
	}
	if (!timeline->n_devices && model->hooks_active)
		fputs("No device memory was allocated.\n", style->out);
}

/* Kinds that have a column of their own. */
static const uint32_t shown_kinds[] = {
	VT_KIND_LINEAR, VT_KIND_ARRAY, VT_KIND_POOL, VT_KIND_VMM, VT_KIND_MANAGED, VT_KIND_GRAPH};
#define N_SHOWN (sizeof(shown_kinds) / sizeof(*shown_kinds))

/* A field that is empty when it is not known. */
static void put_known(FILE *out, bool known, uint64_t bytes)
{
	fputc(',', out);
	if (known)
		fprintf(out, "%" PRIu64, bytes);
}

static void put_host(FILE *out, const struct vt_rec_host_memory *host)
{
	put_known(out, host->known & VT_HOST_RESIDENT, host->resident_bytes);
	put_known(out, host->known & VT_HOST_LOCKED, host->locked_bytes);
	put_known(out, host->known & VT_HOST_AVAILABLE, host->available_bytes);
	put_known(out, host->known & VT_HOST_SWAP, model_swap_used(host));
	fputc('\n', out);
}

void timeline_csv(FILE *out, const struct timeline *timeline)
{
	fputs("time_ns,device,tracked_bytes", out);
	for (size_t k = 0; k < N_SHOWN; k++)
		fprintf(out, ",%s_bytes", model_kind_name(shown_kinds[k]));
	fputs(",device_used_bytes,untracked_bytes,other_processes_bytes,unexplained_bytes", out);
	fputs(",resident_bytes,locked_bytes,machine_available_bytes,machine_swap_used_bytes\n",
		out);
	for (size_t i = 0; i < timeline->n_devices; i++) {
		for (size_t c = 0; c < timeline->n_columns; c++) {
			const struct timeline_column *column = &timeline->devices[i].columns[c];

			fprintf(out, "%" PRIu64 ",", timeline->start_ns + c * timeline->column_ns);
			if (timeline->devices[i].ordinal >= 0)
				fprintf(out, "%d", timeline->devices[i].ordinal);
			fprintf(out, ",%" PRIu64, column->tracked_bytes);
			for (size_t k = 0; k < N_SHOWN; k++)
				fprintf(out, ",%" PRIu64, column->kind_bytes[shown_kinds[k]]);
			if (column->used_known)
				fprintf(out, ",%" PRIu64 ",%" PRId64 ",%" PRId64 ",%" PRId64,
					column->used_bytes, column->untracked_bytes,
					column->others_bytes, column->unexplained_bytes);
			else
				fputs(",,,,", out);
			put_host(out, &timeline->host[c]);
		}
	}
}

static void column_json(struct json *json, const struct timeline *timeline,
	const struct timeline_column *column, size_t index)
{
	json_open(json, NULL, '{');
	json_number(json, "time_ns", timeline->start_ns + index * timeline->column_ns);
	json_number(json, "tracked_bytes", column->tracked_bytes);
	json_open(json, "by_kind", '{');
	for (size_t k = 0; k < N_SHOWN; k++)
		json_number(
			json, model_kind_name(shown_kinds[k]), column->kind_bytes[shown_kinds[k]]);
	json_close(json, '}');
	json_number_or_null(json, "device_used_bytes", column->used_known, column->used_bytes);
	json_signed_or_null(json, "untracked_bytes", column->used_known, column->untracked_bytes);
	json_signed_or_null(
		json, "other_processes_bytes", column->used_known, column->others_bytes);
	json_signed_or_null(
		json, "unexplained_bytes", column->used_known, column->unexplained_bytes);
	json_close(json, '}');
}

static void host_json(struct json *json, const struct timeline *timeline)
{
	json_open(json, "host", '[');
	for (size_t c = 0; c < timeline->n_columns; c++) {
		json_open(json, NULL, '{');
		json_number(json, "time_ns", timeline->start_ns + c * timeline->column_ns);
		json_host_sample(json, &timeline->host[c]);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void events_json(
	struct json *json, const char *key, const struct timeline_events *events, bool phases)
{
	char name[520];

	json_open(json, key, '[');
	for (size_t i = 0; i < events->n_items; i++) {
		const struct timeline_event *event = &events->items[i];

		json_open(json, NULL, '{');
		json_string(json, "name", model_place_text(&event->place, name, sizeof(name)));
		json_number(json, "thread", event->thread_id);
		json_number(json, phases ? "begin_ns" : "time_ns", event->begin_ns);
		if (phases)
			json_number_or_null(json, "end_ns", !event->is_open, event->end_ns);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void timeline_json(FILE *out, const struct timeline *timeline, const char *file)
{
	struct json json;

	json_init(&json, out, false);
	json_open(&json, NULL, '{');
	json_string(&json, "schema", "vramtrace.timeline");
	json_number(&json, "version", 1);
	json_string(&json, "file", file);
	json_number(&json, "column_ns", timeline->column_ns);
	json_open(&json, "devices", '[');
	for (size_t i = 0; i < timeline->n_devices; i++) {
		const struct timeline_device *device = &timeline->devices[i];

		json_open(&json, NULL, '{');
		json_number_or_null(
			&json, "ordinal", device->ordinal >= 0, (uint64_t)device->ordinal);
		json_open(&json, "columns", '[');
		for (size_t c = 0; c < timeline->n_columns; c++)
			column_json(&json, timeline, &device->columns[c], c);
		json_close(&json, ']');
		json_close(&json, '}');
	}
	json_close(&json, ']');
	host_json(&json, timeline);
	events_json(&json, "marks", &timeline->marks, false);
	events_json(&json, "phases", &timeline->phases, true);
	json_number(&json, "marks_left_out", timeline->marks.n_left_out);
	json_number(&json, "phases_left_out", timeline->phases.n_left_out);
	json_close(&json, '}');
	json_end(&json);
}

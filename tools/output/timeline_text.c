#include "output/timeline_text.h"

#include <inttypes.h>
#include <string.h>

#include "output/report.h"
#include "output/timeline_bands.h"

#define ROWS	12u
#define MARGIN	12u /* for the scale */
#define EIGHTHS 8u  /* a block character is drawn in this many steps */

size_t timeline_columns(const struct style *style)
{
	return style->width - MARGIN - 2;
}

/* How bands look, from the bottom to the top; the last is what is not in use. */
static const struct look {
	enum style_role role;
	const char *full; /* without colour */
	const char *ascii;
} looks[TIMELINE_N_BANDS + 1] = {
	{STYLE_BAND_1, "\u2588", "#"},
	{STYLE_BAND_2, "\u2593", "="},
	{STYLE_BAND_3, "\u2592", "+"},
	{STYLE_BAND_4, "\u259a", "o"},
	{STYLE_DIM, "\u2591", "."},
};

/* A cell that is filled to `eighths` of 8, by a band. */
static const char *bar(const struct style *style, size_t band, uint64_t eighths)
{
	static const char *const blocks[] = {" ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585",
		"\u2586", "\u2587", "\u2588"};

	if (style->ascii)
		return eighths >= EIGHTHS / 2 ? looks[band].ascii : eighths ? "." : " ";
	if (eighths == EIGHTHS && (!style->color || band == TIMELINE_N_BANDS))
		return looks[band].full;
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

/* The band that holds the middle of what is filled of a cell, which begins at `below` eighths. */
static size_t band_at(const struct timeline_bands *bands, const struct timeline_column *column,
	uint64_t top, uint64_t below, uint64_t eighths)
{
	uint64_t bytes[TIMELINE_N_BANDS + 1], sum = 0;
	size_t last = 0;

	timeline_bands_fill(bands, column, bytes);
	for (size_t i = 0; i <= TIMELINE_N_BANDS; i++) {
		if (!bytes[i])
			continue;
		last = i;
		sum += bytes[i];
		if (height_of(sum, top) > below + eighths / 2)
			break;
	}
	return last;
}

static void draw_cell(const struct style *style, const struct timeline_bands *bands,
	const struct timeline_column *column, uint64_t top, uint64_t row)
{
	uint64_t height = height_of(column->tracked_bytes, top), below = row * EIGHTHS;
	uint64_t eighths = height <= below ? 0 : height - below;
	size_t band;

	if (!eighths && marks(column, column->used_bytes, top, row)) {
		style_put(style, STYLE_DIM, style->ascii ? "-" : "\u2500");
	} else if (!eighths && marks(column, explained_bytes(column), top, row)) {
		style_put(style, STYLE_DIM, style->ascii ? ":" : "\u2508");
	} else if (!eighths) {
		fputc(' ', style->out);
	} else {
		eighths = eighths < EIGHTHS ? eighths : EIGHTHS;
		band = band_at(bands, column, top, below, eighths);
		style_put(style, looks[band].role, bar(style, band, eighths));
	}
}

static void draw_row(const struct style *style, const struct timeline *timeline,
	const struct timeline_device *device, const struct timeline_bands *bands, uint64_t top,
	uint64_t row)
{
	if (row == ROWS - 1 || row == ROWS / 2 - 1)
		fprintf(style->out, "%10s ", format_bytes(row == ROWS - 1 ? top : top / 2).text);
	else
		fprintf(style->out, "%10s ", row ? "" : "0 B");
	fputs(style->ascii ? "|" : "\u2502", style->out);
	for (size_t i = 0; i < timeline->n_columns; i++)
		draw_cell(style, bands, &device->columns[i], top, row);
	fputc('\n', style->out);
}

/* A line of marks where memory was refused, if it ever was. */
static void draw_refused(const struct style *style, const struct timeline *timeline,
	const struct timeline_device *device)
{
	uint64_t n = 0;

	for (size_t i = 0; i < timeline->n_columns; i++)
		n += device->columns[i].n_refused;
	if (!n)
		return;
	style_put(style, STYLE_WARNING, "   refused ");
	fputc(' ', style->out);
	for (size_t i = 0; i < timeline->n_columns; i++)
		if (device->columns[i].n_refused)
			style_put(style, STYLE_WARNING, style->ascii ? "^" : "\u25b2");
		else
			fputc(' ', style->out);
	fputc('\n', style->out);
}

static void put_legend(const struct style *style, const struct timeline_device *device,
	const struct timeline_bands *bands)
{
	bool first = true;

	for (size_t i = 0; i <= TIMELINE_N_BANDS; i++) {
		const char *name = timeline_band_name(bands, device, i);

		if (!name)
			continue;
		fputs(first ? ": " : ", ", style->out);
		style_put(style, looks[i].role, bar(style, i, EIGHTHS));
		fputc(' ', style->out);
		format_put_text(style->out, (struct vt_text){name, strlen(name)});
		first = false;
	}
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
	uint64_t top = timeline_top(timeline, columns, device->peak_tracked_bytes);
	const struct timeline_column *last = &columns->columns[timeline->n_columns - 1];
	struct timeline_bands bands;

	timeline_bands_make(&bands, timeline, columns);
	style_put(style, STYLE_HEADING, report_device_name(device->ordinal).text);
	put_legend(style, columns, &bands);
	if (last->used_known)
		fprintf(style->out, ", %s in use on the device, by all, %s of that explained",
			style->ascii ? "-" : "\u2500", style->ascii ? ":" : "\u2508");
	fprintf(style->out, "; peak %s at %s", format_bytes(device->peak_tracked_bytes).text,
		format_moment(device->peak_time_ns).text);
	if (device->total_bytes)
		fprintf(style->out, ", of %s", format_bytes(device->total_bytes).text);
	fputc('\n', style->out);
	for (uint64_t row = ROWS; row--;)
		draw_row(style, timeline, columns, &bands, top, row);
	draw_refused(style, timeline, columns);
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

#include "output/timeline_svg.h"

#include <inttypes.h>
#include <string.h>

#include "output/export_stack.h"
#include "output/report.h"
#include "output/timeline_bands.h"

/* In units of the picture. */
#define WIDTH  960.0
#define LEFT   90.0
#define RIGHT  20.0
#define TOP    56.0 /* of a chart, for its heading and legend */
#define HEIGHT 240.0
#define BOTTOM 44.0
#define CHART  (TOP + HEIGHT + BOTTOM)
#define PLOT   (WIDTH - LEFT - RIGHT)

#define N_TICKS 4u

/* One chart. */
struct chart {
	FILE *out;
	const struct timeline *timeline;
	const struct timeline_device *device;
	struct timeline_bands bands;
	uint64_t top_bytes;
	double y; /* of its upper edge */
};

static const char style[] =
	"<style>\n"
	"svg { background: #fff; color: #222; font: 13px system-ui, sans-serif }\n"
	"text { fill: currentColor } .quiet { opacity: .65 }\n"
	".grid { stroke: currentColor; stroke-opacity: .15 }\n"
	".b0 { fill: #3568c0 } .b1 { fill: #2f9e6e } .b2 { fill: #a0559c } .b3 { fill: #c9892b }\n"
	".b4 { fill: #9aa3ad; fill-opacity: .55 }\n"
	".used { fill: none; stroke: currentColor; stroke-dasharray: 5 3 }\n"
	".refused { fill: #d0342c }\n"
	"@media (prefers-color-scheme: dark) {\n"
	"svg { background: #16191d; color: #e4e6e8 }\n"
	".b0 { fill: #6b9cf0 } .b1 { fill: #5cc496 } .b2 { fill: #cf8bcb } .b3 { fill: #e5b05e } "
	"}\n"
	"</style>\n";

/* Text of a trace, as content or in quotes. */
static void put_text(FILE *out, const char *text)
{
	struct export_name name = {0};

	export_name_set(&name, text);
	for (const char *c = name.text; *c; c++) {
		switch (*c) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			fputc(*c, out);
			break;
		}
	}
	export_name_release(&name);
}

static double x_of(const struct chart *chart, size_t column)
{
	return LEFT + PLOT * (double)column / (double)chart->timeline->n_columns;
}

static double y_of(const struct chart *chart, uint64_t bytes)
{
	double share = chart->top_bytes ? (double)bytes / (double)chart->top_bytes : 0;

	return chart->y + TOP + HEIGHT * (1 - (share < 1 ? share : 1));
}

/* Bytes up to the upper edge of a band. */
static uint64_t edge_of(const struct chart *chart, size_t column, size_t n_bands)
{
	uint64_t bytes[TIMELINE_N_BANDS + 1], sum = 0;

	timeline_bands_fill(&chart->bands, &chart->device->columns[column], bytes);
	for (size_t i = 0; i < n_bands; i++)
		sum += bytes[i];
	return sum;
}

/* The area between a band's two edges; corners only where the level changes. */
static void put_band(const struct chart *chart, size_t band)
{
	size_t n = chart->timeline->n_columns;

	fprintf(chart->out, "<path class=\"b%zu\" d=\"M%.1f %.1f", band, x_of(chart, 0),
		y_of(chart, edge_of(chart, 0, band)));
	for (size_t i = 0; i < n; i++)
		if (!i || edge_of(chart, i, band + 1) != edge_of(chart, i - 1, band + 1))
			fprintf(chart->out, "H%.1fV%.1f", x_of(chart, i),
				y_of(chart, edge_of(chart, i, band + 1)));
	fprintf(chart->out, "H%.1f", x_of(chart, n));
	for (size_t i = n; i--;)
		if (i + 1 == n || edge_of(chart, i, band) != edge_of(chart, i + 1, band))
			fprintf(chart->out, "H%.1fV%.1f", x_of(chart, i + 1),
				y_of(chart, edge_of(chart, i, band)));
	fputs("Z\"/>\n", chart->out);
}

/* What is in use on the device, where it was sampled. */
static void put_used(const struct chart *chart)
{
	bool begun = false;
	uint64_t last = 0;

	for (size_t i = 0; i < chart->timeline->n_columns; i++) {
		const struct timeline_column *column = &chart->device->columns[i];

		if (!column->used_known || (begun && column->used_bytes == last))
			continue;
		if (begun)
			fprintf(chart->out, "H%.1fV%.1f", x_of(chart, i),
				y_of(chart, column->used_bytes));
		else
			fprintf(chart->out, "<path class=\"used\" d=\"M%.1f %.1f", x_of(chart, i),
				y_of(chart, column->used_bytes));
		begun = true;
		last = column->used_bytes;
	}
	if (begun)
		fprintf(chart->out, "H%.1f\"/>\n", LEFT + PLOT);
}

static void put_refused(const struct chart *chart)
{
	double y = chart->y + TOP + HEIGHT;

	for (size_t i = 0; i < chart->timeline->n_columns; i++) {
		uint64_t n = chart->device->columns[i].n_refused;
		double x = x_of(chart, i);

		if (n)
			fprintf(chart->out,
				"<path class=\"refused\" d=\"M%.1f %.1fl-5 9h10Z\"><title>memory "
				"was "
				"refused, %" PRIu64 " times</title></path>\n",
				x, y + 2, n);
	}
}

static void put_scales(const struct chart *chart)
{
	const struct timeline *timeline = chart->timeline;
	FILE *out = chart->out;

	for (size_t i = 0; i <= N_TICKS; i++) {
		uint64_t bytes = chart->top_bytes / N_TICKS * i;
		double y = y_of(chart, bytes), x = LEFT + PLOT * (double)i / N_TICKS;
		uint64_t time_ns = timeline->start_ns +
				   timeline->column_ns * timeline->n_columns / N_TICKS * i;

		fprintf(out,
			"<path class=\"grid\" d=\"M%.1f %.1fh%.1f\"/><text class=\"quiet\" "
			"x=\"%.1f\" "
			"y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			LEFT, y, PLOT, LEFT - 8, y + 4, format_bytes(bytes).text);
		fprintf(out,
			"<text class=\"quiet\" x=\"%.1f\" y=\"%.1f\" "
			"text-anchor=\"%s\">%s</text>\n",
			x, chart->y + TOP + HEIGHT + 26,
			!i	       ? "start"
			: i == N_TICKS ? "end"
				       : "middle",
			format_moment(time_ns).text);
	}
}

static void put_legend(const struct chart *chart)
{
	double x = LEFT, y = chart->y + TOP - 12;
	bool used = chart->device->columns[chart->timeline->n_columns - 1].used_known;

	for (size_t i = 0; i <= TIMELINE_N_BANDS; i++) {
		const char *name = timeline_band_name(&chart->bands, chart->device, i);
		char cut[28];

		if (!name)
			continue;
		snprintf(cut, sizeof(cut), "%.24s", name);
		fprintf(chart->out,
			"<rect class=\"b%zu\" x=\"%.1f\" y=\"%.1f\" width=\"11\" "
			"height=\"11\"/><text "
			"x=\"%.1f\" y=\"%.1f\">",
			i, x, y - 10, x + 16, y);
		put_text(chart->out, cut);
		fputs("</text>\n", chart->out);
		x += 40 + 7.5 * (double)strlen(cut);
	}
	if (used)
		fprintf(chart->out,
			"<path class=\"used\" d=\"M%.1f %.1fh22\"/><text x=\"%.1f\" y=\"%.1f\">in "
			"use "
			"on the device, by all</text>\n",
			x, y - 4, x + 28, y);
}

static void put_chart(struct chart *chart, const struct model *model)
{
	const struct model_device *device = model_device_find(model, chart->device->ordinal);

	timeline_bands_make(&chart->bands, chart->timeline, chart->device);
	chart->top_bytes = timeline_top(chart->timeline, chart->device, device->peak_tracked_bytes);
	fprintf(chart->out, "<text x=\"%.1f\" y=\"%.1f\" font-weight=\"bold\">%s</text>\n", LEFT,
		chart->y + 20, report_device_name(device->ordinal).text);
	fprintf(chart->out, "<text class=\"quiet\" x=\"%.1f\" y=\"%.1f\">peak %s at %s", LEFT + 60,
		chart->y + 20, format_bytes(device->peak_tracked_bytes).text,
		format_moment(device->peak_time_ns).text);
	if (device->total_bytes)
		fprintf(chart->out, ", of %s", format_bytes(device->total_bytes).text);
	fputs("</text>\n", chart->out);
	put_legend(chart);
	put_scales(chart);
	for (size_t i = 0; i <= TIMELINE_N_BANDS; i++)
		if (timeline_band_name(&chart->bands, chart->device, i))
			put_band(chart, i);
	put_used(chart);
	put_refused(chart);
}

void timeline_svg(FILE *out, const struct timeline *timeline, const struct model *model)
{
	double height = timeline->n_devices ? CHART * (double)timeline->n_devices : 60;

	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
		"aria-label=\"GPU memory over time\">\n",
		WIDTH, height);
	fputs(style, out);
	for (size_t i = 0; i < timeline->n_devices; i++) {
		struct chart chart = {.out = out,
			.timeline = timeline,
			.device = &timeline->devices[i],
			.y = CHART * (double)i};

		put_chart(&chart, model);
	}
	if (!timeline->n_devices)
		fputs("<text x=\"20\" y=\"35\">No device memory was allocated.</text>\n", out);
	fputs("</svg>\n", out);
}

#include "output/export.h"
#include "output/export_stack.h"
#include "output/report.h"

#include <inttypes.h>
#include <string.h>

struct collapsed {
	FILE *out;
	struct export_labels labels;
	struct export_stack stack;
	struct export_name name, file;
};

/* One frame's text: ';' divides frames. */
static void put_clean(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc(*text == ';' ? ':' : *text, out);
}

static void put_frame(
	struct collapsed *collapsed, const struct show *show, const struct symbol_frame *frame)
{
	const char *where = show_frame_path(show, frame->file ? frame->file : frame->module);

	put_clean(collapsed->out, export_frame_name(&collapsed->name, show, frame));
	if (!where || !*where || !frame->function)
		return;
	fputs(" (", collapsed->out);
	put_clean(collapsed->out, export_name_set(&collapsed->file, where));
	if (frame->file && frame->line)
		fprintf(collapsed->out, ":%u", frame->line);
	fputc(')', collapsed->out);
}

/* The process where there are several, and the device, are the outermost frames. */
static void put_site(struct collapsed *collapsed, const struct export_trace *trace,
	bool name_process, const struct export_site *site)
{
	if (!site->live_bytes)
		return;
	if (name_process) {
		put_clean(collapsed->out, export_process_name(trace->facts).text);
		fputc(';', collapsed->out);
	}
	fputs(report_device_name(site->device).text, collapsed->out);
	export_stack_of_site(&collapsed->stack, &collapsed->labels, &trace->source, site);
	for (size_t i = collapsed->stack.n_frames; i--;) {
		fputc(';', collapsed->out);
		put_frame(collapsed, &trace->source.show, collapsed->stack.frames[i]);
	}
	fprintf(collapsed->out, " %" PRIu64 "\n", site->live_bytes);
}

void export_collapsed(FILE *out, const struct export_trace *traces, size_t n)
{
	struct collapsed collapsed = {.out = out};

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < traces[i].n_moments; k++)
			for (size_t s = 0; s < traces[i].moments[k].n_sites; s++)
				put_site(&collapsed, &traces[i], n > 1,
					&traces[i].moments[k].sites[s]);
	export_labels_release(&collapsed.labels);
	export_stack_release(&collapsed.stack);
	export_name_release(&collapsed.name);
	export_name_release(&collapsed.file);
}

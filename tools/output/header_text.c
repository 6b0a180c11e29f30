/* What ran, and how much of it the trace holds. */
#include <string.h>

#include "output/line.h"
#include "output/report.h"

struct stack_source report_stacks(const struct report_trace *trace)
{
	return (struct stack_source){trace->overview->replay->model, trace->symbols, trace->show};
}

struct format_text report_device_name(int ordinal)
{
	struct format_text out;

	if (ordinal == MODEL_DEVICE_HOST)
		snprintf(out.text, sizeof(out.text), "host");
	else if (ordinal < 0)
		snprintf(out.text, sizeof(out.text), "unknown GPU");
	else
		snprintf(out.text, sizeof(out.text), "GPU %d", ordinal);
	return out;
}

void report_put_end(const struct style *style, const struct trace_facts *facts)
{
	switch (facts->end) {
	case TRACE_END_EXIT:
		if (facts->status >= 0)
			fprintf(style->out, "ended: exit %d", facts->status);
		else
			fputs("ended: exit", style->out);
		break;
	case TRACE_END_SIGNAL: {
		const char *name = sigabbrev_np(facts->status);

		if (name)
			fprintf(style->out, "ended: SIG%s", name);
		else
			fprintf(style->out, "ended: signal %d", facts->status);
		break;
	}
	case TRACE_END_KILLED:
		fputs("ended: killed, or by _exit()", style->out);
		break;
	case TRACE_END_EXEC:
		fputs("ended: became another program (exec)", style->out);
		break;
	case TRACE_END_RUNNING:
		fputs("still running", style->out);
		break;
	}
}

static void put_parts(const struct style *style, uint64_t n, const char *what)
{
	if (n)
		fprintf(style->out, " %s %s %s;", format_count(n).text,
			line_plural(n, "part", "parts"), what);
}

static void put_damage(const struct style *style, const struct trace_facts *facts)
{
	const struct vt_damage *damage = &facts->damage;

	if (facts->damaged) {
		style_put(style, STYLE_WARNING, "! ");
		fputs("the trace is damaged:", style->out);
		put_parts(style, damage->n_chunks_skipped, "unreadable");
		put_parts(style, damage->n_chunks_cut, "cut off");
		if (damage->missing_bytes)
			fprintf(style->out, " %s missing at the end;",
				format_bytes(damage->missing_bytes).text);
		if (facts->pack_damaged)
			fputs(" not all of it could be unpacked;", style->out);
		fputs(" what follows is good up to there\n", style->out);
	}
	if (damage->n_unknown) {
		style_put(style, STYLE_WARNING, "! ");
		fprintf(style->out, "%s records are of kinds newer than this vramtrace\n",
			format_count(damage->n_unknown).text);
	}
	if (facts->stopped) {
		style_put(style, STYLE_WARNING, "! ");
		fprintf(style->out, "recording stopped before the end: %s\n",
			vt_error_text(facts->stopped));
	}
}

void report_put_inactive(const struct style *style)
{
	style_put(style, STYLE_WARNING, "! ");
	fputs("no call of the CUDA driver was seen: the program reached the driver past the "
	      "recorder, so no totals are shown (vramtrace doctor)\n",
		style->out);
}

struct putting {
	FILE *out;
	size_t n;
};

static void put_argument(void *user, struct vt_text argument)
{
	struct putting *put = user;

	if (put->n++)
		fputc(' ', put->out);
	format_put_text(put->out, argument);
}

void report_put_program(const struct style *style, const struct report_trace *trace, size_t columns)
{
	const struct trace_facts *facts = &trace->overview->facts;
	struct putting put = {.out = style->out};
	size_t n_left_out;

	if (facts->cmdline.bytes && show_is_open(&trace->show)) {
		format_put_arguments(style->out, facts->cmdline, columns);
	} else if (facts->cmdline.bytes) {
		n_left_out = show_arguments(&trace->show, facts->cmdline, put_argument, &put);
		if (n_left_out)
			fprintf(style->out, " (%zu more %s)", n_left_out,
				line_plural(n_left_out, "argument", "arguments"));
	} else {
		format_put_text(style->out,
			show_path_text(&trace->show,
				facts->exe.bytes
					? facts->exe
					: (struct vt_text){facts->file, strlen(facts->file)}));
	}
}

void report_put_header(const struct style *style, const struct report_trace *trace)
{
	const struct trace_facts *facts = &trace->overview->facts;
	const char *dot = style_dot(style);

	style_switch(style, STYLE_HEADING);
	report_put_program(style, trace, style->width / 2);
	style_switch(style, STYLE_PLAIN);
	fprintf(style->out, "%spid %llu", dot, (unsigned long long)facts->pid);
	if (facts->rank >= 0)
		fprintf(style->out, "%srank %lld", dot, (long long)facts->rank);
	if (facts->host.bytes && show_is_open(&trace->show)) {
		fputs(dot, style->out);
		format_put_text(style->out, facts->host);
	}
	fprintf(style->out, "%s%s%s", dot, format_duration(facts->duration_ns).text, dot);
	report_put_end(style, facts);
	fprintf(style->out, "%s%s %s, ", dot, format_count(facts->n_events).text,
		line_plural(facts->n_events, "event", "events"));
	if (facts->n_lost) {
		style_switch(style, STYLE_WARNING);
		fprintf(style->out, "%s lost", format_count(facts->n_lost).text);
		style_switch(style, STYLE_PLAIN);
	} else {
		fputs("none lost", style->out);
	}
	fputc('\n', style->out);
	if (trace->overview->replay->model->kept_from_ns)
		fprintf(style->out,
			"single events are kept from %s on (VRAMTRACE_MAX_SIZE): copies, marks, "
			"ended phases, post-mortems and verdicts on leaks are of that time, all "
			"else is of the whole run\n",
			format_moment(trace->overview->replay->model->kept_from_ns).text);
	put_damage(style, facts);
}

void report_put_devices(const struct style *style, const struct report_trace *trace)
{
	const struct model *model = trace->overview->replay->model;

	for (size_t i = 0; i < model->n_devices; i++) {
		const struct model_device *device = model->devices[i];

		fputs(report_device_name(device->ordinal).text, style->out);
		if (device->name.bytes) {
			fputs("  ", style->out);
			format_put_text(style->out, device->name);
		}
		if (device->total_bytes)
			fprintf(style->out, "  %s", format_bytes(device->total_bytes).text);
		fputc('\n', style->out);
	}
}

#include "output/not_seen.h"

#include "output/blocks_text.h"
#include "output/line.h"
#include "output/modules.h"

#define N_UNCOVERED 6u

static void put_uncovered(const struct style *style, const struct model_texts *texts)
{
	fprintf(style->out, "%s memory %s of the driver that this version does not record:",
		format_count(texts->n_items).text, line_plural(texts->n_items, "call", "calls"));
	for (size_t i = 0; i < texts->n_items && i < N_UNCOVERED; i++) {
		fputs(i ? ", " : " ", style->out);
		format_put_text(style->out, texts->items[i]);
	}
	fputs(texts->n_items > N_UNCOVERED ? ", ... (vramtrace info)\n" : "\n", style->out);
}

static void put_count_line(const struct style *style, const char **heading, uint64_t n,
	const char *one, const char *many)
{
	if (!n)
		return;
	line_begin(style, *heading, false);
	fprintf(style->out, "%s %s\n", format_count(n).text, line_plural(n, one, many));
	*heading = NULL;
}

/* Stacks without their Python frames. A thread that runs no Python lacks none. */
static void put_python(const struct style *style, const char **heading, const struct show *show,
	const struct model_python *python)
{
	if (python->seen && !python->captured) {
		line_begin(style, *heading, false);
		fputs("stacks of Python: ", style->out);
		if (python->reason.bytes)
			show_put_sentence(style->out, show, python->reason);
		else
			fputs("not recorded", style->out);
		fputc('\n', style->out);
		*heading = NULL;
	}
	put_count_line(style, heading, python->n_stacks[VT_PYTHON_INVALID],
		"stack lacks its Python frames: they could not be read",
		"stacks lack their Python frames: they could not be read");
	put_count_line(style, heading, python->n_stacks[VT_PYTHON_FINALIZING],
		"stack lacks its Python frames: the interpreter was ending",
		"stacks lack their Python frames: the interpreter was ending");
}

static void put_pauses(const struct style *style, const struct model *model, const char **heading)
{
	uint64_t n = model->pauses.n;

	if (!n)
		return;
	line_begin(style, *heading, false);
	fprintf(style->out,
		"recording was paused %s %s, for %s%s: copies of that time are missing, and what "
		"came then has no stack\n",
		format_count(n).text, line_plural(n, "time", "times"),
		format_duration(model_paused_ns(model)).text, model->pauses.now ? " so far" : "");
	*heading = NULL;
}

static void begin_line(void *user, const struct style *style)
{
	const char **heading = user;

	line_begin(style, *heading, false);
	*heading = NULL;
}

void not_seen_put(const struct style *style, const struct report_trace *trace)
{
	const struct model *model = trace->overview->replay->model;
	const char *heading = "NOT SEEN";

	put_count_line(style, &heading, trace->overview->facts.n_lost,
		"event was lost: the numbers above lack it",
		"events were lost: the numbers above lack them");
	put_count_line(style, &heading, model->n_unknown_frees,
		"free of memory that was not seen allocated",
		"frees of memory that was not seen allocated");
	put_count_line(style, &heading, model->n_missed_frees,
		"free of memory whose address came back",
		"frees of memory whose addresses came back");
	put_count_line(style, &heading, model->n_graph_launches,
		"graph launch: copies inside it are not itemised",
		"graph launches: copies inside them are not itemised");
	put_pauses(style, model, &heading);
	blocks_put_not_seen(style, model, &heading);
	put_python(style, &heading, &trace->show, &model->python);
	modules_put(style, trace, begin_line, &heading);
	for (size_t i = 0; i < model->notes.n_items; i++) {
		line_begin(style, heading, false);
		show_put_sentence(style->out, &trace->show, model->notes.items[i]);
		fputc('\n', style->out);
		heading = NULL;
	}
	if (model->uncovered.n_items) {
		line_begin(style, heading, false);
		put_uncovered(style, &model->uncovered);
	}
}

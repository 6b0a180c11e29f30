#include "output/idle_text.h"

#include <string.h>

#include "output/line.h"

#define MAX_SHOWN 6u

static const char *const advices[] = {
	[IDLE_CHOOSE_DEVICE] = "choose the GPU before the first CUDA call: "
			       "torch.cuda.set_device(LOCAL_RANK), or CUDA_VISIBLE_DEVICES",
	[IDLE_KEEP_OUT] =
		"a process that needs no GPU: keep CUDA calls out of it, or start it with "
		"CUDA_VISIBLE_DEVICES=",
	[IDLE_PINS_ELSEWHERE] = "it only page-locks host memory: leave that to the process that "
				"copies it",
};

#define N_ADVICES (sizeof(advices) / sizeof(*advices))

struct putting {
	const struct style *style;
	size_t n; /* contexts so far */
	bool several;
};

static void put_context(
	struct putting *put, const struct report_trace *trace, const struct idle_context *idle)
{
	struct stack_source source = report_stacks(trace);
	const struct trace_facts *facts = &trace->overview->facts;
	FILE *out = put->style->out;
	char label[200];

	if (put->n++ >= MAX_SHOWN)
		return;
	line_begin(put->style, NULL, false);
	fprintf(out, "%10s  %s", idle->bytes_known ? format_bytes(idle->bytes).text : "?",
		report_device_name(idle->device).text);
	if (put->several)
		fprintf(out, " of pid %llu", (unsigned long long)facts->pid);
	if (put->several && facts->rank >= 0)
		fprintf(out, ", rank %lld", (long long)facts->rank);
	fprintf(out, ", from %s", format_moment(idle->since_ns).text);
	if (idle->until_ns)
		fprintf(out, " to %s", format_moment(idle->until_ns).text);
	if (idle->stack_id) {
		fputs("  ", out);
		stack_label(&source, idle->stack_id, label, sizeof(label));
		style_put_cut(put->style, label, put->style->width / 2, false);
	}
	fputc('\n', out);
}

void idle_put_section(const struct style *style, const struct report_trace *traces, size_t n)
{
	struct putting put = {.style = style, .several = n > 1};
	bool advised[N_ADVICES] = {false};
	uint64_t bytes = 0, n_contexts = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < traces[i].overview->idle.n_items; k++) {
			const struct idle_context *idle = &traces[i].overview->idle.items[k];

			n_contexts++;
			bytes += idle->bytes;
			advised[idle->advice] = true;
		}
	if (!n_contexts)
		return;
	line_begin(style, "IDLE", true);
	fprintf(style->out, "%s in %s %s: context, but no allocation on this GPU\n",
		format_bytes(bytes).text, format_count(n_contexts).text,
		line_plural(n_contexts, "idle context", "idle contexts"));
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < traces[i].overview->idle.n_items; k++)
			put_context(&put, &traces[i], &traces[i].overview->idle.items[k]);
	if (put.n > MAX_SHOWN) {
		line_begin(style, NULL, false);
		fprintf(style->out, "and %s more (report --json)\n",
			format_count(put.n - MAX_SHOWN).text);
	}
	for (size_t i = 0; i < N_ADVICES; i++) {
		if (!advised[i])
			continue;
		line_begin(style, NULL, false);
		fprintf(style->out, "-> %s\n", advices[i]);
	}
}

#include "output/json_coverage.h"

#include <stdlib.h>

#include "output/json_blocks.h"
#include "output/json_phases.h"

static const struct model_texts *texts_of(const struct report_trace *trace, bool notes)
{
	const struct model *model = trace->overview->replay->model;

	return notes ? &model->notes : &model->uncovered;
}

static void put_sentence(
	struct json *json, const char *key, const struct show *show, struct vt_text text)
{
	char *sentence = show_sentence(show, text);

	json_string(json, key, *sentence ? sentence : NULL);
	free(sentence);
}

/* What any of the traces holds, each text once. */
static void put_texts(
	struct json *json, const char *key, const struct report_trace *traces, size_t n, bool notes)
{
	json_open(json, key, '[');
	for (size_t i = 0; i < n; i++) {
		const struct model_texts *texts = texts_of(&traces[i], notes);

		for (size_t k = 0; k < texts->n_items; k++) {
			bool before = false;

			for (size_t j = 0; j < i && !before; j++)
				before = model_texts_has(
					texts_of(&traces[j], notes), texts->items[k]);
			if (!before)
				put_sentence(json, NULL, &traces[i].show, texts->items[k]);
		}
	}
	json_close(json, ']');
}

/* How often the Python frames of a stack were taken, and why they were not. */
static void put_python_stacks(struct json *json, const struct report_trace *traces, size_t n)
{
	uint64_t counts[VT_N_PYTHON_OUTCOMES] = {0};
	struct vt_text reason = {NULL, 0};
	bool known = false;

	for (size_t i = 0; i < n; i++) {
		const struct model_python *python = &traces[i].overview->replay->model->python;

		known = known || python->seen || python->counted;
		for (size_t k = 0; k < VT_N_PYTHON_OUTCOMES; k++)
			counts[k] += python->n_stacks[k];
		if (python->seen && !python->captured)
			reason = python->reason;
	}
	if (!known) {
		json_null(json, "python_stacks");
		return;
	}
	json_open(json, "python_stacks", '{');
	json_number(json, "captured", counts[VT_PYTHON_CAPTURED]);
	json_number(json, "mismatched_stacks", counts[VT_PYTHON_MISMATCH]);
	json_open(json, "skipped", '{');
	for (size_t k = 0; k < VT_N_PYTHON_OUTCOMES; k++)
		if (counts[k] && k != VT_PYTHON_CAPTURED && k != VT_PYTHON_MISMATCH)
			json_number(json, model_python_outcome_name(k), counts[k]);
	json_close(json, '}');
	put_sentence(json, "reason", &traces->show, reason);
	json_close(json, '}');
}

/* Of all traces together; null when none was recorded with VRAMTRACE_UNWINDER=check. */
static void put_unwind_check(struct json *json, const struct report_trace *traces, size_t n)
{
	uint64_t captures = 0, delegated = 0, differences = 0;
	bool seen = false;

	for (size_t i = 0; i < n; i++) {
		const struct model *model = traces[i].overview->replay->model;

		seen |= model->unwind_check_seen;
		captures += model->unwind_check.captures;
		delegated += model->unwind_check.delegated;
		differences += model->unwind_check.differences;
	}
	if (!seen) {
		json_null(json, "unwind_check");
		return;
	}
	json_open(json, "unwind_check", '{');
	json_number(json, "captures", captures);
	json_number(json, "delegated", delegated);
	json_number(json, "differences", differences);
	json_close(json, '}');
}

void json_coverage(struct json *json, const struct report_trace *traces, size_t n)
{
	bool hooks = n > 0, modules = false;
	uint64_t n_launches = 0, n_captured_copies = 0, n_captured_sets = 0, n_shared = 0,
		 n_static = 0;

	for (size_t i = 0; i < n; i++) {
		const struct model *model = traces[i].overview->replay->model;
		struct stack_source source = report_stacks(&traces[i]);

		hooks = hooks && model->hooks_active;
		modules = modules || model->modules_seen;
		n_launches += model->n_graph_launches;
		n_captured_copies += model->captured.n_copies;
		n_captured_sets += model->captured.n_sets;
		n_shared += model->runtimes.n_items;
		n_static += stack_count_static_runtimes(&source);
	}
	json_open(json, "coverage", '{');
	json_bool(json, "driver_hooks", hooks);
	/* Without its symbols a runtime inside another file cannot be told from that file. */
	json_number_or_null(json, "runtimes_static", n_static != 0, n_static);
	json_number_or_null(json, "runtimes_shared", modules, n_shared);
	put_texts(json, "not_covered", traces, n, false);
	put_texts(json, "notes", traces, n, true);
	json_number_or_null(json, "graph_launches", hooks, n_launches);
	json_number_or_null(json, "captured_copies", hooks, n_captured_copies);
	json_number_or_null(json, "captured_sets", hooks, n_captured_sets);
	json_torch_coverage(json, traces, n);
	put_python_stacks(json, traces, n);
	put_unwind_check(json, traces, n);
	json_pauses(json, traces, n);
	json_close(json, '}');
}

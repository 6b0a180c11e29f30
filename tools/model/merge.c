#include "model/merge.h"

#include <stdlib.h>

#include "model/memory.h"

/* One source, with its next record read ahead. No thread of its own, unlike record_stream: there
 * may be hundreds. */
struct input {
	const struct merge_source *source;
	struct model *model;
	struct vt_record record;
	uint64_t time_ns; /* of record */
	bool ended, left; /* no more records; and that was said */
	int error;
};

static void advance(struct input *input)
{
	int found = vt_reader_next(input->source->replay->reader, &input->record);

	if (found < 0)
		input->error = found;
	input->ended = found != 1;
	/* Records without a time of their own come along with those before them. */
	if (!input->ended && input->source->start_ns + input->record.time_ns > input->time_ns)
		input->time_ns = input->source->start_ns + input->record.time_ns;
	if (input->ended && input->source->end_ns > input->time_ns)
		input->time_ns = input->source->end_ns;
}

static void begin(struct input *input, const struct merge_source *source)
{
	input->source = source;
	input->time_ns = source->start_ns;
	input->error = vt_reader_rewind(source->replay->reader);
	input->ended = input->left = input->error != 0;
	input->model = model_new();
	if (!input->ended)
		advance(input);
}

/* At one time records come before ends. */
static bool comes_before(const struct input *a, const struct input *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : !a->ended && b->ended;
}

/* The input whose record or end comes first, NULL: there is none left. *until_ns is when another
 * one's does. */
static struct input *find_first(struct input *inputs, size_t n, uint64_t *until_ns)
{
	struct input *first = NULL;

	*until_ns = UINT64_MAX;
	for (size_t i = 0; i < n; i++) {
		if (inputs[i].left)
			continue;
		if (!first || comes_before(&inputs[i], first)) {
			*until_ns = first ? first->time_ns : UINT64_MAX;
			first = &inputs[i];
		} else if (inputs[i].time_ns < *until_ns) {
			*until_ns = inputs[i].time_ns;
		}
	}
	return first;
}

int replay_merge(const struct merge_source *sources, size_t n, merge_visitor *visitor, void *user)
{
	struct input *inputs = memory_new(n, sizeof(*inputs)), *input;
	uint64_t until_ns;
	int error = 0;

	for (size_t i = 0; i < n; i++)
		begin(&inputs[i], &sources[i]);
	while ((input = find_first(inputs, n, &until_ns))) {
		size_t i = (size_t)(input - inputs);

		if (input->ended) {
			visitor(user, i, input->model, NULL, input->time_ns);
			input->left = true;
			continue;
		}
		do {
			model_apply(input->model, &input->record);
			if (model_is_event(&input->record) || input->record.kind == VT_REC_end)
				visitor(user, i, input->model, &input->record, input->time_ns);
			advance(input);
		} while (!input->ended && input->time_ns <= until_ns);
	}
	for (size_t i = 0; i < n; i++) {
		if (inputs[i].error)
			error = inputs[i].error;
		model_free(inputs[i].model);
	}
	free(inputs);
	return error;
}

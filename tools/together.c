/* The traces of an input, looked at together. */
#include <stdlib.h>

#include "input.h"
#include "model/memory.h"

int input_together(struct input *input, struct together *together)
{
	struct together_trace *traces = memory_new(input->n_traces, sizeof(*traces));
	int error;

	for (size_t i = 0; i < input->n_traces; i++) {
		struct input_trace *trace = &input->traces[i];

		traces[i] = (struct together_trace){
			&trace->overview, trace->replay, input_owners(trace)};
	}
	error = together_make(together, traces, input->n_traces);
	free(traces);
	if (!error)
		return STATUS_OK;
	input_complain(input->traces[0].replay->path, error);
	return STATUS_UNREADABLE;
}

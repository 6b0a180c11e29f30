/* What recordings of traces and of snapshots have in common. */
#include <stdlib.h>

#include "analysis/whatif_parts.h"
#include "model/memory.h"

void whatif_note_streams(struct whatif_built *built)
{
	uint64_t *streams = NULL;
	size_t room = 0, n = 0;

	for (size_t i = 0; i < built->recording.n_steps; i++) {
		const struct whatif_step *step = &built->steps[i];
		size_t k = 0;

		if (step->kind != WHATIF_GET)
			continue;
		while (k < n && streams[k] != step->stream)
			k++;
		if (k < n)
			continue;
		streams = memory_grow(streams, n, &room, sizeof(*streams));
		streams[n++] = step->stream;
	}
	built->n_streams = n;
	free(streams);
}

void whatif_built_release(struct whatif_built *built)
{
	free(built->steps);
	free(built->answers);
	*built = (struct whatif_built){0};
}

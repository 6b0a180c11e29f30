#include "sim.h"

#include <stdlib.h>
#include <string.h>

/* How many entries have a key not above this one. */
static size_t count_to(const struct sim_index *index, u64 key)
{
	size_t low = 0, high = index->n_entries;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index->entries[middle].key <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool sim_index_insert(struct sim_index *index, u64 key, void *value)
{
	size_t at = count_to(index, key);

	if (index->n_entries == index->capacity) {
		size_t capacity = index->capacity ? 2 * index->capacity : 64;
		struct sim_entry *entries = realloc(index->entries, capacity * sizeof(*entries));

		if (!entries)
			return false;
		index->entries = entries;
		index->capacity = capacity;
	}
	memmove(&index->entries[at + 1], &index->entries[at],
		(index->n_entries - at) * sizeof(*index->entries));
	index->entries[at] = (struct sim_entry){key, value};
	index->n_entries++;
	return true;
}

void sim_index_remove(struct sim_index *index, u64 key, const void *value)
{
	for (size_t at = count_to(index, key); at > 0 && index->entries[at - 1].key == key; at--) {
		if (index->entries[at - 1].value != value)
			continue;
		memmove(&index->entries[at - 1], &index->entries[at],
			(index->n_entries - at) * sizeof(*index->entries));
		index->n_entries--;
		return;
	}
}

void *sim_index_floor(const struct sim_index *index, u64 key)
{
	size_t at = count_to(index, key);

	return at ? index->entries[at - 1].value : NULL;
}

void *sim_index_get(const struct sim_index *index, u64 key)
{
	size_t at = count_to(index, key);

	return at && index->entries[at - 1].key == key ? index->entries[at - 1].value : NULL;
}

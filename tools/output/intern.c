#include "output/intern.h"

#include <stdlib.h>
#include <string.h>

#include "model/hash.h"

struct intern_entry {
	uint64_t number;
	UT_hash_handle hh;
	char key[];
};

uint64_t intern(struct intern_table *table, const void *key, size_t bytes, bool *is_new)
{
	struct intern_entry *entry;

	HASH_FIND(hh, table->entries, key, bytes, entry);
	*is_new = !entry;
	if (entry)
		return entry->number;
	entry = memory_new(1, sizeof(*entry) + bytes);
	memcpy(entry->key, key, bytes);
	entry->number = ++table->n_entries;
	HASH_ADD_KEYPTR(hh, table->entries, entry->key, bytes, entry);
	return entry->number;
}

uint64_t intern_text(struct intern_table *table, const char *text, bool *is_new)
{
	return intern(table, text, strlen(text), is_new);
}

uint64_t intern_number(struct intern_table *table, uint64_t key, bool *is_new)
{
	return intern(table, &key, sizeof(key), is_new);
}

void intern_release(struct intern_table *table)
{
	struct intern_entry *entry, *next;

	HASH_ITER(hh, table->entries, entry, next)
	{
		HASH_DEL(table->entries, entry);
		free(entry);
	}
	*table = (struct intern_table){0};
}

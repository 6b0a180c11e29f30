/* Telling the story of a service whose memory may leak, and judging what is left of it. Include it
 * after cmocka.h. */
#ifndef TESTS_UNIT_LEAKS_H
#define TESTS_UNIT_LEAKS_H

#include "analysis/leaks.h"
#include "unit/findings.h"

#define MS     1000000ull
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)

/* Stacks of a service. */
enum { WORK = 1, LEAK = 2, CACHE = 3, OTHER = 4 };

static uint64_t next_address;

static inline uint64_t take_new(struct told *told, uint64_t bytes, uint64_t stack_id)
{
	uint64_t address = next_address;

	next_address += (bytes + PAGE - 1) / PAGE * PAGE;
	take(told, VT_KIND_LINEAR, address, bytes, stack_id);
	return address;
}

static inline struct told service_begin(void)
{
	next_address = 64 * GIB;
	return told_begin(256 * GIB);
}

/* A request, which takes `ns`: memory comes and goes. */
static inline void request(struct told *told, uint64_t ns)
{
	uint64_t addresses[8];

	for (size_t i = 0; i < 8; i++)
		addresses[i] = take_new(told, (i + 1) * MIB, WORK);
	told->story.now += ns;
	for (size_t i = 0; i < 8; i++)
		give(told, addresses[i]);
}

/* What is left at the end. */
struct judged {
	struct site_list end;
	struct leak_list leaks;
};

static inline struct judged leaks_of(struct told *told)
{
	struct judged judged = {{0}, {0}};

	site_list_add_live(&judged.end, told->story.model);
	site_list_add_teardown(&judged.end, told->story.model);
	site_list_sort(&judged.end);
	leak_list_make(&judged.leaks, told->story.model, &told->watch.history, &judged.end);
	return judged;
}

static inline void judged_end(struct judged *judged)
{
	leak_list_release(&judged->leaks);
	site_list_release(&judged->end);
}

static inline const struct leak *leak_of(const struct judged *judged, uint64_t stack_id)
{
	for (size_t i = 0; i < judged->leaks.n_items; i++)
		if (judged->leaks.items[i].row.stack_id == stack_id)
			return &judged->leaks.items[i];
	fail_msg("nothing of stack %d", (int)stack_id);
	return NULL;
}

#endif

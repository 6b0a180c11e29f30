#include "suppress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/memory.h"
#include "output/stack.h"

/* Nobody writes so many by hand. */
#define MAX_FILE_BYTES (1u << 20)

static bool add_file(struct suppressions *suppressions, const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = memory_new(MAX_FILE_BYTES + 1, 1);
	size_t bytes = file ? fread(text, 1, MAX_FILE_BYTES + 1, file) : 0, line = 0;
	bool failed = !file || ferror(file);

	if (failed)
		fprintf(stderr, "vramtrace: %s: suppressions cannot be read: %s\n", path,
			strerror(errno));
	else if (bytes > MAX_FILE_BYTES)
		fprintf(stderr, "vramtrace: %s: too large for suppressions\n", path);
	else if ((line = suppressions_add(suppressions, text)))
		fprintf(stderr, "vramtrace: %s:%zu: not a suppression: leak:PATTERN\n", path, line);
	if (file)
		fclose(file);
	free(text);
	return !failed && !line && bytes <= MAX_FILE_BYTES;
}

bool suppress_read(struct suppressions *suppressions, const char *path)
{
	const char *variable = getenv(SUPPRESS_VARIABLE);

	suppressions_add_built_in(suppressions);
	return (!variable || !*variable || add_file(suppressions, variable)) &&
	       (!path || add_file(suppressions, path));
}

static bool try_name(void *user, const char *name)
{
	struct suppress *suppress = user;
	const struct suppressions *suppressions = suppress->suppressions;

	for (size_t i = 0; i < suppressions->n_items && !suppress->found; i++)
		if (!(suppress->grows && suppressions->items[i].built_in) &&
			suppression_matches(suppressions->items[i].pattern, name))
			suppress->found = &suppressions->items[i];
	return !suppress->found;
}

static const char *match(
	void *user, const struct model *model, uint64_t stack_id, bool grows, bool *built_in)
{
	struct suppress *suppress = user;
	struct stack_source source = {.model = model, .symbols = suppress->symbols};

	suppress->grows = grows;
	suppress->found = NULL;
	stack_each_name(&source, stack_id, try_name, suppress);
	if (!suppress->found)
		return NULL;
	*built_in = suppress->found->built_in;
	return suppress->found->pattern;
}

struct leak_suppressor suppress_leaks(struct suppress *suppress)
{
	return (struct leak_suppressor){match, suppress};
}

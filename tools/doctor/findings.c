#include "doctor/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/memory.h"

void findings_add(struct findings *findings, enum finding_level level, const char *check,
	const char *advice, const char *format, ...)
{
	struct finding *finding;
	va_list args;
	char *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		memory_exhausted();
	va_end(args);
	findings->items = memory_grow(
		findings->items, findings->n_items, &findings->room, sizeof(*findings->items));
	finding = &findings->items[findings->n_items++];
	*finding = (struct finding){level, check, text, advice};
}

size_t findings_count(const struct findings *findings, enum finding_level level)
{
	size_t n = 0;

	for (size_t i = 0; i < findings->n_items; i++)
		n += findings->items[i].level == level;
	return n;
}

void findings_release(struct findings *findings)
{
	for (size_t i = 0; i < findings->n_items; i++)
		free(findings->items[i].text);
	free(findings->items);
}

#include "analysis/suppressions.h"

#include <stdlib.h>
#include <string.h>

#include "model/memory.h"

#define PREFIX "leak:"

static const char *const built_in[] = {
	/* PyTorch's workspaces for cuBLAS, one for each handle and stream, and the handles. */
	"at::cuda::getCurrentCUDABlasHandle",
	"at::cuda::getCUDABlasLtWorkspace",
	"at::cuda::getNewWorkspace",
	/* The libraries' own handles and plans. */
	"^cublasCreate",
	"^cublasLtCreate",
	"^cudnnCreate$",
	"^cusolverDnCreate",
	"^cusparseCreate",
};

static void add(
	struct suppressions *suppressions, const char *pattern, size_t bytes, bool is_built_in)
{
	struct suppression *item;

	suppressions->items = memory_grow(suppressions->items, suppressions->n_items,
		&suppressions->room, sizeof(*suppressions->items));
	item = &suppressions->items[suppressions->n_items++];
	item->built_in = is_built_in;
	item->pattern = memory_new(bytes + 1, 1);
	memcpy(item->pattern, pattern, bytes);
}

void suppressions_add_built_in(struct suppressions *suppressions)
{
	for (size_t i = 0; i < sizeof(built_in) / sizeof(*built_in); i++)
		add(suppressions, built_in[i], strlen(built_in[i]), true);
}

size_t suppressions_add(struct suppressions *suppressions, const char *text)
{
	for (size_t line = 1; *text; line++) {
		const char *end = strchrnul(text, '\n'), *next = *end ? end + 1 : end;

		while (text < end && strchr(" \t\r", *text))
			text++;
		while (text < end && strchr(" \t\r", end[-1]))
			end--;
		if (text < end && *text != '#') {
			if ((size_t)(end - text) <= strlen(PREFIX) ||
				strncmp(text, PREFIX, strlen(PREFIX)) != 0)
				return line;
			text += strlen(PREFIX);
			add(suppressions, text, (size_t)(end - text), false);
		}
		text = next;
	}
	return 0;
}

/* Whether name begins with pattern; of pattern, up to its end or a '$' there. */
static bool matches_here(const char *pattern, const char *name)
{
	const char *star = NULL, *star_name = NULL;

	for (;;) {
		if (!*pattern || (*pattern == '$' && !pattern[1] && !*name))
			return true;
		if (*pattern == '*') {
			star = ++pattern;
			star_name = name;
		} else if (*name && *pattern == *name && !(*pattern == '$' && !pattern[1])) {
			pattern++;
			name++;
		} else if (star && *star_name) {
			/* The star takes one more. */
			pattern = star;
			name = ++star_name;
		} else {
			return false;
		}
	}
}

bool suppression_matches(const char *pattern, const char *name)
{
	if (*pattern == '^')
		return matches_here(pattern + 1, name);
	do {
		if (matches_here(pattern, name))
			return true;
	} while (*name++);
	return false;
}

void suppressions_release(struct suppressions *suppressions)
{
	for (size_t i = 0; i < suppressions->n_items; i++)
		free(suppressions->items[i].pattern);
	free(suppressions->items);
	*suppressions = (struct suppressions){0};
}

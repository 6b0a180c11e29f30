#include "output/line.h"

#include <string.h>

#include "output/format.h"

void line_begin(const struct style *style, const char *label, bool bad)
{
	size_t pad = LINE_MARGIN - 2 - (label ? strlen(label) : 0);

	if (label)
		style_put(style, STYLE_HEADING, label);
	fprintf(style->out, "%*s", (int)pad, "");
	if (bad)
		style_put(style, STYLE_WARNING, "! ");
	else
		fputs("  ", style->out);
}

const char *line_plural(uint64_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

void line_put_groups(const struct style *style, const struct site_groups *groups, size_t limit)
{
	uint64_t rest_bytes = groups->rest_bytes, rest_count = groups->rest_count;
	/* Bytes, owner and count take their columns; the label has the others. */
	size_t columns = style->width - LINE_MARGIN - 10 - 2 - 14 - 2 - 16, owner_columns = 4;

	for (size_t i = 0; i < groups->n_items && i < limit; i++) {
		size_t length = strlen(groups->items[i].owner);

		if (length > owner_columns)
			owner_columns = length < 14 ? length : 14;
	}
	for (size_t i = 0; i < groups->n_items; i++) {
		const struct site_group *group = &groups->items[i];

		if (i >= limit) {
			rest_bytes += group->bytes;
			rest_count += group->count;
			continue;
		}
		line_begin(style, NULL, false);
		fprintf(style->out, "%10s  ", format_bytes(group->bytes).text);
		style_put_cut(style, group->owner, owner_columns, true);
		fputs("  ", style->out);
		style_put_cut(style, group->label, columns + 14 - owner_columns, true);
		fprintf(style->out, "%7s %s", format_count(group->count).text,
			group->level == SITE_IDLE ? line_plural(group->count, "segment", "segments")
						  : line_plural(group->count, "block", "blocks"));
		if (group->kind != VT_KIND_LINEAR)
			fprintf(style->out, ", %s", model_kind_name(group->kind));
		fputc('\n', style->out);
	}
	if (!rest_count)
		return;
	line_begin(style, NULL, false);
	fprintf(style->out, "%10s  in %s more %s\n", format_bytes(rest_bytes).text,
		format_count(rest_count).text, line_plural(rest_count, "block", "blocks"));
}

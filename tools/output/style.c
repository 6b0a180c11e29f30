#include "output/style.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "output/format.h"

#define MIN_WIDTH 60u
#define MAX_WIDTH 240u

void style_init(struct style *style, FILE *out, bool ascii)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	bool terminal = isatty(fileno(out));
	struct winsize size;

	*style = (struct style){.out = out, .ascii = ascii, .width = 100};
	if (!terminal)
		return;
	/* The charmap of the C locale is ASCII; a file or a pipe can always take UTF-8. */
	style->ascii = ascii || strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	style->color = !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
	if (!ioctl(fileno(out), TIOCGWINSZ, &size) && size.ws_col)
		style->width = size.ws_col;
	if (style->width < MIN_WIDTH)
		style->width = MIN_WIDTH;
	if (style->width > MAX_WIDTH)
		style->width = MAX_WIDTH;
}

void style_switch(const struct style *style, enum style_role role)
{
	static const char *const codes[] = {
		[STYLE_PLAIN] = "\033[0m",
		[STYLE_HEADING] = "\033[1m",
		[STYLE_WARNING] = "\033[1;31m",
		[STYLE_DIM] = "\033[2m",
		[STYLE_BAND_1] = "\033[34m",
		[STYLE_BAND_2] = "\033[32m",
		[STYLE_BAND_3] = "\033[35m",
		[STYLE_BAND_4] = "\033[33m",
	};

	if (style->color)
		fputs(codes[role], style->out);
}

void style_put(const struct style *style, enum style_role role, const char *text)
{
	style_switch(style, role);
	fputs(text, style->out);
	style_switch(style, STYLE_PLAIN);
}

const char *style_dot(const struct style *style)
{
	return style->ascii ? " | " : " \u00b7 ";
}

/* Bytes of the first n characters of text, or of all of it. */
static size_t bytes_of(const char *text, size_t n)
{
	size_t at = 0, bytes = strlen(text);

	for (; n && at < bytes; n--) {
		size_t length = format_utf8_length(text + at, bytes - at);

		at += length ? length : 1;
	}
	return at;
}

static size_t characters_of(const char *text)
{
	size_t n = 0;

	for (size_t at = 0; text[at]; n++)
		at += bytes_of(text + at, 1);
	return n;
}

void style_put_cut(const struct style *style, const char *text, size_t columns, bool pad)
{
	const char *mark = style->ascii ? ".." : "\u2026";
	size_t n = characters_of(text), mark_columns = style->ascii ? 2 : 1, head, tail;

	if (n <= columns) {
		format_put_text(style->out, (struct vt_text){text, strlen(text)});
		for (; pad && n < columns; n++)
			fputc(' ', style->out);
		return;
	}
	if (columns <= mark_columns)
		return;
	tail = (columns - mark_columns) / 2;
	head = columns - mark_columns - tail;
	format_put_text(style->out, (struct vt_text){text, bytes_of(text, head)});
	fputs(mark, style->out);
	text += bytes_of(text, n - tail);
	format_put_text(style->out, (struct vt_text){text, strlen(text)});
}

/* Fields of comma-separated values (RFC 4180). */
#ifndef VRAMTRACE_OUTPUT_CSV_H
#define VRAMTRACE_OUTPUT_CSV_H

#include <stdio.h>
#include <string.h>

/* Prints text as one field, quoted when it has to be. */
static inline void csv_put(FILE *out, const char *text)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

#endif

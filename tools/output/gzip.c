#include "output/gzip.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "model/memory.h"

/* Of deflateInit2: the largest window, with gzip's header in the place of zlib's. */
#define WINDOW_GZIP  (MAX_WBITS + 16)
#define MEMORY_LEVEL 8

void gzip_begin(struct gzip *gzip, FILE *out)
{
	memset(&gzip->stream, 0, sizeof(gzip->stream));
	gzip->out = out;
	if (deflateInit2(&gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_GZIP,
		    MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		memory_exhausted();
}

/* Compresses what is there to be taken. */
static void run(struct gzip *gzip, int flush)
{
	int result;

	do {
		gzip->stream.next_out = gzip->buffer;
		gzip->stream.avail_out = sizeof(gzip->buffer);
		result = deflate(&gzip->stream, flush);
		fwrite(gzip->buffer, 1, sizeof(gzip->buffer) - gzip->stream.avail_out, gzip->out);
	} while (result == Z_OK && !gzip->stream.avail_out);
}

void gzip_write(struct gzip *gzip, const void *data, size_t bytes)
{
	const unsigned char *at = data;

	while (bytes) {
		unsigned int part = bytes < INT_MAX ? (unsigned int)bytes : INT_MAX;

		/* zlib only reads it. */
		gzip->stream.next_in = (unsigned char *)(uintptr_t)at;
		gzip->stream.avail_in = part;
		run(gzip, Z_NO_FLUSH);
		at += part;
		bytes -= part;
	}
}

void gzip_end(struct gzip *gzip)
{
	run(gzip, Z_FINISH);
	deflateEnd(&gzip->stream);
}

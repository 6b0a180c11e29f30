/* A gzip member, written to a stream as it is made. */
#ifndef VRAMTRACE_OUTPUT_GZIP_H
#define VRAMTRACE_OUTPUT_GZIP_H

#include <stddef.h>
#include <stdio.h>
#include <zlib.h>

struct gzip {
	z_stream stream;
	FILE *out;
	unsigned char buffer[16384];
};

/* Begins; gzip_end must follow. */
void gzip_begin(struct gzip *gzip, FILE *out);
void gzip_write(struct gzip *gzip, const void *data, size_t bytes);
void gzip_end(struct gzip *gzip);

#endif

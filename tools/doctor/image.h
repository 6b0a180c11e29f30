/* An executable or library on disk. */
#ifndef VRAMTRACE_DOCTOR_IMAGE_H
#define VRAMTRACE_DOCTOR_IMAGE_H

#include <stdbool.h>

struct image;

/* Opens the ELF file at path; NULL when it is none or cannot be read. To be closed with
 * image_close. */
struct image *image_open(const char *path);
void image_close(struct image *image);

/* Its processor and word size are the same as those of the other. */
bool image_is_like(const struct image *image, const struct image *other);

/* "x86-64" and the like. */
const char *image_processor(const struct image *image);

/* Path of the loader it asks for; "" none: it is statically linked, or a library. Valid until
 * closed. */
const char *image_loader(const struct image *image);

/* Whether it asks for a library whose name starts so. */
bool image_needs(const struct image *image, const char *start);

/* Whether it exports this function. */
bool image_exports(const struct image *image, const char *name);

/* Calls found for each name it exports. The name is valid during the call. */
void image_each_export(
	const struct image *image, void (*found)(const char *name, void *data), void *data);

/* Whether its constants hold these bytes of text, ended by a zero. */
bool image_has_text(const struct image *image, const char *text);

#endif

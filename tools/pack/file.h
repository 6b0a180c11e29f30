/* Files that packing reads and writes. */
#ifndef VRAMTRACE_PACK_FILE_H
#define VRAMTRACE_PACK_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Writes all of data at the file's position. False with errno set when not all could be written. */
bool fd_write(int fd, const void *data, size_t bytes);

/* Reads up to `bytes` from the file's position: 0 at its end, -1 with errno set. */
ssize_t fd_read(int fd, void *data, size_t bytes);

/* Reads up to `bytes` at offset, less only at the end of the file. Returns how many, -1 with errno
 * set. */
ssize_t fd_read_at(int fd, void *data, size_t bytes, uint64_t offset);

/* A new file without a name in $TMPDIR, else /tmp, for reading and writing; *folder says which.
 * Returns its descriptor, or -1 with errno set. */
int file_unnamed(const char **folder);

/* A file being made: under another name until it is whole. */
struct new_file {
	const char *path; /* borrowed: what it is to be called */
	char *temporary;  /* what it is called meanwhile */
	int fd;
};

/* Begins a file that is to be called path; readable by its owner alone, and removed when a signal
 * ends this command. False with errno set. One at a time. */
bool new_file_begin(struct new_file *file, const char *path);

/* Puts it on disk, then in its place; a file that is there is replaced only if told so. False with
 * errno set (EEXIST when there is one), after which there is no new file. */
bool new_file_end(struct new_file *file, bool replace);

/* Removes what was made of it; errno stays. */
void new_file_drop(struct new_file *file);

#endif

/* The parts of a bounded trace, made into one file. */
#ifndef VRAMTRACE_PACK_JOIN_H
#define VRAMTRACE_PACK_JOIN_H

/* When fd, open at path, is a bounded trace, makes a file without a name that holds all its parts:
 * *joined, to be closed. Of any other file *joined is fd itself. Returns 0; or VT_E_* with errno
 * set as vt_parts_open, and *joined is fd. */
int join_parts(int fd, const char *path, int *joined);

#endif

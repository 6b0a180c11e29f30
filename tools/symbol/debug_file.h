/* Separate files with debug information. */
#ifndef VRAMTRACE_SYMBOL_DEBUG_FILE_H
#define VRAMTRACE_SYMBOL_DEBUG_FILE_H

/*
 * Looks for the debug file of the ELF file at path, where the system keeps them: by build id and by
 * debug link below /usr/lib/debug and beside the file, and, only where the user has set
 * DEBUGINFOD_URLS, on those servers. Returns a file descriptor, or -1 when there is none.
 */
int debug_file_open(const char *path);

#endif

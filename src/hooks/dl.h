/*
 * Look-ups by name. dlsym and dlvsym are entered in assembly (dl_entry.S), because glibc answers RTLD_NEXT and RTLD_DEFAULT by
 * the address that called: for those the real function is jumped to with the caller's own return address still in place.
 */
#ifndef VRAMTRACE_HOOKS_DL_H
#define VRAMTRACE_HOOKS_DL_H

/* The next dlsym behind this library: libc's, or another interposer's. */
void *dl_real_dlsym(void *handle, const char *name);

/* What the assembly does: jump there if it is not NULL, else return value. */
struct dl_route {
	void *jump;
	void *value;
};

struct dl_route dl_route_dlsym(void *handle, const char *name, const void *caller);
struct dl_route dl_route_dlvsym(void *handle, const char *name, const void *caller, const char *version);

#endif

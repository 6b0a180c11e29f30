/*
 * Look-ups by name. dlsym, dlvsym and dlopen are entered in assembly (dl_entry.S), because glibc
 * answers RTLD_NEXT and RTLD_DEFAULT, and searches for files, by the address that called: the real
 * function is jumped to with the caller's own return address still in place. dlclose tells the
 * unwinder that code goes.
 */
#ifndef VRAMTRACE_HOOKS_DL_H
#define VRAMTRACE_HOOKS_DL_H

/* The next dlsym behind this library: libc's, or another interposer's. */
void *dl_real_dlsym(void *handle, const char *name);

/* What a use of name by the code around caller would be bound to if this library were not there;
 * NULL: nothing. Asks the loader. */
void *dl_bound_to(const char *name, const void *caller);

/* What the assembly does: jump there if it is not NULL, else return value. */
struct dl_route {
	void *jump;
	void *value;
};

struct dl_route dl_route_dlsym(void *handle, const char *name, const void *caller);
struct dl_route dl_route_dlvsym(
	void *handle, const char *name, const void *caller, const char *version);

/* Here value is the mode to go on with. RTLD_DEEPBIND would put an object's own libraries before
 * this one: it is taken out. */
struct dl_route dl_route_dlopen(int mode);

#endif

#include "symbol/names.h"

#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

char *names_readable(const char *name)
{
	/* A version is no part of the name; and of a clone's name, what stands before the dot. */
	char *plain = strndup(name, strcspn(name, "@")), *demangled;

	if (!plain)
		return NULL;
	demangled = cplus_demangle(plain, DMGL_AUTO | DMGL_ANSI);
	if (demangled) {
		free(plain);
		return demangled;
	}
	if (*plain != '.' && strncmp(plain, "_Z", 2) && strncmp(plain, "_R", 2))
		plain[strcspn(plain, ".")] = '\0';
	return plain;
}

/* Names of functions as a person would write them. */
#ifndef VRAMTRACE_SYMBOL_NAMES_H
#define VRAMTRACE_SYMBOL_NAMES_H

/* The readable form of a name in a symbol table or in DWARF: demangled (C++, Rust), without
 * parameters, and without what the compiler appended to a clone's name. To be freed; NULL when out
 * of memory. */
char *names_readable(const char *name);

#endif

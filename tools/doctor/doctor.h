/* The checks, each in the file named here. */
#ifndef VRAMTRACE_DOCTOR_DOCTOR_H
#define VRAMTRACE_DOCTOR_DOCTOR_H

#include "doctor/findings.h"
#include "doctor/loader.h"

struct image;

struct doctor_question {
	const char *command;  /* program to be run; NULL: none, only this machine is looked at */
	const char *recorder; /* path of libvramtrace.so; NULL: it was not found */
	const char *output;   /* pattern of the trace's path */
};

/* All checks; findings begins empty. */
void doctor_examine(struct findings *findings, const struct doctor_question *question);

/* program.c: follows command through PATH and through scripts to the file that is executed, whose
 * path is returned, to be freed; NULL when there is none that can be traced. *image is it, opened.
 * recorder: NULL unknown. */
char *doctor_find_program(struct findings *findings, const char *command,
	const struct image *recorder, struct image **image);

/* libraries.c: what is loaded with the program: missing files, CUDA runtimes, other interposers. */
void doctor_check_libraries(struct findings *findings, const char *program,
	const struct image *image, const struct loaded_list *libraries);

/* machine.c: variables that change what is recorded, the place for traces, the unwinder, the
 * driver. found: where libcuda.so.1 and libunwind.so.8 are. recorder: NULL unknown. */
void doctor_check_environment(struct findings *findings);
void doctor_check_output(struct findings *findings, const char *pattern);
void doctor_check_unwinder(
	struct findings *findings, const char *recorder, const struct loaded_list *found);
void doctor_check_driver(
	struct findings *findings, const struct image *recorder, const struct loaded_list *found);

#endif

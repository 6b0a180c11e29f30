#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "input.h"
#include "running.h"

static void complain(const char *what, const char *why)
{
	fprintf(stderr, "vramtrace: %s: %s\n", what, why);
}

/* Why the recorder cannot be told anything through this header; NULL: it can. */
static const char *find_fault(struct vt_file_header *header)
{
	if (memcmp(header->magic, VT_MAGIC, sizeof(header->magic)) ||
		header->byte_order != VT_BYTE_ORDER || header->format != VT_FORMAT)
		return vt_error_text(VT_E_NOT_TRACE);
	if (!(atomic_load(&header->control) & VT_CONTROL_HEEDED))
		return "this recording cannot be told anything: it is an old one, or on a file "
		       "system without shared mappings";
	return NULL;
}

/* Sets or clears the bit in the file. The recorder has the same page mapped. */
static bool set_control(const char *path, bool pause)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	struct vt_file_header *header = MAP_FAILED;
	const char *fault;

	if (fd >= 0 && lseek(fd, 0, SEEK_END) >= VT_HEADER_BYTES)
		header = mmap(NULL, sizeof(*header), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (header == MAP_FAILED) {
		complain(path, errno ? strerror(errno) : vt_error_text(VT_E_NOT_TRACE));
		if (fd >= 0)
			close(fd);
		return false;
	}
	close(fd);
	fault = find_fault(header);
	if (fault)
		complain(path, fault);
	else if (pause)
		atomic_fetch_or(&header->control, VT_CONTROL_PAUSED);
	else
		atomic_fetch_and(&header->control, ~VT_CONTROL_PAUSED);
	munmap(header, sizeof(*header));
	return !fault;
}

static int set_of_trace(const struct options *options, const char *path, bool pause)
{
	errno = 0;
	if (!set_control(path, pause))
		return STATUS_UNREADABLE;
	if (!options->quiet) {
		format_put_file(stdout, path);
		puts(pause ? ": paused; what is allocated and freed is still recorded, without "
			     "call stacks, and no copies"
			   : ": recorded in full again");
	}
	return STATUS_OK;
}

static int set_of_process(const struct options *options, const char *text, bool pause)
{
	char **paths;
	size_t n = running_find_traces(running_pid(text), &paths);
	int status = STATUS_OK;

	if (!n) {
		complain(text, errno == ENOENT ? "there is no such process"
			       : errno	       ? strerror(errno)
					       : "this process writes no trace: it is not "
						 "recorded, or has not used CUDA yet");
		return STATUS_UNREADABLE;
	}
	for (size_t i = 0; i < n; i++) {
		if (set_of_trace(options, paths[i], pause))
			status = STATUS_UNREADABLE;
		free(paths[i]);
	}
	free(paths);
	return status;
}

static int set_all(const struct options *options, bool pause)
{
	int status = STATUS_OK;

	for (size_t i = 0; i < options->n_arguments; i++) {
		const char *argument = options->arguments[i];
		int error = running_pid(argument) ? set_of_process(options, argument, pause)
						  : set_of_trace(options, argument, pause);

		if (error)
			status = error;
	}
	return status;
}

int cmd_pause(const struct options *options)
{
	return set_all(options, true);
}

int cmd_resume(const struct options *options)
{
	return set_all(options, false);
}

#include "model/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define AFTER_NS    2000000000u
#define INTERVAL_NS 200000000u

static bool is_on;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void progress_show(bool on)
{
	is_on = on && isatty(STDERR_FILENO);
}

struct progress progress_start(void)
{
	return (struct progress){.start_ns = now_ns()};
}

void progress_step(
	struct progress *progress, const char *doing, const char *path, uint64_t done, uint64_t of)
{
	uint64_t now;

	if (!is_on || !of)
		return;
	now = now_ns();
	if (now - progress->start_ns < AFTER_NS || now - progress->shown_ns < INTERVAL_NS)
		return;
	progress->shown_ns = now;
	fprintf(stderr, "\r%s %s: %3u %%", doing, path,
		(unsigned int)(100.0 * (double)done / (double)of));
}

void progress_end(const struct progress *progress)
{
	if (progress->shown_ns)
		fputs("\r\033[K", stderr);
}

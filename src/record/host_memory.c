#include "record/host_memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/options.h"
#include "record/pause.h"
#include "record/session.h"

#define INTERVAL_NS 1000000000u
#define MAX_TEXT    4096u

_Atomic uint64_t host_memory_next_ns;

/* Opened anew each time: programs close what they do not know. By plain system calls, which are no
 * places for the thread to be cancelled at. Returns whether there is anything. */
static bool read_text(const char *path, char text[MAX_TEXT])
{
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	long n;

	if (fd < 0)
		return false;
	n = syscall(SYS_read, fd, text, MAX_TEXT - 1);
	syscall(SYS_close, fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The line "NAME:   123 kB", in bytes. */
static bool find(const char *text, const char *name, uint64_t *bytes)
{
	const char *at = strstr(text, name);

	if (!at)
		return false;
	*bytes = strtoull(at + strlen(name), NULL, 10) * 1024;
	return true;
}

/* That of the thread, for the first thread of the process may have ended. */
static void ask_process(struct vt_rec_host_memory *record, char text[MAX_TEXT])
{
	if (!read_text("/proc/thread-self/status", text))
		return;
	if (find(text, "\nVmRSS:", &record->resident_bytes))
		record->known |= VT_HOST_RESIDENT;
	if (find(text, "\nVmLck:", &record->locked_bytes))
		record->known |= VT_HOST_LOCKED;
	if (find(text, "\nVmSwap:", &record->swapped_bytes))
		record->known |= VT_HOST_SWAPPED;
}

static void ask_machine(struct vt_rec_host_memory *record, char text[MAX_TEXT])
{
	if (!read_text("/proc/meminfo", text))
		return;
	if (find(text, "\nMemAvailable:", &record->available_bytes))
		record->known |= VT_HOST_AVAILABLE;
	if (find(text, "\nSwapTotal:", &record->swap_total_bytes) &&
		find(text, "\nSwapFree:", &record->swap_free_bytes))
		record->known |= VT_HOST_SWAP;
}

void host_memory_write(struct vt_lane *lane)
{
	struct vt_rec_host_memory record = {0};
	char text[MAX_TEXT];

	if (!options.memory_samples || pause_is_on())
		return;
	ask_process(&record, text);
	ask_machine(&record, text);
	record.time_ns = vt_writer_time(&session.writer, session_clock_ns());
	if (record.known)
		vt_put_host_memory(lane, &record);
}

void host_memory_sample(uint64_t monotonic_ns)
{
	uint64_t due = atomic_load_explicit(&host_memory_next_ns, memory_order_relaxed);
	struct vt_lane *lane;

	if (!session_is_on() || monotonic_ns < due ||
		!atomic_compare_exchange_strong(
			&host_memory_next_ns, &due, monotonic_ns + INTERVAL_NS))
		return;
	lane = session_lane(monotonic_ns);
	if (lane)
		host_memory_write(lane);
}

void host_memory_forget(void)
{
	atomic_store_explicit(&host_memory_next_ns, 0, memory_order_relaxed);
}

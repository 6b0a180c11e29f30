/* How long copies take, where CUSIM_LINK says how fast the link is: each stream is busy until its
 * last copy is through. The bytes have moved by then; only programs, which wait or ask events for
 * the time, see a device that works behind their back. */
#include "sim.h"

#include <errno.h>
#include <time.h>

#define START_NS      2000u  /* before the first byte of a copy moves */
#define PAGEABLE_PART 5u     /* pageable memory has this part of the link */
#define STAGED_BYTES  65536u /* up to so much of it the driver takes along without waiting */

/* When the call that this thread is in may return; 0: at once. */
static __thread u64 return_ns;

u64 sim_clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec;
}

void sim_clock_wait(u64 until_ns)
{
	if (until_ns > return_ns)
		return_ns = until_ns;
}

void sim_clock_return(void)
{
	struct timespec until = {
		(time_t)(return_ns / 1000000000u), (long)(return_ns % 1000000000u)};

	if (!return_ns)
		return;
	return_ns = 0;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

void sim_clock_copy(CUcontext ctx, CUstream stream, bool sync, enum cusim_host host, u64 bytes)
{
	u64 *busy_ns = sim_stream_clock(ctx, stream), now = sim_clock_now(), rate = sim.link_bytes;

	if (!rate)
		return;
	if (host == CUSIM_HOST_PAGEABLE)
		rate = rate / PAGEABLE_PART + 1;
	if (*busy_ns < now)
		*busy_ns = now;
	*busy_ns += START_NS + (u64)((double)bytes * 1e9 / (double)rate);
	if (sync || (host == CUSIM_HOST_PAGEABLE && bytes > STAGED_BYTES))
		sim_clock_wait(*busy_ns);
}

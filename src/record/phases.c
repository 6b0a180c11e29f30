#include "record/phases.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "record/session.h"

/* Open at once before there is a trace; more are not recorded. */
#define MAX_WAITING 32u

struct waiting {
	struct phase_event event; /* its texts are the two below */
	uint64_t thread_id;
	char name[PHASES_MAX_NAME + 1];
	char domain[PHASES_MAX_NAME + 1];
};

/* Phases that were begun before there was a trace and are not ended, oldest first. */
static struct {
	pthread_mutex_t lock; /* over the writer's lock; nothing else is called under it */
	_Atomic unsigned int n;
	struct waiting items[MAX_WAITING]; /* lock */
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct vt_text text_of(const char *text)
{
	return (struct vt_text){text, strnlen(text, PHASES_MAX_NAME)};
}

/* of_thread NULL: of this one, now. Else it began earlier, and stands before all that is written
 * later. */
static void write_phase(const struct phase_event *event, enum vt_phase_action action,
	const struct waiting *of_thread)
{
	uint64_t now = session_clock_ns();
	struct vt_lane *lane = session_lane(now);
	struct vt_rec_phase record = {
		.time_ns = vt_writer_time(&session.writer, now),
		.action = action,
		.told = event->told,
		.thread_id = of_thread ? of_thread->thread_id : 0,
		.range_id = event->range_id,
		.name = text_of(event->name),
		.domain = text_of(event->domain),
	};

	if (!lane)
		return;
	if (of_thread)
		record.time_ns = lane->delta.time_ns;
	vt_put_phase(lane, &record);
}

void phases_mark(const struct phase_event *event)
{
	struct vt_rec_mark record = {
		.told = event->told,
		.name = text_of(event->name),
		.domain = text_of(event->domain),
	};
	int saved = errno;
	struct vt_lane *lane;
	uint64_t now;

	if (!session_is_on())
		return;
	now = session_clock_ns();
	lane = session_lane(now);
	record.time_ns = vt_writer_time(&session.writer, now);
	if (lane)
		vt_put_mark(lane, &record);
	errno = saved;
}

static void wait_for_trace(const struct phase_event *event)
{
	unsigned int n;

	pthread_mutex_lock(&waiting.lock);
	n = atomic_load_explicit(&waiting.n, memory_order_relaxed);
	if (n < MAX_WAITING) {
		struct waiting *item = &waiting.items[n];

		*item = (struct waiting){.event = *event, .thread_id = (uint64_t)gettid()};
		memcpy(item->name, event->name, text_of(event->name).bytes);
		memcpy(item->domain, event->domain, text_of(event->domain).bytes);
		atomic_store(&waiting.n, n + 1);
	}
	pthread_mutex_unlock(&waiting.lock);
}

void phases_begin(const struct phase_event *event)
{
	int saved = errno;

	if (session_is_on()) {
		write_phase(event, VT_PHASE_BEGIN, NULL);
	} else if (session_is_possible()) {
		wait_for_trace(event);
		/* The trace may have been made meanwhile, and have found nothing waiting. */
		if (session_is_on())
			phases_flush();
	}
	errno = saved;
}

/* Whether the end in question would end item, as a reader matches them. */
static bool ends(const struct phase_event *event, const struct waiting *item, uint64_t thread_id)
{
	if (item->event.told != event->told)
		return false;
	if (event->told == VT_TOLD_NVTX_RANGE)
		return item->event.range_id == event->range_id;
	if (event->told == VT_TOLD_NVTX)
		return item->thread_id == thread_id &&
		       !strncmp(item->domain, event->domain, PHASES_MAX_NAME);
	return (!thread_id || item->thread_id == thread_id) &&
	       !strncmp(item->name, event->name, PHASES_MAX_NAME);
}

/* Removes the newest one that the end belongs to. */
static bool remove_waiting(const struct phase_event *event, uint64_t thread_id)
{
	unsigned int n = atomic_load_explicit(&waiting.n, memory_order_relaxed);

	for (unsigned int i = n; i--;) {
		if (!ends(event, &waiting.items[i], thread_id))
			continue;
		memmove(&waiting.items[i], &waiting.items[i + 1],
			(n - i - 1) * sizeof(*waiting.items));
		atomic_store(&waiting.n, n - 1);
		return true;
	}
	return false;
}

static bool stop_waiting(const struct phase_event *event)
{
	bool found;

	if (!atomic_load(&waiting.n))
		return false;
	pthread_mutex_lock(&waiting.lock);
	found = remove_waiting(event, (uint64_t)gettid()) ||
		(event->told == VT_TOLD_API && remove_waiting(event, 0));
	pthread_mutex_unlock(&waiting.lock);
	return found;
}

void phases_end(const struct phase_event *event)
{
	int saved = errno;

	if (!stop_waiting(event) && session_is_on())
		write_phase(event, VT_PHASE_END, NULL);
	errno = saved;
}

void phases_flush(void)
{
	unsigned int n;

	if (!atomic_load(&waiting.n))
		return;
	pthread_mutex_lock(&waiting.lock);
	n = atomic_load_explicit(&waiting.n, memory_order_relaxed);
	for (unsigned int i = 0; i < n; i++) {
		struct phase_event event = waiting.items[i].event;

		event.name = waiting.items[i].name;
		event.domain = waiting.items[i].domain;
		write_phase(&event, VT_PHASE_BEGIN, &waiting.items[i]);
	}
	atomic_store(&waiting.n, 0);
	pthread_mutex_unlock(&waiting.lock);
}

void phases_forget(void)
{
	pthread_mutex_init(&waiting.lock, NULL);
	atomic_store_explicit(&waiting.n, 0, memory_order_relaxed);
}

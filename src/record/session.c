#include "record/session.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/codes.h"
#include "record/eval.h"
#include "record/events.h"
#include "record/events_block.h"
#include "record/host_memory.h"
#include "record/interpreter.h"
#include "record/keep/keep.h"
#include "record/live.h"
#include "record/options.h"
#include "record/path.h"
#include "record/pause.h"
#include "record/phases.h"
#include "record/process.h"
#include "record/stack.h"
#include "record/stackset.h"
#include "record/modules.h"
#include "record/notes.h"
#include "record/uncovered.h"
#include "record/unwind/unwind.h"

#define MAX_NAME_TRIES	  1000
#define START_WAIT_NS	  100000
#define START_WAIT_ROUNDS 20000 /* two seconds */

struct session session;
__thread struct session_thread session_thread __attribute__((tls_model("initial-exec")));

static pthread_key_t thread_key;
static bool have_thread_key;
static void (*describe_driver)(void);

uint64_t session_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void session_say(const char *format, ...)
{
	int saved = errno;
	char line[1024];
	va_list args;
	size_t bytes;

	if (options.quiet)
		return;
	strcpy(line, "vramtrace: ");
	bytes = strlen(line);
	va_start(args, format);
	vsnprintf(line + bytes, sizeof(line) - bytes - 1, format, args);
	va_end(args);
	bytes = strlen(line);
	line[bytes++] = '\n';
	/* No place for the thread to be cancelled at, for it may hold a lock. */
	syscall(SYS_write, STDERR_FILENO, line, bytes);
	errno = saved;
}

static void thread_ended(void *lane)
{
	if (session_thread.lane == lane &&
		session_thread.epoch ==
			atomic_load_explicit(&session.epoch, memory_order_relaxed)) {
		codes_release(session_thread.codes);
		vt_lane_release(lane);
	}
	session_thread.codes = NULL;
	session_thread.lane = NULL;
	unwind_thread_ended();
}

static void say_summary(void)
{
	uint64_t n_lost =
		atomic_load_explicit(&session.writer.header->n_lost, memory_order_relaxed);
	struct live_summary summary;
	char live[32], peak[32];

	if (n_lost)
		session_say("%llu records are missing from %s", (unsigned long long)n_lost,
			session.path);
	live_summarise(&summary);
	live_format_bytes(live, sizeof(live), summary.live_bytes);
	live_format_bytes(peak, sizeof(peak), summary.peak_bytes);
	session_say(
		"peak %s of GPU memory, %s in %llu allocation%s live at exit: vramtrace report %s",
		peak, live, (unsigned long long)summary.n_live, summary.n_live == 1 ? "" : "s",
		session.path);
}

/* Registered before libc registers the loader's own handler, this runs after every other exit
 * handler and after the destructors of all libraries: what they free is still seen. No CUDA call is
 * made. */
static void finish(int status, void *unused)
{
	struct vt_rec_end record = {.reason = VT_END_EXIT, .status = status & 0xff};
	struct vt_lane *lane;

	(void)unused;
	if (!session_is_on() || atomic_exchange(&session.ended, true))
		return;
	notes_finish();
	lane = session_lane(session_clock_ns());
	if (lane) {
		host_memory_write(lane);
		record.time_ns = vt_writer_time(&session.writer, session_clock_ns());
		interpreter_finish(lane, record.time_ns);
		native_finish(lane, record.time_ns);
		vt_put_end(lane, &record);
	}
	vt_writer_close(&session.writer);
	say_summary();
}

/* The child has none of the parent's threads, none of its CUDA contexts, and must not touch its
 * trace. */
static void forget_in_child(void)
{
	int state = atomic_load_explicit(&session.state, memory_order_relaxed);

	unwind_forget();
	phases_forget();
	if (state == SESSION_OFF || state == SESSION_IDLE)
		return;
	vt_writer_forget(&session.writer);
	keep_forget();
	live_forget();
	stackset_forget();
	codes_forget();
	interpreter_forget();
	eval_forget();
	native_forget();
	modules_forget();
	events_forget();
	events_block_forget();
	uncovered_forget();
	notes_forget();
	pause_forget();
	host_memory_forget();
	session.path[0] = '\0';
	atomic_fetch_add_explicit(&session.epoch, 1, memory_order_relaxed);
	atomic_store_explicit(&session.ended, false, memory_order_relaxed);
	atomic_store_explicit(&session.state, SESSION_IDLE, memory_order_release);
}

/* These three registrations are made here, not at first use, because this early they need no memory
 * of libc: the key has one of the slots inside each thread's descriptor, the handlers fit the lists
 * libc starts with. */
void session_prepare(char **environ_list, void (*describe)(void))
{
	options_read(environ_list);
	describe_driver = describe;
	atomic_store_explicit(&session.epoch, 1, memory_order_relaxed);
	if (getauxval(AT_SECURE))
		return;
	have_thread_key = !pthread_key_create(&thread_key, thread_ended);
	pthread_atfork(NULL, NULL, forget_in_child);
	on_exit(finish, NULL);
	atomic_store_explicit(&session.state, SESSION_IDLE, memory_order_release);
}

static void say_stopped(int error)
{
	session_say("%s: %s; recording stops here, the program runs on", session.path,
		vt_error_text(error));
}

static int open_trace(void)
{
	struct vt_writer_options how = {.max_bytes = options.max_bytes,
		.paused = !options.enabled,
		.on_stop = say_stopped,
		.keeper = options.max_bytes ? &keep_keeper : NULL};
	int error = VT_E_OPEN;

	for (unsigned int n = 0; n < MAX_NAME_TRIES; n++) {
		if (!path_expand(session.path, sizeof(session.path), options.output, n)) {
			errno = ENAMETOOLONG;
			return VT_E_OPEN;
		}
		error = vt_writer_open(&session.writer, session.path, &how);
		if (error != VT_E_OPEN || errno != EEXIST)
			break;
	}
	return error;
}

static bool start_trace(void)
{
	int error = open_trace();

	if (!options.quiet && options.complaints[0] &&
		write(STDERR_FILENO, options.complaints, strlen(options.complaints)) < 0)
		options.complaints[0] = '\0';
	if (error) {
		session_say("%s: %s; not recording (VRAMTRACE_OUTPUT sets another path)",
			session.path,
			error == VT_E_OPEN ? strerrordesc_np(errno) : vt_error_text(error));
		session.path[0] = '\0';
		return false;
	}
	return true;
}

static void wait_for_start(void)
{
	struct timespec pause = {0, START_WAIT_NS};

	for (int i = 0; i < START_WAIT_ROUNDS && atomic_load(&session.state) == SESSION_STARTING;
		i++)
		nanosleep(&pause, NULL);
}

void session_start(uint64_t since_ns)
{
	int expected = SESSION_IDLE;
	bool started;

	if (!atomic_compare_exchange_strong(&session.state, &expected, SESSION_STARTING)) {
		wait_for_start();
		return;
	}
	started = start_trace();
	if (started)
		process_describe(session_lane(since_ns));
	atomic_store(&session.state, started ? SESSION_ON : SESSION_OFF);
	if (!started)
		return;
	/* From here on other threads record, perhaps a few events without a stack: the loader is
	 * called with nobody waiting. */
	stack_prepare();
	uncovered_flush();
	notes_flush();
	phases_flush();
	describe_driver();
}

/* The first time that the thread records. */
static struct vt_lane *take_lane(uint64_t since_ns, unsigned int epoch)
{
	struct session_thread *self = &session_thread;
	struct vt_rec_thread record = {0};
	char name[17] = "";

	memset(self->stacks, 0, sizeof(self->stacks));
	self->codes = NULL;
	self->readback.timed_id = 0;
	self->epoch = epoch;
	self->lane = vt_writer_lane(
		&session.writer, (uint32_t)gettid(), vt_writer_time(&session.writer, since_ns));
	if (!self->lane)
		return NULL;
	if (have_thread_key)
		pthread_setspecific(thread_key, self->lane);
	prctl(PR_GET_NAME, name);
	record.tid = self->lane->tid;
	record.name = (struct vt_text){name, strlen(name)};
	vt_put_thread(self->lane, &record);
	return self->lane;
}

struct vt_lane *session_lane(uint64_t since_ns)
{
	unsigned int epoch = atomic_load_explicit(&session.epoch, memory_order_relaxed);

	if (session_thread.epoch == epoch && session_thread.lane)
		return session_thread.lane;
	return take_lane(since_ns, epoch);
}

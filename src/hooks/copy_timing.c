#include "hooks/copy_timing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "hooks/contexts.h"
#include "hooks/driver.h"
#include "hooks/sample.h"
#include "record/pause.h"

#define N_PAIRS	    128u /* copies of one thread whose times are not read yet */
#define N_LIVES	    64u
#define MAX_READ    8u /* times read in one call, */
#define MAX_PENDING 2u /* and copies found not to be done */

/* Two events of one context. They are kept for the next copy, and go with their context. */
struct timing_pair {
	CUevent start, end; /* start NULL: there are none yet */
	unsigned int context_id;
	unsigned int life;    /* of the context */
	bool taken;	      /* by a copy */
	uint64_t timed_id;    /* of the copy, 0: its end was not recorded yet */
	unsigned int api;     /* of the copy */
	const char *api_name; /* likewise */
};

/* What one thread keeps; when it ends another thread takes it over, copies and all. */
struct timing_set {
	struct timing_set *next; /* among those whose threads have ended */
	unsigned int epoch;	 /* of the session */
	unsigned int at;	 /* where to look first for a free pair */
	unsigned int read_at;	 /* and for a copy that is done */
	unsigned int n_pending;
	struct timing_pair pairs[N_PAIRS];
};

static __thread struct timing_set *own __attribute__((tls_model("initial-exec")));

static struct {
	pthread_mutex_t lock; /* a leaf */
	struct timing_set *sets;
} left_behind = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_key_t thread_key;
static bool have_thread_key;

/* How often a context whose number falls here has ended: then its events are no more. */
static _Atomic unsigned int lives[N_LIVES];

static unsigned int life_of(unsigned int context_id)
{
	return atomic_load_explicit(&lives[context_id % N_LIVES], memory_order_acquire);
}

static void thread_ended(void *set)
{
	own = NULL;
	pthread_mutex_lock(&left_behind.lock);
	((struct timing_set *)set)->next = left_behind.sets;
	left_behind.sets = set;
	pthread_mutex_unlock(&left_behind.lock);
}

void timing_prepare(void)
{
	if (options.copy_timing)
		have_thread_key = !pthread_key_create(&thread_key, thread_ended);
}

static struct timing_set *adopt(void)
{
	struct timing_set *set;

	pthread_mutex_lock(&left_behind.lock);
	set = left_behind.sets;
	if (set)
		left_behind.sets = set->next;
	pthread_mutex_unlock(&left_behind.lock);
	return set;
}

static struct timing_set *own_set(void)
{
	unsigned int epoch = atomic_load_explicit(&session.epoch, memory_order_relaxed);

	if (own && own->epoch == epoch)
		return own;
	own = adopt();
	if (!own) {
		own = mmap(NULL, sizeof(*own), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
		if (own == MAP_FAILED)
			own = NULL;
	}
	if (!own)
		return NULL;
	own->epoch = epoch;
	if (have_thread_key)
		pthread_setspecific(thread_key, own);
	return own;
}

/* Calls of the driver follow, until own_calls_end. False: none may be made. */
static bool own_calls_begin(void)
{
	sample_asking_begins();
	if (!sample_captures_open())
		return true;
	sample_asking_ends();
	return false;
}

static void own_calls_end(void)
{
	sample_asking_ends();
}

static bool has_ended(const struct timing_pair *pair)
{
	return pair->start && pair->life != life_of(pair->context_id);
}

static bool create_events(struct timing_pair *pair, unsigned int context_id)
{
	__typeof__(&cuEventCreate) create = DRIVER_ORIGINAL(cuEventCreate);

	pair->context_id = context_id;
	pair->life = life_of(context_id);
	if (!create || create(&pair->start, CU_EVENT_DEFAULT)) {
		pair->start = NULL;
		return false;
	}
	/* Without the second one the first is of no use, and stays until its context goes. */
	if (create(&pair->end, CU_EVENT_DEFAULT)) {
		pair->start = NULL;
		return false;
	}
	return true;
}

/* Its events have gone with their context. */
static void forget(struct timing_set *set, struct timing_pair *pair)
{
	set->n_pending -= pair->timed_id != 0;
	*pair = (struct timing_pair){0};
}

/* A pair with events of the context; NULL: all are taken. */
static struct timing_pair *obtain(struct timing_set *set, unsigned int context_id)
{
	for (unsigned int i = 0; i < N_PAIRS; i++) {
		struct timing_pair *pair = &set->pairs[(set->at + i) % N_PAIRS];

		if (has_ended(pair))
			forget(set, pair);
		if (pair->taken || (pair->start && pair->context_id != context_id))
			continue;
		set->at = (set->at + i + 1) % N_PAIRS;
		if (!pair->start && !create_events(pair, context_id))
			return NULL;
		pair->taken = true;
		return pair;
	}
	return NULL;
}

static void give_back(struct timing_pair *pair)
{
	pair->taken = false;
	pair->timed_id = 0;
}

static bool record(CUevent event, CUstream stream, bool per_thread)
{
	__typeof__(&cuEventRecord) call =
		per_thread ? DRIVER_ORIGINAL(cuEventRecord_ptsz) : DRIVER_ORIGINAL(cuEventRecord);

	return call && !call(event, stream);
}

static struct timing_pair *start(bool per_thread, CUstream stream)
{
	struct timing_set *set = own_set();
	unsigned int context_id = contexts_current().id;
	struct timing_pair *pair = set && context_id ? obtain(set, context_id) : NULL;

	if (!pair || record(pair->start, stream, per_thread))
		return pair;
	give_back(pair);
	return NULL;
}

struct timing_pair *timing_start(bool per_thread, CUstream stream)
{
	struct timing_pair *pair = NULL;
	int saved = errno;

	if (!options.copies || session_thread.depth || !session_is_on() || pause_is_on())
		return NULL;
	session_thread.depth++;
	if (own_calls_begin()) {
		pair = start(per_thread, stream);
		own_calls_end();
	}
	session_thread.depth--;
	errno = saved;
	return pair;
}

void timing_stop(struct call *call, struct timing_pair *pair, CUstream stream)
{
	bool stopped = false;

	if (!call->result && call->recorded && own_calls_begin()) {
		stopped = !has_ended(pair) && record(pair->end, stream, call->per_thread);
		own_calls_end();
	}
	if (!stopped) {
		give_back(pair);
		return;
	}
	pair->timed_id = call->timed_id = event_timed_id();
	pair->api = call->api;
	pair->api_name = call->name;
	own->n_pending++;
}

/* False: not done yet. */
static bool read_pair(struct timing_pair *pair)
{
	__typeof__(&cuEventQuery) query = DRIVER_ORIGINAL(cuEventQuery);
	__typeof__(&cuEventElapsedTime) elapsed = DRIVER_ORIGINAL(cuEventElapsedTime);
	CUresult result = query ? query(pair->end) : CUDA_ERROR_NOT_FOUND;
	float ms;

	if (result == CUDA_ERROR_NOT_READY)
		return false;
	if (!result && elapsed && !elapsed(&ms, pair->start, pair->end) && ms >= 0)
		event_copy_time(
			pair->api, pair->api_name, pair->timed_id, (uint64_t)(ms * 1e6f) + 1);
	give_back(pair);
	return true;
}

static void read_pairs(struct timing_set *set, unsigned int context_id)
{
	unsigned int n_read = 0, n_waiting = 0, from = set->read_at;

	for (unsigned int i = 0; i < N_PAIRS && set->n_pending; i++) {
		struct timing_pair *pair = &set->pairs[(from + i) % N_PAIRS];

		if (!pair->timed_id)
			continue;
		if (has_ended(pair)) {
			forget(set, pair);
			continue;
		}
		if (pair->context_id != context_id)
			continue;
		if (n_read == MAX_READ || n_waiting == MAX_PENDING)
			break;
		if (read_pair(pair)) {
			n_read++;
			set->n_pending--;
			if (!n_waiting)
				set->read_at = (from + i + 1) % N_PAIRS;
		} else if (!n_waiting++) {
			set->read_at = (from + i) % N_PAIRS;
		}
	}
}

void timing_read(const struct call *call)
{
	if (!own || !own->n_pending || !call->recorded || !call->context_id || !session_is_on() ||
		own->epoch != atomic_load_explicit(&session.epoch, memory_order_relaxed) ||
		!own_calls_begin())
		return;
	read_pairs(own, call->context_id);
	own_calls_end();
}

void timing_context_ends(unsigned int context_id)
{
	if (!options.copy_timing || !context_id)
		return;
	atomic_fetch_add(&lives[context_id % N_LIVES], 1);
	sample_wait_for_askers();
}

void timing_forget(void)
{
	pthread_mutex_init(&left_behind.lock, NULL);
	left_behind.sets = NULL;
}

/* src/record/live.c: totals, and that the order in which threads come to tell does not matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "record/live.h"

static struct live_summary now(void)
{
	struct live_summary summary;

	live_summarise(&summary);
	return summary;
}

static void expect(uint64_t live_bytes, uint64_t n_live, uint64_t peak_bytes)
{
	struct live_summary summary = now();

	assert_int_equal(summary.live_bytes, live_bytes);
	assert_int_equal(summary.n_live, n_live);
	assert_int_equal(summary.peak_bytes, peak_bytes);
}

static int start_empty(void **state)
{
	(void)state;
	live_forget();
	return 0;
}

static void totals(void **state)
{
	(void)state;
	expect(0, 0, 0);
	live_add(LIVE_MEMORY, 0x1000, 100, VT_KIND_LINEAR, 1, 1);
	live_add(LIVE_MEMORY, 0x2000, 50, VT_KIND_POOL, 1, 2);
	expect(150, 2, 150);
	live_remove(LIVE_MEMORY, 0x1000, 3);
	expect(50, 1, 150);
	live_remove(LIVE_MEMORY, 0x1000, 4);
	live_remove(LIVE_MEMORY, 0x3000, 4);
	expect(50, 1, 150);
	live_add(LIVE_MEMORY, 0x1000, 70, VT_KIND_VMM, 1, 5);
	expect(120, 2, 150);
	live_forget();
	expect(0, 0, 0);
}

/* An equal handle and address are two things. */
static void handles_are_apart(void **state)
{
	(void)state;
	live_add(LIVE_MEMORY, 7, 10, VT_KIND_LINEAR, 1, 1);
	live_add(LIVE_HANDLES, 7, 20, VT_KIND_VMM, 1, 1);
	expect(30, 2, 30);
	live_remove(LIVE_HANDLES, 7, 2);
	expect(10, 1, 30);
	live_remove(LIVE_MEMORY, 7, 2);
	expect(0, 0, 30);
}

/* The line at exit is about the device. */
static void host_memory_is_not_counted(void **state)
{
	static const enum vt_kind kinds[] = {VT_KIND_PINNED, VT_KIND_REGISTERED, VT_KIND_MANAGED};

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		live_add(LIVE_MEMORY, 1 + i, 100, kinds[i], 1, 1);
	expect(0, 0, 0);
	/* The same address as device memory later on. */
	live_add(LIVE_MEMORY, 1, 5, VT_KIND_LINEAR, 1, 2);
	expect(5, 1, 5);
	live_add(LIVE_MEMORY, 1, 100, VT_KIND_PINNED, 1, 3);
	expect(0, 0, 5);
}

/* The free was not seen: the address counts once. */
static void an_address_counts_once(void **state)
{
	(void)state;
	live_add(LIVE_MEMORY, 1, 100, VT_KIND_LINEAR, 1, 1);
	live_add(LIVE_MEMORY, 1, 30, VT_KIND_LINEAR, 1, 2);
	expect(30, 1, 100);
}

/* One thread frees at 10; another is given the address at 11 and tells so first. */
static void late_removal_spares_the_new_owner(void **state)
{
	(void)state;
	live_add(LIVE_MEMORY, 1, 100, VT_KIND_LINEAR, 1, 1);
	live_add(LIVE_MEMORY, 1, 30, VT_KIND_LINEAR, 1, 11);
	live_remove(LIVE_MEMORY, 1, 10);
	expect(30, 1, 100);
	live_remove(LIVE_MEMORY, 1, 11);
	expect(0, 0, 100);
}

#define N_THREADS   8
#define N_ADDRESSES 24
#define N_ROUNDS    40000

/* An allocator of few addresses, so that they pass from thread to thread at once. */
static struct {
	pthread_mutex_t lock;
	uint64_t clock;
	unsigned int n_free;
	uint64_t addresses[N_ADDRESSES];
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t tick(void)
{
	return __atomic_add_fetch(&driver.clock, 1, __ATOMIC_SEQ_CST);
}

static uint64_t driver_alloc(void)
{
	uint64_t address = 0;

	pthread_mutex_lock(&driver.lock);
	if (driver.n_free)
		address = driver.addresses[--driver.n_free];
	pthread_mutex_unlock(&driver.lock);
	return address;
}

static void driver_free(uint64_t address)
{
	pthread_mutex_lock(&driver.lock);
	driver.addresses[driver.n_free++] = address;
	pthread_mutex_unlock(&driver.lock);
}

struct worker {
	pthread_t thread;
	uint64_t held[N_ADDRESSES];
	uint64_t bytes[N_ADDRESSES];
	unsigned int n_held;
	uint64_t state;
};

/* As the wrappers do it: frees are stamped before the call, allocations after it, and told once the
 * call is over. */
static void *work(void *argument)
{
	struct worker *self = argument;

	for (int i = 0; i < N_ROUNDS; i++) {
		uint64_t random = self->state =
			self->state * 6364136223846793005u + 1442695040888963407u;
		uint64_t address;

		if (random >> 63) {
			address = driver_alloc();
			if (!address)
				continue;
			self->held[self->n_held] = address;
			self->bytes[self->n_held] = random >> 40;
			live_add(LIVE_MEMORY, address, self->bytes[self->n_held++], VT_KIND_LINEAR,
				1, tick());
		} else if (self->n_held) {
			uint64_t time_ns = tick();

			address = self->held[--self->n_held];
			driver_free(address);
			if (random >> 61 & 1)
				sched_yield();
			live_remove(LIVE_MEMORY, address, time_ns);
		}
	}
	return NULL;
}

static void addresses_pass_between_threads(void **state)
{
	static struct worker workers[N_THREADS];
	uint64_t bytes = 0, n = 0;

	(void)state;
	for (driver.n_free = 0; driver.n_free < N_ADDRESSES; driver.n_free++)
		driver.addresses[driver.n_free] = 0x7f0000000000u + driver.n_free * 512u;
	for (unsigned int i = 0; i < N_THREADS; i++) {
		workers[i].state = i + 1;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (unsigned int i = 0; i < N_THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned int i = 0; i < N_THREADS; i++) {
		n += workers[i].n_held;
		for (unsigned int held = 0; held < workers[i].n_held; held++)
			bytes += workers[i].bytes[held];
	}
	assert_int_equal(now().n_live, n);
	assert_int_equal(now().live_bytes, bytes);
	for (unsigned int i = 0; i < N_THREADS; i++)
		for (unsigned int held = 0; held < workers[i].n_held; held++)
			live_remove(LIVE_MEMORY, workers[i].held[held], tick());
	assert_int_equal(now().n_live, 0);
	assert_int_equal(now().live_bytes, 0);
}

static void bytes_for_people(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0 B"},
		{1023, "1023 B"},
		{1024, "1.0 KiB"},
		{1536, "1.5 KiB"},
		{1048575, "1023.9 KiB"},
		{1048576, "1.0 MiB"},
		{3435973837u, "3.2 GiB"},
		{5ull << 40, "5.0 TiB"},
		{1ull << 60, "1048576.0 TiB"},
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		live_format_bytes(text, sizeof(text), cases[i].bytes);
		if (strcmp(text, cases[i].text))
			fail_msg("%s is not %s", text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(totals, start_empty),
		cmocka_unit_test_setup(handles_are_apart, start_empty),
		cmocka_unit_test_setup(host_memory_is_not_counted, start_empty),
		cmocka_unit_test_setup(an_address_counts_once, start_empty),
		cmocka_unit_test_setup(late_removal_spares_the_new_owner, start_empty),
		cmocka_unit_test_setup(addresses_pass_between_threads, start_empty),
		cmocka_unit_test_setup(bytes_for_people, start_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

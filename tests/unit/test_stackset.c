/* src/record/stackset.c: one number a stack, whoever asks; and exactly one asker is told to write
 * it down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "record/session.h"
#include "record/stack.h"
#include "record/stackset.h"

static int start_empty(void **state)
{
	(void)state;
	stackset_forget();
	/* As session_lane does in a new session: what the thread remembers is void. */
	memset(session_thread.stacks, 0, sizeof(session_thread.stacks));
	return 0;
}

static uint64_t intern(const uint64_t *words, size_t n_words, bool *is_new)
{
	const struct stackset_key key = {.native = words, .rest = words, .n_rest = n_words};

	return stackset_intern(&key, is_new);
}

static void same_stack_same_number(void **state)
{
	uint64_t a[] = {1, 2, 3}, b[] = {1, 2, 4}, c[] = {1, 2};
	uint64_t id_a, id_b, id_c;
	bool is_new;

	(void)state;
	id_a = intern(a, 3, &is_new);
	assert_true(is_new);
	id_b = intern(b, 3, &is_new);
	assert_true(is_new);
	id_c = intern(c, 2, &is_new);
	assert_true(is_new);
	assert_true(id_a && id_b && id_c && id_a != id_b && id_b != id_c && id_a != id_c);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(intern(a, 3, &is_new), id_a);
		assert_false(is_new);
		assert_int_equal(intern(b, 3, &is_new), id_b);
		assert_false(is_new);
		assert_int_equal(intern(c, 2, &is_new), id_c);
		assert_false(is_new);
	}
}

/* A stack as the recorder captures it. */
static uint64_t number_of(size_t n_native, size_t n_python, uint64_t flags, const uint64_t *frames)
{
	struct stack stack = {.native = {.frames = frames, .n_frames = n_native},
		.n_python = n_python,
		.flags = flags};
	struct stackset_key key;
	bool is_new;

	memcpy(stack_python(&stack), frames + n_native, n_python * sizeof(*frames));
	key = stack_key(&stack);
	return stackset_intern(&key, &is_new);
}

/* The same words may be native addresses or Python frames, and a stack that was cut is not a whole
 * one. */
static void sorts_of_frames_are_told_apart(void **state)
{
	static const uint64_t frames[] = {1, 2, 3};
	const uint64_t ids[] = {
		number_of(3, 0, 0, frames),
		number_of(2, 1, 0, frames),
		number_of(0, 3, 0, frames),
		number_of(3, 0, VT_STACK_NATIVE_CUT, frames),
		number_of(2, 1, VT_STACK_PYTHON_CUT, frames),
	};

	(void)state;
	for (size_t i = 0; i < 5; i++)
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(ids[i], ids[k]);
	assert_int_equal(number_of(2, 1, 0, frames), ids[1]);
	assert_int_equal(number_of(0, 0, 0, frames), 0);
}

/* Whether a native stack has a number or not, and whichever it has, the whole has one. */
static void numbers_of_native_stacks(void **state)
{
	static const uint64_t native[] = {1, 2, 3}, other[] = {1, 2, 4}, rest[] = {7, 8};
	struct stackset_key key = {native, 3, 0, rest, 2};
	uint64_t id, id_of_other;
	bool is_new;

	(void)state;
	id = stackset_intern(&key, &is_new);
	assert_true(is_new);
	for (key.native_id = 5; key.native_id < 1000; key.native_id++) {
		assert_int_equal(stackset_intern(&key, &is_new), id);
		assert_false(is_new);
		assert_int_equal(stackset_intern(&key, &is_new), id);
	}
	key.native = other;
	id_of_other = stackset_intern(&key, &is_new);
	assert_true(is_new);
	assert_int_not_equal(id_of_other, id);
	key.n_rest = 1;
	assert_int_not_equal(stackset_intern(&key, &is_new), id_of_other);
	assert_true(is_new);
}

static void no_stack_is_zero(void **state)
{
	uint64_t frame = 5;
	bool is_new = true;

	(void)state;
	assert_int_equal(intern(&frame, 0, &is_new), 0);
	assert_false(is_new);
}

static void forgetting_starts_over(void **state)
{
	uint64_t frame = 5;
	uint64_t id;
	bool is_new;

	id = intern(&frame, 1, &is_new);
	start_empty(state);
	assert_int_equal(intern(&frame, 1, &is_new), id);
	assert_true(is_new);
}

#define N_THREADS 8
#define N_STACKS  5000u
#define MAX_DEPTH 40u

static uint64_t ids[N_THREADS][N_STACKS];
static _Atomic unsigned int n_new[N_STACKS];
static pthread_barrier_t barrier;

/* The stack numbered n: depths differ, and many share their upper frames, as real ones do. */
static size_t make_stack(unsigned int n, uint64_t *frames)
{
	size_t depth = 1 + n % MAX_DEPTH;

	frames[0] = 0x400000 + n;
	for (size_t i = 1; i < depth; i++)
		frames[i] = 0x7f0000000000u + (n / 100) * 4096 + i * 16;
	return depth;
}

/* Each thread meets them in an order of its own, several times. */
static void *intern_all(void *argument)
{
	unsigned int self = (unsigned int)(uintptr_t)argument;
	static const unsigned int steps[N_THREADS] = {
		1, 3, 7, 9, 11, 13, 17, 19}; /* coprime to N_STACKS */
	uint64_t frames[MAX_DEPTH];

	pthread_barrier_wait(&barrier);
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < N_STACKS; i++) {
			unsigned int n = (i * steps[self] + self * 501) % N_STACKS;
			size_t depth = make_stack(n, frames);
			bool is_new;
			uint64_t id = intern(frames, depth, &is_new);

			atomic_fetch_add(&n_new[n], is_new);
			if (!id || (ids[self][n] && ids[self][n] != id))
				return "a number changed";
			ids[self][n] = id;
		}
	}
	return NULL;
}

static void threads_agree(void **state)
{
	static bool used[N_STACKS + 1];
	pthread_t threads[N_THREADS];
	void *problem;

	(void)state;
	pthread_barrier_init(&barrier, NULL, N_THREADS);
	for (uintptr_t i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, intern_all, (void *)i), 0);
	for (int i = 0; i < N_THREADS; i++) {
		pthread_join(threads[i], &problem);
		assert_null(problem);
	}
	for (unsigned int n = 0; n < N_STACKS; n++) {
		assert_int_equal(atomic_load(&n_new[n]), 1);
		for (int i = 1; i < N_THREADS; i++)
			assert_int_equal(ids[i][n], ids[0][n]);
		/* 1 to N_STACKS, each once. */
		assert_in_range(ids[0][n], 1, N_STACKS);
		assert_false(used[ids[0][n]]);
		used[ids[0][n]] = true;
	}
	pthread_barrier_destroy(&barrier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(same_stack_same_number, start_empty),
		cmocka_unit_test_setup(sorts_of_frames_are_told_apart, start_empty),
		cmocka_unit_test_setup(numbers_of_native_stacks, start_empty),
		cmocka_unit_test_setup(no_stack_is_zero, start_empty),
		cmocka_unit_test_setup(forgetting_starts_over, start_empty),
		cmocka_unit_test_setup(threads_agree, start_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

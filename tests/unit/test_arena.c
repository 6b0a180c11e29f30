/* src/record/arena.c: aligned, apart from one another, used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "record/arena.h"

#define N_PIECES 4000

static uint64_t random_state = 7;

static uint64_t next_random(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return random_state >> 33;
}

/* Each piece keeps its own pattern while thousands come and go. */
static void pieces_do_not_overlap(void **state)
{
	static struct piece {
		unsigned char *at;
		size_t bytes;
	} pieces[N_PIECES];
	struct arena arena = {0};

	(void)state;
	for (int round = 0; round < 20000; round++) {
		unsigned int i = (unsigned int)(next_random() % N_PIECES);
		struct piece *piece = &pieces[i];

		if (piece->at) {
			for (size_t n = 0; n < piece->bytes; n++)
				assert_int_equal(piece->at[n], i % 251);
			arena_free(&arena, piece->at, piece->bytes);
			piece->at = NULL;
			continue;
		}
		piece->bytes = next_random() % (round % 100 ? 700 : 200000);
		piece->at = round % 7
				    ? arena_alloc(&arena, piece->bytes)
				    : arena_alloc_forever(&arena, piece->bytes ? piece->bytes : 1);
		assert_non_null(piece->at);
		assert_int_equal((uintptr_t)piece->at % 16, 0);
		memset(piece->at, (int)(i % 251), piece->bytes);
		/* Packed pieces are not given back. */
		if (round % 7 == 0)
			piece->at = NULL;
	}
}

static void freed_pieces_are_used_again(void **state)
{
	struct arena arena = {0};
	void *first = arena_alloc(&arena, 100), *second;

	(void)state;
	assert_non_null(first);
	arena_free(&arena, first, 100);
	/* The same multiple of 16. */
	assert_ptr_equal(arena_alloc(&arena, 97), first);
	second = arena_alloc(&arena, 112);
	assert_ptr_not_equal(second, first);
	arena_free(&arena, first, 112);
	arena_free(&arena, second, 112);
	assert_ptr_not_equal(arena_alloc(&arena, 113), second);
	assert_ptr_equal(arena_alloc(&arena, 100), second);
	assert_ptr_equal(arena_alloc(&arena, 112), first);
	/* Of larger ones, the same power of two. */
	first = arena_alloc(&arena, 1025);
	arena_free(&arena, first, 1025);
	assert_ptr_equal(arena_alloc(&arena, 2048), first);
	arena_free(&arena, first, 2048);
	assert_ptr_not_equal(arena_alloc(&arena, 2049), first);
}

static void the_impossible_is_refused(void **state)
{
	struct arena arena = {0};

	(void)state;
	assert_null(arena_alloc(&arena, (size_t)1 << 47));
	assert_null(arena_alloc(&arena, (size_t)1 << 60));
	assert_null(arena_alloc(&arena, SIZE_MAX));
	assert_null(arena_alloc_forever(&arena, (size_t)1 << 60));
	assert_non_null(arena_alloc(&arena, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_do_not_overlap),
		cmocka_unit_test(freed_pieces_are_used_again),
		cmocka_unit_test(the_impossible_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

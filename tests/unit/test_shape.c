/* tools/analysis: curves in bounded memory, and what their shapes are taken for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/shape.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

/* splitmix64: the same numbers in every run. */
static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* A curve and its axis. */
struct drawn {
	struct curve_axis axis;
	struct curve curve;
	uint64_t n_live;
};

static struct drawn drawn_begin(void)
{
	return (struct drawn){.axis = {.start = 1000, .unit = 1}};
}

static void draw(struct drawn *drawn, uint64_t x, uint64_t bytes)
{
	curve_note(&drawn->curve, &drawn->axis, 1000 + x, bytes, drawn->n_live);
	curve_axis_note(&drawn->axis, 1000 + x, 0);
}

static void test_columns(void **state)
{
	struct drawn drawn = drawn_begin();
	struct series series;

	(void)state;
	for (uint64_t x = 0; x < 1000000; x++)
		draw(&drawn, x, x % 1000);
	assert_true(drawn.curve.n_points <= CURVE_N_COLUMNS);
	assert_true(drawn.curve.n_points > CURVE_N_COLUMNS / 2);
	series_make(&series, &drawn.curve, &drawn.axis, 1000 + 999999);
	for (size_t i = 0; i < series.n; i++) {
		assert_int_equal(series.columns[i], i);
		/* The last column is not full yet. */
		if (i + 1 == series.n)
			break;
		assert_int_equal(series.least_bytes[i], 0);
		assert_int_equal(drawn.curve.points[i].most_bytes, 999);
	}
	assert_int_equal(series.end_bytes[series.n - 1], 999);
	curve_release(&drawn.curve);
}

/* Between two changes the curve is what it was; columns in which nothing at all was going on are
 * left out; a late curve does not begin before it was there. */
static void test_gaps(void **state)
{
	struct drawn drawn = drawn_begin();
	struct series series;

	(void)state;
	for (uint64_t x = 0; x < 100; x++)
		if (x < 20 || x >= 60)
			curve_axis_note(&drawn.axis, 1000 + x, 1);
	draw(&drawn, 10, 5);
	draw(&drawn, 90, 7);
	series_make(&series, &drawn.curve, &drawn.axis, 1000 + 99);
	assert_int_equal(series.n, 10 + 40);
	assert_int_equal(series.columns[0], 10);
	assert_int_equal(series.least_bytes[0], 0);
	assert_int_equal(series.end_bytes[0], 5);
	assert_int_equal(series.columns[10], 60);
	assert_int_equal(series.least_bytes[10], 5);
	assert_int_equal(series.least_bytes[40], 5);
	assert_int_equal(series.least_bytes[41], 7);
	curve_release(&drawn.curve);
}

/* Births and deaths of one column cancel out, also after columns were put together. */
static void test_survivors(void **state)
{
	struct drawn drawn = drawn_begin();
	struct series series;
	uint64_t n = 0;

	(void)state;
	for (uint64_t x = 0; x < 1000; x++) {
		draw(&drawn, x, 1);
		curve_note_birth(&drawn.curve);
	}
	for (uint64_t x = 0; x < 1000; x++)
		if (x < 500 || x % 10)
			curve_note_death(&drawn.curve, &drawn.axis, 1000 + x);
	series_make(&series, &drawn.curve, &drawn.axis, 1000 + 999);
	for (size_t i = 0; i < series.n; i++)
		n += series.n_survivors[i];
	assert_int_equal(n, 50);
	assert_int_equal(shape_find_stay(&series), SHAPE_GOES);
	curve_release(&drawn.curve);
}

/* Times beyond any axis, and before its start. */
static void test_extremes(void **state)
{
	struct drawn drawn = drawn_begin();
	struct series series;
	struct shape shape;

	(void)state;
	series_make(&series, &drawn.curve, &drawn.axis, 1000);
	assert_int_equal(series.n, 0);
	shape_judge(&shape, &series, SHAPE_STAY_UNKNOWN);
	assert_int_equal(shape.kind, SHAPE_UNDECIDED);
	draw(&drawn, 0, 1);
	assert_int_equal(curve_axis_column(&drawn.axis, 3), 0);
	draw(&drawn, UINT64_MAX - 1000, UINT64_MAX);
	assert_int_equal(drawn.curve.n_points, 2);
	series_make(&series, &drawn.curve, &drawn.axis, UINT64_MAX);
	shape_judge(&shape, &series, SHAPE_STAY_UNKNOWN);
	assert_int_equal(shape.kind, SHAPE_UNDECIDED);
	curve_release(&drawn.curve);
}

#define N_STEPS 10000u

/* bytes at each of N_STEPS steps. */
typedef uint64_t function(uint64_t step, uint64_t *random);

/* What the drawn function is taken for. */
static struct shape shape_of(function *bytes, uint64_t seed, enum shape_stay stay, bool more)
{
	struct drawn drawn = drawn_begin();
	struct series series;
	struct shape shape;

	for (uint64_t step = 0; step < N_STEPS; step++) {
		drawn.n_live = more ? step : 1;
		draw(&drawn, step, bytes(step, &seed));
	}
	series_make(&series, &drawn.curve, &drawn.axis, 1000 + N_STEPS - 1);
	shape_judge(&shape, &series, stay);
	curve_release(&drawn.curve);
	return shape;
}

/* A block for every hundredth request, beside what is in use for a moment. */
static uint64_t leak(uint64_t step, uint64_t *random)
{
	return step / 100 * 64 * KIB + next(random) % (8 * MIB);
}

static uint64_t random_leak(uint64_t step, uint64_t *random)
{
	static uint64_t bytes;

	if (!step)
		bytes = 0;
	bytes += next(random) % 250 ? 0 : 64 * KIB;
	return bytes + next(random) % MIB;
}

static uint64_t staircase(uint64_t step, uint64_t *random)
{
	(void)random;
	return step / 500 * 50 * MIB + (step % 500 < 400 ? 900 * MIB : 0);
}

static void test_growing(void **state)
{
	unsigned int n_late = 0;
	struct shape shape;

	(void)state;
	shape = shape_of(leak, 1, SHAPE_STAYS, true);
	assert_int_equal(shape.kind, SHAPE_GROWING);
	/* 64 KiB for 100 steps; a column has 2^7. */
	assert_in_range(shape.bytes_per_step, 64 * KIB * 128 / 100 * 9 / 10,
		64 * KIB * 128 / 100 * 11 / 10);
	/* A load that comes and goes, and leaves something behind. */
	shape = shape_of(staircase, 0, SHAPE_STAYS, true);
	assert_int_equal(shape.kind, SHAPE_GROWING);
	assert_in_range(shape.bytes_per_step, 50 * MIB * 128 / 500 * 8 / 10,
		50 * MIB * 128 / 500 * 12 / 10);
	/* Nothing came to stay, or it is not known and the swings are larger than the growth. */
	assert_int_not_equal(shape_of(leak, 1, SHAPE_GOES, true).kind, SHAPE_GROWING);
	assert_int_not_equal(shape_of(staircase, 1, SHAPE_STAY_UNKNOWN, true).kind, SHAPE_GROWING);
	/* By chance: some are not called so yet. */
	for (uint64_t seed = 0; seed < 100; seed++)
		n_late += shape_of(random_leak, seed, SHAPE_STAYS, true).kind != SHAPE_GROWING;
	assert_true(n_late < 20);
}

/* One result that is replaced by a larger one: there are never more blocks. */
static uint64_t accumulate(uint64_t step, uint64_t *random)
{
	(void)random;
	return step * KIB;
}

static void test_replaced(void **state)
{
	(void)state;
	assert_int_equal(shape_of(accumulate, 0, SHAPE_GOES, false).kind, SHAPE_GROWING);
	assert_int_equal(shape_of(accumulate, 0, SHAPE_STAY_UNKNOWN, true).kind, SHAPE_GROWING);
}

static uint64_t noise(uint64_t step, uint64_t *random)
{
	(void)step;
	return next(random) % (64 * MIB);
}

/* Slower than a column is long. */
static uint64_t slow_noise(uint64_t step, uint64_t *random)
{
	static uint64_t bytes;

	if (step % 200 == 0)
		bytes = next(random) % (64 * MIB);
	return bytes;
}

static uint64_t sawtooth(uint64_t step, uint64_t *random)
{
	(void)random;
	return (step % 1700) * 64 * KIB;
}

static uint64_t one_tooth(uint64_t step, uint64_t *random)
{
	(void)random;
	return (step * 2 % N_STEPS) * 64 * KIB;
}

static uint64_t walk(uint64_t step, uint64_t *random)
{
	static uint64_t bytes;

	if (!step)
		bytes = 1000 * MIB;
	bytes = next(random) & 1 ? bytes + MIB : bytes > MIB ? bytes - MIB : 0;
	return bytes;
}

/* Each new shape is kept; there are few. */
static uint64_t filling(uint64_t step, uint64_t *random)
{
	static bool seen[64];
	static uint64_t bytes;
	uint64_t shape = next(random) % 1000;

	if (!step) {
		bytes = 0;
		for (size_t i = 0; i < 64; i++)
			seen[i] = false;
	}
	if (shape < 64 && !seen[shape]) {
		seen[shape] = true;
		bytes += MIB;
	}
	return bytes;
}

static uint64_t ramp(uint64_t step, uint64_t *random)
{
	(void)random;
	return (step < N_STEPS / 2 ? step : N_STEPS / 2) * 64 * KIB;
}

/* Just when the cache is full. */
static uint64_t full(uint64_t step, uint64_t *random)
{
	return (step < N_STEPS / 6 * 5 ? step : N_STEPS / 6 * 5) * 64 * KIB + next(random) % MIB;
}

static uint64_t at_once(uint64_t step, uint64_t *random)
{
	return step < 5 ? 0 : 32 * MIB + (next(random) % 2 ? 0 : 8 * MIB);
}

static uint64_t late(uint64_t step, uint64_t *random)
{
	(void)random;
	return step < N_STEPS - 300 ? 0 : 32 * MIB;
}

/* What comes and goes is never called growing: of 1000 curves of each sort, none may stay, one in a
 * hundred if it is not known whether it stays. */
static void test_not_growing(void **state)
{
	static function *const functions[] = {noise, slow_noise, walk};
	unsigned int n_stay = 0, n_unknown = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		for (uint64_t seed = 0; seed < 100; seed++) {
			n_stay += shape_of(functions[i], seed, SHAPE_GOES, true).kind ==
				  SHAPE_GROWING;
			n_unknown += shape_of(functions[i], seed, SHAPE_STAY_UNKNOWN, true).kind ==
				     SHAPE_GROWING;
		}
	assert_int_equal(n_stay, 0);
	print_message("not known to stay: %u of 300\n", n_unknown);
	assert_true(n_unknown <= 3);
	assert_int_not_equal(shape_of(sawtooth, 0, SHAPE_STAYS, true).kind, SHAPE_GROWING);
	assert_int_not_equal(shape_of(one_tooth, 0, SHAPE_STAYS, true).kind, SHAPE_GROWING);
	for (uint64_t seed = 0; seed < 100; seed++)
		assert_int_not_equal(
			shape_of(filling, seed, SHAPE_STAYS, true).kind, SHAPE_GROWING);
}

static void test_stopped(void **state)
{
	(void)state;
	assert_int_equal(shape_of(ramp, 0, SHAPE_STAYS, true).kind, SHAPE_SATURATING);
	assert_int_not_equal(shape_of(full, 0, SHAPE_STAYS, true).kind, SHAPE_GROWING);
	assert_int_equal(shape_of(at_once, 0, SHAPE_STAYS, true).kind, SHAPE_ONE_TIME);
	/* Seen for too short a time. */
	assert_int_equal(shape_of(late, 0, SHAPE_STAYS, true).kind, SHAPE_UNDECIDED);
	assert_int_equal(shape_of(one_tooth, 0, SHAPE_STAYS, true).kind, SHAPE_UNDECIDED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_survivors),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_growing),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_not_growing),
		cmocka_unit_test(test_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

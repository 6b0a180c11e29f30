/*
 * src/record/unwind/walk.c, rows.c and memo.c against a plain walk written for this test: random
 * rows, random memory, random changes to it, a few starts that come again and again. Then the same
 * with what is remembered spoilt in one of seven ways: each must show.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>

#include "record/unwind/memo.h"
#include "record/unwind/pages.h"
#include "record/unwind/row.h"
#include "record/unwind/walk.h"

#define PAGE	   4096u
#define N_WORDS	   (2 * PAGE / 8)
#define N_CODES	   48u
#define FIRST_CODE 0x10000u
#define OWN_START  (FIRST_CODE + 8 * 16)
#define OWN_END	   (FIRST_CODE + 10 * 16)
#define MAX_FRAMES 24u

enum spoil {
	SPOIL_NOTHING,
	SPOIL_LIVENESS, /* words that came into rbp are not checked */
	SPOIL_RBP,	/* nor the start's rbp */
	SPOIL_IP,	/* nor its ip */
	SPOIL_ONE,	/* one word is not checked */
	SPOIL_END,	/* nor the low address that ends a walk */
	SPOIL_CFA,	/* nor a realigned frame's CFA word */
	SPOIL_NONE,	/* nor what says that code without unwind information ends the stack */
	N_SPOILS
};

static uint64_t *words; /* a stack, with unreadable pages on both sides */
static uint32_t rows_of_code[N_CODES];
static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return random_state >> 24;
}

static unsigned int choose(unsigned int n)
{
	return (unsigned int)(next_random() % n);
}

static uint64_t base(void)
{
	return (uint64_t)(uintptr_t)words;
}

/* Each function of the model is 16 bytes; what is none of them has no unwind information. */
static uint32_t row_of(uint64_t pc)
{
	uint64_t code = (pc - FIRST_CODE) / 16;

	return pc >= FIRST_CODE && code < N_CODES ? rows_of_code[code] : row_make(ROW_NONE, 0, 0);
}

static uint32_t random_row(void)
{
	int64_t cfa = 8 * (int64_t)(1 + choose(6));
	int64_t slot = choose(2) ? -16 - 8 * (int64_t)choose(2) : 0;

	switch (choose(14)) {
	case 0:
		return ROW_BAD;
	case 1:
		return row_make(ROW_LAST, 0, 0);
	case 2:
		return row_make(ROW_NONE, 0, 0);
	case 3:
		return row_make(ROW_REALIGNED, -8 * (int64_t)choose(3), 0);
	case 4:
		return row_make(ROW_SIGNAL, 0, 0);
	case 5:
	case 6:
	case 7:
	case 8:
		return row_make(ROW_RBP, 16, -16);
	default:
		return row_make(ROW_RSP, cfa, slot);
	}
}

static uint64_t random_word(unsigned int place)
{
	unsigned int kind = choose(40);

	if (kind < 27)
		return FIRST_CODE + next_random() % (N_CODES * 16);
	if (kind < 36)
		return base() + 8 * (uint64_t)(place + choose(24));
	if (kind < 38)
		return choose(0x4000);
	return next_random() << 24;
}

/* --- The plain walk -------------------------------------------------------------------------- */

enum read_kind { READ_RA, READ_RBP, READ_CFA, READ_RSP };

struct plain {
	uint64_t frames[MAX_FRAMES];
	unsigned int n_frames;
	enum read_kind reads[WALK_MAX_LOADS]; /* in order */
	unsigned int n_reads;
	bool low_end; /* a low address ended it */
	int none_read,
		none_only; /* which read gave the rbp that ended it; -1: the start's; -2: none */
};

static bool read_word(struct plain *plain, uint64_t address, enum read_kind kind, uint64_t *value)
{
	if (address & 7 || address < base() || address >= base() + 8 * N_WORDS)
		return false;
	*value = words[(address - base()) / 8];
	plain->reads[plain->n_reads++] = kind;
	return true;
}

static bool is_readable(uint64_t address)
{
	return !(address & 7) && address >= base() && address < base() + 8 * N_WORDS;
}

/* Registers of the frame that the plain walk is in. */
struct place {
	uint64_t pc, cfa, rbp;
	int rbp_read; /* which read gave rbp, -1: none */
	bool uncommon;
};

static bool plain_signal(struct plain *plain, struct place *at, uint64_t *ra)
{
	uint64_t frame = at->cfa;

	at->uncommon = true;
	if (!is_readable(frame + 120) || !read_word(plain, frame + 168, READ_RA, ra) ||
		!read_word(plain, frame + 160, READ_RSP, &at->cfa))
		return false;
	at->rbp_read = (int)plain->n_reads;
	read_word(plain, frame + 120, READ_RBP, &at->rbp);
	at->pc = *ra;
	return !(at->cfa & 7);
}

static bool plain_frame(struct plain *plain, struct place *at, uint32_t row, uint64_t *ra)
{
	uint64_t next, slot = 0;

	if (row_kind(row) == ROW_REALIGNED) {
		at->uncommon = true;
		slot = at->rbp;
		if (!read_word(plain, at->rbp + (uint64_t)row_cfa_bytes(row), READ_CFA, &next))
			return false;
	} else {
		next = (row_kind(row) == ROW_RBP ? at->rbp : at->cfa) +
		       (uint64_t)row_cfa_bytes(row);
		if (row_slot_bytes(row))
			slot = next + (uint64_t)row_slot_bytes(row);
	}
	if (next <= at->cfa || !is_readable(next - 8) || (slot && !is_readable(slot)))
		return false;
	read_word(plain, next - 8, READ_RA, ra);
	at->cfa = next;
	at->pc = *ra - 1;
	if (slot) {
		at->rbp_read = (int)plain->n_reads;
		read_word(plain, slot, READ_RBP, &at->rbp);
	}
	return true;
}

/* False: libunwind would be asked. */
static bool plain_walk(struct plain *plain, const struct walk_start *start)
{
	struct place at = {start->ip - 1, start->cfa, start->rbp, -1, false};
	bool used[WALK_MAX_LOADS + 1] = {false}; /* by read, the start's last */

	*plain = (struct plain){.frames = {start->ip}, .n_frames = 1, .none_read = -2};
	for (unsigned int n_steps = 0; n_steps < WALK_MAX_STEPS; n_steps++) {
		bool *use = &used[at.rbp_read < 0 ? (int)WALK_MAX_LOADS : at.rbp_read];
		uint32_t row = row_of(at.pc);
		uint64_t ra;

		switch (row_kind(row)) {
		case ROW_LAST:
			return true;
		case ROW_NONE:
			plain->none_read = at.rbp_read;
			plain->none_only = !*use;
			return at.rbp < at.cfa || at.rbp > at.cfa + 0x4000;
		case ROW_BAD:
			return false;
		default:
			*use |= row_kind(row) == ROW_RBP || row_kind(row) == ROW_REALIGNED;
			if (row_kind(row) == ROW_SIGNAL ? !plain_signal(plain, &at, &ra)
							: !plain_frame(plain, &at, row, &ra))
				return false;
		}
		if (ra < 0x4000) {
			plain->low_end = true;
			return !at.uncommon;
		}
		if (ra >= OWN_START && ra < OWN_END)
			continue;
		plain->frames[plain->n_frames++] = ra;
		if (plain->n_frames == MAX_FRAMES)
			return true;
	}
	return false;
}

/* --- The unwinder's ----------------------------------------------------------------------------
 */

static struct rows rows;
static struct memo_table *memos;
static struct area area;
static struct trail trail;

static void spoil_trail(enum spoil spoil, const struct plain *plain)
{
	for (uint32_t i = 0; i < trail.n_loads; i++) {
		if ((spoil == SPOIL_LIVENESS && plain->reads[i] == READ_RBP) ||
			(spoil == SPOIL_CFA && plain->reads[i] == READ_CFA) ||
			(spoil == SPOIL_NONE && plain->none_only && plain->none_read == (int)i) ||
			(spoil == SPOIL_END && plain->low_end && i == trail.n_loads - 1 &&
				plain->reads[i] == READ_RA))
			trail.loads[i].place &= ~(int64_t)WALK_NEEDED;
	}
	if (spoil == SPOIL_ONE && trail.n_loads)
		trail.loads[choose(trail.n_loads)].place &= ~(int64_t)WALK_NEEDED;
	if (spoil == SPOIL_RBP ||
		(spoil == SPOIL_NONE && plain->none_only && plain->none_read == -1))
		trail.rbp_matters = false;
}

struct result {
	uint32_t n_frames;
	bool has_gap;
};

/* As unwind_capture goes about it. Returns the frames, NULL: libunwind's turn. */
static const uint64_t *capture(enum spoil spoil, const struct walk_start *start,
	struct result *result, unsigned long *n_hits)
{
	static const struct walk_limits limits = {MAX_FRAMES, OWN_START, OWN_END};
	struct walk_start key = *start;
	const struct memo *memo;
	struct plain plain;
	uint64_t hash;

	if (spoil == SPOIL_IP)
		key.ip = FIRST_CODE;
	memo = memo_guess(memos, &key);
	if (!memo)
		memo = memo_find(memos, &key);
	if (memo) {
		++*n_hits;
		*result = (struct result){memo->n_frames, memo->has_gap};
		return memo_frames(memo);
	}
	/* Code without unwind information that libunwind went through once is left to it from then
	 * on. */
	if (!walk_stack(&trail, &rows, &area, &limits, start)) {
		rows_clear(&rows);
		return NULL;
	}
	plain_walk(&plain, start);
	spoil_trail(spoil, &plain);
	hash = trail_hash(&trail, &key);
	if (!memo_find_walked(memos, hash, &key))
		memo_add(&memos, &trail, hash, &key);
	*result = (struct result){trail.n_frames, trail.has_gap};
	return trail.frames;
}

static void random_start(struct walk_start *start)
{
	start->ip = FIRST_CODE + 16 * choose(4) + 1;
	start->cfa = base() + 8 * choose(6);
	start->rbp = choose(8) ? base() + 8 * choose(5) : choose(20);
}

/* Captures so often, returns how often the result was wrong. */
static unsigned long differences(
	enum spoil spoil, unsigned long n_captures, unsigned long *n_hits, unsigned long *n_odd)
{
	unsigned long n_wrong = 0;

	*n_hits = *n_odd = 0;
	random_state = 1;
	for (unsigned long i = 0; i < n_captures; i++) {
		const uint64_t *frames;
		struct walk_start start;
		struct plain plain;
		struct result result;
		bool whole;

		if (i % 5000 == 0) {
			for (unsigned int n = 0; n < N_CODES; n++)
				rows_of_code[n] = random_row();
			for (unsigned int n = 0; n < N_WORDS; n++)
				words[n] = random_word(n);
			rows_clear(&rows);
			memo_clear(memos);
		}
		for (unsigned int n = choose(2); n; n--) {
			unsigned int place = choose(choose(2) ? 48 : 200);

			words[place] = random_word(place);
		}
		random_start(&start);
		whole = plain_walk(&plain, &start);
		frames = capture(spoil, &start, &result, n_hits);
		*n_odd += !whole;
		n_wrong += !frames != !whole ||
			   (frames && (result.n_frames != plain.n_frames ||
					      result.has_gap != (plain.none_read != -2) ||
					      memcmp(frames, plain.frames, result.n_frames * 8)));
	}
	return n_wrong;
}

static int set_up(void **state)
{
	char *pages = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(pages != MAP_FAILED);
	words = (uint64_t *)(pages + PAGE);
	assert_int_equal(mprotect(words, 8 * N_WORDS, PROT_READ | PROT_WRITE), 0);
	area = (struct area){base(), base() + 8 * N_WORDS, 0};
	rows_init(&rows, row_of);
	assert_true(rows_prepare(&rows));
	memos = memo_new();
	assert_non_null(memos);
	return 0;
}

static void equal_to_a_plain_walk(void **state)
{
	unsigned long n_hits, n_odd, n = 400000;

	(void)state;
	assert_int_equal(differences(SPOIL_NOTHING, n, &n_hits, &n_odd), 0);
	print_message("%lu captures, %lu remembered, %lu for libunwind\n", n, n_hits, n_odd);
	assert_true(n_hits > (n - n_odd) / 4);
	assert_true(n_odd < n * 3 / 4);
}

static void spoilt_memory_shows(void **state)
{
	(void)state;
	for (enum spoil spoil = SPOIL_NOTHING + 1; spoil < N_SPOILS; spoil++) {
		unsigned long n_hits, n_odd, n_wrong = differences(spoil, 100000, &n_hits, &n_odd);

		print_message("spoilt in way %d: %lu differences\n", spoil, n_wrong);
		assert_true(n_wrong > 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_to_a_plain_walk),
		cmocka_unit_test(spoilt_memory_shows),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}

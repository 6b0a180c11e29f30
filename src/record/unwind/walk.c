#include "record/unwind/walk.h"

#include "record/unwind/row.h"

/* libunwind takes no lower address for code. */
#define LOWEST_CODE 0x4000u

/* How far above the CFA libunwind looks for a frame that rbp may point to. */
#define RBP_REACH 0x4000u

/* Where a walk has got to. */
struct place {
	uint64_t pc, cfa, rbp;
	uint32_t rbp_load; /* which load gave rbp; FROM_START: none did */
	uint32_t n_loads;
	bool uncommon; /* libunwind leaves its fast path on this stack */
};

#define FROM_START UINT32_MAX

/* What can be read without a look: words that begin in here. */
struct window {
	struct area *area;
	uint64_t low, bytes;
};

enum step { STEP_ON, STEP_END, STEP_ODD };

static __attribute__((noinline)) bool look_around(struct window *window, uint64_t address)
{
	uint64_t page = address & -(uint64_t)AREA_PAGE_BYTES;

	if (area_covers(window->area, address)) {
		window->low = window->area->low;
		window->bytes = window->area->high - window->area->low;
		return true;
	}
	if (!area_is_readable(address))
		return false;
	if (page == window->low + window->bytes) {
		window->bytes += AREA_PAGE_BYTES;
	} else {
		window->low = page;
		window->bytes = AREA_PAGE_BYTES;
	}
	return true;
}

static inline bool can_read(struct window *window, uint64_t address)
{
	return !(address & 7) &&
	       (address - window->low < window->bytes || look_around(window, address));
}

AREA_RAW static inline uint64_t load(
	struct trail *trail, uint32_t number, uint64_t address, int64_t offset, int64_t needed)
{
	uint64_t value = *(const volatile uint64_t *)(uintptr_t)address;

	trail->loads[number] = (struct walk_load){value, offset | needed};
	return value;
}

/* What rbp holds has just decided something. */
static inline void use_rbp(struct trail *trail, uint32_t rbp_load)
{
	if (rbp_load == FROM_START)
		trail->rbp_matters = true;
	else
		trail->loads[rbp_load].place |= WALK_NEEDED;
}

/* Into the calling frame, around cfa. slot: where its rbp is, 0: where it was. */
static inline enum step step_to(struct trail *trail, struct window *window, struct place *at,
	uint64_t cfa, uint64_t slot, uint64_t cfa0)
{
	if (cfa <= at->cfa || !can_read(window, cfa - 8))
		return STEP_ODD;
	at->pc = load(trail, at->n_loads++, cfa - 8, (int64_t)(cfa - 8 - cfa0), WALK_NEEDED);
	at->cfa = cfa;
	if (!slot)
		return STEP_ON;
	if (!can_read(window, slot))
		return STEP_ODD;
	at->rbp_load = at->n_loads++;
	at->rbp = load(trail, at->rbp_load, slot, (int64_t)(slot - cfa0), 0);
	return STEP_ON;
}

static enum step step_realigned(
	struct trail *trail, struct window *window, struct place *at, uint32_t row, uint64_t cfa0)
{
	uint64_t word = at->rbp + (uint64_t)row_cfa_bytes(row), cfa;

	at->uncommon = true;
	use_rbp(trail, at->rbp_load);
	if (!can_read(window, word))
		return STEP_ODD;
	cfa = load(trail, at->n_loads++, word, (int64_t)(word - cfa0), WALK_NEEDED);
	return step_to(trail, window, at, cfa, at->rbp, cfa0);
}

/* Out of a signal handler: the interrupted code may be on any stack. */
static enum step step_signal(
	struct trail *trail, struct window *window, struct place *at, uint64_t cfa0)
{
	uint64_t frame = at->cfa;
	int64_t offset = (int64_t)(frame - cfa0);

	at->uncommon = true;
	if (!can_read(window, frame + ROW_SIGNAL_RBP) || !can_read(window, frame + ROW_SIGNAL_RIP))
		return STEP_ODD;
	at->pc = load(
		trail, at->n_loads++, frame + ROW_SIGNAL_RIP, offset + ROW_SIGNAL_RIP, WALK_NEEDED);
	at->cfa = load(
		trail, at->n_loads++, frame + ROW_SIGNAL_RSP, offset + ROW_SIGNAL_RSP, WALK_NEEDED);
	at->rbp_load = at->n_loads++;
	at->rbp = load(trail, at->rbp_load, frame + ROW_SIGNAL_RBP, offset + ROW_SIGNAL_RBP, 0);
	return at->cfa & 7 ? STEP_ODD : STEP_ON;
}

static __attribute__((noinline)) enum step step_rarely(struct trail *trail, struct window *window,
	struct place *at, struct row_entry *entry, uint64_t cfa0)
{
	switch (row_kind(entry->row)) {
	case ROW_REALIGNED:
		return step_realigned(trail, window, at, entry->row, cfa0);
	case ROW_SIGNAL:
		return step_signal(trail, window, at, cfa0);
	case ROW_LAST:
		return STEP_END;
	case ROW_NONE:
		trail->has_gap = true;
		use_rbp(trail, at->rbp_load);
		if (at->rbp - at->cfa > RBP_REACH)
			return STEP_END;
		/* A frame it is for libunwind, and one it keeps to. */
		entry->row = ROW_GUESSED;
		return STEP_ODD;
	case ROW_GUESSED:
		trail->has_gap = true;
		return STEP_ODD;
	default:
		return STEP_ODD;
	}
}

static inline enum step step(struct trail *trail, struct window *window, struct place *at,
	struct row_entry *entry, uint64_t cfa0)
{
	uint32_t row = entry->row;
	uint64_t cfa = at->cfa + (uint64_t)row_cfa_bytes(row);
	int64_t slot = row_slot_bytes(row);
	struct place rare;
	enum step how;

	if (row_kind(row) == ROW_RBP) {
		use_rbp(trail, at->rbp_load);
		cfa += at->rbp - at->cfa;
	} else if (row_kind(row) != ROW_RSP) {
		/* By way of a copy: the place itself is to stay in registers. */
		rare = *at;
		how = step_rarely(trail, window, &rare, entry, cfa0);
		*at = rare;
		return how;
	}
	return step_to(trail, window, at, cfa, slot ? cfa + (uint64_t)slot : 0, cfa0);
}

bool walk_stack(struct trail *trail, struct rows *rows, struct area *area,
	const struct walk_limits *limits, const struct walk_start *start)
{
	struct place at = {start->ip - 1, start->cfa, start->rbp, FROM_START, 0, false};
	uint64_t own_start = limits->own_start, own_bytes = limits->own_end - own_start;
	uint32_t entry = 0, n_frames = 1, max_frames = limits->max_frames;
	struct window window = {.area = area};
	enum step how = STEP_ON;

	trail->frames[0] = start->ip;
	trail->rbp_matters = trail->has_gap = false;
	for (unsigned int n_steps = 0; n_frames < max_frames; n_steps++) {
		bool is_signal;

		entry = rows_after(rows, entry, at.pc);
		is_signal = row_kind(rows->entries[entry].row) == ROW_SIGNAL;
		how = n_steps < WALK_MAX_STEPS
			      ? step(trail, &window, &at, &rows->entries[entry], start->cfa)
			      : STEP_ODD;
		if (how != STEP_ON)
			break;
		/* libunwind's fast path stops here, its slow path one or two frames on. */
		if (at.pc < LOWEST_CODE) {
			how = at.uncommon ? STEP_ODD : STEP_END;
			break;
		}
		if (at.pc - own_start >= own_bytes)
			trail->frames[n_frames++] = at.pc;
		at.pc -= !is_signal;
	}
	trail->n_frames = n_frames;
	trail->n_loads = at.n_loads;
	return how != STEP_ODD;
}

/* Multiplications that do not wait for one another. Each is folded: sums of bare products would be
 * the same for many stacks that differ in the same two addresses at different depths. */
uint64_t trail_hash(const struct trail *trail, const struct walk_start *start)
{
	uint64_t hash = start->ip + start->cfa * 0x9e3779b97f4a7c15u;

	for (uint32_t i = 0; i < trail->n_loads; i++) {
		const struct walk_load *made = &trail->loads[i];
		uint64_t mixed = (made->value ^ (uint64_t)made->place << 44) * 0xd1342543de82ef95u;

		if (made->place & WALK_NEEDED)
			hash += mixed ^ mixed >> 32;
	}
	hash ^= hash >> 32;
	return hash * 0x9e3779b97f4a7c15u;
}

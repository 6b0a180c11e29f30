#include "analysis/whatif.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/allocator_internal.h"
#include "model/memory.h"

/* What became of a recorded block in a replay. */
struct slot {
	struct allocator_block *block;
	uint64_t ticket;
	size_t since; /* step that made it pending */
};

/* A pending block that is ready later than it was. */
struct late {
	uint64_t ticket;
	size_t due; /* step */
};

struct replay {
	const struct whatif_recording *recording;
	struct allocator *allocator;
	struct slot *slots;
	struct whatif_guess guess;
	struct late *late;
	size_t n_late, late_room;
};

/* A new block of just the size from which on blocks are not split can be of a request that is
 * smaller: then no free block of that size would have been taken. One of that size itself gets a
 * new block only where there is no such block: the same in both cases. */
static uint64_t recorded_bytes(
	const struct whatif_recording *recording, const struct whatif_step *step)
{
	const struct settings *settings = &recording->settings;
	bool is_less = step->is_fresh && step->bytes == settings->max_split_bytes &&
		       !recording->sizes_exact && !settings->expandable;

	return is_less ? step->bytes - MIN_BLOCK_BYTES : step->bytes;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t any_bytes(const struct replay *replay, const struct whatif_step *step)
{
	uint64_t x = mix((uint64_t)(step - replay->recording->steps) * 64 + replay->guess.seed);
	uint64_t n_sizes = step->spare_bytes / MIN_BLOCK_BYTES + 1;

	switch (x % 4) {
	case 0:
		return recorded_bytes(replay->recording, step);
	case 1:
		return step->bytes - (x >> 2) % n_sizes * MIN_BLOCK_BYTES;
	default:
		return step->likely_bytes;
	}
}

static uint64_t asked_bytes(const struct replay *replay, const struct whatif_step *step)
{
	switch (replay->guess.sizes) {
	case WHATIF_RECORDED:
		return recorded_bytes(replay->recording, step);
	case WHATIF_LEAST:
		return step->bytes - step->spare_bytes;
	case WHATIF_ANY:
		return step->spare_bytes ? any_bytes(replay, step) : step->likely_bytes;
	default:
		return step->likely_bytes;
	}
}

static void put(struct replay *replay, struct slot *slot, const struct whatif_step *step)
{
	bool is_pending =
		step->kind == WHATIF_PUT_PENDING && replay->guess.pending != WHATIF_AT_ONCE;

	if (slot->block)
		slot->ticket = allocator_put(replay->allocator, slot->block, is_pending);
	slot->block = NULL;
	slot->since = (size_t)(step - replay->recording->steps);
}

static void make_ready(struct replay *replay, const struct slot *slot, size_t step)
{
	if (replay->guess.pending != WHATIF_LATE) {
		allocator_ready(replay->allocator, slot->ticket);
		return;
	}
	replay->late = memory_grow(
		replay->late, replay->n_late, &replay->late_room, sizeof(*replay->late));
	replay->late[replay->n_late++] = (struct late){slot->ticket, step + (step - slot->since)};
}

/* Before a request: PyTorch looks for what became ready only then. */
static void flush_late(struct replay *replay, size_t step)
{
	size_t n = 0;

	for (size_t i = 0; i < replay->n_late; i++)
		if (replay->late[i].due <= step)
			allocator_ready(replay->allocator, replay->late[i].ticket);
		else
			replay->late[n++] = replay->late[i];
	replay->n_late = n;
}

/* False when the step ends the replay. */
static bool apply(struct replay *replay, const struct whatif_step *step)
{
	const size_t i = (size_t)(step - replay->recording->steps);
	struct slot *slot = &replay->slots[step->block];
	struct allocator *allocator = replay->allocator;

	switch (step->kind) {
	case WHATIF_GET:
		if (replay->n_late)
			flush_late(replay, i);
		slot->block = allocator_get(
			allocator, step->stream, step->pool, asked_bytes(replay, step));
		return slot->block;
	case WHATIF_REFUSED:
		return !allocator_get(allocator, step->stream, step->pool, step->bytes);
	case WHATIF_PUT:
	case WHATIF_PUT_PENDING:
		put(replay, slot, step);
		return true;
	case WHATIF_READY:
		make_ready(replay, slot, i);
		return true;
	case WHATIF_EMPTY_CACHE:
		allocator_empty_cache(allocator);
		return true;
	case WHATIF_SCOPE_BEGIN:
	case WHATIF_SCOPE_END:
		allocator_scope(allocator, step->kind == WHATIF_SCOPE_BEGIN);
		return true;
	case WHATIF_POOL_UNUSED:
		allocator_pool_unused(allocator, step->pool);
		return true;
	}
	return true;
}

static void replay_begin(struct replay *replay, const struct whatif_recording *recording,
	const struct allocator_options *options, const struct whatif_guess *guess)
{
	*replay = (struct replay){
		.recording = recording,
		.allocator = allocator_new(options),
		.slots = memory_new(recording->n_blocks + 1, sizeof(*replay->slots)),
		.guess = *guess,
	};
}

static void replay_end(struct replay *replay)
{
	allocator_free(replay->allocator);
	free(replay->slots);
	free(replay->late);
}

void whatif_replay(const struct whatif_recording *recording,
	const struct allocator_options *options, const struct whatif_guess *guess,
	struct whatif_result *result)
{
	struct replay replay;
	size_t i;

	*result = (struct whatif_result){0};
	replay_begin(&replay, recording, options, guess);
	for (i = 0; i < recording->n_steps; i++)
		if (!apply(&replay, &recording->steps[i]))
			break;
	result->n_steps = i;
	if (i < recording->n_steps) {
		result->is_refused = recording->steps[i].kind == WHATIF_GET;
		result->has_passed = !result->is_refused;
	}
	result->stats = *allocator_stats(replay.allocator);
	replay_end(&replay);
	if (recording->n_replays)
		++*recording->n_replays;
}

/* The driver of the recorded run. */
struct driver {
	const struct whatif_recording *recording;
	size_t n_taken;
	size_t n_different; /* requests that the recorded driver never heard */
	uint64_t spare;	    /* where their memory goes */
};

static uint64_t answer_new(struct driver *driver, uint64_t bytes)
{
	driver->n_different++;
	driver->spare += bytes;
	return driver->spare;
}

static uint64_t answer(void *arg, enum allocator_request request, uint64_t bytes)
{
	struct driver *driver = arg;
	const struct whatif_recording *recording = driver->recording;
	uint64_t done_bytes = 0;

	while (driver->n_taken < recording->n_answers) {
		const struct whatif_answer *next = &recording->answers[driver->n_taken];

		if (next->request != request)
			break;
		/* How long a range is depends on the device, its memory comes page by page. */
		done_bytes += next->bytes;
		if (request == ALLOCATOR_SEGMENT ? done_bytes != bytes
						 : request == ALLOCATOR_MAP && done_bytes > bytes)
			break;
		driver->n_taken++;
		if (!next->address || request != ALLOCATOR_MAP || done_bytes == bytes)
			return next->address;
	}
	return answer_new(driver, bytes);
}

/* What is known of the sizes asked for from one call stack. */
struct known {
	uint64_t stack_id;
	size_t *steps; /* whose size is exact, in order of time */
	size_t n_steps, room;
	UT_hash_handle hh;
};

/* NULL: none, or the call was recorded without its stack. */
static struct known *known_of(struct known **all, uint64_t stack_id, bool add)
{
	struct known *known;

	if (!stack_id)
		return NULL;
	HASH_FIND(hh, *all, &stack_id, sizeof(stack_id), known);
	if (!known && add) {
		known = memory_new(1, sizeof(*known));
		known->stack_id = stack_id;
		HASH_ADD(hh, *all, stack_id, sizeof(known->stack_id), known);
	}
	return known;
}

static bool is_plausible(const struct whatif_recording *recording, size_t known, size_t unsure)
{
	uint64_t bytes = recording->steps[known].bytes, most = recording->steps[unsure].bytes;

	return bytes <= most && most - bytes <= recording->steps[unsure].spare_bytes;
}

/* So many sizes from the same stack are looked at: what was asked for much earlier or later says
 * little. */
#define MAX_CANDIDATES 1000u

/* The exact size nearest in time from the same stack that can have led to the recorded one. */
static uint64_t likely_bytes(
	const struct whatif_recording *recording, const struct known *known, size_t step)
{
	size_t above = 0, below, high = known ? known->n_steps : 0;

	while (above < high) {
		size_t middle = above + (high - above) / 2;

		if (known->steps[middle] < step)
			above = middle + 1;
		else
			high = middle;
	}
	below = above;
	for (unsigned int i = 0; known && i < MAX_CANDIDATES && (below || above < known->n_steps);
		i++) {
		bool take_below =
			below && (above == known->n_steps || step - known->steps[below - 1] <
								     known->steps[above] - step);
		size_t candidate = known->steps[take_below ? below - 1 : above];

		if (is_plausible(recording, candidate, step))
			return recording->steps[candidate].bytes;
		if (take_below)
			below--;
		else
			above++;
	}
	return recorded_bytes(recording, &recording->steps[step]);
}

static void repair_sizes(struct whatif_recording *recording)
{
	struct known *all = NULL, *known, *next;

	for (size_t i = 0; i < recording->n_steps; i++) {
		if (recording->steps[i].kind != WHATIF_GET || recording->steps[i].spare_bytes)
			continue;
		known = known_of(&all, recording->steps[i].stack_id, true);
		if (!known)
			continue;
		known->steps = memory_grow(
			known->steps, known->n_steps, &known->room, sizeof(*known->steps));
		known->steps[known->n_steps++] = i;
	}
	for (size_t i = 0; i < recording->n_steps; i++)
		if (recording->steps[i].spare_bytes)
			recording->steps[i].likely_bytes = likely_bytes(
				recording, known_of(&all, recording->steps[i].stack_id, false), i);
	HASH_ITER(hh, all, known, next)
	{
		HASH_DEL(all, known);
		free(known->steps);
		free(known);
	}
}

static void note_difference(struct whatif_check *check, size_t step)
{
	if (check->first_different == SIZE_MAX)
		check->first_different = step;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* How much smaller the request of a block may have been that was not split (rules 4, 6 and 8). */
static uint64_t unsplit_bytes(const struct settings *settings, const struct whatif_step *step)
{
	uint64_t oversize = settings->max_split_bytes, spare = SMALL_BYTES;

	if (step->bytes <= SMALL_BYTES)
		return 0;
	if (step->bytes < oversize || (step->bytes == oversize && step->is_fresh))
		return least(spare, step->bytes - SMALL_BYTES - MIN_BLOCK_BYTES);
	spare = step->is_fresh ? SEGMENT_STEP_BYTES : settings->max_non_split_rounding_bytes;
	return least(spare - MIN_BLOCK_BYTES, step->bytes - oversize);
}

/* Looks at a block right after it was got. */
static void compare(struct replay *replay, size_t i, struct whatif_check *check)
{
	const struct whatif_recording *recording = replay->recording;
	struct whatif_step *step = &recording->steps[i];
	const struct allocator_block *block = replay->slots[step->block].block;

	check->n_gets++;
	if (!recording->sizes_exact)
		step->spare_bytes =
			allocator_rounding(&recording->settings, step->bytes) +
			(allocator_has_split(replay->allocator) || recording->settings.expandable
					? 0
					: unsplit_bytes(&recording->settings, step));
	if (block->address == step->address &&
		(recording->sizes_exact || block->bytes == step->bytes))
		check->n_addresses++;
	else
		note_difference(check, i);
}

void whatif_check(struct whatif_recording *recording, struct whatif_check *check)
{
	const struct whatif_guess guess = {.sizes = WHATIF_RECORDED};
	struct driver driver = {.recording = recording};
	struct allocator_options options = {
		.settings = recording->settings,
		.version = recording->version,
		.device_bytes = recording->device_bytes,
		.cap_bytes = recording->cap_bytes,
		.range_bytes = recording->range_bytes,
		.addresses = ALLOCATOR_GIVEN,
		.driver = answer,
		.arg = &driver,
	};
	struct replay replay;
	size_t i;

	*check = (struct whatif_check){.first_different = SIZE_MAX};
	/* Recorded sizes are rounded, and what was left of a block with them need not be. */
	if (!recording->sizes_exact)
		memset(options.settings.divisions, 0, sizeof(options.settings.divisions));
	recording->n_unsure = recording->n_pending = 0;
	recording->most_spare_bytes = 0;
	replay_begin(&replay, recording, &options, &guess);
	for (i = 0; i < recording->n_steps; i++) {
		struct whatif_step *step = &recording->steps[i];

		step->likely_bytes = recorded_bytes(recording, step);
		step->spare_bytes = 0;
		recording->n_pending += step->kind == WHATIF_PUT_PENDING;
		if (!apply(&replay, step)) {
			note_difference(check, i);
			break;
		}
		if (step->kind == WHATIF_GET) {
			compare(&replay, i, check);
			recording->n_unsure += step->spare_bytes != 0;
			if (step->spare_bytes > recording->most_spare_bytes)
				recording->most_spare_bytes = step->spare_bytes;
		}
	}
	recording->n_gets = check->n_gets;
	recording->own = check->result.stats = *allocator_stats(replay.allocator);
	check->result.n_steps = i;
	check->n_answers = driver.n_taken;
	check->is_equal = check->first_different == SIZE_MAX && !driver.n_different &&
			  driver.n_taken == recording->n_answers;
	replay_end(&replay);
	repair_sizes(recording);
}

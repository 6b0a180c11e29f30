/* Predictions: the same replay in several ways, and how far they agree. */
#include "analysis/whatif.h"

/* The one version whose rules were tried against real runs. */
#define VALIDATED_VERSION 211u

/* From here on time matters. */
#define LONG_STEPS 200000u

/* Segments are multiples of this. */
#define STEP_BYTES (2 * SETTINGS_MIB)

/* One way in which the replay could be done. */
struct variant {
	struct whatif_guess guess;
	enum allocator_addresses addresses;
	unsigned int seed; /* of the addresses */
};

static struct allocator_options options_for(const struct whatif_recording *recording,
	const struct settings *settings, const struct variant *variant)
{
	struct allocator_options options = {
		.settings = *settings,
		.version = recording->version,
		.device_bytes = recording->device_bytes,
		.cap_bytes = recording->cap_bytes,
		.capacity_bytes = recording->driver_bytes,
		.addresses = variant->addresses,
		.seed = variant->seed,
	};

	/* A capacity that is tried stands for a smaller device: that is no memory fraction, without
	 * which nothing is collected (rule 13). */
	if (settings->memory_fraction >= 1 && !recording->cap_bytes)
		options.settings.collection_threshold = 0;
	return options;
}

/* The replays in search of the least capacity that suffices. */
struct search {
	const struct whatif_recording *recording;
	struct allocator_options options;
	struct whatif_guess guess;
	size_t refused_step;	/* by the last replay that was refused something */
	uint64_t refused_bytes; /* a cap that lets this request pass where it was refused */
	uint64_t fine_bytes;	/* how near to each other a cap that refuses and one that does not
				 * are to come */
};

static bool serves(struct search *search, uint64_t cap_bytes)
{
	struct whatif_result result;

	search->options.cap_bytes = cap_bytes;
	whatif_replay(search->recording, &search->options, &search->guess, &result);
	if (!result.is_refused)
		return true;
	search->refused_step = result.n_steps;
	search->refused_bytes =
		result.stats.reserved_bytes +
		allocator_segment_bytes(&search->options.settings,
			allocator_round(&search->options.settings,
				search->recording->steps[result.n_steps].likely_bytes));
	return false;
}

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
}

/* Narrows what lies between a cap that refuses something and one that does not. */
static void bisect(struct search *search, uint64_t *low, uint64_t *high)
{
	while (*high - *low > search->fine_bytes) {
		uint64_t middle = round_up(*low + (*high - *low) / 2);

		*(serves(search, middle) ? high : low) = middle;
	}
}

/* From a cap that refused something, as the last replay, up to one that does not and whose next
 * lower one does. What would have let the refused request pass is a good guess: everything that
 * could be given back was. Guesses are free as long as refusals come early; then they grow. 0: the
 * driver would have refused first. */
static uint64_t climb(struct search *search, uint64_t low)
{
	uint64_t gap_bytes = STEP_BYTES, high;
	size_t n_steps = 0;

	for (;; low = high) {
		high = round_up(search->refused_bytes);
		if (high < low + gap_bytes)
			high = low + gap_bytes;
		if (search->options.capacity_bytes && high > search->options.capacity_bytes)
			return 0;
		if (serves(search, high))
			break;
		n_steps += search->refused_step;
		if (n_steps > search->recording->n_steps / 4)
			gap_bytes *= 2;
	}
	/* A guess that did not grow is right most often. */
	if (gap_bytes == STEP_BYTES && high - low > search->fine_bytes) {
		if (!serves(search, high - STEP_BYTES))
			return high;
		high -= STEP_BYTES;
	}
	bisect(search, &low, &high);
	return high;
}

/* The least cap that serves everything, looked for from below. */
static uint64_t find_least(struct search *search, uint64_t live_bytes)
{
	uint64_t page_bytes = round_up(search->options.settings.large_segment_bytes);
	uint64_t low = round_up(live_bytes);

	/* Pages of expandable segments may pass a cap. */
	do
		low = low > page_bytes ? low - page_bytes : 0;
	while (low && serves(search, low));
	return climb(search, low);
}

/* From a cap that refuses nothing down to what lies behind one that does. */
static uint64_t descend(struct search *search, uint64_t high)
{
	uint64_t gap_bytes = STEP_BYTES, low;

	while (high > gap_bytes && serves(search, high - gap_bytes)) {
		high -= gap_bytes;
		gap_bytes *= 2;
	}
	low = high > gap_bytes ? high - gap_bytes : 0;
	bisect(search, &low, &high);
	return low + STEP_BYTES;
}

static const unsigned int band_steps[] = {65, 33, 16, 7, 3, 1};

#define N_BAND_STEPS (sizeof(band_steps) / sizeof(*band_steps))

/* Near the limit more memory can lead to a refusal that less does not: above the highest that was
 * seen to. */
static void find_band(struct search *search, uint64_t enough, struct whatif_value *needed)
{
	for (size_t i = 0; i < N_BAND_STEPS; i++) {
		uint64_t above = needed->value + band_steps[i] * STEP_BYTES;

		if (above > enough || serves(search, above))
			continue;
		above = climb(search, above);
		if (above)
			needed->high = above;
		return;
	}
}

static void widen(struct whatif_value *value, const struct whatif_value *with)
{
	if (with->low < value->low)
		value->low = with->low;
	if (with->high > value->high)
		value->high = with->high;
}

static void widen_to(struct whatif_value *value, uint64_t with)
{
	widen(value, &(struct whatif_value){with, with, with});
}

/* The first is the one whose value is given. */
static const struct variant variants[] = {
	{{WHATIF_LIKELY, WHATIF_AS_RECORDED, 0}, ALLOCATOR_DOWN, 0},
	{{WHATIF_LIKELY, WHATIF_AS_RECORDED, 0}, ALLOCATOR_ARENA, 0},
	{{WHATIF_LIKELY, WHATIF_AS_RECORDED, 0}, ALLOCATOR_UP, 0},
	{{WHATIF_RECORDED, WHATIF_AS_RECORDED, 0}, ALLOCATOR_DOWN, 0},
	{{WHATIF_LEAST, WHATIF_AS_RECORDED, 0}, ALLOCATOR_DOWN, 0},
	{{WHATIF_LIKELY, WHATIF_AT_ONCE, 0}, ALLOCATOR_DOWN, 0},
	{{WHATIF_LIKELY, WHATIF_LATE, 0}, ALLOCATOR_DOWN, 0},
};

#define N_VARIANTS (sizeof(variants) / sizeof(*variants))

/* More ways by chance: where only some of many requests are in doubt, the ways above may agree and
 * all be wrong. Each has segments at random places, and each second one some sizes at random, too.
 */
#define N_RANDOM       64u
#define N_RANDOM_LEAST 8u /* where steps are many */

/* As many for the least that is needed, which takes more replays, up to so many steps. */
#define SEARCHED_STEPS 50000u
#define N_SEARCHED     4u /* where steps are many */

static struct variant variant_at(const struct whatif_recording *recording, size_t i)
{
	unsigned int seed = (unsigned int)(i - N_VARIANTS);
	bool any_sizes = recording->n_unsure && seed % 2;

	if (i < N_VARIANTS)
		return variants[i];
	return (struct variant){{any_sizes ? WHATIF_ANY : WHATIF_LIKELY, WHATIF_AS_RECORDED, seed},
		ALLOCATOR_ANYWHERE, seed};
}

/* All up to `all_steps`, then fewer the longer the recording is. */
static size_t count_variants(
	const struct whatif_recording *recording, size_t all_steps, size_t least)
{
	size_t n = N_RANDOM;

	if (recording->n_steps > all_steps)
		n = N_RANDOM * all_steps / recording->n_steps;
	return N_VARIANTS + (n < least ? least : n);
}

static bool is_same(const struct allocator_stats *a, const struct allocator_stats *b)
{
	return a->peak_reserved_bytes == b->peak_reserved_bytes &&
	       a->n_device_allocs == b->n_device_allocs;
}

/* Sizes that are not the likely ones say only how much may depend on them: less than 1 % is
 * agreement. */
static bool agrees(const struct variant *variant, const struct allocator_stats *stats,
	const struct allocator_stats *first)
{
	uint64_t a = stats->peak_reserved_bytes, b = first->peak_reserved_bytes;

	return variant->guess.sizes == WHATIF_LEAST || variant->guess.sizes == WHATIF_ANY
		       ? (a > b ? a - b : b - a) <= b / 100
		       : is_same(stats, first);
}

/* The blocks of one stream in one pool lie in one range where segments are expandable: which of
 * them is lower does not depend on the driver. */
static bool is_needed(const struct whatif_recording *recording, const struct settings *settings,
	const struct variant *variant)
{
	bool places_matter = !settings->expandable || recording->version != VALIDATED_VERSION;

	if (variant->guess.pending != WHATIF_AS_RECORDED)
		return recording->n_pending;
	if (variant->guess.sizes != WHATIF_LIKELY)
		return recording->n_unsure;
	return variant->addresses == ALLOCATOR_DOWN || places_matter;
}

/* The recorded run is known: it is repeated with the sizes of its blocks, and only addresses and
 * times may differ. False: this variant says nothing of it. */
static bool adapt_to_own(struct variant *variant)
{
	bool is_likely = variant->guess.sizes == WHATIF_LIKELY;

	variant->guess.sizes = WHATIF_RECORDED;
	return is_likely;
}

static unsigned int doubt_of(const struct variant *variant)
{
	if (variant->guess.pending != WHATIF_AS_RECORDED)
		return WHATIF_WHY_PENDING;
	return variant->addresses == ALLOCATOR_DOWN || variant->guess.sizes == WHATIF_ANY
		       ? WHATIF_WHY_SIZES
		       : WHATIF_WHY_ADDRESSES;
}

/* What the variants have shown. */
struct outcome {
	struct whatif_result first;
	size_t n_replays, n_ended; /* that came to a refusal, or past one, that was not recorded */
	bool agree;
	bool is_own;		   /* the recorded settings */
	uint64_t least_wait_bytes; /* peaks as blocks are pending for a shorter or longer time */
	uint64_t most_wait_bytes;
};

static void begin_values(struct outcome *outcome, const struct allocator_stats *stats,
	struct whatif_prediction *prediction)
{
	uint64_t peak = stats->peak_reserved_bytes, n = stats->n_device_allocs;

	prediction->peak_reserved = (struct whatif_value){peak, peak, peak};
	prediction->n_device_allocs = (struct whatif_value){n, n, n};
	outcome->least_wait_bytes = outcome->most_wait_bytes = peak;
}

static void compare_variant(struct outcome *outcome, const struct variant *variant,
	const struct whatif_result *result, struct whatif_prediction *prediction)
{
	uint64_t peak = result->stats.peak_reserved_bytes;

	outcome->n_replays++;
	outcome->n_ended += result->is_refused || result->has_passed;
	prediction->why |= result->is_refused ? WHATIF_WHY_REFUSED : 0;
	prediction->why |= result->has_passed ? WHATIF_WHY_PASSED : 0;
	if (variant->guess.pending == WHATIF_AT_ONCE && peak < outcome->least_wait_bytes)
		outcome->least_wait_bytes = peak;
	if (variant->guess.pending == WHATIF_LATE && peak > outcome->most_wait_bytes)
		outcome->most_wait_bytes = peak;
	if (agrees(variant, &result->stats, &outcome->first.stats))
		return;
	outcome->agree = false;
	widen_to(&prediction->peak_reserved, peak);
	widen_to(&prediction->n_device_allocs, result->stats.n_device_allocs);
	prediction->why |= doubt_of(variant);
}

/* Which doubts the variants show; fills in the values without a limit on capacity. */
static void replay_variants(const struct whatif_recording *recording,
	struct whatif_prediction *prediction, struct outcome *outcome)
{
	size_t n = count_variants(recording, LONG_STEPS, N_RANDOM_LEAST);

	outcome->agree = true;
	outcome->is_own = settings_equal(&prediction->settings, &recording->settings);
	for (size_t i = 0; i < n; i++) {
		struct variant variant = variant_at(recording, i);
		struct allocator_options options =
			options_for(recording, &prediction->settings, &variant);
		struct whatif_result result;

		if (!is_needed(recording, &prediction->settings, &variant) ||
			(outcome->is_own && !adapt_to_own(&variant)))
			continue;
		whatif_replay(recording, &options, &variant.guess, &result);
		if (!i) {
			if (outcome->is_own)
				result.stats = recording->own;
			outcome->first = result;
			begin_values(outcome, &result.stats, prediction);
		}
		compare_variant(outcome, &variant, &result, prediction);
	}
	if (outcome->n_ended && outcome->n_ended < outcome->n_replays)
		prediction->why |= WHATIF_WHY_SOME;
}

/* A size that is off can cost or save a segment and what it is off by: a range is that much
 * wider. */
static void widen_by_segment(
	const struct whatif_recording *recording, struct whatif_prediction *prediction)
{
	uint64_t bytes =
		prediction->settings.large_segment_bytes + round_up(recording->most_spare_bytes);
	struct whatif_value *peak = &prediction->peak_reserved;

	widen_to(peak, peak->high + bytes);
	widen_to(peak, peak->low > bytes ? peak->low - bytes : 0);
}

/* Blocks that are pending for a shorter or longer time make so much of a difference that only the
 * least of it is worth saying. */
static bool is_matter_of_time(const struct outcome *outcome)
{
	return outcome->most_wait_bytes - outcome->least_wait_bytes >
	       outcome->first.stats.peak_reserved_bytes / 10;
}

static void classify(const struct whatif_recording *recording, const struct outcome *outcome,
	struct whatif_prediction *prediction)
{
	bool is_unsure = recording->n_unsure && !outcome->is_own;
	bool is_coarse = is_unsure && prediction->settings.large_segment_bytes >
					      prediction->peak_reserved.value / 100;

	prediction->why |= recording->n_unsure ? WHATIF_WHY_SIZES : 0;
	prediction->why |= recording->n_pending ? WHATIF_WHY_PENDING : 0;
	prediction->why |= recording->version != VALIDATED_VERSION ? WHATIF_WHY_VERSION : 0;
	if (prediction->why & (WHATIF_WHY_REFUSED | WHATIF_WHY_PASSED)) {
		prediction->class = WHATIF_LOWER_BOUND;
	} else if (is_matter_of_time(outcome)) {
		prediction->class = WHATIF_LOWER_BOUND;
		prediction->why |= WHATIF_WHY_TIME;
		prediction->peak_reserved.value = prediction->peak_reserved.low;
	} else if (!outcome->agree || is_coarse || recording->n_pending) {
		prediction->class = WHATIF_RANGE;
		if (is_unsure)
			widen_by_segment(recording, prediction);
	} else {
		prediction->class = prediction->why ? WHATIF_ABOUT : WHATIF_EXACT;
	}
}

/* cudaMallocAsync: the driver's pool grows in steps of this, whatever else it does. */
#define ASYNC_STEP_BYTES (32 * SETTINGS_MIB)

static void predict_async(const struct allocator_stats *stats, struct whatif_prediction *prediction)
{
	uint64_t bytes = (stats->peak_allocated_bytes + ASYNC_STEP_BYTES - 1) / ASYNC_STEP_BYTES *
			 ASYNC_STEP_BYTES;

	prediction->peak_reserved = (struct whatif_value){bytes, bytes, bytes};
	prediction->class = WHATIF_LOWER_BOUND;
	prediction->why |= WHATIF_WHY_BACKEND;
}

static void predict_capacity(const struct whatif_recording *recording, uint64_t capacity_bytes,
	struct whatif_prediction *prediction)
{
	struct allocator_options options =
		options_for(recording, &prediction->settings, &variants[0]);
	struct whatif_result result;

	if (!options.cap_bytes || options.cap_bytes > capacity_bytes)
		options.cap_bytes = capacity_bytes;
	whatif_replay(recording, &options, &variants[0].guess, &result);
	prediction->fits = !result.is_refused;
	prediction->fits_unsure = prediction->has_needed &&
				  options.cap_bytes >= prediction->needed.low &&
				  options.cap_bytes < prediction->needed.high;
	prediction->n_retries = result.stats.n_retries;
	if (result.is_refused)
		prediction->refused_step = result.n_steps;
}

static struct search search_for(const struct whatif_recording *recording,
	const struct whatif_prediction *prediction, const struct variant *variant)
{
	return (struct search){
		.recording = recording,
		.options = options_for(recording, &prediction->settings, variant),
		.guess = variant->guess,
		.refused_step = SIZE_MAX,
		.fine_bytes = STEP_BYTES,
	};
}

/* And less memory can lead to none: below the least that was found. */
static void find_islands(struct search *search, struct whatif_value *needed)
{
	for (size_t i = 0; i < N_BAND_STEPS; i++) {
		uint64_t bytes = band_steps[i] * STEP_BYTES;

		if (bytes < needed->value && serves(search, needed->value - bytes))
			widen_to(needed, descend(search, needed->value - bytes));
	}
}

/* Another variant's least cap: most often the same, which two replays show. A third one looks for
 * a band, each variant at another place. */
static void widen_needed(
	struct search *search, uint64_t enough, size_t i, struct whatif_value *needed)
{
	uint64_t below = needed->value - STEP_BYTES;
	uint64_t above = needed->value + band_steps[i % N_BAND_STEPS] * STEP_BYTES;

	if (!serves(search, needed->value))
		widen_to(needed, climb(search, needed->value));
	else if (below && serves(search, below))
		widen_to(needed, descend(search, below));
	if (above > needed->high && above <= enough && !serves(search, above))
		widen_to(needed, climb(search, above));
}

/* One for all guesses is as sure as the rest; else the guesses matter here, and only here. */
static void classify_needed(struct whatif_prediction *prediction)
{
	prediction->needed_class = prediction->class;
	if (prediction->needed.low == prediction->needed.high || prediction->class > WHATIF_ABOUT)
		return;
	prediction->needed_class = WHATIF_RANGE;
	prediction->why |= WHATIF_WHY_NEEDED;
}

static void predict_needed(const struct whatif_recording *recording,
	const struct allocator_stats *stats, struct whatif_prediction *prediction)
{
	struct search search = search_for(recording, prediction, &variants[0]);
	struct whatif_value *needed = &prediction->needed;
	uint64_t blur_bytes = 0;
	size_t n;

	/* In a long recording the ends of a range need not be sharp. */
	if (recording->n_steps > LONG_STEPS)
		blur_bytes = stats->peak_allocated_bytes / 256 / STEP_BYTES * STEP_BYTES;
	search.fine_bytes += prediction->class == WHATIF_RANGE ? blur_bytes : 0;
	needed->value = find_least(&search, stats->peak_allocated_bytes);
	if (!needed->value)
		return;
	prediction->needed_step = search.refused_step;
	needed->high = needed->value;
	needed->low = needed->value - (search.fine_bytes - STEP_BYTES);
	search.fine_bytes = STEP_BYTES + blur_bytes;
	find_band(&search, stats->peak_reserved_bytes, needed);
	find_islands(&search, needed);
	n = count_variants(recording, SEARCHED_STEPS, N_SEARCHED);
	for (size_t i = 1; i < n; i++) {
		const struct variant variant = variant_at(recording, i);

		if (!is_needed(recording, &prediction->settings, &variant) ||
			variant.guess.sizes == WHATIF_LEAST)
			continue;
		search = search_for(recording, prediction, &variant);
		search.fine_bytes += blur_bytes;
		widen_needed(&search, stats->peak_reserved_bytes, i, needed);
	}
	prediction->has_needed = needed->low;
	classify_needed(prediction);
}

/* Fills in all but what is needed. */
static void predict_run(const struct whatif_recording *recording, const struct settings *settings,
	struct whatif_prediction *prediction, struct outcome *outcome)
{
	*prediction = (struct whatif_prediction){
		.settings = *settings, .refused_step = SIZE_MAX, .needed_step = SIZE_MAX};
	if (recording->settings.backend != SETTINGS_NATIVE) {
		prediction->class = WHATIF_NO_ANSWER;
		prediction->why = WHATIF_WHY_BACKEND;
		return;
	}
	replay_variants(recording, prediction, outcome);
	prediction->n_refused = outcome->first.stats.n_refused;
	if (settings->backend == SETTINGS_ASYNC)
		predict_async(&outcome->first.stats, prediction);
	else
		classify(recording, outcome, prediction);
}

void whatif_predict_peak(const struct whatif_recording *recording, const struct settings *settings,
	struct whatif_prediction *prediction)
{
	struct outcome outcome = {0};

	predict_run(recording, settings, prediction, &outcome);
}

void whatif_predict(const struct whatif_recording *recording, const struct settings *settings,
	uint64_t capacity_bytes, struct whatif_prediction *prediction)
{
	struct outcome outcome = {0};

	predict_run(recording, settings, prediction, &outcome);
	if (prediction->why & WHATIF_WHY_BACKEND)
		return;
	if (!(prediction->why & (WHATIF_WHY_REFUSED | WHATIF_WHY_TIME)))
		predict_needed(recording, &outcome.first.stats, prediction);
	if (capacity_bytes)
		predict_capacity(recording, capacity_bytes, prediction);
}

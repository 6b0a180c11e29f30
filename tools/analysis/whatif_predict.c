/* Predictions: the same replay in several ways, and how far they agree. */
#include "analysis/whatif.h"

/* The one version whose rules were tried against real runs. */
#define VALIDATED_VERSION 211u

/* How many capacities above the smallest sufficient one are tried: near the limit more memory can
 * lead to a refusal that less does not. */
#define BAND_STEPS 12u

/* Segments are multiples of this. */
#define STEP_BYTES (2 * SETTINGS_MIB)

static struct allocator_options options_for(const struct whatif_recording *recording,
	const struct settings *settings, enum allocator_addresses addresses)
{
	struct allocator_options options = {
		.settings = *settings,
		.version = recording->version,
		.device_bytes = recording->device_bytes,
		.cap_bytes = recording->cap_bytes,
		.capacity_bytes = recording->driver_bytes,
		.addresses = addresses,
	};

	/* A capacity that is tried stands for a smaller device: that is no memory fraction, without
	 * which nothing is collected (rule 13). */
	if (settings->memory_fraction >= 1 && !recording->cap_bytes)
		options.settings.collection_threshold = 0;
	return options;
}

static bool serves_all(const struct whatif_recording *recording,
	const struct allocator_options *options, enum whatif_sizes sizes, size_t *refused_step)
{
	struct whatif_result result;

	whatif_replay(recording, options, sizes, &result);
	if (result.is_refused && refused_step)
		*refused_step = result.n_steps;
	return !result.is_refused;
}

/* The least cap under which nothing is refused, and above it the last that was seen to refuse
 * something: near the limit more memory can be worse. False: the driver would have refused first.
 */
static bool find_needed(const struct whatif_recording *recording, struct allocator_options options,
	enum whatif_sizes sizes, const struct allocator_stats *free_run,
	struct whatif_value *needed, size_t *refused_step)
{
	uint64_t low = free_run->peak_allocated_bytes / STEP_BYTES;
	uint64_t high = (free_run->peak_reserved_bytes + STEP_BYTES - 1) / STEP_BYTES;

	/* low refuses, high serves; expandable segments are counted by the page and may need more
	 * than the peak. */
	low -= low > 0;
	for (options.cap_bytes = high * STEP_BYTES;
		!serves_all(recording, &options, sizes, refused_step);
		options.cap_bytes = high * STEP_BYTES) {
		if (options.capacity_bytes && options.cap_bytes > options.capacity_bytes)
			return false;
		low = high++;
	}
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		options.cap_bytes = middle * STEP_BYTES;
		if (serves_all(recording, &options, sizes, refused_step))
			high = middle;
		else
			low = middle;
	}
	needed->value = needed->low = needed->high = high * STEP_BYTES;
	for (unsigned int i = 0; i < BAND_STEPS; i++) {
		uint64_t above = high + ((uint64_t)1 << i) / 2 + 1;

		options.cap_bytes = above * STEP_BYTES;
		if (options.cap_bytes > free_run->peak_reserved_bytes)
			break;
		if (!serves_all(recording, &options, sizes, NULL))
			needed->high = options.cap_bytes + STEP_BYTES;
	}
	return true;
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

/* One way in which the replay could be done: which sizes, and where the driver puts segments. */
struct variant {
	enum whatif_sizes sizes;
	enum allocator_addresses addresses;
};

/* The first is the one whose value is given. */
static const struct variant variants[] = {
	{WHATIF_LIKELY, ALLOCATOR_DOWN},
	{WHATIF_LIKELY, ALLOCATOR_ARENA},
	{WHATIF_LIKELY, ALLOCATOR_UP},
	{WHATIF_RECORDED, ALLOCATOR_DOWN},
	{WHATIF_LEAST, ALLOCATOR_DOWN},
};

#define N_VARIANTS (sizeof(variants) / sizeof(*variants))

static bool is_same(const struct allocator_stats *a, const struct allocator_stats *b)
{
	return a->peak_reserved_bytes == b->peak_reserved_bytes &&
	       a->n_device_allocs == b->n_device_allocs;
}

/* Sizes that are all too small say only how much may depend on them: less than 1 % is agreement. */
static bool agrees(enum whatif_sizes sizes, const struct allocator_stats *stats,
	const struct allocator_stats *first)
{
	uint64_t a = stats->peak_reserved_bytes, b = first->peak_reserved_bytes;

	return sizes == WHATIF_LEAST ? (a > b ? a - b : b - a) <= b / 100 : is_same(stats, first);
}

static bool is_needed(const struct whatif_recording *recording, const struct variant *variant)
{
	return variant->sizes == WHATIF_LIKELY || recording->n_unsure;
}

/* Which doubts the variants show; fills in the values without a limit on capacity. */
static bool replay_variants(const struct whatif_recording *recording,
	struct whatif_prediction *prediction, struct whatif_result *first)
{
	bool agree = true;

	for (size_t i = 0; i < N_VARIANTS; i++) {
		struct allocator_options options =
			options_for(recording, &prediction->settings, variants[i].addresses);
		struct whatif_result result;
		const struct allocator_stats *stats = &result.stats;

		if (!is_needed(recording, &variants[i]))
			continue;
		whatif_replay(recording, &options, variants[i].sizes, &result);
		if (!i) {
			*first = result;
			prediction->peak_reserved =
				(struct whatif_value){stats->peak_reserved_bytes,
					stats->peak_reserved_bytes, stats->peak_reserved_bytes};
			prediction->n_device_allocs = (struct whatif_value){stats->n_device_allocs,
				stats->n_device_allocs, stats->n_device_allocs};
		}
		prediction->why |= result.is_refused ? WHATIF_WHY_REFUSED : 0;
		prediction->why |= result.has_passed ? WHATIF_WHY_PASSED : 0;
		if (agrees(variants[i].sizes, stats, &first->stats))
			continue;
		agree = false;
		widen_to(&prediction->peak_reserved, stats->peak_reserved_bytes);
		widen_to(&prediction->n_device_allocs, stats->n_device_allocs);
		prediction->why |= variants[i].sizes == WHATIF_LIKELY ? WHATIF_WHY_ADDRESSES
								      : WHATIF_WHY_SIZES;
	}
	return agree;
}

/* A size that is a little off can cost or save a segment, which in a small run is more than 1 %.
 * The range is that much wider then. */
static bool is_coarse(
	const struct whatif_recording *recording, struct whatif_prediction *prediction)
{
	uint64_t segment_bytes = prediction->settings.large_segment_bytes;
	uint64_t peak_bytes = prediction->peak_reserved.value;

	if (!recording->n_unsure || segment_bytes <= peak_bytes / 100)
		return false;
	widen_to(&prediction->peak_reserved, peak_bytes + segment_bytes);
	widen_to(&prediction->peak_reserved,
		peak_bytes > segment_bytes ? peak_bytes - segment_bytes : 0);
	return true;
}

static void classify(
	const struct whatif_recording *recording, bool agree, struct whatif_prediction *prediction)
{
	prediction->why |= recording->n_unsure ? WHATIF_WHY_SIZES : 0;
	prediction->why |= recording->n_pending ? WHATIF_WHY_PENDING : 0;
	prediction->why |= recording->version != VALIDATED_VERSION ? WHATIF_WHY_VERSION : 0;
	if (prediction->why & (WHATIF_WHY_REFUSED | WHATIF_WHY_PASSED))
		prediction->class = WHATIF_LOWER_BOUND;
	else if (agree && is_coarse(recording, prediction))
		prediction->class = WHATIF_RANGE;
	else if (!agree || recording->n_pending)
		prediction->class = WHATIF_RANGE;
	else
		prediction->class = prediction->why ? WHATIF_ABOUT : WHATIF_EXACT;
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
		options_for(recording, &prediction->settings, variants[0].addresses);
	struct whatif_result result;

	if (!options.cap_bytes || options.cap_bytes > capacity_bytes)
		options.cap_bytes = capacity_bytes;
	whatif_replay(recording, &options, variants[0].sizes, &result);
	prediction->fits = !result.is_refused;
	prediction->n_retries = result.stats.n_retries;
	if (result.is_refused)
		prediction->refused_step = result.n_steps;
}

static void predict_needed(const struct whatif_recording *recording,
	const struct allocator_stats *stats, struct whatif_prediction *prediction)
{
	for (size_t i = 0; i < N_VARIANTS; i++) {
		struct whatif_value needed;

		if (!is_needed(recording, &variants[i]) || variants[i].sizes == WHATIF_LEAST)
			continue;
		if (!find_needed(recording,
			    options_for(recording, &prediction->settings, variants[i].addresses),
			    variants[i].sizes, stats, &needed,
			    i ? NULL : &prediction->needed_step)) {
			prediction->needed_step = SIZE_MAX;
			return;
		}
		if (!i)
			prediction->needed = needed;
		widen(&prediction->needed, &needed);
	}
	prediction->has_needed = true;
}

void whatif_predict(const struct whatif_recording *recording, const struct settings *settings,
	uint64_t capacity_bytes, struct whatif_prediction *prediction)
{
	struct whatif_result first = {0};
	bool agree;

	*prediction = (struct whatif_prediction){
		.settings = *settings, .refused_step = SIZE_MAX, .needed_step = SIZE_MAX};
	if (recording->settings.backend != SETTINGS_NATIVE) {
		prediction->class = WHATIF_NO_ANSWER;
		prediction->why = WHATIF_WHY_BACKEND;
		return;
	}
	agree = replay_variants(recording, prediction, &first);
	if (settings->backend == SETTINGS_ASYNC) {
		predict_async(&first.stats, prediction);
		return;
	}
	classify(recording, agree, prediction);
	if (!(prediction->why & WHATIF_WHY_REFUSED))
		predict_needed(recording, &first.stats, prediction);
	if (capacity_bytes)
		predict_capacity(recording, capacity_bytes, prediction);
}

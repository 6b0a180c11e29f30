#include "analysis/whatif_hint.h"

#include "analysis/whatif_recording.h"
#include "model/blocks.h"

/* So many take about a second. */
#define MAX_BLOCKS 200000u
#define MAX_BYTES  (32u << 20)

static bool is_short(const struct replay *replay, int device)
{
	uint64_t n_blocks = 0;

	for (const struct model_allocator *a = replay->model->allocators; a; a = a->hh.next)
		n_blocks += a->device == device ? a->n_allocs : 0;
	return n_blocks <= MAX_BLOCKS && vt_reader_size(replay->reader) <= MAX_BYTES;
}

static bool is_reproduced(struct whatif_built *built)
{
	struct whatif_check check;

	if (built->refusal)
		return false;
	whatif_check(&built->recording, &check);
	return check.is_equal &&
	       check.result.stats.peak_reserved_bytes == built->peak_reserved_bytes;
}

bool whatif_hint_serves(const struct whatif_hint *hint)
{
	return !(hint->prediction.why & WHATIF_WHY_REFUSED) && !hint->prediction.n_refused;
}

bool whatif_hint_make(struct whatif_hint *hint, struct replay *replay, int device)
{
	struct whatif_built built = {0};
	struct settings settings;
	char problem[160];
	bool known = is_short(replay, device) && !whatif_build(&built, replay, device) &&
		     is_reproduced(&built);

	settings = built.recording.settings;
	known = known && !settings.expandable &&
		settings_apply(&settings, WHATIF_HINT_SETTINGS, built.recording.version, problem,
			sizeof(problem));
	if (known) {
		*hint = (struct whatif_hint){
			.device = device, .recorded_peak_bytes = built.peak_reserved_bytes};
		whatif_predict_peak(&built.recording, &settings, &hint->prediction);
		/* A limit that is only known to be no lower than this proves no refusal. */
		known = whatif_hint_serves(hint) || !built.cap_is_guessed;
	}
	whatif_built_release(&built);
	return known;
}

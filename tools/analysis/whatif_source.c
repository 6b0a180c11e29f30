/* Whether a trace shows all that a what-if needs: whose blocks, under which settings. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/whatif_parts.h"
#include "model/blocks.h"

static void __attribute__((format(printf, 3, 4)))
refuse(struct whatif_built *built, enum whatif_refusal refusal, const char *format, ...)
{
	va_list arguments;

	built->refusal = refusal;
	va_start(arguments, format);
	vsnprintf(built->reason, sizeof(built->reason), format, arguments);
	va_end(arguments);
}

static void copy_text(char *to, size_t room, struct vt_text from)
{
	size_t n = from.bytes < room - 1 ? from.bytes : room - 1;

	if (from.data)
		memcpy(to, from.data, n);
	to[from.data ? n : 0] = 0;
}

/* PYTORCH_CUDA_ALLOC_CONF wins where both are set. */
static bool read_settings(struct whatif_built *built, const struct model *model)
{
	struct vt_text text = model_environment_get(model, "PYTORCH_CUDA_ALLOC_CONF");
	struct whatif_recording *recording = &built->recording;
	char problem[160];

	if (!text.data)
		text = model_environment_get(model, "PYTORCH_ALLOC_CONF");
	copy_text(built->settings_text, sizeof(built->settings_text), text);
	settings_default(&recording->settings);
	if (!settings_apply(&recording->settings, built->settings_text, recording->version, problem,
		    sizeof(problem))) {
		refuse(built, WHATIF_SETTINGS, "the recorded settings are not known: %s", problem);
		return false;
	}
	if (recording->settings.backend != SETTINGS_NATIVE) {
		refuse(built, WHATIF_ASYNC,
			"PyTorch's blocks came from the driver's pool (backend:cudaMallocAsync), "
			"whose requests are not PyTorch's");
		return false;
	}
	return true;
}

static const struct model_allocator *find_allocator(
	struct whatif_built *built, const struct model *model, int device)
{
	const struct model_allocator *found = NULL;

	for (const struct model_allocator *a = model->allocators; a; a = a->hh.next) {
		if (a->layer != VT_LAYER_TORCH || a->device < 0 ||
			(device >= 0 && a->device != device))
			continue;
		if (found && a->device == found->device) {
			refuse(built, WHATIF_SEVERAL,
				"several allocators of PyTorch report blocks of GPU %d", a->device);
			return NULL;
		}
		if (!found || a->device < found->device)
			found = a;
	}
	if (!found)
		refuse(built, WHATIF_NO_BLOCKS,
			"the trace has no blocks of PyTorch's allocator%s (vramtrace info TRACE)",
			device >= 0 ? " on this GPU" : "");
	return found;
}

void whatif_refuse_outside(struct whatif_built *built)
{
	refuse(built, WHATIF_OUTSIDE,
		"blocks of PyTorch lie in memory that was not seen to be taken");
}

static bool is_complete(struct whatif_built *built, const struct replay *replay,
	const struct model_allocator *allocator)
{
	const struct model_check *check = &allocator->check;
	const struct vt_damage *damage = &replay->damage;
	bool differs = check->n_allocated_differ || check->n_reserved_differ;

	if (damage->n_chunks_skipped || damage->n_chunks_cut || damage->missing_bytes ||
		replay->pack_damaged)
		refuse(built, WHATIF_LOST, "records are missing (vramtrace info TRACE)");
	else if (replay->model->part)
		refuse(built, WHATIF_LOST, "old events were dropped (VRAMTRACE_MAX_SIZE)");
	else if (allocator->n_unknown_frees || (differs && check->first_ns == allocator->first_ns))
		refuse(built, WHATIF_BEGAN_LATE,
			"the recording began when PyTorch had blocks already");
	else if (allocator->n_missed_frees || allocator->n_lost_pieces)
		refuse(built, WHATIF_LOST, "frees of PyTorch's blocks are missing");
	else if (differs)
		refuse(built, WHATIF_SUMS,
			"PyTorch's own sums differ from those of its recorded blocks");
	else if (allocator->outside_bytes)
		whatif_refuse_outside(built);
	return built->refusal == WHATIF_FINE;
}

const struct model_allocator *whatif_source(
	struct whatif_built *built, const struct replay *replay, int device)
{
	struct whatif_recording *recording = &built->recording;
	const struct model_allocator *allocator = find_allocator(built, replay->model, device);
	const struct model_device *found;

	if (allocator)
		copy_text(built->version_text, sizeof(built->version_text), allocator->version);
	recording->version = settings_version(built->version_text);
	if (!read_settings(built, replay->model) || !allocator ||
		!is_complete(built, replay, allocator))
		return NULL;
	built->device = allocator->device;
	built->peak_reserved_bytes = allocator->peak_reserved.bytes;
	found = model_device_find(replay->model, built->device);
	recording->device_bytes = found ? found->total_bytes : 0;
	if (recording->device_bytes)
		return allocator;
	refuse(built, WHATIF_UNKNOWN_SIZE, "the memory of the GPU is not known");
	return NULL;
}

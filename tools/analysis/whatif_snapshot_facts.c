/* What a snapshot says beside its history: the settings, and the places of calls. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/whatif_parts.h"
#include "analysis/whatif_snapshot.h"

#define MAX_FRAMES 200u

void whatif_snapshot_refuse(
	struct whatif_built *built, enum whatif_refusal refusal, const char *reason)
{
	if (built->refusal)
		return;
	built->refusal = refusal;
	snprintf(built->reason, sizeof(built->reason), "%s", reason);
}

void whatif_snapshot_late(struct whatif_built *built)
{
	whatif_snapshot_refuse(built, WHATIF_BEGAN_LATE,
		"the history began when PyTorch had blocks already, or lost its beginning "
		"(max_entries)");
}

static void copy_text(char *to, size_t room, const struct pickle_value *from)
{
	size_t n = from && from->kind == PICKLE_TEXT ? from->text_bytes : 0;

	n = n < room - 1 ? n : room - 1;
	if (n)
		memcpy(to, from->text, n);
	to[n] = 0;
}

/* PyTorch tells what it was set to as text, and what it made of it: programs can set it, too. */
void whatif_snapshot_settings(struct whatif_built *built, const struct pickle_value *snapshot)
{
	const struct pickle_value *told = pickle_get(snapshot, "allocator_settings");
	struct settings *settings = &built->recording.settings;
	const char *const key = "PYTORCH_CUDA_ALLOC_CONF";
	const struct pickle_value *text = pickle_get(told, key);
	int64_t split_bytes = pickle_integer(pickle_get(told, "max_split_size"), -1);
	char problem[160], reason[200];

	settings_default(settings);
	if (!told || told->kind != PICKLE_DICT)
		whatif_snapshot_refuse(
			built, WHATIF_SETTINGS, "the snapshot does not tell the settings");
	copy_text(built->settings_text, sizeof(built->settings_text),
		text ? text : pickle_get(told, "PYTORCH_ALLOC_CONF"));
	if (!settings_apply(settings, built->settings_text, 0, problem, sizeof(problem))) {
		snprintf(
			reason, sizeof(reason), "the recorded settings are not known: %s", problem);
		whatif_snapshot_refuse(built, WHATIF_SETTINGS, reason);
	}
	if (settings->backend != SETTINGS_NATIVE)
		whatif_snapshot_refuse(built, WHATIF_ASYNC,
			"PyTorch's blocks came from the driver's pool "
			"(backend:cudaMallocAsync), whose requests are not PyTorch's");
	if (pickle_integer(pickle_get(told, "expandable_segments"), settings->expandable) !=
			settings->expandable ||
		(split_bytes < 0 ? UINT64_MAX : (uint64_t)split_bytes) != settings->max_split_bytes)
		whatif_snapshot_refuse(
			built, WHATIF_SETTINGS, "the settings were changed while the program ran");
	if (pickle_integer(pickle_get(told, "trace_alloc_overflowed"), 0))
		whatif_snapshot_late(built);
}

static bool contains(const struct pickle_value *text, const char *part)
{
	return text && text->kind == PICKLE_TEXT &&
	       memmem(text->text, text->text_bytes, part, strlen(part));
}

/* The innermost frame of the program's own Python code, else of any, else the innermost. */
static const struct pickle_value *own_frame(const struct pickle_value *frames)
{
	const struct pickle_value *frame, *python = NULL;

	for (size_t i = 0; i < MAX_FRAMES && (frame = pickle_item(frames, i)); i++) {
		const struct pickle_value *file = pickle_get(frame, "filename");

		if (!contains(file, ".py"))
			continue;
		if (!contains(file, "/torch/"))
			return frame;
		python = python ? python : frame;
	}
	return python ? python : pickle_item(frames, 0);
}

void whatif_snapshot_where(
	const struct whatif_built *built, const struct whatif_step *step, char *text, size_t room)
{
	const struct pickle_value *frame = own_frame(
		pickle_get(pickle_item(built->entries, (size_t)step->stack_id - 1), "frames"));
	char file[256], name[128];
	const char *slash;

	copy_text(file, sizeof(file), pickle_get(frame, "filename"));
	copy_text(name, sizeof(name), pickle_get(frame, "name"));
	slash = strrchr(file, '/');
	*text = 0;
	if (frame)
		snprintf(text, room, "%s:%" PRId64 " %s", slash ? slash + 1 : file,
			pickle_integer(pickle_get(frame, "line"), 0), name);
}

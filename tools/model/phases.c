#include "model/phases.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"
#include "model/memory.h"

#define MAX_NAME 520u /* of what a recorder writes: a domain, a colon, a name */

const char *model_place_text(const struct model_place_name *place, char *out, size_t size)
{
	snprintf(out, size, "%.*s%s%.*s", (int)place->domain.bytes,
		place->domain.bytes ? place->domain.data : "", place->domain.bytes ? ":" : "",
		(int)place->name.bytes, place->name.bytes ? place->name.data : "");
	return out;
}

/* Numbers that stand by themselves become "*": those of "conv2d" tell what it is. */
static void unite_numbers(char *text)
{
	char *to = text, before = ' ';

	for (const char *from = text; *from; from++) {
		bool digit = isdigit((unsigned char)*from);

		if (digit && before == '*')
			continue;
		if (digit && !isalnum((unsigned char)before) && (unsigned char)before < 0x80)
			*to++ = before = '*';
		else
			*to++ = before = *from;
	}
	*to = '\0';
}

/* The phase of that name, made when new; NULL: there are too many. */
static struct model_phase *phase_of(
	struct model *model, struct model_phase **table, const struct model_place_name *place)
{
	struct model_phase *phase;
	char name[MAX_NAME];

	model_place_text(place, name, sizeof(name));
	unite_numbers(name);
	HASH_FIND_STR(*table, name, phase);
	if (phase)
		return phase;
	if (HASH_COUNT(*table) >= MODEL_MAX_PHASES) {
		model->phases.n_left_out++;
		return NULL;
	}
	phase = memory_new(1, sizeof(*phase));
	phase->name = memory_text(name);
	HASH_ADD_KEYPTR(hh, *table, phase->name, strlen(phase->name), phase);
	return phase;
}

static void count(struct model_phase *phase, uint64_t time_ns)
{
	if (!phase->n++)
		phase->first_ns = time_ns;
	phase->last_ns = time_ns;
}

static void apply_mark(struct model *model, const struct vt_rec_mark *given)
{
	struct model_place_name place = {given->name, given->domain, true};
	struct model_phase *mark = phase_of(model, &model->phases.marks, &place);

	model->phases.last_mark = place;
	if (mark)
		count(mark, given->time_ns);
}

static struct model_phase_peak *peak_of(struct model_phase *phase, int device)
{
	for (size_t i = 0; i < phase->n_peaks; i++)
		if (phase->peaks[i].device == device)
			return &phase->peaks[i];
	phase->peaks = memory_grow(
		phase->peaks, phase->n_peaks, &phase->peaks_room, sizeof(*phase->peaks));
	phase->peaks[phase->n_peaks] = (struct model_phase_peak){.device = device};
	return &phase->peaks[phase->n_peaks++];
}

static void note_peak(
	struct model_phase *phase, const struct model_device *device, uint64_t time_ns)
{
	struct model_phase_peak *peak;

	if (!device->tracked_bytes && !device->block_bytes)
		return;
	peak = peak_of(phase, device->ordinal);
	if (device->tracked_bytes > peak->tracked_bytes) {
		peak->tracked_bytes = device->tracked_bytes;
		peak->tracked_ns = time_ns;
	}
	if (device->block_bytes > peak->block_bytes) {
		peak->block_bytes = device->block_bytes;
		peak->block_ns = time_ns;
	}
}

static void note_peaks(const struct model *model, struct model_phase *phase, uint64_t time_ns)
{
	for (size_t i = 0; i < model->n_devices; i++)
		note_peak(phase, model->devices[i], time_ns);
	note_peak(phase, &model->unknown, time_ns);
}

static void begin(struct model *model, const struct vt_rec_phase *given, uint64_t thread_id)
{
	struct model_phases *phases = &model->phases;
	struct model_place_name place = {given->name, given->domain, false};
	struct model_phase *phase;

	if (phases->n_open == MODEL_MAX_OPEN_PHASES) {
		phases->n_left_out++;
		return;
	}
	phase = phase_of(model, &phases->by_name, &place);
	if (!phase)
		return;
	count(phase, given->time_ns);
	phase->n_open++;
	phases->open[phases->n_open++] = (struct model_open_phase){
		place, phase, given->told, thread_id, given->range_id, given->time_ns};
	note_peaks(model, phase, given->time_ns);
}

static bool same_text(struct vt_text a, struct vt_text b)
{
	return a.bytes == b.bytes && (!a.bytes || !memcmp(a.data, b.data, a.bytes));
}

static bool ends(const struct vt_rec_phase *given, uint64_t thread_id, bool any_thread,
	const struct model_open_phase *open)
{
	if (open->told != given->told)
		return false;
	if (given->told == VT_TOLD_NVTX_RANGE)
		return open->range_id == given->range_id;
	if (!any_thread && open->thread_id != thread_id)
		return false;
	return given->told == VT_TOLD_NVTX ? same_text(open->place.domain, given->domain)
					   : same_text(open->place.name, given->name);
}

/* The newest one that the end belongs to, or n_open. */
static size_t find_open(const struct model_phases *phases, const struct vt_rec_phase *given,
	uint64_t thread_id, bool any_thread)
{
	for (size_t i = phases->n_open; i--;)
		if (ends(given, thread_id, any_thread, &phases->open[i]))
			return i;
	return phases->n_open;
}

static void end(struct model *model, const struct vt_rec_phase *given, uint64_t thread_id)
{
	struct model_phases *phases = &model->phases;
	size_t at = find_open(phases, given, thread_id, false);
	struct model_open_phase *open;
	uint64_t length_ns;

	if (at == phases->n_open && given->told == VT_TOLD_API)
		at = find_open(phases, given, thread_id, true);
	if (at == phases->n_open) {
		phases->n_unmatched++;
		return;
	}
	open = &phases->open[at];
	length_ns = given->time_ns > open->begin_ns ? given->time_ns - open->begin_ns : 0;
	open->phase->n_open--;
	open->phase->total_ns += length_ns;
	if (length_ns > open->phase->longest_ns)
		open->phase->longest_ns = length_ns;
	open->phase->last_ns = given->time_ns;
	phases->ended = *open;
	phases->n_open--;
	memmove(open, open + 1, (phases->n_open - at) * sizeof(*open));
}

void phases_apply(struct model *model, const struct vt_record *record)
{
	const struct vt_rec_phase *given = &record->phase;
	uint64_t thread_id;

	if (record->kind == VT_REC_mark) {
		apply_mark(model, &record->mark);
		return;
	}
	model->phases.ended.phase = NULL;
	thread_id = given->thread_id ? given->thread_id : record->tid;
	if (given->action == VT_PHASE_BEGIN)
		begin(model, given, thread_id);
	else if (given->action == VT_PHASE_END)
		end(model, given, thread_id);
}

/* The thread whose phases count for what thread_id does; 0: there are none. */
static uint64_t thread_that_counts(const struct model_phases *phases, uint64_t thread_id)
{
	for (size_t i = phases->n_open; i--;)
		if (phases->open[i].thread_id == thread_id)
			return thread_id;
	return phases->n_open ? phases->open[phases->n_open - 1].thread_id : 0;
}

struct model_place_name model_place_at(const struct model *model, uint64_t thread_id)
{
	const struct model_phases *phases = &model->phases;
	uint64_t counts = thread_that_counts(phases, thread_id);

	for (size_t i = phases->n_open; i--;)
		if (phases->open[i].thread_id == counts)
			return phases->open[i].place;
	return phases->last_mark;
}

static void note_copy(struct model_phase *phase, const struct vt_rec_copy *given)
{
	phase->copies.n += !(given->flags & VT_COPY_SAME_CALL);
	phase->copies.bytes = add_capped(phase->copies.bytes, given->bytes);
	phase->copies.ns = add_capped(phase->copies.ns, given->duration_ns);
}

static void note_wait(struct model_phase *phase, const struct vt_rec_copy_time *given)
{
	phase->waits.n++;
	phase->waits.ns = add_capped(phase->waits.ns, given->wait_ns);
}

static bool counts_as_copy(const struct vt_record *record)
{
	if (record->kind == VT_REC_copy_time)
		return record->copy_time.wait_ns != 0;
	return record->kind == VT_REC_copy && !record->copy.result &&
	       !(record->copy.flags & VT_COPY_CAPTURED);
}

static void book_copy(struct model *model, const struct vt_record *record)
{
	struct model_phases *phases = &model->phases;
	uint64_t counts = thread_that_counts(phases, record->tid);

	phases->n_records++;
	for (size_t i = 0; i < phases->n_open; i++) {
		struct model_phase *phase = phases->open[i].phase;

		/* One of them may lie in another of the same name. */
		if (phases->open[i].thread_id != counts || phase->stamp == phases->n_records)
			continue;
		phase->stamp = phases->n_records;
		if (record->kind == VT_REC_copy)
			note_copy(phase, &record->copy);
		else
			note_wait(phase, &record->copy_time);
	}
}

/* Where the program was at the peak of each device. */
static void note_places(struct model *model, struct model_device *device, uint64_t thread_id)
{
	if (device->peak_place_ns == device->peak_time_ns &&
		device->peak_place_bytes == device->peak_tracked_bytes)
		return;
	device->peak_place_ns = device->peak_time_ns;
	device->peak_place_bytes = device->peak_tracked_bytes;
	device->peak_place = model_place_at(model, thread_id);
}

void phases_note(struct model *model, const struct vt_record *record)
{
	struct model_phases *phases = &model->phases;

	if (counts_as_copy(record)) {
		if (phases->n_open)
			book_copy(model, record);
		return;
	}
	if ((!phases->by_name && !phases->marks) || !model_may_raise(record))
		return;
	for (size_t i = 0; i < model->n_devices; i++)
		note_places(model, model->devices[i], record->tid);
	note_places(model, &model->unknown, record->tid);
	for (size_t i = 0; i < phases->n_open; i++)
		note_peaks(model, phases->open[i].phase, record->time_ns);
}

static void release(struct model_phase **table)
{
	struct model_phase *phase, *next;

	HASH_ITER(hh, *table, phase, next)
	{
		HASH_DEL(*table, phase);
		free(phase->peaks);
		free(phase->name);
		free(phase);
	}
}

void phases_release(struct model *model)
{
	release(&model->phases.by_name);
	release(&model->phases.marks);
}

#include "analysis/history.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/order.h"
#include "model/blocks.h"
#include "model/memory.h"

/* At first, a column is so long: about a quarter of a millisecond. */
#define COLUMN_NS (1u << 18)

/* A burst: so many deaths at least, in this part of the time in which what died came. And that time
 * was most of what passed since the run before: garbage comes all the time, what a step of training
 * makes and drops only in one part of the step. */
#define BURST_DEATHS 8u
#define BURST_PART   10u

/* Nobody's lane: a damaged trace. */
#define MAX_LANES 1000000u

static uint64_t less(uint64_t from, uint64_t part)
{
	return from > part ? from - part : 0;
}

static struct history_site *site_of(struct history *history, const struct model_site *site)
{
	while (history->n_sites <= site->index) {
		history->sites = memory_grow(history->sites, history->n_sites, &history->sites_room,
			sizeof(*history->sites));
		history->sites[history->n_sites++] = (struct history_site){0};
	}
	return &history->sites[site->index];
}

static bool came_all_the_time(const struct history_site *site)
{
	uint64_t came_ns = site->births_last_ns - site->births_first_ns;

	return !site->run_before_ns ||
	       came_ns >= (site->run_first_ns - site->run_before_ns) / 4 * 3;
}

/* The run of deaths is over. */
static void end_run(struct history_site *site)
{
	uint64_t came_ns = less(site->run_first_ns, site->births_first_ns);

	if (site->run_deaths >= BURST_DEATHS && site->n_apart >= BURST_DEATHS / 2 &&
		site->run_last_ns - site->run_first_ns <= came_ns / BURST_PART &&
		came_all_the_time(site)) {
		site->n_bursts++;
		site->burst_deaths += site->run_deaths;
	}
	site->run_before_ns = site->run_last_ns;
	site->run_deaths = 0;
	site->births_first_ns = 0;
	site->n_apart = 0;
}

static void note_birth(const struct history *history, struct history_site *site, uint64_t time_ns)
{
	if (site->run_deaths)
		end_run(site);
	if (!site->births_first_ns)
		site->births_first_ns = time_ns;
	site->births_last_ns = time_ns;
	site->n_apart += history->n_ends != site->n_ends_before;
	site->n_ends_before = history->n_ends;
	site->n_births++;
	site->ended_ns = 0;
	curve_note_birth(&site->by_time);
}

static void note_death(struct history *history, struct history_site *site,
	const struct model_change *change, uint64_t time_ns)
{
	uint64_t lifetime_ns = less(time_ns, change->born_ns);

	if (!site->run_deaths++)
		site->run_first_ns = time_ns;
	site->run_last_ns = time_ns;
	site->n_deaths++;
	site->lifetime_sum_ns += lifetime_ns;
	if (lifetime_ns > site->longest_lifetime_ns)
		site->longest_lifetime_ns = lifetime_ns;
	curve_note_death(&site->by_time, &history->time, change->born_ns);
}

static void note_change(
	struct history *history, const struct model_change *change, uint64_t time_ns)
{
	struct history_site *site = site_of(history, change->site);
	uint64_t bytes = less(change->site->live_bytes, change->site->segment_bytes);
	uint64_t n_live = less(change->site->n_live, change->site->n_segments);

	if (change->how == MODEL_ENDED) {
		/* The curve stays as it was before. */
		site->ended_ns = time_ns;
		site->ended_address = change->address;
		return;
	}
	curve_note(&site->by_time, &history->time, time_ns, bytes, n_live);
	if (change->how == MODEL_BORN)
		note_birth(history, site, time_ns);
	else if (change->how == MODEL_FREED)
		note_death(history, site, change, time_ns);
	if (history->n_marks)
		curve_note(&site->by_mark, &history->marks, history->n_marks, bytes, n_live);
}

struct history_idle *history_idle(
	const struct history *history, uint64_t allocator_id, int device, uint32_t kind)
{
	for (size_t i = 0; i < history->n_idle; i++)
		if (history->idle[i].allocator_id == allocator_id &&
			history->idle[i].device == device && history->idle[i].kind == kind)
			return &history->idle[i];
	return NULL;
}

/* What the allocator keeps, where its blocks or segments changed. */
static void note_idle(
	struct history *history, const struct model *model, uint64_t allocator_id, uint64_t time_ns)
{
	const struct model_allocator *allocator = model_allocator_find(model, allocator_id);

	for (size_t i = 0; allocator && i < allocator->n_holdings; i++) {
		const struct model_holding *holding = &allocator->holdings[i];
		int device = holding->device->ordinal;
		struct history_idle *idle =
			history_idle(history, allocator_id, device, holding->kind);

		if (!idle) {
			history->idle = memory_grow(history->idle, history->n_idle,
				&history->idle_room, sizeof(*history->idle));
			idle = &history->idle[history->n_idle++];
			*idle = (struct history_idle){.allocator_id = allocator_id,
				.device = device,
				.kind = holding->kind};
		}
		curve_note(&idle->by_time, &history->time, time_ns,
			less(holding->segment_bytes, holding->live_bytes), holding->n_segments);
	}
}

static struct history_device *device_of(struct history *history, int device)
{
	for (size_t i = 0; i < history->n_devices; i++)
		if (history->devices[i].device == device)
			return &history->devices[i];
	history->devices = memory_grow(history->devices, history->n_devices, &history->devices_room,
		sizeof(*history->devices));
	history->devices[history->n_devices] = (struct history_device){.device = device};
	return &history->devices[history->n_devices++];
}

static uint64_t positive(int64_t bytes)
{
	return bytes > 0 ? (uint64_t)bytes : 0;
}

/* Free memory was sampled. */
static void note_sample(
	struct history *history, const struct model *model, const struct vt_rec_memory *given)
{
	const struct model_device *device = given->device >= 0 && given->device <= MODEL_MAX_ORDINAL
						    ? model_device_find(model, (int)given->device)
						    : NULL;
	struct history_device *here;

	if (!device || !device->account.seen || device->account.time_ns != given->time_ns)
		return;
	here = device_of(history, device->ordinal);
	curve_note(&here->rest, &history->time, given->time_ns,
		positive(device->account.untracked_sum_bytes) +
			positive(device->account.unexplained_bytes),
		0);
	for (size_t cause = 0; cause < VT_N_CAUSES; cause++)
		if (here->causes[cause].n_points || device->untracked_bytes[cause])
			curve_note(&here->causes[cause], &history->time, given->time_ns,
				positive(device->untracked_bytes[cause]), 0);
}

static struct history_object *object_of(
	struct history *history, uint64_t stack_id, int64_t device, uint32_t cause)
{
	struct history_object_key key;
	struct history_object *object;

	memset(&key, 0, sizeof(key));
	key.stack_id = stack_id;
	key.device =
		device >= 0 && device <= MODEL_MAX_ORDINAL ? (int32_t)device : MODEL_DEVICE_UNKNOWN;
	key.cause = cause;
	HASH_FIND(hh, history->objects, &key, sizeof(key), object);
	if (object)
		return object;
	object = memory_new(1, sizeof(*object));
	object->key = key;
	HASH_ADD(hh, history->objects, key, sizeof(object->key), object);
	return object;
}

static void note_untracked(struct history *history, const struct vt_rec_untracked *given)
{
	struct history_object *object;

	if (!given->cause || given->cause >= VT_N_CAUSES || !given->taken_bytes)
		return;
	if (given->cause == VT_CAUSE_MODULES) {
		history->n_modules_loaded += given->taken_bytes > 0;
		history->n_modules_unloaded += given->taken_bytes < 0;
	}
	if (given->taken_bytes < 0)
		return;
	object = object_of(history, given->stack_id, given->device, (uint32_t)given->cause);
	object->taken_bytes += given->taken_bytes;
	object->n_made += given->cause != VT_CAUSE_GRAPH_EXEC;
}

static void note_graph(struct history *history, const struct vt_rec_graph *given)
{
	if (given->result)
		return;
	history->n_execs_destroyed += given->action == VT_GRAPH_EXEC_DESTROY;
	if (given->action != VT_GRAPH_INSTANTIATE)
		return;
	history->n_execs_made++;
	object_of(history, given->stack_id, given->device, VT_CAUSE_GRAPH_EXEC)->n_made++;
}

static void note_count(struct history *history, const struct vt_rec_objects *given)
{
	struct history_count *count;

	if (given->sort >= VT_N_OBJECTS)
		return;
	count = &history->counts[given->sort];
	if (given->created < count->n_created || given->destroyed < count->n_destroyed)
		return; /* of another thread, and older */
	count->n_created = given->created;
	count->n_destroyed = given->destroyed;
	curve_note(&count->by_time, &history->time, given->time_ns,
		less(given->created, given->destroyed), 0);
}

static void note_failure(struct history *history, const struct vt_record *record)
{
	history->failures[history->n_failures++ % HISTORY_MAX_FAILURES] =
		(struct history_failure){record->time_ns, record->tid};
}

static void note_capture(struct history *history, const struct vt_record *record)
{
	if (record->capture.begin && !record->capture.result)
		history->capture_begin_ns = record->time_ns;
	if (record->capture.begin || !record->capture.result)
		return;
	note_failure(history, record);
	history->captures[history->n_captures++ % HISTORY_MAX_CAPTURES] =
		(struct history_capture){history->capture_begin_ns, record->time_ns};
}

bool history_capture_failed(const struct history *history, uint64_t time_ns)
{
	for (uint64_t i = 0; i < history->n_captures && i < HISTORY_MAX_CAPTURES; i++)
		if (time_ns >= history->captures[i].begin_ns &&
			time_ns <= history->captures[i].end_ns)
			return true;
	return false;
}

/* The lane of a thread is given on when that thread has ended. */
static void note_lane(struct history *history, const struct vt_record *record)
{
	struct history_thread *thread;
	uint32_t before;

	if (record->lane >= MAX_LANES)
		return;
	if (record->lane >= history->n_lanes) {
		size_t n = 2 * (size_t)record->lane + 16;
		uint32_t *tids = memory_new(n, sizeof(*tids));

		if (history->n_lanes)
			memcpy(tids, history->lane_tids, history->n_lanes * sizeof(*tids));
		free(history->lane_tids);
		history->lane_tids = tids;
		history->n_lanes = n;
	}
	before = history->lane_tids[record->lane];
	if (before == record->tid)
		return;
	history->lane_tids[record->lane] = record->tid;
	HASH_FIND(hh, history->ended, &before, sizeof(before), thread);
	if (before && !thread) {
		thread = memory_new(1, sizeof(*thread));
		thread->tid = before;
		HASH_ADD(hh, history->ended, tid, sizeof(thread->tid), thread);
	}
	/* The number may be a new thread's. */
	HASH_FIND(hh, history->ended, &record->tid, sizeof(record->tid), thread);
	if (thread) {
		HASH_DEL(history->ended, thread);
		free(thread);
	}
}

bool history_thread_ended(const struct history *history, uint32_t tid)
{
	struct history_thread *thread;

	HASH_FIND(hh, history->ended, &tid, sizeof(tid), thread);
	return thread;
}

/* The program says that a step of its work begins. */
static void note_mark(struct history *history, const struct model *model, uint64_t time_ns)
{
	if (!history->n_marks++) {
		/* From here on what was there before counts, too. */
		for (const struct model_site *site = model->sites; site; site = site->hh.next) {
			if (site->n_live <= site->n_segments)
				continue;
			curve_note(&site_of(history, site)->by_mark, &history->marks, 1,
				less(site->live_bytes, site->segment_bytes),
				site->n_live - site->n_segments);
		}
		history->first_mark_ns = time_ns;
	}
	history->last_mark_ns = time_ns;
	curve_axis_note(&history->marks, history->n_marks, 0);
}

/* The name that the record says once more: of a mark, or of a phase that is inside no other one of
 * its thread; else NULL. */
static const struct model_phase *name_of(const struct model *model, const struct vt_record *record)
{
	const struct model_phases *phases = &model->phases;
	const struct model_open_phase *newest = phases->open + phases->n_open - 1;
	const struct model_phase *mark;

	if (record->kind == VT_REC_mark) {
		for (mark = phases->marks; mark; mark = mark->hh.next)
			if (mark->last_ns == record->time_ns)
				return mark;
		return NULL;
	}
	if (record->phase.action != VT_PHASE_BEGIN || !phases->n_open)
		return NULL;
	for (size_t i = 0; i + 1 < phases->n_open; i++)
		if (phases->open[i].thread_id == newest->thread_id)
			return NULL;
	return newest->phase;
}

/* Steps are what is marked most often, or without marks the phase that begins most often. */
static bool is_better(const struct history *history, const struct model_phase *name, bool is_mark)
{
	if (!history->step || is_mark != history->step_is_mark)
		return !history->step || is_mark;
	return name->n > 2 * history->step->n;
}

static void note_step(
	struct history *history, const struct model *model, const struct vt_record *record)
{
	const struct model_phase *name = name_of(model, record);
	bool is_mark = record->kind == VT_REC_mark;

	if (name && name != history->step && is_better(history, name, is_mark)) {
		for (size_t i = 0; i < history->n_sites; i++)
			curve_release(&history->sites[i].by_mark);
		history->marks = (struct curve_axis){.unit = 1};
		history->n_marks = 0;
		history->step = name;
		history->step_is_mark = is_mark;
	}
	if (name && name == history->step)
		note_mark(history, model, record->time_ns);
}

/* Records of one sort that concern one part of a history. */
static void note_record(
	struct history *history, const struct model *model, const struct vt_record *record)
{
	switch (record->kind) {
	case VT_REC_failure:
	case VT_REC_block_failure:
		note_failure(history, record);
		break;
	case VT_REC_copy:
		if (record->copy.result)
			note_failure(history, record);
		break;
	case VT_REC_capture:
		note_capture(history, record);
		break;
	case VT_REC_graph:
		if (record->graph.result)
			note_failure(history, record);
		note_graph(history, &record->graph);
		break;
	case VT_REC_block_alloc:
		note_idle(history, model, record->block_alloc.allocator_id, record->time_ns);
		break;
	case VT_REC_block_free:
		note_idle(history, model, record->block_free.allocator_id, record->time_ns);
		break;
	case VT_REC_memory:
		note_sample(history, model, &record->memory);
		break;
	case VT_REC_mark:
	case VT_REC_phase:
		note_step(history, model, record);
		break;
	case VT_REC_untracked:
		note_untracked(history, &record->untracked);
		break;
	case VT_REC_objects:
		note_count(history, &record->objects);
		break;
	default:
		break;
	}
}

static void begin(struct history *history, uint64_t time_ns)
{
	if (history->time.unit)
		return;
	history->time = (struct curve_axis){.start = time_ns, .unit = COLUMN_NS};
	history->marks = (struct curve_axis){.unit = 1};
}

/* What a checkpoint repeats is all there when single records begin. When it came says nothing: of
 * its time only what still lives is known, which is always more and more. */
static void observe_past(
	struct history *history, const struct model *model, const struct vt_record *record)
{
	uint64_t time_ns = model->kept_from_ns;

	begin(history, time_ns);
	for (size_t i = 0; i < model->n_changes; i++)
		note_change(history, &model->changes[i], time_ns);
	curve_axis_note(&history->time, time_ns, 0);
	history->last_event_ns = time_ns;
	if (record->kind == VT_REC_block_alloc)
		note_idle(history, model, record->block_alloc.allocator_id, time_ns);
	else if (record->kind == VT_REC_graph)
		note_graph(history, &record->graph);
}

void history_observe(
	struct history *history, const struct model *model, const struct vt_record *record)
{
	uint64_t n_ends = 0;

	if (record->kind < VT_REC_alloc && record->kind != VT_REC_thread)
		return;
	note_lane(history, record);
	if (record->kind < VT_REC_alloc || record->kind > VT_REC_objects ||
		model_is_summary(record))
		return;
	if (model_is_past(model, record->time_ns)) {
		observe_past(history, model, record);
		return;
	}
	begin(history, record->time_ns);
	for (size_t i = 0; i < model->n_changes; i++) {
		note_change(history, &model->changes[i], record->time_ns);
		n_ends += model->changes[i].how == MODEL_FREED;
	}
	history->n_ends += n_ends;
	curve_axis_note(&history->time, record->time_ns, n_ends);
	if (history->n_marks)
		curve_axis_note(&history->marks, history->n_marks, n_ends);
	history->last_event_ns = record->time_ns;
	note_record(history, model, record);
}

struct history_site *history_site(const struct history *history, const struct model_site *site)
{
	return site->index < history->n_sites ? &history->sites[site->index] : NULL;
}

uint64_t history_next_failure(const struct history *history, uint32_t tid, uint64_t time_ns)
{
	uint64_t n = history->n_failures;
	uint64_t low = n > HISTORY_MAX_FAILURES ? n - HISTORY_MAX_FAILURES : 0, high = n;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (history->failures[middle % HISTORY_MAX_FAILURES].time_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < n; low++) {
		const struct history_failure *failure =
			&history->failures[low % HISTORY_MAX_FAILURES];

		if (failure->tid == tid)
			return failure->time_ns;
	}
	return UINT64_MAX;
}

void history_release(struct history *history)
{
	struct history_object *object, *next_object;
	struct history_thread *thread, *next_thread;

	for (size_t i = 0; i < history->n_sites; i++) {
		curve_release(&history->sites[i].by_time);
		curve_release(&history->sites[i].by_mark);
	}
	for (size_t i = 0; i < history->n_idle; i++)
		curve_release(&history->idle[i].by_time);
	for (size_t i = 0; i < history->n_devices; i++) {
		curve_release(&history->devices[i].rest);
		for (size_t cause = 0; cause < VT_N_CAUSES; cause++)
			curve_release(&history->devices[i].causes[cause]);
	}
	for (size_t object_kind = 0; object_kind < VT_N_OBJECTS; object_kind++)
		curve_release(&history->counts[object_kind].by_time);
	HASH_ITER(hh, history->objects, object, next_object)
	{
		HASH_DEL(history->objects, object);
		free(object);
	}
	HASH_ITER(hh, history->ended, thread, next_thread)
	{
		HASH_DEL(history->ended, thread);
		free(thread);
	}
	free(history->sites);
	free(history->idle);
	free(history->devices);
	free(history->lane_tids);
	*history = (struct history){0};
}

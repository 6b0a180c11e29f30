#include "model/replay.h"

#include <errno.h>
#include <stdlib.h>

#include "model/memory.h"
#include "model/progress.h"
#include "model/stream.h"

/* Records between looks at how far it is. */
#define PROGRESS_EVERY 65536u

static void show_progress(struct progress *progress, uint64_t n_records,
	const struct replay *replay, const struct record_stream *stream)
{
	if (n_records % PROGRESS_EVERY == 0)
		progress_step(progress, "reading", replay->path, record_stream_position(stream),
			vt_reader_size(replay->reader));
}

/* Feeds every record to model, with observer after each. */
static int pass(struct replay *replay, struct model *model, replay_observer *observer, void *user)
{
	struct progress progress = progress_start();
	struct record_stream *stream = record_stream_open(replay->reader);
	const struct vt_record *record;
	uint64_t n_records = 0;
	int error;

	while ((record = record_stream_next(stream))) {
		model_apply(model, record);
		if (observer)
			observer(user, model, record);
		show_progress(&progress, ++n_records, replay, stream);
	}
	progress_end(&progress);
	error = record_stream_close(stream);
	replay->damage = *vt_reader_damage(replay->reader);
	return error;
}

/* Takes reader, which opening it gave error for, into a new replay. */
static int begin(struct replay **out, struct vt_reader *reader, int error, const char *path,
	replay_observer *observer, void *user)
{
	struct replay *replay;

	*out = NULL;
	if (error)
		return error;
	replay = memory_new(1, sizeof(*replay));
	replay->reader = reader;
	replay->path = memory_text(path);
	replay->model = model_new();
	error = pass(replay, replay->model, observer, user);
	if (error) {
		int saved = errno;

		replay_close(replay);
		errno = saved;
		return error;
	}
	*out = replay;
	return 0;
}

int replay_open(struct replay **out, const char *path, replay_observer *observer, void *user)
{
	struct vt_reader *reader;
	int error = vt_reader_open(&reader, path);

	return begin(out, reader, error, path, observer, user);
}

int replay_open_fd(struct replay **out, int fd, const char *path, enum vt_parts_which which,
	replay_observer *observer, void *user)
{
	struct vt_reader *reader;
	int error = vt_reader_open_fd(&reader, fd, path, which);

	return begin(out, reader, error, path, observer, user);
}

void replay_close(struct replay *replay)
{
	if (!replay)
		return;
	model_free(replay->model);
	vt_reader_close(replay->reader);
	free(replay->path);
	free(replay);
}

int replay_again(struct replay *replay, replay_observer *observer, void *user)
{
	return replay_follow(replay, &(struct replay_hooks){.observer = observer, .user = user});
}

int replay_follow(struct replay *replay, const struct replay_hooks *hooks)
{
	model_free(replay->model);
	replay->model = model_new();
	model_group_sites(replay->model, hooks->grouper, hooks->user);
	model_listen(replay->model, hooks->listener, hooks->user);
	return pass(replay, replay->model, hooks->observer, hooks->user);
}

int replay_aside(struct replay *replay, replay_observer *observer, void *user)
{
	struct model *model = model_new();
	int error = pass(replay, model, observer, user);

	model_free(model);
	return error;
}

struct model *replay_take_model(struct replay *replay)
{
	struct model *model = replay->model;

	replay->model = NULL;
	return model;
}

struct visit {
	const struct replay_moment *moments;
	size_t n;
	uint64_t *peaks;       /* tracked bytes that moment i waits for, */
	uint64_t *block_peaks; /* and of them in blocks of allocators */
	bool *done;
	size_t n_waiting;	 /* moments before the end that are not done */
	uint64_t next_record_ns; /* of the moments at a record that are not done, the first one */
	replay_visitor *visitor;
	model_grouper *grouper; /* NULL: none */
	void *user;
};

static void visit_now(struct visit *visit, const struct model *model, size_t i)
{
	visit->done[i] = true;
	visit->n_waiting -= visit->moments[i].at != REPLAY_AT_END;
	visit->visitor(visit->user, model, i);
}

static void find_next_record(struct visit *visit)
{
	visit->next_record_ns = UINT64_MAX;
	for (size_t i = 0; i < visit->n; i++)
		if (visit->moments[i].at == REPLAY_AT_RECORD && !visit->done[i] &&
			visit->moments[i].time_ns < visit->next_record_ns)
			visit->next_record_ns = visit->moments[i].time_ns;
}

static void visit_before(
	struct visit *visit, const struct model *model, const struct vt_record *record)
{
	if (record->kind < VT_REC_alloc || model_is_summary(record))
		return;
	for (size_t i = 0; i < visit->n; i++)
		if (visit->moments[i].at == REPLAY_AT_TIME && !visit->done[i] &&
			record->time_ns > visit->moments[i].time_ns)
			visit_now(visit, model, i);
}

static void visit_at_record(
	struct visit *visit, const struct model *model, const struct vt_record *record)
{
	for (size_t i = 0; i < visit->n; i++)
		if (visit->moments[i].at == REPLAY_AT_RECORD && !visit->done[i] &&
			visit->moments[i].time_ns == record->time_ns &&
			visit->moments[i].tid == record->tid)
			visit_now(visit, model, i);
	find_next_record(visit);
}

static void visit_after(
	struct visit *visit, const struct model *model, const struct vt_record *record)
{
	if (record->time_ns >= visit->next_record_ns && model_is_event(record))
		visit_at_record(visit, model, record);
	if (!model_may_raise(record))
		return;
	for (size_t i = 0; i < visit->n; i++) {
		const struct model_device *device;

		if (visit->moments[i].at != REPLAY_AT_PEAK || visit->done[i])
			continue;
		/* By value, not by place: a trace that is being written may have grown since the
		 * first pass. */
		device = model_device_find(model, visit->moments[i].device);
		if (device && device->tracked_bytes >= visit->peaks[i] &&
			device->block_bytes >= visit->block_peaks[i])
			visit_now(visit, model, i);
	}
}

/* Replays into a model of its own up to the last moment that is waited for, or to the end. */
static int visit_pass(struct replay *replay, struct visit *visit)
{
	struct progress progress = progress_start();
	struct record_stream *stream = record_stream_open(replay->reader);
	struct model *model = model_new();
	const struct vt_record *record;
	uint64_t n_records = 0;

	model_group_sites(model, visit->grouper, visit->user);
	while ((visit->n_waiting || visit->grouper) && (record = record_stream_next(stream))) {
		visit_before(visit, model, record);
		model_apply(model, record);
		visit_after(visit, model, record);
		show_progress(&progress, ++n_records, replay, stream);
	}
	progress_end(&progress);
	model_free(model);
	return record_stream_close(stream);
}

int replay_visit(struct replay *replay, const struct replay_moment *moments, size_t n,
	replay_visitor *visitor, model_grouper *grouper, void *user)
{
	struct visit visit = {
		.moments = moments, .n = n, .visitor = visitor, .grouper = grouper, .user = user};
	int error = 0;

	visit.peaks = memory_new(n, sizeof(*visit.peaks));
	visit.block_peaks = memory_new(n, sizeof(*visit.block_peaks));
	visit.done = memory_new(n, sizeof(*visit.done));
	for (size_t i = 0; i < n; i++) {
		const struct model_device *device =
			model_device_find(replay->model, moments[i].device);

		visit.peaks[i] = device ? device->peak_tracked_bytes : 0;
		visit.block_peaks[i] = device ? device->peak_block_bytes : 0;
		visit.n_waiting += moments[i].at != REPLAY_AT_END;
	}
	find_next_record(&visit);
	if (visit.n_waiting || grouper)
		error = visit_pass(replay, &visit);
	for (size_t i = 0; i < n && !error; i++)
		if (!visit.done[i])
			visit_now(&visit, replay->model, i);
	free(visit.peaks);
	free(visit.block_peaks);
	free(visit.done);
	return error;
}

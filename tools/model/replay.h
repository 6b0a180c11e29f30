/*
 * Replaying one trace into a model, as often as needed: a first pass learns where the peaks are and
 * how the trace ends, a second one stops at the moments somebody wants to look at.
 */
#ifndef VRAMTRACE_MODEL_REPLAY_H
#define VRAMTRACE_MODEL_REPLAY_H

#include "model/model.h"
#include "trace/reader.h"

enum replay_at {
	REPLAY_AT_PEAK,	  /* when device's tracked bytes are the most, first; with allocators that
			     report blocks, when the most of that is in blocks */
	REPLAY_AT_TIME,	  /* before the first event after time_ns */
	REPLAY_AT_RECORD, /* after the record that thread `tid` wrote at time_ns */
	REPLAY_AT_END,
};

struct replay_moment {
	enum replay_at at;
	int device;	  /* REPLAY_AT_PEAK: whose */
	uint64_t time_ns; /* REPLAY_AT_TIME, REPLAY_AT_RECORD */
	uint32_t tid;	  /* REPLAY_AT_RECORD */
};

struct replay {
	char *path;
	struct vt_reader *reader;
	struct model *model;	 /* as it was at the end of the trace */
	struct vt_damage damage; /* found by the last whole pass */
	/* Set by who opened it. */
	uint64_t packed_bytes; /* of the file it was unpacked from; 0: it was not packed */
	bool pack_damaged;     /* not all of that file could be unpacked */
};

/* Called for each record of a pass, after the model took it in. */
typedef void replay_observer(void *user, const struct model *model, const struct vt_record *record);
/* Called at moments[i]; model is lent for the call. */
typedef void replay_visitor(void *user, const struct model *model, size_t i);

/* Opens path and makes the first pass, with observer (NULL: none). Returns 0 and *replay, to be
 * freed with replay_close; or VT_E_* (for VT_E_OPEN and VT_E_IO errno says more) and NULL. A
 * damaged trace is no error: see damage. */
int replay_open(struct replay **replay, const char *path, replay_observer *observer, void *user);
/* The same of the trace that is open as fd, which stays the caller's; path is what it is called. Of
 * a bounded trace, `which` says what of it is read. */
int replay_open_fd(struct replay **replay, int fd, const char *path, enum vt_parts_which which,
	replay_observer *observer, void *user);
void replay_close(struct replay *replay);

/* Another pass, with observer (NULL: none) for each record. Borrowed results of older passes are
 * void afterwards. */
int replay_again(struct replay *replay, replay_observer *observer, void *user);

/* The same with a model of its own: replay->model, and what was borrowed from it, stay. */
int replay_aside(struct replay *replay, replay_observer *observer, void *user);
/* What is called during a pass of replay_follow; each may be NULL. */
struct replay_hooks {
	replay_observer *observer;
	model_listener *listener;
	model_grouper *grouper;
	void *user;
};

/* Another pass, as replay_again. */
int replay_follow(struct replay *replay, const struct replay_hooks *hooks);

/* Takes the model of the last pass out of replay, to be freed with model_free before replay is
 * closed; another pass makes a new one. */
struct model *replay_take_model(struct replay *replay);

/* Calls visitor once for each of the n moments, in the order of time, with another model that is
 * replayed as far as needed; replay->model is only read. With a grouper that model is replayed to
 * the end, its sites grouped (model_group_sites); the grouper is called with user, too. */
int replay_visit(struct replay *replay, const struct replay_moment *moments, size_t n,
	replay_visitor *visitor, model_grouper *grouper, void *user);

#endif

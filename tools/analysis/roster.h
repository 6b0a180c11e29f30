/*
 * The call sites of a trace that a picture tells apart: those that ever held most, each with a
 * number; one more for what each allocator keeps; and one for all that is left of each device. What
 * is drawn from several passes over the trace has the same numbers.
 */
#ifndef VRAMTRACE_ANALYSIS_ROSTER_H
#define VRAMTRACE_ANALYSIS_ROSTER_H

#include "analysis/history.h"
#include "analysis/owners.h"
#include "analysis/sites.h"
#include "model/blocks.h"

#define ROSTER_NONE UINT32_MAX

/* Owners, and call sites, of a device with a curve of their own. */
#define ROSTER_N_OWNERS 10u
#define ROSTER_N_CURVES 14u

struct roster_row {
	struct model_site_key key; /* of SITE_IDLE without a stack */
	enum site_level level;
	bool is_rest;	     /* all sites of the device that have no row */
	bool tracked;	     /* memory of the device, counted in it */
	const char *owner;   /* NULL not known */
	uint64_t most_bytes; /* as its curve has it; 0 of is_rest */
	uint32_t device;     /* index in devices */
	uint32_t owner_slot; /* in its device's owners, or ROSTER_NONE */
	uint32_t curve_slot; /* in its device's curves, or ROSTER_NONE */
};

struct roster_device {
	int ordinal;			     /* or MODEL_DEVICE_* */
	uint32_t rest;			     /* row of what has none */
	const char *owners[ROSTER_N_OWNERS]; /* that ever held most, the first one most */
	size_t n_owners;
	uint32_t curves[ROSTER_N_CURVES]; /* rows, likewise */
	size_t n_curves;
};

/* Release with roster_release. */
struct roster {
	struct roster_row *rows;
	size_t n_rows, room;
	size_t first_idle, n_idle;     /* rows of what allocators keep */
	size_t n_left_out;	       /* sites without a row */
	struct roster_device *devices; /* that ever held something; the host last */
	size_t n_devices;
	uint32_t *by_site; /* row of the model's index */
	size_t n_sites;
};

/* At most limit sites get a row. model and history are of the first pass, and names of owners live
 * as long as those of owners do. */
void roster_make(struct roster *roster, const struct model *model, const struct history *history,
	const struct owner_source *owners, size_t limit);

/* The row of a site of any pass. */
uint32_t roster_row_of(const struct roster *roster, const struct model_site *site);

/* The row of what an allocator keeps there; ROSTER_NONE: the first pass had none. */
uint32_t roster_idle_row(const struct roster *roster, const struct model_allocator *allocator,
	const struct model_holding *holding);

/* The index of the device; ROSTER_NONE: the first pass had none. */
uint32_t roster_device_of(const struct roster *roster, int ordinal);

/* What a site, or a holding, has that is in no other row. */
uint64_t roster_site_bytes(const struct model_site *site);
uint64_t roster_site_count(const struct model_site *site);
uint64_t roster_idle_bytes(const struct model_holding *holding);

void roster_release(struct roster *roster);

#endif

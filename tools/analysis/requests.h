/*
 * How large a program's requests are, and which of its call sites ask for a little more each time:
 * gathered during one pass over a trace, so that what is free can be compared with what is asked
 * for.
 */
#ifndef VRAMTRACE_ANALYSIS_REQUESTS_H
#define VRAMTRACE_ANALYSIS_REQUESTS_H

#include "model/model.h"

/* Who was asked. */
enum request_level {
	REQUEST_DRIVER, /* device memory of any kind that counts */
	REQUEST_FRAMEWORK,
	REQUEST_N_LEVELS
};

/* Requests of one size at one level of one device. */
struct request_size_key {
	uint64_t bytes;
	int32_t device;
	uint32_t level;
};

struct request_size {
	struct request_size_key key;
	uint64_t count;
	UT_hash_handle hh;
};

struct request_site_key {
	uint64_t stack_id;
	int32_t device;
	uint32_t level;
};

/* Requests of one stack. */
struct request_site {
	struct request_site_key key;
	struct request_size *size; /* of the last one */
	uint64_t n_requests;
	uint64_t largest_bytes;
	uint64_t n_at_top; /* at least as large as any before */
	uint64_t first_bytes;
	uint64_t n_steps; /* larger than any before, by a little */
	uint64_t n_leaps; /* by more than that */
	UT_hash_handle hh;
};

/* All zero is empty; release it with requests_release. */
struct requests {
	struct request_size *sizes;
	struct request_site *sites;
	struct request_size *near_sizes[HASH_N_NEAR];
	struct request_site *near_sites[HASH_N_NEAR];
};

/* Takes in the next record of a pass; model is as it is after that record. */
void requests_observe(
	struct requests *requests, const struct model *model, const struct vt_record *record);

/* After the last record of the pass, and before requests_span is called. */
void requests_finish(struct requests *requests);

/* What was asked of one level of one device, above `above_bytes`. */
struct request_span {
	uint64_t n_requests;
	uint64_t n_fitting;    /* of at most `hole_bytes` */
	uint64_t median_bytes; /* 0: there are none */
};
struct request_span requests_span(const struct requests *requests, enum request_level level,
	int device, uint64_t above_bytes, uint64_t hole_bytes);

/* The stack's requests, or NULL. Borrowed. */
const struct request_site *requests_site(
	const struct requests *requests, enum request_level level, int device, uint64_t stack_id);

/* Whether a site's sizes drift: many small steps up, and most requests as large as any before. NULL
 * is allowed. */
bool request_site_drifts(const struct request_site *site);

/* How many sites there are whose sizes drift, up to at least least_bytes. */
uint64_t requests_count_drifting(const struct requests *requests, enum request_level level,
	int device, uint64_t least_bytes);

void requests_release(struct requests *requests);

#endif

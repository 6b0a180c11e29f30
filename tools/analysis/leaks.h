/*
 * What is live at the end of a trace, or ended with its context, and a verdict for each call site
 * from the shape of its curve (see shape.h). Without enough to go by there is no verdict: a late
 * answer is better than a wrong one.
 *
 * A curve that grows is called growing when the program does the same work again and again: for
 * each allocation more that stays, LEAK_WORK others ended meanwhile, or the program's own marks
 * pass. One that only takes memory may be loading: then it must have grown for LEAK_PATIENCE_NS,
 * and up to the end.
 */
#ifndef VRAMTRACE_ANALYSIS_LEAKS_H
#define VRAMTRACE_ANALYSIS_LEAKS_H

#include "analysis/history.h"
#include "analysis/owners.h"
#include "analysis/shape.h"
#include "analysis/sites.h"

#define LEAK_WORK	 4u
#define LEAK_PATIENCE_NS 60000000000u
#define LEAK_MIN_NS	 100000000u /* growth over less is not called so */
/* Nor over less than this while the process runs: its caches fill up, and it can be asked again. */
#define LEAK_MIN_RUNNING_NS 20000000000u
#define LEAK_MIN_MARKS	    16u /* from here on growth is judged mark by mark */
#define LEAK_MIN_THREADS    3u
#define LEAK_MIN_BURSTS	    3u
#define LEAK_MOST_PERCENT   75u /* of the bytes: of threads that ended, of attempts that failed */

enum leak_verdict {
	LEAK_NONE, /* not known */
	LEAK_GROWING,
	LEAK_PER_THREAD,	  /* most of it came from threads that have ended */
	LEAK_RETAINED_BY_FAILURE, /* most of it is what attempts left that ended in an error */
	LEAK_BURSTS,		  /* piles up, and goes many at once */
	LEAK_SATURATING,
	LEAK_ONE_TIME,
	LEAK_CACHE,		/* an allocator keeps it, in no block */
	LEAK_FREED_AT_TEARDOWN, /* with its context */
	LEAK_N_VERDICTS
};

struct leak {
	struct site_row row;
	enum leak_verdict verdict;
	bool grows;  /* as LEAK_GROWING; also with the verdicts that say how */
	bool in_use; /* no verdict, but what is live is younger than some that was freed */
	uint64_t growth_bytes; /* since since_ns */
	uint64_t since_ns;
	uint64_t rate_bytes_per_s; /* 0 unless it grows */
	uint64_t bytes_per_mark;   /* 0 unless judged by marks */
	const char *
		mark; /* whose: a name with numbers as "*", valid as long as the model; else NULL */
	uint64_t n_births, n_deaths;
	uint64_t mean_lifetime_ns;    /* of what was freed, and came with a record of its own; */
	uint64_t longest_lifetime_ns; /* 0: nothing was */
	uint64_t oldest_ns;	      /* when the oldest that is live came; 0 not known */
	size_t n_ended_threads;	      /* of those whose it is */
	uint64_t n_bursts;
	uint64_t burst_deaths;	   /* of a burst, on average */
	uint64_t address;	   /* of one of it; 0 not known */
	const char *suppressed_by; /* a pattern; NULL: none */
};

/* What matched one suppression. */
struct leak_suppression {
	const char *pattern;
	bool built_in;
	uint64_t n_sites;
	uint64_t bytes;
};

/* All that the code of one owner has live on a device, but for what is suppressed. */
struct leak_owner {
	int device;
	const char *name; /* NULL: not known */
	size_t n_sites;
	uint64_t bytes;
	uint64_t count;
	/* Of the site that grows fastest; without one, that of most bytes. */
	enum leak_verdict verdict;
	uint64_t verdict_bytes[LEAK_N_VERDICTS]; /* of bytes */
	bool grows;
	bool is_leak;		   /* any of it */
	uint64_t growth_bytes;	   /* of all sites that grow */
	uint64_t rate_bytes_per_s; /* likewise */
};

/* All zero is an empty list; release it with leak_list_release. */
struct leak_list {
	struct leak *items; /* that grow, fastest first; others; ended with their context last */
	size_t n_items, room;
	size_t n_left_out; /* by a limit, which does not count what is suppressed */
	uint64_t left_out_bytes;
	struct leak_suppression *suppressions; /* that matched something */
	size_t n_suppressions, suppressions_room;
	struct leak_owner *owners; /* fastest first, then most bytes; a limit leaves out none */
	size_t n_owners, owners_room;
};

/* A leak for each row of end, which is what site_list_add_live and _add_teardown made of model. */
void leak_list_make(struct leak_list *list, const struct model *model, struct history *history,
	const struct site_list *end);

/* The same without verdicts, for any moment. */
void leak_list_take(struct leak_list *list, const struct site_list *rows);

/* Makes the list's owners, once its verdicts and suppressions are final. */
void leak_list_group(
	struct leak_list *list, const struct model *model, const struct owner_source *source);

/* Keeps what filter says. */
void leak_list_filter(struct leak_list *list, const struct site_filter *filter);

/* Which suppression matches a stack of model: its pattern, valid as long as the list, or NULL.
 * Built-in ones do not hold for what grows. */
struct leak_suppressor {
	const char *(*match)(void *user, const struct model *model, uint64_t stack_id, bool grows,
		bool *built_in);
	void *user;
};

/* Marks and counts what is suppressed. */
void leak_list_suppress(struct leak_list *list, const struct model *model,
	const struct leak_suppressor *suppressor);

/* Whether it is called a leak: it grows, or failed attempts left it, or nothing is known that
 * excuses it; and it is not suppressed. Memory of other processes is none unless it grows. */
bool leak_is_leak(const struct leak *leak);

/* Growth over less than so many nanoseconds is not called so. */
uint64_t leak_min_ns(const struct history *history);

/* So many bytes in so many nanoseconds, for a second. */
uint64_t leak_rate(uint64_t bytes, uint64_t ns);

/* "growing", as in the JSON; NULL for LEAK_NONE. */
const char *leak_verdict_name(enum leak_verdict verdict);

void leak_list_release(struct leak_list *list);

#endif

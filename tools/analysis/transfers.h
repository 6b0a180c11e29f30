/*
 * What copies cost: sums by direction and host memory, by size, by call site; and findings, each a
 * way in which time or memory is lost at one site, with what to do.
 *
 * Lost time is host time, or what is known of the device's, beyond what the same bytes would have
 * cost pinned and in one call. The rate of pinned memory is taken from the trace where it tells:
 * from copies timed on the device, else from synchronous ones; else a typical one is used, and the
 * finding says so. Of a call that waits until its copy is through, only a part is copying: as long
 * as the device says, else twice what the fastest such copy of the trace took; the rest is waiting
 * for earlier work, which pinning does not help.
 */
#ifndef VRAMTRACE_ANALYSIS_TRANSFERS_H
#define VRAMTRACE_ANALYSIS_TRANSFERS_H

#include "analysis/owners.h"
#include "analysis/sites.h"
#include "model/model.h"

enum transfer_source {
	TRANSFER_TYPICAL,     /* the trace does not tell */
	TRANSFER_SYNCHRONOUS, /* the fastest synchronous call with pinned memory */
	TRANSFER_TIMED,	      /* pinned copies timed on the device, in their best size */
};

struct transfer_rate {
	uint64_t bytes_per_s;
	enum transfer_source source;
};

struct transfer_sum {
	uint64_t n_calls;
	uint64_t n_copies;
	uint64_t n_async; /* calls */
	uint64_t n_small; /* calls */
	uint64_t bytes;
	uint64_t host_time_ns;
	struct model_part through, blocked, timed, waited; /* as in struct model_copy */
	uint64_t fastest_ps;				   /* likewise, of all of them */
};

/* The copies of one stack, direction, host memory and devices. */
struct transfer_row {
	const struct model_copy *const *copies; /* one a size; borrowed from transfers.copies */
	size_t n_copies;
	struct model_copy_key key; /* without the size */
	struct transfer_sum sum;
	uint64_t redundant_bytes; /* uploaded again from where they had been uploaded from, or come
				     back up after they came down; whether changed is not known */
	bool is_lost;		  /* time, by a finding */
	uint64_t lost_ns;	  /* by the worst of them */
	const char *advice;	  /* of that, or of one without a time; NULL: no finding */
};

enum transfer_finding_kind {
	TRANSFER_PAGEABLE,
	TRANSFER_BLOCKED,    /* asynchronous calls that did not return at once */
	TRANSFER_SMALL,	     /* small calls right behind one another */
	TRANSFER_READ_BACK,  /* the host waits for a few bytes, in a loop */
	TRANSFER_REPEATED,   /* the same host memory is uploaded again and again */
	TRANSFER_ROUND_TRIP, /* down to host memory and up from there, unchanged in size */
	TRANSFER_PIN_CHURN,  /* host memory is locked for a few copies, then unlocked */
	TRANSFER_ROUNDED,    /* locked host memory of a power of two of bytes, used in part */
	TRANSFER_NOT_REUSED, /* locked, copied once, kept, while more is locked */
	TRANSFER_KEPT,	     /* registered again and again and never, or late, unregistered */
	TRANSFER_CLASH,	     /* could not be registered: an earlier registration holds it */
	TRANSFER_STAGED,     /* between devices through the host: neither has access to the other */
	TRANSFER_ALLOC_CHURN,
	TRANSFER_SERIAL, /* on the legacy default stream, among copies on streams it waits for */
	TRANSFER_N_FINDINGS
};

/* What does not apply is 0, and for devices MODEL_DEVICE_UNKNOWN. */
struct transfer_finding {
	enum transfer_finding_kind kind;
	uint64_t stack_id;	 /* of the copies, or of what locked or allocated the memory */
	uint64_t other_stack_id; /* the way up, the earlier registration, the oldest pending copy */
	uint32_t direction;
	uint32_t host_kind;
	uint32_t memory_kind; /* enum vt_kind that was allocated or locked */
	int dst_device, src_device;
	uint64_t n;	/* copies, calls, blocks */
	uint64_t bytes; /* that they moved or hold */
	bool is_lost;	/* else how much time it costs is not known */
	uint64_t lost_ns;
	bool is_typical;	  /* the estimate rests on a typical rate */
	bool is_possible;	  /* only if the data had not changed, which is not known */
	uint64_t n_ranges;	  /* of host memory that went up or down repeatedly */
	uint64_t used_bytes;	  /* of the memory, by copies; 0: not known */
	uint64_t stream, time_ns; /* of the oldest copy of what is not used again */
	uint64_t address;
	bool is_threshold_known; /* of the pool that memory is allocated from */
	uint64_t threshold_bytes;
};

/* Page-locked host memory by where it was locked. */
struct transfer_pinning {
	const struct model_pinning *pinning;
	uint64_t n_live;
	uint64_t live_bytes;
};

struct transfers {
	const struct model *model;
	const struct model_copy **copies; /* sorted by row */
	size_t n_copies;
	struct transfer_row *rows; /* most host time first, with that of waits */
	size_t n_rows;
	struct transfer_sum totals[VT_N_DIRECTIONS][MODEL_N_HOST_KINDS];
	struct transfer_sum *sizes;		     /* see transfer_size_index */
	struct transfer_rate rates[VT_N_DIRECTIONS]; /* of pinned memory */
	uint64_t span_ns;			     /* from the first to the last event */
	struct transfer_pinning *pinnings;	     /* most bytes first */
	size_t n_pinnings;
	struct transfer_finding *findings; /* most lost time first, then those without, most bytes
					      first */
	size_t n_findings;
	size_t room;
};

/* The sums of copies of one direction, host memory and size. */
static inline size_t transfer_size_index(
	uint32_t direction, uint32_t host_kind, unsigned int size_class)
{
	return (direction * MODEL_N_HOST_KINDS + host_kind) * MODEL_N_SIZE_CLASSES + size_class;
}
#define TRANSFER_N_SIZES (VT_N_DIRECTIONS * MODEL_N_HOST_KINDS * MODEL_N_SIZE_CLASSES)

/* Looks at a model, which must outlive the result and not change. owners (NULL: none) tells whose
 * memory it is that was locked and never copied. Release with transfers_release. */
void transfers_make(
	struct transfers *transfers, const struct model *model, const struct owner_source *owners);
void transfers_release(struct transfers *transfers);

/* Keeps of the rows and findings those of the filter's device and least bytes, and of each the
 * first so many as its limit says. Sums stay as they are. */
void transfers_filter(struct transfers *transfers, const struct site_filter *filter);

void transfer_sum_add(struct transfer_sum *to, const struct transfer_sum *from);

/* Bytes a second of copies that were timed, or whose calls waited for them; 0: not known. */
uint64_t transfer_sum_rate(const struct transfer_sum *sum);

/* Less than, equal to or greater than 0, as a comes before b: for qsort of findings. */
int transfer_finding_order(const void *a, const void *b);

/* "pageable", as in the JSON; and what to do, in words. Constants. */
const char *transfer_finding_name(enum transfer_finding_kind kind);
const char *transfer_finding_fix(const struct transfer_finding *finding);

#endif

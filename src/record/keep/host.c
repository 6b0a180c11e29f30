/* The host's side: samples of its memory, thinned out as the recording gets longer, and when
 * recording was paused; see tools/model/host.c. */
#include "record/keep/internal.h"

#define N_SAMPLES	  128u
#define FIRST_INTERVAL_NS 1000000000u /* that of the recorder */

/* What a report names the most of; of available memory the least. */
enum extreme {
	MOST_RESIDENT,
	MOST_LOCKED,
	MOST_SWAPPED,
	LEAST_AVAILABLE,
	MOST_SWAP_USED,
	N_EXTREMES
};

static struct {
	struct kept *samples[N_SAMPLES]; /* by time, interval_ns apart at least */
	size_t n_samples;
	uint64_t interval_ns; /* 0: all are kept */
	struct kept *extremes[N_EXTREMES];
	struct kept *last;
	struct kept *pause;	      /* the last one */
	uint64_t n_pauses, paused_ns; /* that have ended */
} host;

/* How far out a sample is there; 0: it does not say. */
static uint64_t value_of(const struct vt_rec_host_memory *sample, enum extreme extreme)
{
	switch (extreme) {
	case MOST_RESIDENT:
		return sample->known & VT_HOST_RESIDENT ? sample->resident_bytes + 1 : 0;
	case MOST_LOCKED:
		return sample->known & VT_HOST_LOCKED ? sample->locked_bytes + 1 : 0;
	case MOST_SWAPPED:
		return sample->known & VT_HOST_SWAPPED ? sample->swapped_bytes + 1 : 0;
	case LEAST_AVAILABLE:
		return sample->known & VT_HOST_AVAILABLE ? -sample->available_bytes - 1 : 0;
	default:
		return sample->known & VT_HOST_SWAP &&
				       sample->swap_total_bytes >= sample->swap_free_bytes
			       ? sample->swap_total_bytes - sample->swap_free_bytes + 1
			       : 0;
	}
}

/* Every other one goes. */
static void thin_out(void)
{
	for (size_t i = 0; i < N_SAMPLES; i++) {
		if (i % 2)
			kept_free(host.samples[i]);
		else
			host.samples[i / 2] = host.samples[i];
	}
	host.n_samples = N_SAMPLES / 2;
	host.interval_ns = 2 * (host.interval_ns ? host.interval_ns : FIRST_INTERVAL_NS);
}

static void keep_sample(const struct keep_event *event)
{
	const struct vt_rec_host_memory *given = keep_record(event, host_memory);
	struct kept *kept;

	kept_replace(&host.last, event);
	for (enum extreme i = MOST_RESIDENT; i < N_EXTREMES; i++) {
		uint64_t value = value_of(given, i);

		if (value && (!host.extremes[i] ||
				     value > value_of(kept_as(host.extremes[i], host_memory), i)))
			kept_replace(&host.extremes[i], event);
	}
	if (host.n_samples &&
		event->time_ns - host.samples[host.n_samples - 1]->time_ns < host.interval_ns)
		return;
	if (host.n_samples == N_SAMPLES)
		thin_out();
	kept = kept_new(event);
	if (kept)
		host.samples[host.n_samples++] = kept;
}

static void keep_pause(const struct keep_event *event)
{
	const struct vt_rec_pause *before = host.pause ? kept_as(host.pause, pause) : NULL;
	const struct vt_rec_pause *given = keep_record(event, pause);

	if (before && before->paused && !given->paused) {
		host.n_pauses++;
		host.paused_ns += given->time_ns - before->time_ns;
	}
	kept_replace(&host.pause, event);
}

void host_keep(const struct keep_event *event)
{
	if (event->kind == VT_REC_pause)
		keep_pause(event);
	else
		keep_sample(event);
}

void host_checkpoint_first(void)
{
	if (host.n_pauses)
		checkpoint_figure(&(struct vt_rec_figure){.what = VT_FIGURE_PAUSED,
			.device = VT_DEVICE_HOST,
			.id = host.n_pauses,
			.value = (int64_t)host.paused_ns});
}

static bool is_among_samples(const struct kept *kept)
{
	for (size_t i = 0; i < host.n_samples; i++)
		if (host.samples[i]->time_ns == kept->time_ns)
			return true;
	return false;
}

void host_checkpoint(void)
{
	for (size_t i = 0; i < host.n_samples; i++)
		checkpoint_put(host.samples[i]);
	for (size_t i = 0; i < N_EXTREMES; i++)
		if (host.extremes[i] && !is_among_samples(host.extremes[i]))
			checkpoint_put(host.extremes[i]);
	if (host.last && !is_among_samples(host.last))
		checkpoint_put(host.last);
	checkpoint_put(host.pause);
}

void host_forget(void)
{
	memset(&host, 0, sizeof(host));
}

/* Where the program says it is: the phases that are open, and the last mark; see
 * tools/model/phases.c. */
#include "record/keep/internal.h"

#define MAX_OPEN 256u

static struct kept *open_phases[MAX_OPEN]; /* oldest first */
static size_t n_open;
static struct kept *last_mark;

static uint64_t thread_of(uint32_t tid, const struct vt_rec_phase *phase)
{
	return phase->thread_id ? phase->thread_id : tid;
}

static bool same_text(struct vt_text a, struct vt_text b)
{
	return a.bytes == b.bytes && (!a.bytes || !memcmp(a.data, b.data, a.bytes));
}

static bool ends(const struct keep_event *event, const struct kept *kept, bool any_thread)
{
	const struct vt_rec_phase *end = keep_record(event, phase);
	const struct vt_rec_phase *begin = kept_as(kept, phase);

	if (begin->told != end->told)
		return false;
	if (end->told == VT_TOLD_NVTX_RANGE)
		return begin->range_id == end->range_id;
	if (!any_thread && thread_of(kept->tid, begin) != thread_of(event->tid, end))
		return false;
	return end->told == VT_TOLD_NVTX ? same_text(begin->domain, end->domain)
					 : same_text(begin->name, end->name);
}

static bool drop_newest(const struct keep_event *event, bool any_thread)
{
	for (size_t i = n_open; i--;) {
		if (!ends(event, open_phases[i], any_thread))
			continue;
		kept_free(open_phases[i]);
		n_open--;
		memmove(open_phases + i, open_phases + i + 1, (n_open - i) * sizeof(*open_phases));
		return true;
	}
	return false;
}

void phase_keep(const struct keep_event *event)
{
	const struct vt_rec_phase *given = keep_record(event, phase);
	struct kept *kept;

	if (event->kind == VT_REC_mark) {
		kept_replace(&last_mark, event);
	} else if (given->action == VT_PHASE_BEGIN) {
		kept = n_open < MAX_OPEN ? kept_new(event) : NULL;
		if (kept)
			open_phases[n_open++] = kept;
	} else if (!drop_newest(event, false) && given->told == VT_TOLD_API) {
		drop_newest(event, true);
	}
}

void phase_checkpoint(void)
{
	for (size_t i = 0; i < n_open; i++)
		checkpoint_put(open_phases[i]);
	checkpoint_put(last_mark);
}

void phase_forget(void)
{
	n_open = 0;
	last_mark = NULL;
}

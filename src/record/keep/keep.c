#include "record/keep/keep.h"

#include "record/keep/internal.h"

struct keep keep;

/* Records that hold for ever, in the order in which they came. */
static struct {
	struct kept *first;
	struct kept **end;
} lasting;

/* Of records that are said again, the last one: by kind and number. */
#define N_LATEST 64u

static struct kept *latest[N_LATEST];

/* What any kind of record has in common with vt_reader's: single moments of a program. */
static bool is_event(enum vt_record_kind kind)
{
	return (kind >= VT_REC_alloc && kind <= VT_REC_graph_pool && kind != VT_REC_figure &&
		       kind != VT_REC_past && kind != VT_REC_stretch) ||
	       kind == VT_REC_copy_time || kind == VT_REC_peer_access;
}

static void last(const struct keep_event *event)
{
	struct kept *kept = kept_new(event);

	if (!kept)
		return;
	if (!lasting.end)
		lasting.end = &lasting.first;
	*lasting.end = kept;
	lasting.end = &kept->next;
}

/* Which of the others it takes the place of. */
static bool is_same(const struct kept *kept, const struct keep_event *event)
{
	if (kept->kind != event->kind)
		return false;
	if (event->kind == VT_REC_python_stacks)
		return kept_as(kept, python_stacks)->outcome ==
		       keep_record(event, python_stacks)->outcome;
	if (event->kind == VT_REC_peer_access)
		return kept_as(kept, peer_access)->device ==
			       keep_record(event, peer_access)->device &&
		       kept_as(kept, peer_access)->peer == keep_record(event, peer_access)->peer;
	return true;
}

static void replace(const struct keep_event *event)
{
	size_t i = 0;

	while (i < N_LATEST && latest[i] && !is_same(latest[i], event))
		i++;
	if (i < N_LATEST)
		kept_replace(&latest[i], event);
}

static void take(const struct keep_event *event)
{
	switch (event->kind) {
	case VT_REC_process:
	case VT_REC_environment:
	case VT_REC_driver:
	case VT_REC_api:
	case VT_REC_module:
	case VT_REC_stack:
	case VT_REC_python:
	case VT_REC_python_code:
	case VT_REC_python_lines:
	case VT_REC_eval_range:
	case VT_REC_uncovered:
	case VT_REC_note:
		last(event);
		break;
	case VT_REC_device:
		last(event);
		device_apply(event);
		break;
	case VT_REC_python_stacks:
	case VT_REC_peer_access:
	case VT_REC_unwind_check:
		replace(event);
		break;
	case VT_REC_host_memory:
	case VT_REC_pause:
		host_keep(event);
		break;
	case VT_REC_memory:
	case VT_REC_others:
		device_apply(event);
		break;
	case VT_REC_alloc:
	case VT_REC_free:
	case VT_REC_failure:
	case VT_REC_copy:
	case VT_REC_set:
	case VT_REC_migrate:
		ledger_keep(event);
		break;
	case VT_REC_mark:
	case VT_REC_phase:
		phase_keep(event);
		break;
	case VT_REC_context:
		context_keep(event);
		break;
	case VT_REC_untracked:
		context_untracked(event);
		break;
	case VT_REC_pool:
	case VT_REC_pool_memory:
		pool_keep(event);
		break;
	case VT_REC_graph_alloc:
	case VT_REC_graph_free:
	case VT_REC_graph:
	case VT_REC_graph_memory:
		graph_keep(event);
		break;
	case VT_REC_reserve:
	case VT_REC_unreserve:
	case VT_REC_handle_create:
	case VT_REC_handle_release:
	case VT_REC_handle_retain:
	case VT_REC_map:
	case VT_REC_unmap:
	case VT_REC_access:
		space_keep(event);
		break;
	default:
		block_keep(event);
		break;
	}
}

static void observe(enum vt_record_kind kind, uint32_t tid, uint64_t time_ns, const void *record)
{
	const struct keep_event event = {kind, tid, time_ns, record};

	if (is_event(kind) && !keep.n_events++)
		keep.first_ns = time_ns;
	take(&event);
}

bool keep_is_event(uint16_t kind)
{
	return is_event((enum vt_record_kind)kind);
}

void keep_checkpoint_lasting(void)
{
	for (const struct kept *kept = lasting.first; kept; kept = kept->next)
		checkpoint_put(kept);
	for (size_t i = 0; i < N_LATEST; i++)
		checkpoint_put(latest[i]);
}

const struct vt_keeper keep_keeper = {.observe = observe, .checkpoint = checkpoint_write};

void keep_forget(void)
{
	memset(&keep, 0, sizeof(keep));
	memset(&lasting, 0, sizeof(lasting));
	memset(latest, 0, sizeof(latest));
	ledger_forget();
	device_forget();
	space_forget();
	graph_forget();
	block_forget();
	phase_forget();
	host_forget();
	checkpoint_forget();
}

/* Writing a checkpoint: figures and sums first, then the records that are repeated, in the order of
 * their times. */
#include <sys/mman.h>

#include "record/keep/internal.h"
#include "trace/writer.h"

struct item {
	uint64_t time_ns;
	uint64_t order; /* in which they were put */
	const struct kept *kept;
};

/* The one being written. */
static struct {
	struct vt_lane *lane;
	struct item *items;
	size_t n_items;
	size_t room;
	uint64_t n_events;
	uint32_t tid; /* of the record before */
	bool failed;  /* there was no memory for all items, in this or an earlier one */
} writing;

static bool grow(void)
{
	size_t room = writing.room ? 2 * writing.room : 4096;
	void *items = writing.items ? mremap(writing.items, writing.room * sizeof(struct item),
					      room * sizeof(struct item), MREMAP_MAYMOVE)
				    : mmap(NULL, room * sizeof(struct item), PROT_READ | PROT_WRITE,
					      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (items == MAP_FAILED)
		return false;
	writing.items = items;
	writing.room = room;
	return true;
}

void checkpoint_put(const struct kept *kept)
{
	if (!kept)
		return;
	if (writing.n_items == writing.room && !grow()) {
		writing.failed = true;
		return;
	}
	writing.items[writing.n_items] = (struct item){kept->time_ns, writing.n_items, kept};
	writing.n_items++;
	writing.n_events += keep_is_event(kept->kind);
}

void checkpoint_put_new(const struct keep_event *event)
{
	struct kept *kept = kept_new(event);

	if (!kept)
		return;
	kept->transient = true;
	checkpoint_put(kept);
}

void checkpoint_figure(const struct vt_rec_figure *figure)
{
	vt_put_figure(writing.lane, figure);
}

void checkpoint_past(const struct vt_rec_past *past)
{
	vt_put_past(writing.lane, past);
}

void checkpoint_stretch(const struct vt_rec_stretch *stretch)
{
	vt_put_stretch(writing.lane, stretch);
}

static bool is_before(const struct item *a, const struct item *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

static void sift(struct item *items, size_t at, size_t n)
{
	struct item item = items[at];

	for (size_t child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && is_before(&items[child], &items[child + 1]))
			child++;
		if (!is_before(&item, &items[child]))
			break;
		items[at] = items[child];
	}
	items[at] = item;
}

/* qsort may take memory of the process. */
static void sort(struct item *items, size_t n)
{
	for (size_t i = n / 2; i--;)
		sift(items, i, n);
	while (n > 1) {
		struct item last = items[--n];

		items[n] = items[0];
		items[0] = last;
		sift(items, 0, n);
	}
}

static void put_record(struct vt_lane *lane, unsigned int kind, const void *record)
{
	switch (kind) {
#define RECORD(number, rec, doc)                                                                   \
	case number:                                                                               \
		vt_put_##rec(lane, record);                                                        \
		break;
#define FIELD(type, name, doc)
#define END_RECORD(rec)
#include "vramtrace/records.def"
	default:
		break;
	}
}

static void put_item(const struct kept *kept)
{
	struct vt_rec_thread thread = {.tid = kept->tid};

	/* A chunk says whose its first records are. */
	writing.lane->tid = kept->tid;
	if (kept->tid != writing.tid)
		vt_put_thread(writing.lane, &thread);
	writing.tid = kept->tid;
	put_record(writing.lane, kept->kind, kept + 1);
}

static void collect(void)
{
	keep_checkpoint_lasting();
	device_checkpoint();
	context_checkpoint();
	pool_checkpoint();
	space_checkpoint();
	graph_checkpoint();
	ledger_checkpoint();
	block_checkpoint();
	phase_checkpoint();
	host_checkpoint();
	sort(writing.items, writing.n_items);
}

static void note_failure(void)
{
	static const char text[] =
		"the recorder had no memory for all of what lives: what came before "
		"single events begin is not complete";
	struct vt_rec_note note = {.text = {text, sizeof(text) - 1}};

	vt_put_note(writing.lane, &note);
}

static void begin(uint64_t number, uint64_t now_ns)
{
	struct vt_rec_checkpoint record = {
		.made_ns = now_ns,
		.part = number,
		.n_events = (int64_t)(keep.n_events - writing.n_events),
		.first_ns = keep.first_ns,
		.n_unknown_frees = keep.n_unknown_frees,
		.n_missed_frees = keep.n_missed_frees,
		.n_graph_launches = keep.n_graph_launches,
	};

	vt_put_checkpoint(writing.lane, &record);
	if (keep.arena.failed || writing.failed)
		note_failure();
	device_checkpoint_first();
	block_checkpoint_first();
	host_checkpoint_first();
	ledger_checkpoint_first();
}

void checkpoint_write(struct vt_lane *lane, uint64_t number, uint64_t now_ns)
{
	writing.lane = lane;
	writing.n_items = writing.n_events = writing.tid = 0;
	collect();
	begin(number, now_ns);
	for (size_t i = 0; i < writing.n_items; i++) {
		put_item(writing.items[i].kept);
		if (writing.items[i].kept->transient)
			kept_free((struct kept *)(uintptr_t)writing.items[i].kept);
	}
	if (writing.items)
		munmap(writing.items, writing.room * sizeof(*writing.items));
	writing.items = NULL;
	writing.room = 0;
}

void checkpoint_forget(void)
{
	memset(&writing, 0, sizeof(writing));
}

#include "analysis/processes.h"

#include <stdlib.h>
#include <string.h>

#include "model/memory.h"

static bool same_text(struct vt_text a, struct vt_text b)
{
	return a.bytes == b.bytes && (!a.bytes || !memcmp(a.data, b.data, a.bytes));
}

/* Process ids mean the same to both. */
static bool same_place(const struct trace_facts *a, const struct trace_facts *b)
{
	return same_text(a->host, b->host) && same_text(a->boot_id, b->boot_id);
}

/* The first trace of the same boot says how its monotonic clock and that of the day go together:
 * one may be set while programs run. */
static uint64_t start_of(const struct process_list *list, size_t i)
{
	const struct trace_facts *facts = list->items[i].facts;

	for (size_t k = 0; k < i && facts->boot_id.bytes; k++) {
		const struct trace_facts *other = list->items[k].facts;

		if (same_text(other->boot_id, facts->boot_id))
			return other->start_realtime_ns + facts->start_monotonic_ns -
			       other->start_monotonic_ns;
	}
	return facts->start_realtime_ns;
}

static void set_clock(struct process_list *list)
{
	uint64_t first_ns = UINT64_MAX;

	for (size_t i = 0; i < list->n_items; i++) {
		list->items[i].start_ns = start_of(list, i);
		if (list->items[i].start_ns < first_ns)
			first_ns = list->items[i].start_ns;
	}
	for (size_t i = 0; i < list->n_items; i++) {
		struct process *process = &list->items[i];

		process->start_ns -= first_ns;
		process->last_ns = process->start_ns + process->facts->duration_ns;
	}
	list->start_realtime_ns = first_ns;
}

static bool is_same_process(const struct process *a, const struct process *b)
{
	return a->facts->pid == b->facts->pid && a->facts->start_ticks == b->facts->start_ticks &&
	       same_place(a->facts, b->facts);
}

static bool has_ended_by(const struct process *process, uint64_t time_ns)
{
	return process->facts->end_told && process->last_ns < time_ns;
}

/* Whether a process may be the parent: of those that had the id, one that was there before the
 * child, and that had not ended when the child asked for the id. */
static bool may_be_parent(const struct process *parent, const struct process *child)
{
	const struct trace_facts *facts = parent->facts;

	return facts->pid == child->facts->ppid && same_place(facts, child->facts) &&
	       facts->start_ticks <= child->facts->start_ticks &&
	       !has_ended_by(parent, child->start_ns);
}

/* Of two that may be: the one that started later; of one process, what it was when the child
 * began. */
static bool is_nearer(const struct process *a, const struct process *b, const struct process *child)
{
	bool a_before = a->start_ns <= child->start_ns, b_before = b->start_ns <= child->start_ns;

	if (a->facts->start_ticks != b->facts->start_ticks)
		return a->facts->start_ticks > b->facts->start_ticks;
	if (a_before != b_before)
		return a_before;
	return a_before ? a->start_ns > b->start_ns : a->start_ns < b->start_ns;
}

static size_t find_parent(const struct process_list *list, size_t i)
{
	const struct process *child = &list->items[i];
	size_t best = PROCESS_NONE;

	for (size_t k = 0; k < list->n_items; k++)
		if (k != i && child->facts->ppid && may_be_parent(&list->items[k], child) &&
			(best == PROCESS_NONE ||
				is_nearer(&list->items[k], &list->items[best], child)))
			best = k;
	return best;
}

static size_t find_before_exec(const struct process_list *list, size_t i)
{
	const struct process *process = &list->items[i];
	size_t best = PROCESS_NONE;

	for (size_t k = 0; k < list->n_items; k++) {
		const struct process *other = &list->items[k];

		if (k == i || !process->facts->start_ticks || !is_same_process(other, process) ||
			other->start_ns >= process->start_ns)
			continue;
		if (best == PROCESS_NONE || other->start_ns > list->items[best].start_ns)
			best = k;
	}
	return best;
}

static size_t above(const struct process *process)
{
	return process->exec_from != PROCESS_NONE ? process->exec_from : process->parent;
}

/* Damaged traces may say that two are the parents of one another. */
static bool is_below_itself(const struct process_list *list, size_t i)
{
	size_t at = above(&list->items[i]);

	for (size_t n = 0; at != PROCESS_NONE && at != i && n < list->n_items; n++)
		at = above(&list->items[at]);
	return at != PROCESS_NONE;
}

static void find_relations(struct process_list *list)
{
	for (size_t i = 0; i < list->n_items; i++) {
		list->items[i].exec_from = find_before_exec(list, i);
		list->items[i].parent = find_parent(list, i);
	}
	for (size_t i = 0; i < list->n_items; i++)
		if (is_below_itself(list, i))
			list->items[i].parent = list->items[i].exec_from = PROCESS_NONE;
}

/* A parent that is gone while the child still runs, or that said when it ended. */
static void note_outlived(struct process_list *list)
{
	for (size_t i = 0; i < list->n_items; i++) {
		struct process *child = &list->items[i];
		const struct process *parent;

		if (child->parent == PROCESS_NONE)
			continue;
		parent = &list->items[child->parent];
		child->outlived_parent = has_ended_by(parent, child->last_ns) ||
					 (child->facts->end == TRACE_END_RUNNING &&
						 parent->facts->end == TRACE_END_KILLED);
	}
}

/* The first one below `parent` that is not in the order yet. */
static size_t next_below(const struct process_list *list, size_t parent, const bool *is_placed)
{
	size_t next = PROCESS_NONE;

	for (size_t i = 0; i < list->n_items; i++)
		if (!is_placed[i] && above(&list->items[i]) == parent &&
			(next == PROCESS_NONE ||
				list->items[i].start_ns < list->items[next].start_ns))
			next = i;
	return next;
}

/* Orphans of one parent stand together. */
static size_t next_root(const struct process_list *list, size_t last, const bool *is_placed)
{
	size_t first = next_below(list, PROCESS_NONE, is_placed), next = PROCESS_NONE;

	for (size_t i = 0; i < list->n_items && last != PROCESS_NONE; i++) {
		const struct process *process = &list->items[i], *before = &list->items[last];

		if (!is_placed[i] && above(process) == PROCESS_NONE &&
			process->facts->ppid == before->facts->ppid &&
			same_place(process->facts, before->facts) &&
			(next == PROCESS_NONE || process->start_ns < list->items[next].start_ns))
			next = i;
	}
	return next != PROCESS_NONE ? next : first;
}

static void find_order(struct process_list *list)
{
	bool *is_placed = memory_new(list->n_items, sizeof(*is_placed));
	size_t at = PROCESS_NONE, root = PROCESS_NONE, n = 0;

	while (n < list->n_items) {
		size_t next = at == PROCESS_NONE ? root = next_root(list, root, is_placed)
						 : next_below(list, at, is_placed);

		if (next == PROCESS_NONE) {
			at = above(&list->items[at]);
			continue;
		}
		list->items[next].depth = at == PROCESS_NONE ? 0 : list->items[at].depth + 1;
		list->order[n++] = next;
		is_placed[next] = true;
		at = next;
	}
	free(is_placed);
}

/* Of those that had the id: when the next one began. */
static uint64_t id_taken_ns(const struct process_list *list, const struct process *process)
{
	uint64_t taken_ns = UINT64_MAX;

	for (size_t i = 0; i < list->n_items; i++) {
		const struct process *other = &list->items[i];

		if (other->facts->pid == process->facts->pid &&
			same_place(other->facts, process->facts) &&
			other->start_ns > process->start_ns && other->start_ns < taken_ns)
			taken_ns = other->start_ns;
	}
	return taken_ns;
}

/* How long a child says that its parent lived: the child began when it was there, and had asked for
 * its id by then. */
static uint64_t vouched_ns(const struct process *child)
{
	return child->outlived_parent ? child->start_ns : child->alive_ns;
}

/* Children come first. */
static void find_lives(struct process_list *list)
{
	for (size_t i = 0; i < list->n_items; i++)
		list->items[i].alive_ns = list->items[i].last_ns;
	for (size_t k = list->n_items; k-- > 0;) {
		const struct process *child = &list->items[list->order[k]];
		struct process *parent;
		uint64_t until_ns;

		if (child->parent == PROCESS_NONE)
			continue;
		parent = &list->items[child->parent];
		until_ns = vouched_ns(child);
		if (parent->facts->end != TRACE_END_KILLED || until_ns <= parent->alive_ns)
			continue;
		if (until_ns > id_taken_ns(list, parent))
			until_ns = id_taken_ns(list, parent);
		if (until_ns > parent->alive_ns)
			parent->alive_ns = until_ns;
	}
}

void process_list_make(struct process_list *list, const struct trace_facts *const *facts, size_t n)
{
	*list = (struct process_list){.items = memory_new(n, sizeof(*list->items)),
		.order = memory_new(n, sizeof(*list->order)),
		.n_items = n};
	for (size_t i = 0; i < n; i++)
		list->items[i].facts = facts[i];
	set_clock(list);
	find_relations(list);
	note_outlived(list);
	find_order(list);
	find_lives(list);
}

bool process_has_siblings(const struct process_list *list, size_t process)
{
	const struct trace_facts *facts = list->items[process].facts;

	for (size_t i = 0; i < list->n_items; i++)
		if (i != process && above(&list->items[i]) == PROCESS_NONE &&
			list->items[i].facts->ppid == facts->ppid &&
			same_place(list->items[i].facts, facts))
			return true;
	return false;
}

void held_sum_add(struct held_sum *sum, int64_t bytes, uint64_t time_ns)
{
	sum->now_bytes += (uint64_t)bytes;
	if (sum->now_bytes <= sum->peak_bytes)
		return;
	sum->peak_bytes = sum->now_bytes;
	sum->peak_ns = time_ns;
}

void process_list_release(struct process_list *list)
{
	free(list->items);
	free(list->order);
	*list = (struct process_list){0};
}

#include "analysis/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/limits.h"
#include "analysis/order.h"
#include "model/blocks.h"
#include "model/memory.h"

/* More ranks than this of one launch: the environment lies. */
#define MAX_WORLD 1000000

static bool same_text(struct vt_text a, struct vt_text b)
{
	return a.bytes == b.bytes && (!a.bytes || !memcmp(a.data, b.data, a.bytes));
}

static bool same_launch(const struct model *a, const struct model *b)
{
	static const char *const names[] = {"WORLD_SIZE", "MASTER_PORT",
		"TORCHELASTIC_RESTART_COUNT", "OMPI_COMM_WORLD_SIZE", "SLURM_JOB_ID",
		"SLURM_STEP_ID"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!same_text(
			    model_environment_get(a, names[i]), model_environment_get(b, names[i])))
			return false;
	return true;
}

static struct job *find_job(struct job_list *list, const struct process *process, size_t i,
	const struct model *const *models)
{
	for (size_t k = 0; k < list->n_items; k++) {
		struct job *job = &list->items[k];

		if (process->start_ns <= job->last_ns && process->last_ns >= job->start_ns &&
			same_launch(models[i], models[job->first_process]))
			return job;
	}
	list->items = memory_grow(list->items, list->n_items, &list->room, sizeof(*list->items));
	list->items[list->n_items] = (struct job){.first_process = i,
		.world_size = process->facts->world_size,
		.start_ns = process->start_ns,
		.last_ns = process->last_ns};
	return &list->items[list->n_items++];
}

static void add_process(struct job *job, const struct process *process, size_t i)
{
	const struct trace_facts *facts = process->facts;
	struct rank *rank = NULL;

	if (process->last_ns > job->last_ns)
		job->last_ns = process->last_ns;
	for (size_t k = 0; k < job->n_ranks; k++)
		if (job->ranks[k].rank == facts->rank)
			rank = &job->ranks[k];
	if (!rank) {
		job->ranks = memory_grow(job->ranks, job->n_ranks, &job->room, sizeof(*job->ranks));
		rank = &job->ranks[job->n_ranks++];
		*rank = (struct rank){
			.rank = facts->rank, .local_rank = facts->local_rank, .first_process = i};
	}
	rank->n_processes++;
}

static int compare_ranks(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

static int compare_starts(const void *a, const void *b, void *user)
{
	const struct process_list *processes = user;

	return order_of(processes->items[*(const size_t *)a].start_ns,
		processes->items[*(const size_t *)b].start_ns);
}

/* Ranks are known by their places only when no more are added. */
static void link_processes(
	struct job_list *list, const struct process_list *processes, const size_t *job_of)
{
	for (size_t i = 0; i < list->n_items; i++)
		qsort(list->items[i].ranks, list->items[i].n_ranks, sizeof(struct rank),
			compare_ranks);
	for (size_t i = 0; i < processes->n_items; i++) {
		struct job *job;

		if (job_of[i] == PROCESS_NONE)
			continue;
		job = &list->items[job_of[i]];
		for (size_t k = 0; k < job->n_ranks; k++)
			if (job->ranks[k].rank == processes->items[i].facts->rank)
				list->of_process[i] = &job->ranks[k];
	}
}

void job_list_make(struct job_list *list, const struct process_list *processes,
	const struct model *const *models)
{
	size_t n = processes->n_items;
	size_t *by_start = memory_new(n, sizeof(*by_start));
	size_t *job_of = memory_new(n, sizeof(*job_of));

	*list = (struct job_list){
		.of_process = memory_new(n, sizeof(struct rank *)), .n_processes = n};
	for (size_t i = 0; i < n; i++)
		by_start[i] = i;
	qsort_r(by_start, n, sizeof(*by_start), compare_starts, (void *)(uintptr_t)processes);
	for (size_t k = 0; k < n; k++) {
		size_t i = by_start[k];
		const struct process *process = &processes->items[i];
		struct job *job;

		job_of[i] = PROCESS_NONE;
		if (process->facts->rank < 0)
			continue;
		job = find_job(list, process, i, models);
		add_process(job, process, i);
		job_of[i] = (size_t)(job - list->items);
	}
	link_processes(list, processes, job_of);
	free(by_start);
	free(job_of);
}

/* Bytes by owner, at each GPU's own peak. */
struct owner_sum {
	const char *owner;
	uint64_t bytes;
};

static void find_owner(
	struct rank *rank, const struct overview *overview, const struct owner_source *owners)
{
	struct owner_sum *sums = NULL;
	size_t n = 0, room = 0;

	for (size_t i = 0; i < overview->n_views; i++) {
		const struct site_list *sites = &overview->views[i].sites;

		for (size_t k = 0; k < sites->n_rows; k++) {
			const char *owner = owners->label(
				owners->user, overview->replay->model, sites->rows[k].stack_id);
			size_t at = 0;

			if (!owner)
				continue;
			while (at < n && strcmp(sums[at].owner, owner) != 0)
				at++;
			if (at == n) {
				sums = memory_grow(sums, n, &room, sizeof(*sums));
				sums[n++] = (struct owner_sum){owner, 0};
			}
			sums[at].bytes += sites->rows[k].bytes;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (sums[i].bytes > rank->owner_bytes) {
			rank->owner = sums[i].owner;
			rank->owner_bytes = sums[i].bytes;
		}
	free(sums);
}

static uint64_t live_on_gpus(const struct overview *overview)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < overview->end.n_rows; i++) {
		const struct site_row *row = &overview->end.rows[i];

		if (!row->teardown && row->level != SITE_IDLE && row->device >= 0 &&
			model_kind_tracked(row->kind))
			bytes += row->bytes;
	}
	return bytes;
}

static void add_reserved(struct rank *rank, const struct model *model)
{
	for (const struct model_allocator *allocator = model->allocators; allocator;
		allocator = allocator->hh.next) {
		if (allocator->layer != VT_LAYER_TORCH)
			continue;
		rank->reserved_known = true;
		rank->reserved_bytes += allocator->peak_reserved.bytes;
		rank->reserved_at_end_bytes += allocator->reserved_bytes;
	}
}

void rank_add(struct rank *rank, const struct overview *overview, const struct owner_source *owners)
{
	struct limit_sums sums;

	limit_sums_get(&sums, overview);
	rank->live_bytes += live_on_gpus(overview);
	rank->n_ooms += sums.n_refused;
	for (size_t i = 0; i < overview->leaks.n_items; i++) {
		const struct leak *leak = &overview->leaks.items[i];

		if (!leak->grows || leak->suppressed_by)
			continue;
		rank->n_leaks++;
		rank->leak_bytes += leak->row.bytes;
	}
	add_reserved(rank, overview->replay->model);
	find_owner(rank, overview, owners);
}

uint64_t rank_value(const struct rank *rank, enum rank_metric metric)
{
	switch (metric) {
	case RANK_PEAK:
		return rank->tracked.peak_bytes;
	case RANK_LIVE:
		return rank->live_bytes;
	case RANK_RESERVED:
		return rank->reserved_bytes;
	case RANK_LEAK_BYTES:
		return rank->leak_bytes;
	default:
		return rank->n_ooms;
	}
}

static int compare_numbers(const void *a, const void *b)
{
	return order_of(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Sorts the values, too. Between the two in the middle of an even number; of two, the smaller. */
static uint64_t median_of(uint64_t *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare_numbers);
	if (n == 2)
		return values[0];
	return values[(n - 1) / 2] + (values[n / 2] - values[(n - 1) / 2]) / 2;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void add_outlier(struct job *job, struct rank_outlier outlier)
{
	job->outliers = memory_grow(
		job->outliers, job->n_outliers, &job->outliers_room, sizeof(*job->outliers));
	job->outliers[job->n_outliers++] = outlier;
}

static void judge_bytes(struct job *job, enum rank_metric metric)
{
	uint64_t *values = memory_new(job->n_ranks, sizeof(*values)), median, deviation;
	double limit;

	for (size_t i = 0; i < job->n_ranks; i++)
		values[i] = rank_value(&job->ranks[i], metric);
	median = median_of(values, job->n_ranks);
	for (size_t i = 0; i < job->n_ranks; i++)
		values[i] = distance(values[i], median);
	/* Of two there is no middle. */
	deviation = job->n_ranks > 2 ? median_of(values, job->n_ranks) : 0;
	limit = RANK_MADS * 1.4826 * (double)deviation;
	if (limit < (double)median * RANK_PERCENT / 100)
		limit = (double)median * RANK_PERCENT / 100;
	if (limit < RANK_MIN_BYTES)
		limit = RANK_MIN_BYTES;
	for (size_t i = 0; i < job->n_ranks; i++) {
		uint64_t value = rank_value(&job->ranks[i], metric);
		double away = (double)distance(value, median);

		if (away > limit)
			add_outlier(
				job, (struct rank_outlier){i, metric, value, median, away / limit});
	}
	free(values);
}

static void judge_count(struct job *job, enum rank_metric metric)
{
	size_t n_with = 0;

	for (size_t i = 0; i < job->n_ranks; i++)
		n_with += rank_value(&job->ranks[i], metric) != 0;
	if (n_with != 1 && n_with * 3 > job->n_ranks)
		return;
	for (size_t i = 0; i < job->n_ranks; i++) {
		uint64_t value = rank_value(&job->ranks[i], metric);

		if (value)
			add_outlier(job, (struct rank_outlier){i, metric, value, 0, 1});
	}
}

/* What ran out of memory is named first, leaks last. */
static int compare_outliers(const void *a, const void *b)
{
	const struct rank_outlier *x = a, *y = b;

	if (x->metric != y->metric)
		return (int)x->metric - (int)y->metric;
	if (x->score < y->score || x->score > y->score)
		return x->score > y->score ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

void job_list_judge(struct job_list *list)
{
	for (size_t i = 0; i < list->n_items; i++) {
		struct job *job = &list->items[i];

		if (job->n_ranks < 2)
			continue;
		judge_count(job, RANK_OOMS);
		for (int metric = RANK_OOMS + 1; metric < RANK_N_METRICS; metric++)
			judge_bytes(job, (enum rank_metric)metric);
		if (job->n_outliers)
			qsort(job->outliers, job->n_outliers, sizeof(*job->outliers),
				compare_outliers);
	}
}

int64_t job_next_missing(const struct job *job, int64_t from)
{
	for (int64_t rank = from; rank < job->world_size && rank < MAX_WORLD; rank++) {
		bool found = false;

		for (size_t i = 0; i < job->n_ranks && !found; i++)
			found = job->ranks[i].rank == rank;
		if (!found)
			return rank;
	}
	return -1;
}

const char *rank_metric_name(enum rank_metric metric)
{
	static const char *const names[] = {
		[RANK_PEAK] = "peak",
		[RANK_LIVE] = "live",
		[RANK_RESERVED] = "reserved",
		[RANK_LEAK_BYTES] = "leak_bytes",
		[RANK_OOMS] = "ooms",
	};

	return names[metric];
}

void job_list_release(struct job_list *list)
{
	for (size_t i = 0; i < list->n_items; i++) {
		free(list->items[i].ranks);
		free(list->items[i].outliers);
	}
	free(list->items);
	free(list->of_process);
	*list = (struct job_list){0};
}

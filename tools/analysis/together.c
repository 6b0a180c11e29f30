#include "analysis/together.h"

#include <stdlib.h>

#include "model/memory.h"
#include "model/merge.h"

static void make_processes(struct process_list *list, const struct together_trace *traces, size_t n)
{
	const struct trace_facts **facts = memory_new(n, sizeof(*facts));

	for (size_t i = 0; i < n; i++)
		facts[i] = &traces[i].overview->facts;
	process_list_make(list, facts, n);
	free(facts);
}

static void make_jobs(struct together *together, const struct together_trace *traces, size_t n)
{
	const struct model **models = memory_new(n, sizeof(*models));

	for (size_t i = 0; i < n; i++)
		models[i] = traces[i].overview->replay->model;
	job_list_make(&together->jobs, &together->processes, models);
	free(models);
	for (size_t i = 0; i < n; i++)
		if (together->jobs.of_process[i])
			rank_add(together->jobs.of_process[i], traces[i].overview,
				&traces[i].owners);
}

/* The shares of one process, with their GPUs. */
struct holding {
	struct gpu *gpu;
	struct gpu_share *share;
};

struct holdings {
	struct holding *items;
	size_t n_items, room;
	uint64_t kept_from_ns; /* of a bounded trace: before it nothing is known for sure */
};

struct merging {
	struct together *together;
	struct holdings *holdings; /* by process */
};

static void take(struct merging *merging, size_t process, const struct holding *holding,
	const struct model_device *device, uint64_t time_ns)
{
	struct together *together = merging->together;
	struct rank *rank = together->jobs.of_process[process];
	int64_t more_bytes = gpu_take(holding->gpu, holding->share,
		device ? device->tracked_bytes : 0, device ? gpu_untracked(device) : 0, time_ns);

	if (!more_bytes)
		return;
	held_sum_add(&together->processes.items[process].tracked, more_bytes, time_ns);
	if (rank)
		held_sum_add(&rank->tracked, more_bytes, time_ns);
}

/* Each sample speaks of one device. */
static void take_sample(
	const struct holding *holding, const struct vt_rec_memory *given, uint64_t time_ns)
{
	if (given->device == holding->share->device->ordinal &&
		given->free_bytes <= given->total_bytes)
		gpu_sample(holding->gpu, holding->share, given->total_bytes - given->free_bytes,
			time_ns);
}

static void visit(void *user, size_t source, const struct model *model,
	const struct vt_record *record, uint64_t time_ns)
{
	struct merging *merging = user;
	const struct holdings *holdings = &merging->holdings[source];
	const struct process *process = &merging->together->processes.items[source];

	bool runs = process->facts->end == TRACE_END_RUNNING;

	if (time_ns < holdings->kept_from_ns)
		return;
	for (size_t i = 0; i < holdings->n_items; i++) {
		const struct holding *holding = &holdings->items[i];

		if (!record)
			gpu_share_end(holding->share);
		if (!record && runs)
			continue;
		take(merging, source, holding,
			record ? model_device_find(model, holding->share->device->ordinal) : NULL,
			time_ns);
		if (record && record->kind == VT_REC_memory)
			take_sample(holding, &record->memory, time_ns);
	}
}

static struct holdings *find_holdings(
	struct together *together, const struct together_trace *traces)
{
	struct process_list *processes = &together->processes;
	struct holdings *all = memory_new(processes->n_items, sizeof(*all));

	for (size_t i = 0; i < together->gpus.n_items; i++)
		for (size_t k = 0; k < together->gpus.items[i].n_shares; k++) {
			struct gpu_share *share = &together->gpus.items[i].shares[k];
			struct holdings *holdings = &all[share->process];

			holdings->items = memory_grow(holdings->items, holdings->n_items,
				&holdings->room, sizeof(*holdings->items));
			holdings->items[holdings->n_items++] =
				(struct holding){&together->gpus.items[i], share};
		}
	for (size_t i = 0; i < processes->n_items; i++) {
		uint64_t from_ns = traces[i].overview->replay->model->kept_from_ns;

		if (!from_ns)
			continue;
		all[i].kept_from_ns = processes->items[i].start_ns + from_ns;
		if (all[i].kept_from_ns > together->gpus.kept_from_ns)
			together->gpus.kept_from_ns = all[i].kept_from_ns;
	}
	return all;
}

static int merge(struct together *together, const struct together_trace *traces, size_t n)
{
	struct merge_source *sources = memory_new(n, sizeof(*sources));
	struct merging merging = {together, find_holdings(together, traces)};
	int error;

	for (size_t i = 0; i < n; i++)
		sources[i] = (struct merge_source){traces[i].replay,
			together->processes.items[i].start_ns,
			together->processes.items[i].alive_ns};
	error = replay_merge(sources, n, visit, &merging);
	for (size_t i = 0; i < together->gpus.n_items; i++)
		gpu_note_peak(&together->gpus.items[i]);
	for (size_t i = 0; i < n; i++)
		free(merging.holdings[i].items);
	free(merging.holdings);
	free(sources);
	return error;
}

int together_make(struct together *together, const struct together_trace *traces, size_t n)
{
	int error = 0;

	*together = (struct together){.merged = n > 1};
	make_processes(&together->processes, traces, n);
	make_jobs(together, traces, n);
	for (size_t i = 0; i < n; i++)
		gpu_list_add(&together->gpus, i, traces[i].overview->replay->model);
	if (together->merged)
		error = merge(together, traces, n);
	if (error)
		together_release(together);
	else
		job_list_judge(&together->jobs);
	return error;
}

void together_release(struct together *together)
{
	process_list_release(&together->processes);
	gpu_list_release(&together->gpus);
	job_list_release(&together->jobs);
	*together = (struct together){0};
}

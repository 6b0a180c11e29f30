#include "output/json_together.h"

static void put_index(struct json *json, const char *key, size_t index)
{
	json_number_or_null(json, key, index != PROCESS_NONE, index);
}

static void put_id(struct json *json, const char *key, int64_t id)
{
	json_number_or_null(json, key, id >= 0, (uint64_t)id);
}

/* Which launch a process is of, and its rank there. */
static void put_place(struct json *json, const struct together *together, size_t process)
{
	const struct rank *rank = together->jobs.of_process[process];
	size_t job = PROCESS_NONE;

	for (size_t i = 0; i < together->jobs.n_items && rank; i++)
		if (rank >= together->jobs.items[i].ranks &&
			rank < together->jobs.items[i].ranks + together->jobs.items[i].n_ranks)
			job = i;
	put_index(json, "job", job);
	put_id(json, "rank", rank ? rank->rank : -1);
}

static void put_process(struct json *json, const struct together *together, size_t i)
{
	const struct process *process = &together->processes.items[i];

	json_open(json, NULL, '{');
	json_number(json, "trace", i);
	put_index(json, "parent", process->parent);
	json_number_or_null(json, "parent_pid", process->facts->ppid, process->facts->ppid);
	json_bool(json, "orphan", process->parent == PROCESS_NONE);
	put_index(json, "exec_from", process->exec_from);
	json_bool(json, "outlived_parent", process->outlived_parent);
	put_place(json, together, i);
	json_number(json, "start_ns", process->start_ns);
	json_number(json, "last_ns", process->last_ns);
	json_number(json, "alive_ns", process->alive_ns);
	json_number_or_null(
		json, "peak_tracked_bytes", together->merged, process->tracked.peak_bytes);
	json_number_or_null(json, "peak_time_ns", together->merged, process->tracked.peak_ns);
	json_close(json, '}');
}

static void put_held(
	struct json *json, const char *key, uint64_t tracked_bytes, int64_t untracked_bytes)
{
	json_open(json, key, '{');
	json_number(json, "tracked_bytes", tracked_bytes);
	json_signed(json, "untracked_bytes", untracked_bytes);
	json_close(json, '}');
}

static void put_share(struct json *json, const struct gpu_share *share)
{
	const struct model_device *device = share->device;
	const struct model_totals *others = &device->kinds[VT_KIND_SHARED];

	json_open(json, NULL, '{');
	json_number(json, "trace", share->process);
	json_number(json, "device", (uint64_t)device->ordinal);
	put_held(json, "peak", share->peak_tracked_bytes, share->peak_untracked_bytes);
	json_number(json, "own_peak_tracked_bytes", device->peak_tracked_bytes);
	put_held(json, "end", device->tracked_bytes, share->end_untracked_bytes);
	json_number(json, "shared_count", others->n_live);
	json_number(json, "shared_bytes", others->live_bytes);
	json_number(json, "peak_shared_bytes", others->peak_live_bytes);
	json_close(json, '}');
}

static void put_gpu(struct json *json, const struct gpu_list *list, const struct gpu *gpu)
{
	const struct model_device *device = gpu->shares[0].device;
	char uuid[FORMAT_UUID_BYTES];
	uint64_t tracked = 0, untracked = 0, end_tracked = 0, end_untracked = 0;

	for (size_t i = 0; i < gpu->n_shares; i++) {
		tracked += gpu->shares[i].peak_tracked_bytes;
		untracked += (uint64_t)gpu->shares[i].peak_untracked_bytes;
		end_tracked += gpu->shares[i].device->tracked_bytes;
		end_untracked += (uint64_t)gpu->shares[i].end_untracked_bytes;
	}
	json_open(json, NULL, '{');
	json_string(json, "uuid", format_uuid(uuid, gpu->uuid) ? uuid : NULL);
	json_text_or_null(json, "name", device->name);
	json_number_or_null(json, "total_bytes", device->total_bytes != 0, device->total_bytes);
	json_open(json, "peak", '{');
	json_number(json, "time_ns", gpu->tracked.peak_ns);
	json_number(json, "tracked_bytes", tracked);
	json_signed(json, "untracked_bytes", (int64_t)untracked);
	json_number_or_null(json, "known_from_ns", list->kept_from_ns, list->kept_from_ns);
	json_close(json, '}');
	put_held(json, "end", end_tracked, (int64_t)end_untracked);
	json_open(json, "shares", '[');
	for (size_t i = 0; i < gpu->n_shares; i++)
		put_share(json, &gpu->shares[i]);
	json_close(json, ']');
	json_close(json, '}');
}

static void put_rank(struct json *json, const struct together *together, const struct rank *rank)
{
	json_open(json, NULL, '{');
	json_number(json, "rank", (uint64_t)rank->rank);
	put_id(json, "local_rank", rank->local_rank);
	json_open(json, "traces", '[');
	for (size_t i = 0; i < together->jobs.n_processes; i++)
		if (together->jobs.of_process[i] == rank)
			json_number(json, NULL, i);
	json_close(json, ']');
	json_number_or_null(json, "peak_bytes", together->merged, rank->tracked.peak_bytes);
	json_number(json, "live_bytes", rank->live_bytes);
	json_number_or_null(
		json, "peak_reserved_bytes", rank->reserved_known, rank->reserved_bytes);
	json_number_or_null(
		json, "reserved_bytes", rank->reserved_known, rank->reserved_at_end_bytes);
	json_string(json, "largest_owner", rank->owner);
	json_number_or_null(json, "largest_owner_bytes", rank->owner != NULL, rank->owner_bytes);
	json_number(json, "ooms", rank->n_ooms);
	json_number(json, "leaks", rank->n_leaks);
	json_number(json, "leak_bytes", rank->leak_bytes);
	json_close(json, '}');
}

static void put_job(struct json *json, const struct together *together, const struct job *job)
{
	json_open(json, NULL, '{');
	put_id(json, "world_size", job->world_size);
	json_open(json, "missing_ranks", '[');
	for (int64_t at = job_next_missing(job, 0); at >= 0; at = job_next_missing(job, at + 1))
		json_number(json, NULL, (uint64_t)at);
	json_close(json, ']');
	json_open(json, "ranks", '[');
	for (size_t i = 0; i < job->n_ranks; i++)
		put_rank(json, together, &job->ranks[i]);
	json_close(json, ']');
	json_open(json, "outliers", '[');
	for (size_t i = 0; i < job->n_outliers; i++) {
		const struct rank_outlier *outlier = &job->outliers[i];

		json_open(json, NULL, '{');
		put_id(json, "rank", job->ranks[outlier->rank].rank);
		json_string(json, "metric", rank_metric_name(outlier->metric));
		json_number(json, "value", outlier->value);
		json_number(json, "median", outlier->median);
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

void json_together(struct json *json, const struct together *together)
{
	json_open(json, "processes", '[');
	for (size_t i = 0; i < together->processes.n_items; i++)
		put_process(json, together, i);
	json_close(json, ']');
	if (together->merged) {
		json_open(json, "gpus", '[');
		for (size_t i = 0; i < together->gpus.n_items; i++)
			put_gpu(json, &together->gpus, &together->gpus.items[i]);
		json_close(json, ']');
	} else {
		json_null(json, "gpus");
	}
	json_open(json, "jobs", '[');
	for (size_t i = 0; i < together->jobs.n_items; i++)
		put_job(json, together, &together->jobs.items[i]);
	json_close(json, ']');
}

void json_idle_contexts(struct json *json, const struct report_trace *trace, size_t index)
{
	struct stack_source source = report_stacks(trace);
	const struct idle_list *list = &trace->overview->idle;

	for (size_t i = 0; i < list->n_items; i++) {
		const struct idle_context *idle = &list->items[i];

		json_open(json, NULL, '{');
		json_number(json, "trace", index);
		json_number(json, "device", (uint64_t)idle->device);
		json_number_or_null(json, "bytes", idle->bytes_known, idle->bytes);
		json_number(json, "since_ns", idle->since_ns);
		json_number_or_null(json, "until_ns", idle->until_ns, idle->until_ns);
		json_string(json, "api", model_api_name(source.model, idle->api_id));
		json_string(json, "advice", idle_advice_name(idle->advice));
		stack_json(json, &source, idle->stack_id);
		json_close(json, '}');
	}
}

#include "analysis/facts.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *trace_end_name(enum trace_end end)
{
	static const char *const names[] = {
		[TRACE_END_EXIT] = "exit",
		[TRACE_END_SIGNAL] = "signal",
		[TRACE_END_KILLED] = "killed",
		[TRACE_END_EXEC] = "exec",
		[TRACE_END_RUNNING] = "running",
	};

	return names[end];
}

/* Reads at most size - 1 bytes of a small file. False when there is none. */
static bool read_small(const char *path, char *buffer, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, buffer, size - 1);
	close(fd);
	if (n <= 0)
		return false;
	buffer[n] = 0;
	return true;
}

static bool same_boot(const struct vt_text *boot_id)
{
	char here[64];

	if (!boot_id->bytes || !read_small("/proc/sys/kernel/random/boot_id", here, sizeof(here)))
		return false;
	here[strcspn(here, "\n")] = 0;
	return boot_id->bytes == strlen(here) && !memcmp(boot_id->data, here, boot_id->bytes);
}

/* Field 22 of /proc/PID/stat; 0 when there is no such process. The name in field 2 may hold
 * anything. */
static uint64_t start_ticks_of(uint64_t pid)
{
	char path[64], stat[1024], *p;

	snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
	if (!read_small(path, stat, sizeof(stat)))
		return 0;
	p = strrchr(stat, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p + 1, NULL, 10) : 0;
}

static bool same_exe(const struct vt_rec_process *process)
{
	char path[64], exe[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%llu/exe", (unsigned long long)process->pid);
	n = readlink(path, exe, sizeof(exe));
	/* Not ours to see: taken for the same. */
	if (n < 0 || !process->exe.bytes)
		return true;
	return (size_t)n == process->exe.bytes &&
	       !memcmp(exe, process->exe.data, process->exe.bytes);
}

static void find_end(struct trace_facts *facts, const struct replay *replay)
{
	const struct vt_file_header *header = vt_reader_header(replay->reader);
	const struct model *model = replay->model;
	const struct vt_rec_process *process = &model->process;

	facts->status = -1;
	if (header->launcher_end == VT_END_EXIT || header->launcher_end == VT_END_SIGNAL) {
		facts->end =
			header->launcher_end == VT_END_EXIT ? TRACE_END_EXIT : TRACE_END_SIGNAL;
		facts->status = header->launcher_status;
	} else if (header->launcher_end == VT_END_RUNNING) {
		facts->end = TRACE_END_RUNNING;
	} else if (header->launcher_end == VT_END_EXEC) {
		facts->end = TRACE_END_EXEC;
	} else if (model->end_seen) {
		facts->end = model->end.reason == VT_END_SIGNAL ? TRACE_END_SIGNAL : TRACE_END_EXIT;
		if (model->end.status >= 0 && model->end.status <= INT_MAX)
			facts->status = (int)model->end.status;
	} else if (model->process_seen && same_boot(&process->boot_id) && process->start_ticks &&
		   start_ticks_of(process->pid) == process->start_ticks) {
		facts->end = same_exe(process) ? TRACE_END_RUNNING : TRACE_END_EXEC;
	} else {
		facts->end = TRACE_END_KILLED;
	}
}

/* Of torchrun, of Open MPI, of Slurm. */
#define N_LAUNCHERS 3

/* The number that the first of these variables holds that holds one; -1: none does. */
static int64_t number_of(const struct model *model, const char *const names[N_LAUNCHERS])
{
	for (size_t i = 0; i < N_LAUNCHERS; i++) {
		struct vt_text value = model_environment_get(model, names[i]);
		int64_t number = 0;
		size_t n = 0;

		while (n < value.bytes && n < 9 && value.data[n] >= '0' && value.data[n] <= '9')
			number = number * 10 + (value.data[n++] - '0');
		if (n && n == value.bytes)
			return number;
	}
	return -1;
}

static void find_rank(struct trace_facts *facts, const struct model *model)
{
	static const char *const ranks[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};
	static const char *const local_ranks[] = {
		"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"};
	static const char *const sizes[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"};

	facts->rank = number_of(model, ranks);
	facts->local_rank = number_of(model, local_ranks);
	facts->world_size = number_of(model, sizes);
}

void trace_facts_get(struct trace_facts *facts, const struct replay *replay)
{
	const struct vt_file_header *header = vt_reader_header(replay->reader);
	const struct model *model = replay->model;

	*facts = (struct trace_facts){
		.file = replay->path,
		.pid = model->process_seen ? model->process.pid : header->pid,
		.ppid = model->process.ppid,
		.exe = model->process.exe,
		.cmdline = model->process.cmdline,
		.host = model->process.host,
		.boot_id = model->process.boot_id,
		.start_ticks = model->process.start_ticks,
		.start_realtime_ns = header->start_realtime_ns,
		.start_monotonic_ns = header->start_monotonic_ns,
		.duration_ns = model->last_ns,
		.n_events = model->n_events,
		.n_lost = header->n_lost,
		.stopped = header->stopped,
		.damage = replay->damage,
		.pack_damaged = replay->pack_damaged,
	};
	facts->damaged = facts->damage.n_chunks_skipped || facts->damage.n_chunks_cut ||
			 facts->damage.missing_bytes || replay->pack_damaged;
	find_rank(facts, model);
	find_end(facts, replay);
	facts->end_told = model->end_seen;
	facts->complete = !facts->damaged && !facts->n_lost && !facts->stopped &&
			  facts->end != TRACE_END_RUNNING;
}

static bool same_text(struct vt_text a, struct vt_text b)
{
	return a.bytes == b.bytes && (!a.bytes || !memcmp(a.data, b.data, a.bytes));
}

void trace_facts_settle(struct trace_facts *const *facts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (facts[i]->end != TRACE_END_KILLED)
			continue;
		for (size_t k = 0; k < n; k++)
			if (facts[k]->pid == facts[i]->pid &&
				same_text(facts[k]->host, facts[i]->host) &&
				facts[k]->ppid == facts[i]->ppid &&
				facts[k]->start_realtime_ns > facts[i]->start_realtime_ns)
				facts[i]->end = TRACE_END_EXEC;
	}
}

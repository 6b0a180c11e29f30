#include "record/process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "trace/writer.h"

#ifndef VT_VERSION
#define VT_VERSION "unknown"
#endif

extern char **environ;

static struct vt_text text_of(const char *string)
{
	return (struct vt_text){string, strlen(string)};
}

/* Reads at most size - 1 bytes of a small file and ends them with a zero byte. Returns how many. */
static size_t read_file(const char *path, char *out, size_t size)
{
	size_t used = 0;
	ssize_t n = 1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		while (used < size - 1 && (n = read(fd, out + used, size - 1 - used)) > 0)
			used += (size_t)n;
		close(fd);
	}
	out[used] = '\0';
	return used;
}

/* Field 22; the name in field 2 may hold spaces and brackets, so fields are counted from the last
 * bracket. */
static uint64_t start_ticks(void)
{
	char stat[1024];
	char *p;

	read_file("/proc/self/stat", stat, sizeof(stat));
	p = strrchr(stat, ')');
	for (int field = 2; p && field < 22; field++) {
		p = strchr(p, ' ');
		if (p)
			p++;
	}
	return p ? strtoull(p, NULL, 10) : 0;
}

/* Only names known to carry no secrets, and only those that change how GPU memory is used. */
static bool is_harmless(const char *entry, size_t name_bytes)
{
	static const char *const names[] = {
		"CUDA_VISIBLE_DEVICES",
		"CUDA_LAUNCH_BLOCKING",
		"PYTORCH_CUDA_ALLOC_CONF",
		"PYTORCH_ALLOC_CONF",
		"PYTORCH_NO_CUDA_MEMORY_CACHING",
		"XLA_PYTHON_CLIENT_PREALLOCATE",
		"XLA_PYTHON_CLIENT_MEM_FRACTION",
		"XLA_PYTHON_CLIENT_ALLOCATOR",
		"RANK",
		"LOCAL_RANK",
		"WORLD_SIZE",
		"OMPI_COMM_WORLD_RANK",
		"OMPI_COMM_WORLD_LOCAL_RANK",
		"OMPI_COMM_WORLD_SIZE",
		"SLURM_PROCID",
		"SLURM_LOCALID",
		"SLURM_NTASKS",
		/* What tells one launch from another. */
		"MASTER_PORT",
		"TORCHELASTIC_RESTART_COUNT",
		"SLURM_JOB_ID",
		"SLURM_STEP_ID",
	};

	if (!strncmp(entry, "VRAMTRACE_", 10))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i]) == name_bytes && !memcmp(entry, names[i], name_bytes))
			return true;
	return false;
}

static void describe_environment(struct vt_lane *lane)
{
	for (char **entry = environ; entry && *entry; entry++) {
		const char *equals = strchr(*entry, '=');
		struct vt_rec_environment record;

		if (!equals || !is_harmless(*entry, (size_t)(equals - *entry)))
			continue;
		record.name = (struct vt_text){*entry, (size_t)(equals - *entry)};
		record.value = text_of(equals + 1);
		vt_put_environment(lane, &record);
	}
}

void process_describe(struct vt_lane *lane)
{
	char exe[4096], cmdline[8192], boot_id[64];
	struct utsname host = {0};
	struct vt_rec_process record = {0};
	ssize_t exe_bytes = readlink("/proc/self/exe", exe, sizeof(exe));
	size_t boot_id_bytes =
		read_file("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));

	if (!lane)
		return;
	uname(&host);
	record.pid = (uint64_t)getpid();
	record.ppid = (uint64_t)getppid();
	record.start_ticks = start_ticks();
	record.host = text_of(host.nodename);
	if (boot_id_bytes && boot_id[boot_id_bytes - 1] == '\n')
		boot_id_bytes--;
	record.boot_id = (struct vt_text){boot_id, boot_id_bytes};
	record.exe = (struct vt_text){exe, exe_bytes > 0 ? (size_t)exe_bytes : 0};
	record.cmdline = (struct vt_text){
		cmdline, read_file("/proc/self/cmdline", cmdline, sizeof(cmdline))};
	record.recorder_version = text_of(VT_VERSION);
	vt_put_process(lane, &record);
	describe_environment(lane);
}

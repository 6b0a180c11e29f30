/* Settings, start, entering and leaving a call, faults, fork. */
#include "sim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct sim_state sim = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void complain(const char *name, const char *value)
{
	fprintf(stderr, "simulated CUDA: %s=%s is not valid, using the default\n", name, value);
}

/* Reads digits and an optional suffix K, M or G up to the end. */
static bool parse_bytes(const char *text, u64 *out)
{
	char *end;
	u64 value;
	int shift = 0;

	errno = 0;
	if (*text < '0' || *text > '9')
		return false;
	value = strtoull(text, &end, 10);
	switch (*end) {
	case 'G':
		shift += 10;
		/* fall through */
	case 'M':
		shift += 10;
		/* fall through */
	case 'K':
		shift += 10;
		end++;
	}
	if (errno || *end || (value << shift) >> shift != value)
		return false;
	*out = value << shift;
	return true;
}

static u64 setting(const char *name, u64 least, u64 most, u64 standard)
{
	const char *text = getenv(name);
	u64 value;

	if (!text)
		return standard;
	if (parse_bytes(text, &value) && value >= least && value <= most)
		return value;
	complain(name, text);
	return standard;
}

/* One "name:number[:number]" of a list, with n_numbers numbers. */
static bool parse_item(const char *item, char name[64], u64 *numbers, int n_numbers)
{
	const char *colon = strchr(item, ':');
	char copy[128];

	if (!colon || colon == item || colon - item >= 64 || strlen(item) >= sizeof(copy))
		return false;
	snprintf(name, 64, "%.*s", (int)(colon - item), item);
	for (int i = 0; i < n_numbers; i++) {
		const char *text = colon + 1, *next = strchr(text, ':');

		if ((i + 1 < n_numbers) != (next != NULL))
			return false;
		snprintf(copy, sizeof(copy), "%.*s",
			(int)(next ? (size_t)(next - text) : strlen(text)), text);
		if (!parse_bytes(copy, &numbers[i]) || numbers[i] > 1000000000)
			return false;
		colon = next;
	}
	return true;
}

/* Calls `add` for each item of a comma-separated list. */
static void each_item(const char *variable, bool (*add)(const char *item))
{
	const char *value = getenv(variable);
	char *list = value ? strdup(value) : NULL;
	char *save = NULL;

	if (!list)
		return;
	for (char *item = strtok_r(list, ",", &save); item; item = strtok_r(NULL, ",", &save))
		if (!add(item))
			complain(variable, item);
	free(list);
}

static bool add_fault(const char *item)
{
	struct sim_fault *fault = &sim.faults[sim.n_faults];
	u64 numbers[2];

	if (sim.n_faults == sizeof(sim.faults) / sizeof(sim.faults[0]) ||
		!parse_item(item, fault->name, numbers, 2) || numbers[0] == 0 || numbers[1] == 0)
		return false;
	fault->nth = numbers[0];
	fault->code = (int)numbers[1];
	sim.n_faults++;
	return true;
}

static bool add_slow(const char *item)
{
	struct sim_slow *slow = &sim.slows[sim.n_slows];
	u64 number;

	if (sim.n_slows == sizeof(sim.slows) / sizeof(sim.slows[0]) ||
		!parse_item(item, slow->name, &number, 1))
		return false;
	slow->us = (unsigned int)number;
	sim.n_slows++;
	return true;
}

static bool add_await(const char *item)
{
	struct sim_await *await = &sim.awaits[sim.n_awaits];
	const char *colon = strchr(item, ':');

	if (sim.n_awaits == sizeof(sim.awaits) / sizeof(sim.awaits[0]) || !colon ||
		(size_t)(colon - item) >= sizeof(await->name) ||
		strlen(colon + 1) + sizeof(".at") > sizeof(await->path))
		return false;
	snprintf(await->name, sizeof(await->name), "%.*s", (int)(colon - item), item);
	strcpy(await->path, colon + 1);
	sim.n_awaits++;
	return true;
}

static void join_machine(void)
{
	size_t bytes = CUSIM_MAX_DEVICES * sizeof(*sim.machine_bytes);
	const char *path = getenv("CUSIM_MACHINE");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	void *shared = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, (off_t)bytes))
		shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (shared != MAP_FAILED)
		sim.machine_bytes = shared;
	else if (path)
		complain("CUSIM_MACHINE", path);
}

static void before_fork(void)
{
	pthread_mutex_lock(&sim.lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&sim.lock);
}

/* As on a real device, a child cannot use the CUDA of its parent, and has done nothing yet. */
static void in_child(void)
{
	pthread_mutex_init(&sim.lock, NULL);
	sim.forked = sim.forked || sim.initialised;
	sim.initialised = false;
	memset(&sim.ledger, 0, sizeof(sim.ledger));
}

/* As the real driver: those behind the first one that is not there do not count. */
static void choose_devices(u32 n_there)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	char *end;

	for (u32 i = 0; i < n_there && !visible; i++)
		sim.machine_number[sim.n_devices++] = (unsigned char)i;
	while (visible && *visible && sim.n_devices < CUSIM_MAX_DEVICES) {
		unsigned long number = strtoul(visible, &end, 10);

		if (end == visible || number >= n_there || (*end && *end != ','))
			return;
		sim.machine_number[sim.n_devices++] = (unsigned char)number;
		visible = *end ? end + 1 : end;
	}
}

static void configure(void)
{
	choose_devices((u32)setting("CUSIM_DEVICES", 0, CUSIM_MAX_DEVICES, 1));
	sim.memory_bytes = setting("CUSIM_MEMORY", SIM_PAGE_BYTES, 1ull << 40, 8ull << 30);
	sim.other_bytes = setting("CUSIM_OTHER", 0, sim.memory_bytes, 0);
	sim.link_bytes = setting("CUSIM_LINK", 0, 1ull << 50, 0);
	sim.ipc_self = setting("CUSIM_IPC_SELF", 0, 1, 0);
	sim.array_query = setting("CUSIM_ARRAY_QUERY", 0, 1, 1);
	each_item("CUSIM_FAIL", add_fault);
	each_item("CUSIM_SLOW", add_slow);
	each_item("CUSIM_AWAIT", add_await);
	join_machine();
	pthread_atfork(before_fork, after_fork, in_child);
}

static unsigned int slowness_us(const char *name)
{
	for (u32 i = 0; i < sim.n_slows; i++)
		if (!strcmp(sim.slows[i].name, name))
			return sim.slows[i].us;
	return 0;
}

static void await(const char *name)
{
	for (u32 i = 0; i < sim.n_awaits; i++) {
		char at[sizeof(sim.awaits[i].path) + sizeof(".at")];

		if (strcmp(sim.awaits[i].name, name) != 0)
			continue;
		snprintf(at, sizeof(at), "%s.at", sim.awaits[i].path);
		close(open(at, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		for (int k = 0; k < 30000 && access(sim.awaits[i].path, F_OK); k++)
			usleep(1000);
	}
}

static CUresult scripted_fault(const char *name)
{
	int code = 0;

	for (u32 i = 0; i < sim.n_faults; i++) {
		struct sim_fault *fault = &sim.faults[i];

		if (!strcmp(fault->name, name) && ++fault->n_calls == fault->nth)
			code = fault->code;
	}
	return (CUresult)code;
}

void sim_configure(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, configure);
}

CUresult sim_enter(const char *name, enum sim_need need, CUcontext *ctx)
{
	CUresult result;
	unsigned int us;

	sim_configure();
	us = slowness_us(name);
	if (us)
		usleep(us);
	await(name);
	pthread_mutex_lock(&sim.lock);
	*ctx = sim.initialised ? sim_ctx_current() : NULL;
	result = scripted_fault(name);
	if (result != CUDA_SUCCESS || need == NEED_NOTHING)
		return result;
	if (!sim.initialised)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (need == NEED_INIT)
		return CUDA_SUCCESS;
	if (!*ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	return (*ctx)->live ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void sim_leave(void)
{
	pthread_mutex_unlock(&sim.lock);
	sim_clock_return();
}

struct sim_device *sim_device_get(CUdevice ordinal)
{
	return ordinal >= 0 && (u32)ordinal < sim.n_devices ? &sim.devices[ordinal] : NULL;
}

static CUresult init(unsigned int flags)
{
	CUresult result;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim.forked)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (sim.initialised)
		return CUDA_SUCCESS;
	if (sim.n_devices == 0)
		return CUDA_ERROR_NO_DEVICE;
	result = sim_devices_init();
	if (result == CUDA_SUCCESS)
		result = sim_pools_init();
	if (result != CUDA_SUCCESS)
		return result;
	sim.ledger.n_devices = sim.n_devices;
	sim.initialised = true;
	return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int Flags)
{
	return SIM_CALL(NEED_NOTHING, init(Flags));
}

CUresult cuDriverGetVersion(int *driverVersion)
{
	return SIM_CALL(NEED_NOTHING, driverVersion ? (*driverVersion = SIM_VERSION, CUDA_SUCCESS)
						    : CUDA_ERROR_INVALID_VALUE);
}

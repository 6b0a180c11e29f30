/*
 * Programs whose copies cost what they need not, one for each argument, and one that does it right.
 * Each prints as JSON what a report of its trace must find: the finding, the function that is to
 * blame, how many and how many bytes. `table` prints what copies of several sizes took by the
 * program's own events.
 *
 *   transfers CASE [DIVISOR]     sizes and counts are divided, for devices that are slow
 */
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

typedef unsigned long long u64;

static u64 divisor = 1;
static const char *separator = "";

#define MUST(call)                                                                                 \
	do {                                                                                       \
		cudaError_t error_ = (call);                                                       \
		if (error_) {                                                                      \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error_));            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Each function that is to be found stays on the stack while it copies, and is unlike all others.
 */
#define SITE   __attribute__((noinline)) static void
#define STAY() __asm__ volatile("# %0" ::"i"(__LINE__) : "memory")

static u64 divided(u64 n, u64 least)
{
	return n / divisor > least ? n / divisor : least;
}

static void say(const char *finding, const char *function, u64 n, u64 bytes)
{
	printf("%s{\"finding\": \"%s\", \"function\": \"%s\", \"count\": %llu, \"bytes\": %llu}",
		separator, finding, function, n, bytes);
	separator = ",\n ";
}

static u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec;
}

static void *device_memory(u64 bytes)
{
	void *p;

	MUST(cudaMalloc(&p, bytes));
	return p;
}

static void *pageable_memory(u64 bytes)
{
	void *p = malloc(bytes);

	memset(p, 1, bytes);
	return p;
}

static void *pinned_memory(u64 bytes)
{
	void *p;

	MUST(cudaHostAlloc(&p, bytes, cudaHostAllocDefault));
	memset(p, 1, bytes);
	return p;
}

static cudaStream_t new_stream(void)
{
	cudaStream_t stream;

	MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	return stream;
}

/* Shows the rate of pinned memory. */
SITE show_rate(void *device)
{
	u64 bytes = divided(256 * MIB, MIB);
	void *host = pinned_memory(bytes);

	for (int i = 0; i < 5; i++) {
		MUST(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
		MUST(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
	}
	MUST(cudaFreeHost(host));
	STAY();
}

/* --- C1: offload from pageable memory --- */

SITE upload_pageable(void *device, char *host, u64 n, u64 bytes)
{
	for (u64 i = 0; i < n; i++)
		MUST(cudaMemcpyAsync(device, host + i * bytes, bytes, cudaMemcpyHostToDevice, 0));
	STAY();
}

SITE download_pageable(void *device, char *host, u64 n, u64 bytes)
{
	for (u64 i = 0; i < n; i++)
		MUST(cudaMemcpyAsync(host + i * bytes, device, bytes, cudaMemcpyDeviceToHost, 0));
	STAY();
}

SITE upload_locked(void *device, char *host, u64 n, u64 bytes, cudaStream_t stream)
{
	for (u64 i = 0; i < n; i++) {
		MUST(cudaMemcpyAsync(
			device, host + i * bytes, bytes, cudaMemcpyHostToDevice, stream));
		/* Submitted in time, not all at once. */
		MUST(cudaStreamSynchronize(stream));
	}
	STAY();
}

static void c1(void)
{
	u64 n = divided(200, 20), bytes = divided(64 * MIB, MIB);
	void *device = device_memory(divided(256 * MIB, MIB));
	char *host = pageable_memory(n * bytes), *locked = pageable_memory(n * bytes);
	cudaStream_t stream = new_stream();

	show_rate(device);
	upload_pageable(device, host, n, bytes);
	download_pageable(device, host, n, bytes);
	MUST(cudaHostRegister(locked, n * bytes, cudaHostRegisterDefault));
	upload_locked(device, locked, n, bytes, stream);
	MUST(cudaHostUnregister(locked));
	MUST(cudaDeviceSynchronize());
	say("pageable", "upload_pageable", n, n * bytes);
	say("pageable", "download_pageable", n, n * bytes);
}

/* --- C3: the same weights up and down each step --- */

#define LAYERS 20

SITE onload(void *device, char *host, u64 bytes)
{
	MUST(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
	STAY();
}

SITE offload(void *device, char *host, u64 bytes)
{
	MUST(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
	STAY();
}

static void c3(void)
{
	u64 bytes = divided(32 * MIB, 512 * KIB), steps = divided(50, 10);
	void *device = device_memory(divided(256 * MIB, MIB));
	char *layers[LAYERS];

	for (int i = 0; i < LAYERS; i++)
		layers[i] = pageable_memory(bytes);
	for (u64 step = 0; step < steps; step++)
		for (int i = 0; i < LAYERS; i++) {
			onload(device, layers[i], bytes);
			offload(device, layers[i], bytes);
		}
	say("round_trip", "offload", (steps - 1) * LAYERS, (steps - 1) * LAYERS * bytes);
}

/* --- C5: a counter read in each round --- */

SITE read_counter(int *host, void *device)
{
	MUST(cudaMemcpy(host, device, sizeof(*host), cudaMemcpyDeviceToHost));
	STAY();
}

SITE read_counter_pinned(int *host, void *device, cudaStream_t stream)
{
	MUST(cudaMemcpyAsync(host, device, sizeof(*host), cudaMemcpyDeviceToHost, stream));
	MUST(cudaStreamSynchronize(stream));
	STAY();
}

static void c5(void)
{
	u64 rounds = divided(1000, 100), work = divided(GIB, MIB);
	void *device = device_memory(work);
	int *pinned = pinned_memory(4096), counter;
	cudaStream_t stream = new_stream();

	for (u64 i = 0; i < rounds; i++) {
		MUST(cudaMemsetAsync(device, (int)i, work, 0));
		read_counter(&counter, device);
		MUST(cudaMemsetAsync(device, (int)i, work, stream));
		read_counter_pinned(pinned, device, stream);
	}
	say("read_back", "read_counter", rounds, 4 * rounds);
	say("read_back", "read_counter_pinned", rounds, 4 * rounds);
}

/* --- C6: locking for each transfer --- */

SITE send_locked(void *device, u64 bytes, cudaStream_t stream)
{
	void *host = pinned_memory(bytes);

	MUST(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
	MUST(cudaStreamSynchronize(stream));
	MUST(cudaFreeHost(host));
	STAY();
}

SITE send_registered(void *device, void *host, u64 bytes, cudaStream_t stream)
{
	MUST(cudaHostRegister(host, bytes, cudaHostRegisterDefault));
	MUST(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
	MUST(cudaStreamSynchronize(stream));
	MUST(cudaHostUnregister(host));
	STAY();
}

static void c6(void)
{
	u64 n = divided(100, 20), bytes = divided(32 * MIB, 128 * KIB);
	void *device = device_memory(bytes), *host = pageable_memory(bytes);
	cudaStream_t stream = new_stream();

	for (u64 i = 0; i < n; i++) {
		send_locked(device, bytes, stream);
		send_registered(device, host, bytes, stream);
	}
	say("pin_churn", "send_locked", n, n * bytes);
	say("pin_churn", "send_registered", n, n * bytes);
}

/* --- C7: between devices without and with peer access --- */

SITE send_to_peer(void *dst, void *src, u64 n, u64 bytes)
{
	for (u64 i = 0; i < n; i++)
		MUST(cudaMemcpyPeer(dst, 1, src, 0, bytes));
	MUST(cudaDeviceSynchronize());
	STAY();
}

SITE send_to_enabled_peer(void *dst, void *src, u64 n, u64 bytes)
{
	for (u64 i = 0; i < n; i++)
		MUST(cudaMemcpyPeer(dst, 1, src, 0, bytes));
	MUST(cudaDeviceSynchronize());
	STAY();
}

static void c7(void)
{
	u64 n = divided(100, 20), bytes = divided(256 * MIB, MIB);
	int n_devices, can;
	void *here, *there;

	MUST(cudaGetDeviceCount(&n_devices));
	if (n_devices < 2)
		exit(77);
	MUST(cudaSetDevice(1));
	there = device_memory(bytes);
	MUST(cudaSetDevice(0));
	here = device_memory(bytes);
	send_to_peer(there, here, n, bytes);
	MUST(cudaDeviceCanAccessPeer(&can, 0, 1));
	if (can) {
		MUST(cudaDeviceEnablePeerAccess(1, 0));
		send_to_enabled_peer(there, here, n, bytes);
	}
	say("peer_staged", "send_to_peer", n, n * bytes);
}

/* --- C8: memory allocated for each frame --- */

SITE frame(u64 bytes)
{
	void *p = device_memory(bytes);

	MUST(cudaMemset(p, 1, bytes));
	MUST(cudaFree(p));
	STAY();
}

SITE pool_frame(u64 bytes)
{
	void *p;

	MUST(cudaMallocAsync(&p, bytes, 0));
	MUST(cudaMemsetAsync(p, 1, bytes, 0));
	MUST(cudaFreeAsync(p, 0));
	MUST(cudaStreamSynchronize(0));
	STAY();
}

static void c8(void)
{
	u64 n = divided(1000, 100), bytes = divided(64 * MIB, 64 * KIB);

	for (u64 i = 0; i < n; i++)
		frame(bytes);
	for (u64 i = 0; i < n; i++)
		pool_frame(bytes);
	say("alloc_churn", "frame", n - 1, (n - 1) * bytes);
	say("alloc_churn", "pool_frame", n - 1, (n - 1) * bytes);
}

/* --- P1: rounded up to powers of two --- */

__attribute__((noinline)) static void *lock_rounded(u64 asked)
{
	u64 bytes = 1;
	void *p;

	while (bytes < asked)
		bytes *= 2;
	MUST(cudaHostAlloc(&p, bytes, cudaHostAllocDefault));
	STAY();
	return p;
}

static void p1(void)
{
	static const u64 asked[] = {135790592, 1207959552, 2415919104};
	u64 locked = 0, n = divisor > 1 ? 1 : 3, bytes;
	void *device = device_memory(asked[n - 1]);
	cudaStream_t stream = new_stream();

	for (u64 i = 0; i < n; i++) {
		void *p = lock_rounded(asked[i]);

		memset(p, 1, asked[i]);
		MUST(cudaMemcpyAsync(device, p, asked[i], cudaMemcpyHostToDevice, stream));
		MUST(cudaStreamSynchronize(stream));
		for (bytes = 1; bytes < asked[i]; bytes *= 2)
			;
		locked += bytes;
	}
	say("pinned_rounding", "lock_rounded", n, locked);
}

/* --- P2: dropped buffers that wait behind one event --- */

__attribute__((noinline)) static void *next_buffer(u64 bytes)
{
	void *p;

	MUST(cudaHostAlloc(&p, bytes, cudaHostAllocDefault));
	STAY();
	return p;
}

SITE long_copy(void *device, u64 bytes, cudaStream_t stream)
{
	void *p = next_buffer(bytes);

	MUST(cudaMemsetAsync(device, 1, bytes, stream));
	MUST(cudaMemcpyAsync(device, p, bytes, cudaMemcpyHostToDevice, stream));
	STAY();
}

SITE short_copy(void *device, u64 bytes, cudaStream_t stream)
{
	void *p = next_buffer(bytes);

	MUST(cudaMemcpyAsync(device, p, bytes, cudaMemcpyHostToDevice, stream));
	STAY();
}

static void p2(void)
{
	u64 n = divided(200, 20), bytes = 4 * MIB;
	void *device = device_memory(bytes);
	cudaStream_t a = new_stream(), b = new_stream();

	long_copy(device, bytes, a);
	for (u64 i = 0; i < n; i++)
		short_copy(device, bytes, b);
	MUST(cudaDeviceSynchronize());
	/* The first one could not have been spared. */
	say("pinned_not_reused", "short_copy", n - 1, (n - 1) * bytes);
}

/* --- P4: registered, unmapped, mapped again, refused --- */

__attribute__((noinline)) static cudaError_t register_first(void *p, u64 bytes)
{
	cudaError_t error = cudaHostRegister(p, bytes, cudaHostRegisterDefault);

	STAY();
	return error;
}

__attribute__((noinline)) static cudaError_t register_again(void *p, u64 bytes)
{
	cudaError_t error = cudaHostRegister(p, bytes, cudaHostRegisterDefault);

	STAY();
	return error;
}

static void *map_at(void *at, u64 bytes)
{
	void *p = mmap(at, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	return p;
}

static void p4(void)
{
	u64 bytes = 16 * MIB;
	void *p = map_at(NULL, bytes);

	MUST(register_first(p, bytes));
	munmap(p, bytes);
	map_at(p, bytes);
	if (register_again(p, bytes) != cudaErrorHostMemoryAlreadyRegistered)
		exit(1);
	cudaGetLastError();
	say("registered_twice", "register_again", 1, bytes);
}

/* --- An input pipeline as it should be --- */

#define RING 12

SITE upload_batch(void *device, char *host, u64 bytes, cudaStream_t stream)
{
	MUST(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
	MUST(cudaMemcpyAsync(
		(char *)device + bytes, host + bytes, 512, cudaMemcpyHostToDevice, stream));
	STAY();
}

static void clean(void)
{
	u64 steps = divided(500, 100), bytes = divided(64 * MIB, 128 * KIB);
	void *device = device_memory(2 * bytes);
	cudaStream_t stream = new_stream();
	float *loss = pinned_memory(4096);
	cudaEvent_t done[RING];
	char *ring[RING];

	for (int i = 0; i < RING; i++) {
		ring[i] = pinned_memory(bytes + 512);
		MUST(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming));
	}
	for (u64 step = 0; step < steps; step++) {
		MUST(cudaEventSynchronize(done[step % RING]));
		ring[step % RING][0] = (char)step;
		upload_batch(device, ring[step % RING], bytes, stream);
		MUST(cudaEventRecord(done[step % RING], stream));
		usleep(2000);
		if (step % 100)
			continue;
		MUST(cudaMemcpyAsync(loss, device, 4, cudaMemcpyDeviceToHost, stream));
		MUST(cudaStreamSynchronize(stream));
	}
	MUST(cudaDeviceSynchronize());
}

/* --- What copies of several sizes take --- */

struct memory {
	const char *kind;
	char *host;
};

static void put_row(
	const struct memory *memory, bool up, u64 bytes, u64 n, void *device, cudaStream_t stream)
{
	cudaEvent_t begin, end;
	u64 host_ns = 0;
	double gpu_ms = 0;

	MUST(cudaEventCreate(&begin));
	MUST(cudaEventCreate(&end));
	for (u64 i = 0; i < n; i++) {
		u64 start_ns;
		float ms;

		MUST(cudaEventRecord(begin, stream));
		start_ns = now_ns();
		if (up)
			MUST(cudaMemcpyAsync(
				device, memory->host, bytes, cudaMemcpyHostToDevice, stream));
		else
			MUST(cudaMemcpyAsync(
				memory->host, device, bytes, cudaMemcpyDeviceToHost, stream));
		host_ns += now_ns() - start_ns;
		MUST(cudaEventRecord(end, stream));
		MUST(cudaEventSynchronize(end));
		MUST(cudaEventElapsedTime(&ms, begin, end));
		gpu_ms += ms;
	}
	printf("%s{\"direction\": \"%s\", \"host_kind\": \"%s\", \"bytes\": %llu, \"count\": %llu, "
	       "\"host_ns\": %llu, \"event_ns\": %.0f}",
		separator, up ? "h2d" : "d2h", memory->kind, bytes, n, host_ns, gpu_ms * 1e6);
	separator = ",\n ";
	MUST(cudaEventDestroy(begin));
	MUST(cudaEventDestroy(end));
}

static void table(void)
{
	static const u64 sizes[] = {4 * KIB, 64 * KIB, MIB, 16 * MIB, 256 * MIB};
	u64 largest = divided(256 * MIB, 4 * MIB);
	struct memory memories[] = {{"pageable", pageable_memory(largest)},
		{"pinned", pinned_memory(largest)}, {"registered", pageable_memory(largest)}};
	void *device = device_memory(largest);
	cudaStream_t stream = new_stream();

	MUST(cudaHostRegister(memories[2].host, largest, cudaHostRegisterDefault));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (size_t k = 0; k < 3 && sizes[i] <= largest; k++)
			for (int up = 1; up >= 0; up--)
				put_row(&memories[k], up, sizes[i],
					divided(sizes[i] > MIB ? 50 : 500, 20), device, stream);
	MUST(cudaHostUnregister(memories[2].host));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"c1", c1}, {"c3", c3}, {"c5", c5}, {"c6", c6}, {"c7", c7}, {"c8", c8},
		{"p1", p1}, {"p2", p2}, {"p4", p4}, {"clean", clean}, {"table", table}};

	if (argc > 2)
		divisor = strtoull(argv[2], NULL, 10);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (argc < 2 || !divisor || strcmp(argv[1], cases[i].name))
			continue;
		putchar('[');
		cases[i].run();
		puts("]");
		return 0;
	}
	fprintf(stderr, "usage: transfers CASE [DIVISOR]\n");
	return 2;
}

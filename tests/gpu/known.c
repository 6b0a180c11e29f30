/*
 * Known amounts of every kind, through the CUDA runtime. Prints what it left allocated and copied,
 * as JSON: the truth that the report of its trace is compared with. Built with the shared and with
 * the static runtime: both must give the same report.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB 1024ull
#define MIB (1024 * KIB)

static struct {
	unsigned long long live_bytes[2], n_live[2], n_allocated[2]; /* device, pinned */
	unsigned long long peak_bytes, now_bytes;
	unsigned long long copies[4], copied_bytes[4]; /* by cudaMemcpyKind */
	unsigned long long n_sets, set_bytes;
} truth;

static void must(cudaError_t error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
	exit(1);
}

static void *device_alloc(size_t bytes)
{
	void *p;

	must(cudaMalloc(&p, bytes), "cudaMalloc");
	truth.n_allocated[0]++;
	truth.n_live[0]++;
	truth.live_bytes[0] += bytes;
	truth.now_bytes += bytes;
	if (truth.now_bytes > truth.peak_bytes)
		truth.peak_bytes = truth.now_bytes;
	return p;
}

static void device_free(void *p, size_t bytes)
{
	must(cudaFree(p), "cudaFree");
	truth.n_live[0]--;
	truth.live_bytes[0] -= bytes;
	truth.now_bytes -= bytes;
}

static void copy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, int async)
{
	must(async ? cudaMemcpyAsync(dst, src, bytes, kind, 0) : cudaMemcpy(dst, src, bytes, kind),
		"copy");
	truth.copies[kind]++;
	truth.copied_bytes[kind] += bytes;
}

static void set(void *dst, size_t bytes)
{
	must(cudaMemset(dst, 0x5a, bytes), "cudaMemset");
	truth.n_sets++;
	truth.set_bytes += bytes;
}

static void *pinned_alloc(size_t bytes)
{
	void *p;

	must(cudaMallocHost(&p, bytes), "cudaMallocHost");
	truth.n_allocated[1]++;
	truth.n_live[1]++;
	truth.live_bytes[1] += bytes;
	return p;
}

static void check_bytes(const unsigned char *host, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (host[i] == 0x5a)
			continue;
		fprintf(stderr, "byte %zu came back as %02x\n", i, host[i]);
		exit(1);
	}
}

static void print_truth(void)
{
	printf("{\"linear_live_bytes\": %llu, \"linear_live\": %llu, \"linear_allocations\": %llu, "
	       "\"linear_peak_bytes\": %llu, \"pinned_bytes\": %llu",
		truth.live_bytes[0], truth.n_live[0], truth.n_allocated[0], truth.peak_bytes,
		truth.live_bytes[1]);
	printf(", \"h2d\": [%llu, %llu], \"d2h\": [%llu, %llu], \"d2d\": [%llu, %llu], \"sets\": "
	       "[%llu, %llu]}\n",
		truth.copies[1], truth.copied_bytes[1], truth.copies[2], truth.copied_bytes[2],
		truth.copies[3], truth.copied_bytes[3], truth.n_sets, truth.set_bytes);
}

int main(void)
{
	unsigned char *pageable = malloc(4 * MIB), *pinned = pinned_alloc(4 * MIB);
	void *small[64], *large[8], *back;

	memset(pageable, 0x5a, 4 * MIB);
	for (int i = 0; i < 64; i++)
		small[i] = device_alloc(1000 + 7 * (size_t)i);
	for (int i = 0; i < 8; i++)
		large[i] = device_alloc((3 + (size_t)i) * MIB + 1);
	for (int i = 0; i < 64; i += 2)
		device_free(small[i], 1000 + 7 * (size_t)i);
	for (int i = 0; i < 8; i += 2)
		device_free(large[i], (3 + (size_t)i) * MIB + 1);
	back = device_alloc(4 * MIB);
	for (int i = 0; i < 50; i++) {
		copy(back, pageable, 4 * MIB, cudaMemcpyHostToDevice, i & 1);
		copy(large[1], back, 4 * MIB, cudaMemcpyDeviceToDevice, i & 1);
		copy(pinned, large[1], 4 * MIB, cudaMemcpyDeviceToHost, i & 1);
	}
	set(large[3], 5 * MIB);
	must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	check_bytes(pinned, 4 * MIB);
	print_truth();
	return 0;
}

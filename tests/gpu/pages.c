/*
 * What the driver gives back: pages BYTES N EXTRA takes N blocks of BYTES, or as many as there are
 * if N is 0, frees every other one, and says how much less was free before and after; then it asks
 * for all that is free and EXTRA bytes more, which must be refused. Nothing is taken but these
 * blocks. Prints one JSON object.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

static void check(cudaError_t result, const char *what)
{
	if (result != cudaSuccess) {
		fprintf(stderr, "%s: error %d\n", what, (int)result);
		exit(1);
	}
}

static size_t free_bytes(void)
{
	size_t free_now, total;

	check(cudaMemGetInfo(&free_now, &total), "cudaMemGetInfo");
	return free_now;
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 0,
	       n = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	size_t extra = argc > 3 ? strtoull(argv[3], NULL, 10) : 0, at_start, filled, thinned;
	void **blocks, *whole;
	int refused;

	if (!bytes || !extra)
		return 2;
	check(cudaFree(NULL), "cudaFree");
	at_start = free_bytes();
	blocks = calloc(n ? n : at_start / bytes + 1, sizeof(*blocks));
	if (!blocks)
		return 2;
	for (size_t i = 0; n ? i < n : i <= at_start / bytes; i++) {
		cudaError_t result = cudaMalloc(&blocks[i], bytes);

		if (!n && result == cudaErrorMemoryAllocation)
			n = i;
		else
			check(result, "cudaMalloc");
	}
	filled = free_bytes();
	for (size_t i = 0; i < n; i += 2)
		check(cudaFree(blocks[i]), "cudaFree");
	thinned = free_bytes();
	refused = (int)cudaMalloc(&whole, thinned + extra);
	printf("{\"live\": %zu, \"filled\": %zu, \"held\": %zu, \"free\": %zu, \"refused\": %d}\n",
		n / 2 * bytes, at_start - filled, at_start - thinned, thinned, refused);
	return 0;
}

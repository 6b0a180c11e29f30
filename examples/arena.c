/*
 * An allocator of its own: one large piece from CUDA, of which the program hands out parts. From
 * outside only the piece is seen. Two calls of vramtrace.h, which do nothing without the recorder,
 * tell who holds the parts:
 *
 *   vramtrace run -- arena-shared
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <vramtrace/vramtrace.h>

#define MIB (1u << 20)

static char *base, *weights, *last;
static size_t used;

static char *arena_take(size_t bytes)
{
	char *part = base + used;

	vt_block_alloc("arena", part, bytes);
	used += bytes;
	return part;
}

/* Only the last part can be given back. */
static void arena_give_back(char *part)
{
	vt_block_free("arena", part, (size_t)(base + used - part));
	used = (size_t)(part - base);
}

__attribute__((noinline)) static void load_weights(void)
{
	weights = arena_take(24 * MIB);
}

__attribute__((noinline)) static void run_step(void)
{
	char *scratch = arena_take(6 * MIB);

	arena_give_back(scratch);
}

__attribute__((noinline)) static void remember(void)
{
	last = arena_take(MIB / 2);
}

int main(void)
{
	if (cudaMalloc((void **)&base, 64 * MIB)) {
		fprintf(stderr, "cudaMalloc failed\n");
		return 1;
	}
	load_weights();
	for (int i = 0; i < 10; i++) {
		run_step();
		remember();
	}
	printf("%zu MiB of the arena are in use\n", used / MIB);
	return 0;
}

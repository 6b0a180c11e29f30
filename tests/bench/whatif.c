/*
 * How fast requests are replayed, and how long one line of a sweep takes.
 *
 *   whatif [ALLOCATIONS]
 *
 * The requests are like those of a training run: the layers' outputs are kept until they come up
 * again in reverse order, temporaries go at once, and sizes differ from step to step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "analysis/whatif.h"

#define N_LAYERS     12u
#define N_OUTPUTS    8u
#define N_PARAMETERS 150u
#define ROOM	     (2u * N_LAYERS * N_OUTPUTS * 4u) /* steps of one training step, at most */

static struct whatif_recording recording;
static struct whatif_step *steps;

static uint32_t get(uint64_t bytes)
{
	struct whatif_step *step = &steps[recording.n_steps++];

	*step = (struct whatif_step){.kind = WHATIF_GET,
		.block = (uint32_t)recording.n_blocks++,
		.bytes = bytes,
		.likely_bytes = bytes};
	recording.n_gets++;
	return step->block;
}

static void put(uint32_t block)
{
	steps[recording.n_steps++] = (struct whatif_step){.kind = WHATIF_PUT, .block = block};
}

static uint64_t output_bytes(size_t output, uint64_t length)
{
	static const uint64_t widths[N_OUTPUTS] = {768, 2304, 768, 12, 768, 3072, 3072, 1};

	return length * widths[output] * 8;
}

static void train(uint64_t length)
{
	uint32_t kept[N_LAYERS][N_OUTPUTS];

	for (size_t layer = 0; layer < N_LAYERS; layer++)
		for (size_t i = 0; i < N_OUTPUTS; i++) {
			uint32_t temporary = get(output_bytes(i, length) / 2 + 512);

			kept[layer][i] = get(output_bytes(i, length));
			put(temporary);
		}
	for (size_t layer = N_LAYERS; layer--;)
		for (size_t i = N_OUTPUTS; i--;) {
			uint32_t gradient = get(output_bytes(i, length));

			put(kept[layer][i]);
			put(gradient);
		}
}

static void make_recording(size_t n_allocations)
{
	steps = calloc(2 * n_allocations + ROOM, sizeof(*steps));
	recording.steps = steps;
	settings_default(&recording.settings);
	recording.version = 211;
	recording.device_bytes = 80ull << 30;
	for (size_t i = 0; i < N_PARAMETERS; i++)
		get(i % 3 ? 512 * (1 + i % 7) : SETTINGS_MIB * (1 + i % 19));
	while (recording.n_gets + ROOM / 2 < n_allocations)
		train(256 + (uint64_t)(rand() % 48) * 32);
}

static double cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t time_replay(const char *name, bool expandable, uint64_t cap_bytes)
{
	struct allocator_options options = {.settings = recording.settings,
		.version = recording.version,
		.device_bytes = recording.device_bytes,
		.cap_bytes = cap_bytes};
	const struct whatif_guess guess = {.sizes = WHATIF_LIKELY};
	struct whatif_result result;
	double start = cpu_s(), s;

	options.settings.expandable = expandable;
	whatif_replay(&recording, &options, &guess, &result);
	s = cpu_s() - start;
	printf("%-28s %6.2f million allocations a second; peak %llu MiB, %llu retries\n", name,
		(double)recording.n_gets / s / 1e6,
		(unsigned long long)(result.stats.peak_reserved_bytes / SETTINGS_MIB),
		(unsigned long long)result.stats.n_retries);
	return result.stats.peak_reserved_bytes;
}

int main(int argc, char **argv)
{
	struct whatif_prediction prediction;
	struct settings settings;
	uint64_t peak_bytes;
	double start;

	make_recording(argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000);
	printf("%zu allocations\n", recording.n_gets);
	peak_bytes = time_replay("default", false, 0);
	time_replay("expandable segments", true, 0);
	time_replay("default, 3/4 of its peak", false, peak_bytes / 4 * 3);
	settings = recording.settings;
	settings.max_split_bytes = 128 * SETTINGS_MIB;
	start = cpu_s();
	whatif_predict(&recording, &settings, 0, &prediction);
	printf("max_split_size_mb=128: needs %llu MiB; found in %.1f s\n",
		(unsigned long long)(prediction.needed.value / SETTINGS_MIB), cpu_s() - start);
	free(steps);
	return 0;
}

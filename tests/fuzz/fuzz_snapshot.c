/*
 * Fuzz target for tools/analysis/pickle.c and whatif_snapshot.c: whatever the bytes of a snapshot
 * are, reading ends, and what was understood of it is replayed.
 *
 *   with libFuzzer    clang -fsanitize=fuzzer,address,undefined ...; ./fuzz_snapshot CORPUS
 *   alone             cc -DFUZZ_ALONE -fsanitize=address,undefined ...; usage as fuzz_reader.c
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/whatif_snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void replay(struct whatif_built *built)
{
	struct whatif_prediction prediction;
	struct settings settings;
	struct whatif_check check;
	char problem[160];

	whatif_check(&built->recording, &check);
	settings = built->recording.settings;
	if (!settings_apply(&settings, "expandable_segments:True", 0, problem, sizeof(problem)))
		abort();
	whatif_predict_peak(&built->recording, &settings, &prediction);
	settings_default(&settings);
	whatif_predict_peak(&built->recording, &settings, &prediction);
	for (size_t i = 0; i < built->recording.n_steps; i++)
		whatif_snapshot_where(built, &built->recording.steps[i], problem, sizeof(problem));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct whatif_built built;
	struct pickle pickle;

	pickle_read(&pickle, data, bytes);
	if (!pickle.root == !pickle.problem)
		abort();
	if (pickle.root) {
		whatif_snapshot_build(&built, pickle.root, -1);
		if (!built.refusal)
			replay(&built);
		whatif_built_release(&built);
	}
	pickle_release(&pickle);
	return 0;
}

#ifdef FUZZ_ALONE

#define SEED_MAX 20000u

static uint8_t seed[SEED_MAX], changed[SEED_MAX];
static size_t seed_bytes;

static void put(const char *bytes, size_t n)
{
	if (seed_bytes + n > SEED_MAX)
		abort();
	memcpy(seed + seed_bytes, bytes, n);
	seed_bytes += n;
}

static void put_text(const char *text)
{
	char length = (char)strlen(text);

	put("X", 1);
	put(&length, 1);
	put("\0\0", 3);
	put(text, strlen(text));
}

static void put_number(const char *key, uint64_t number)
{
	put_text(key);
	put("\x8a\x08", 2);
	put((const char *)&number, sizeof(number));
}

static void put_entry(const char *action, uint64_t address, uint64_t bytes, uint64_t stream)
{
	put("}(", 2);
	put_text("action");
	put_text(action);
	put_number("addr", address);
	put_number("size", bytes);
	put_number("stream", stream);
	put_number("time_us", 17);
	put_text("frames");
	put("](}(", 4);
	put_text("name");
	put_text("main");
	put_text("filename");
	put_text("train.py");
	put_number("line", 7);
	put("ueu", 3);
}

/* A run of two segments, one of them expandable, with pending frees and what runs out. */
static void make_seed(void)
{
	const uint64_t mib = 1 << 20, at = (uint64_t)1 << 40, range = (uint64_t)1 << 41;

	put("\x80\x02}(", 4);
	put_text("allocator_settings");
	put("}(", 2);
	put_text("PYTORCH_CUDA_ALLOC_CONF");
	put_text("expandable_segments:True");
	put("u", 1);
	put_text("segments");
	put("](}(", 4);
	put_number("address", at);
	put_number("total_size", 102 * mib);
	put("ue", 2);
	put_text("device_traces");
	put("](](", 4);
	for (uint64_t i = 0; i < 6; i++) {
		put_entry("segment_map", range + i * 20 * mib, 20 * mib, i % 2);
		put_entry("alloc", range + i * 20 * mib, 15 * mib, i % 2);
		put_entry("free_requested", range + i * 20 * mib, 15 * mib, i % 2);
		if (i % 2)
			put_entry("alloc", range + i * 20 * mib + 15 * mib, mib, 0);
		put_entry("free_completed", range + i * 20 * mib, 15 * mib, i % 2);
	}
	put_entry("segment_alloc", at, 2 * mib, 0);
	put_entry("alloc", at, 1000, 0);
	put_entry("segment_unmap", range, 20 * mib, 0);
	put_entry("oom", 0, 80 * mib, 0);
	put("e]eu.", 5);
}

static uint64_t next_random(void)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

static size_t mutate(void)
{
	size_t bytes = seed_bytes;

	memcpy(changed, seed, bytes);
	for (uint64_t n = 1 + next_random() % 6; n; n--) {
		size_t to = next_random() % bytes, from = next_random() % bytes;
		size_t most = bytes - (to > from ? to : from), run = 1 + next_random() % 200;

		if (next_random() % 2)
			changed[to] = (uint8_t)next_random();
		else
			memmove(changed + to, changed + from, run < most ? run : most);
	}
	return next_random() % 8 ? bytes : next_random() % bytes;
}

static int run_file(const char *path)
{
	FILE *in = fopen(path, "r");
	size_t bytes = in ? fread(changed, 1, sizeof(changed), in) : 0;

	if (!in || fclose(in))
		return 1;
	return LLVMFuzzerTestOneInput(changed, bytes);
}

int main(int argc, char **argv)
{
	unsigned long n_runs = 0;
	time_t end;

	make_seed();
	if (argc == 3 && !strcmp(argv[1], "seed")) {
		FILE *out = fopen(argv[2], "w");

		return !out || fwrite(seed, 1, seed_bytes, out) != seed_bytes || fclose(out);
	}
	if (argc < 2) {
		fprintf(stderr, "usage: %s SECONDS | 0 FILE... | seed FILE\n", argv[0]);
		return 2;
	}
	for (int i = 2; i < argc; i++)
		if (run_file(argv[i]))
			return 1;
	for (end = time(NULL) + atoi(argv[1]); time(NULL) < end; n_runs++) {
		size_t bytes = mutate();
		uint8_t *exact = malloc(bytes ? bytes : 1);

		if (!exact)
			abort();
		memcpy(exact, changed, bytes);
		LLVMFuzzerTestOneInput(exact, bytes);
		free(exact);
	}
	printf("%lu mutations\n", n_runs);
	return 0;
}

#endif

/*
 * Fuzz target for src/trace/reader.c: whatever the bytes of a trace are, reading ends, twice with
 * the same result, and touches nothing outside.
 *
 *   with libFuzzer    clang -fsanitize=fuzzer,address,undefined ...; ./fuzz_reader CORPUS
 *   alone             cc -DFUZZ_ALONE -fsanitize=address,undefined ...
 *                     ./fuzz_reader SECONDS       mutations of a good trace, the same in every run
 *                     ./fuzz_reader 0 FILE...     each file once, as libFuzzer leaves them
 *                     ./fuzz_reader seed FILE     writes the good trace that mutations start from
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static uint64_t read_all(struct vt_reader *reader, size_t bytes)
{
	struct vt_record record;
	uint64_t sum = 0;
	size_t n = 0;

	while (vt_reader_next(reader, &record) == 1) {
		sum = sum * 31 + record_touch(&record);
		/* A record takes at least one byte. */
		if (n++ > bytes)
			abort();
	}
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static int fd = -1;
	struct vt_reader *reader;
	char path[64];
	uint64_t sum;

	if (fd < 0)
		fd = memfd_create("trace", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, bytes, 0) != (ssize_t)bytes)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (vt_reader_open(&reader, path))
		return 0;
	sum = read_all(reader, bytes);
	if (vt_reader_rewind(reader) || read_all(reader, bytes) != sum)
		abort();
	vt_reader_close(reader);
	return 0;
}

#ifdef FUZZ_ALONE

#include "fuzz/seed.h"

int main(int argc, char **argv)
{
	static _Alignas(64) uint8_t seed[SEED_MAX], data[SEED_MAX];
	size_t bytes = make_seed(seed);
	unsigned long n_runs = 0;
	time_t end;

	if (argc == 3 && !strcmp(argv[1], "seed"))
		return write_seed(argv[2], seed, bytes);
	if (argc < 2) {
		fprintf(stderr, "usage: %s SECONDS | 0 FILE... | seed FILE\n", argv[0]);
		return 2;
	}
	for (int i = 2; i < argc; i++)
		if (run_file(argv[i]))
			return 1;
	for (end = time(NULL) + atoi(argv[1]); time(NULL) < end; n_runs++) {
		memcpy(data, seed, bytes);
		LLVMFuzzerTestOneInput(data, mutate(data, bytes));
	}
	printf("%lu mutations\n", n_runs);
	return 0;
}

#endif

/*
 * Fuzz target for tools/pack/unpack.c: whatever the bytes of a packed trace are, unpacking ends,
 * with no more than was bargained for, and what comes out is read.
 *
 *   with libFuzzer    clang -fsanitize=fuzzer,address,undefined ...; ./fuzz_packed CORPUS
 *   alone             cc -DFUZZ_ALONE -fsanitize=address,undefined ...; usage as fuzz_reader.c
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "fuzz/touch.h"
#include "pack/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static int fd = -1;
	struct vt_reader *reader;
	struct vt_record record;
	struct unpacked file;
	struct stat st;
	char path[64];

	if (fd < 0)
		fd = memfd_create("packed", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, bytes, 0) != (ssize_t)bytes)
		abort();
	unpack_look(fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (unpack_open(&file, path)) {
		if (file.fd >= 0)
			abort();
		return 0;
	}
	if (fstat(file.fd, &st) || (file.packed_bytes && st.st_size > (2ll << 30)))
		abort();
	if (!vt_reader_open_fd(&reader, file.fd, NULL, VT_PARTS_ALL)) {
		while (vt_reader_next(reader, &record) == 1)
			record_touch(&record);
		vt_reader_close(reader);
	}
	close(file.fd);
	return 0;
}

#ifdef FUZZ_ALONE

#include "fuzz/seed.h"

#define PACKED_MAX (2 * SEED_MAX)

/* Changed before it is packed, after, or both. */
static size_t make_packed(uint8_t *packed, const uint8_t *seed, size_t bytes)
{
	static _Alignas(64) uint8_t data[SEED_MAX];
	uint64_t when = next_random() % 3;

	memcpy(data, seed, bytes);
	if (when != 1)
		bytes = mutate(data, bytes);
	bytes = ZSTD_compress(packed, PACKED_MAX, data, bytes, 1);
	if (ZSTD_isError(bytes))
		abort();
	return when ? mutate(packed, bytes) : bytes;
}

int main(int argc, char **argv)
{
	static _Alignas(64) uint8_t seed[SEED_MAX], packed[PACKED_MAX];
	size_t bytes = make_seed(seed);
	unsigned long n_runs = 0;
	time_t end;

	if (argc == 3 && !strcmp(argv[1], "seed"))
		return write_seed(
			argv[2], packed, ZSTD_compress(packed, PACKED_MAX, seed, bytes, 1));
	if (argc < 2) {
		fprintf(stderr, "usage: %s SECONDS | 0 FILE... | seed FILE\n", argv[0]);
		return 2;
	}
	for (int i = 2; i < argc; i++)
		if (run_file(argv[i]))
			return 1;
	for (end = time(NULL) + atoi(argv[1]); time(NULL) < end; n_runs++)
		LLVMFuzzerTestOneInput(packed, make_packed(packed, seed, bytes));
	printf("%lu mutations\n", n_runs);
	return 0;
}

#endif

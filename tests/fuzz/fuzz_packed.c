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
#include "pack/columns.h"
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

/* The trace with its chunks in columns. */
static size_t put_in_columns(uint8_t *out, const uint8_t *trace, size_t bytes)
{
	struct vt_file_header header;
	struct columns *columns;
	const uint8_t *group;
	size_t n = 0;

	memcpy(&header, trace, sizeof(header));
	columns = columns_new(
		(const char *)trace + sizeof(header), header.schema_bytes, header.chunk_bytes);
	for (size_t at = header.header_bytes; at < bytes; at += header.chunk_bytes)
		columns_add(columns, trace + at,
			bytes - at < header.chunk_bytes ? bytes - at : header.chunk_bytes);
	group = columns_group(columns, &n);
	header.group_chunks = COLUMNS_GROUP_CHUNKS;
	memcpy(out, trace, header.header_bytes);
	memcpy(out, &header, sizeof(header));
	if (n)
		memcpy(out + header.header_bytes, group, n);
	columns_free(columns);
	return header.header_bytes + n;
}

/* Changed before it is packed, after, or both. */
static size_t make_packed(uint8_t *packed, const uint8_t *seed, size_t bytes)
{
	static _Alignas(64) uint8_t data[SEED_MAX];
	uint64_t when = next_random() % 3;

	if (next_random() % 2)
		bytes = put_in_columns(data, seed, bytes);
	else
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

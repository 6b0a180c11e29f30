/* The file behind a writer: made, grown in steps, mapped; or with private memory and pwrite where
 * there can be no shared mapping. By plain system calls where those of libc are places for a thread
 * to be cancelled at: it may hold a lock that others wait for. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "trace/schema.h"
#include "trace/writer_internal.h"

/* The file grows by at least one of these, by a quarter of itself when larger, by at most the
 * second. */
#define GROW_MIN_BYTES (16u * VT_CHUNK_BYTES)
#define GROW_MAX_BYTES (1024u * VT_CHUNK_BYTES)

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool writer_write(int fd, const void *data, size_t bytes, uint64_t offset)
{
	const uint8_t *p = data;

	while (bytes) {
		long n = syscall(SYS_pwrite64, fd, p, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		bytes -= (size_t)n;
		offset += (uint64_t)n;
	}
	return true;
}

void *writer_map_private(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* A child must never write into its parent's trace: the mapping does not exist there. */
static void *map_shared(int fd, uint64_t offset, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_DONTFORK);
	return p;
}

/* Growing beyond RLIMIT_FSIZE would raise SIGXFSZ in the traced program. */
uint64_t writer_file_most(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX
										  : limit.rlim_cur;
}

/* Reserves the bytes on disk, so that a full disk is an error here and not a SIGBUS later. */
static int reserve_bytes(const struct vt_writer *writer, uint64_t offset, uint64_t bytes)
{
	uint64_t others_bytes = writer->parts.bytes;
	int error;

	if (writer->max_bytes && others_bytes + offset + bytes > writer->max_bytes)
		return VT_E_LIMIT;
	if (offset + bytes > writer_file_most())
		return VT_E_LIMIT;
	do {
		error = posix_fallocate(writer->fd, (off_t)offset, (off_t)bytes);
	} while (error == EINTR);
	if (error == ENOSPC || error == EDQUOT || error == EFBIG)
		return VT_E_NO_SPACE;
	return error ? VT_E_IO : 0;
}

/* The magic comes last: a process killed in the middle of this leaves a file that says it is empty,
 * not one that contradicts itself. */
static int write_header(struct vt_writer *writer, struct vt_file_header *header)
{
	size_t magic = sizeof(header->magic);

	header->format = VT_FORMAT;
	header->byte_order = VT_BYTE_ORDER;
	header->header_bytes = VT_HEADER_BYTES;
	header->chunk_bytes = VT_CHUNK_BYTES;
	header->pid = (uint32_t)getpid();
	header->schema_bytes = (uint32_t)vt_schema_text_bytes;
	/* What nobody else can write into is not worth heeding. */
	if (!header->part)
		atomic_store_explicit(&header->control,
			(writer->copy ? 0 : VT_CONTROL_HEEDED) |
				(writer->paused ? VT_CONTROL_PAUSED : 0),
			memory_order_relaxed);
	header->start_realtime_ns = writer->start_realtime_ns;
	header->start_monotonic_ns = writer->start_monotonic_ns;
	memcpy(header + 1, vt_schema_text, vt_schema_text_bytes);
	atomic_signal_fence(memory_order_release);
	memcpy(header->magic, VT_MAGIC, magic);
	if (writer->copy && !(writer_write(writer->fd, (uint8_t *)header + magic,
				      VT_HEADER_BYTES - magic, magic) &&
				    writer_write(writer->fd, header, magic, 0)))
		return errno == ENOSPC ? VT_E_NO_SPACE : VT_E_IO;
	return 0;
}

static int make_header(
	struct vt_writer *writer, struct vt_file_header **out, const struct vt_file_header *like)
{
	struct vt_file_header *header = NULL;
	int error = reserve_bytes(writer, 0, VT_HEADER_BYTES);

	if (error)
		return error;
	if (!writer->copy)
		header = map_shared(writer->fd, 0, VT_HEADER_BYTES);
	if (!header) {
		writer->copy = true;
		header = writer_map_private(VT_HEADER_BYTES);
	}
	if (!header)
		return VT_E_NO_MEMORY;
	header->parted = like->parted;
	header->part = like->part;
	error = write_header(writer, header);
	if (error)
		munmap(header, VT_HEADER_BYTES);
	else
		*out = header;
	return error;
}

void writer_file_leave(struct vt_writer *writer)
{
	int fd = writer->fd;

	/* In this order: a child forked in between closes what the number is of. */
	writer->fd = -1;
	atomic_signal_fence(memory_order_seq_cst);
	syscall(SYS_close, fd);
}

int writer_file_make(struct vt_writer *writer, const char *path, struct vt_file_header **header,
	const struct vt_file_header *like)
{
	int error;

	writer->fd = (int)syscall(SYS_openat, AT_FDCWD, path,
		O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (writer->fd < 0)
		return VT_E_OPEN;
	error = make_header(writer, header, like);
	if (error) {
		unlink(path);
		writer_file_leave(writer);
	}
	writer->mapped_end = VT_HEADER_BYTES;
	writer->segment = NULL;
	writer->segment_offset = 0;
	return error;
}

void writer_file_start(struct vt_writer *writer)
{
	writer->start_realtime_ns = clock_ns(CLOCK_REALTIME);
	writer->start_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
}

/* Whole chunks from offset up to where the part will be full; at least one. */
static uint64_t chunks_up_to(const struct vt_writer *writer, uint64_t offset)
{
	uint64_t limit = writer->parts.limit;

	if (limit < offset + VT_CHUNK_BYTES)
		return VT_CHUNK_BYTES;
	return (limit - offset) / VT_CHUNK_BYTES * VT_CHUNK_BYTES;
}

int writer_file_grow(struct vt_writer *writer)
{
	uint64_t offset = writer->mapped_end;
	uint64_t step = offset / 4 / VT_CHUNK_BYTES * VT_CHUNK_BYTES;
	uint8_t *segment;
	int error;

	if (writer->keeper && writer->parts.n_mapped == WRITER_MAX_MAPPED)
		return VT_E_LIMIT;
	if (step < GROW_MIN_BYTES)
		step = GROW_MIN_BYTES;
	if (step > GROW_MAX_BYTES)
		step = GROW_MAX_BYTES;
	if (writer->keeper && offset + step > writer->parts.limit)
		step = chunks_up_to(writer, offset);
	error = reserve_bytes(writer, offset, step);
	if (error) {
		/* Nearly full: one chunk may still fit. */
		step = VT_CHUNK_BYTES;
		error = reserve_bytes(writer, offset, step);
		if (error)
			return error;
	}
	segment = writer->copy ? writer_map_private(step) : map_shared(writer->fd, offset, step);
	if (!segment)
		return VT_E_NO_MEMORY;
	if (writer->keeper)
		writer->parts.mapped[writer->parts.n_mapped++] =
			(struct writer_mapped){segment, step};
	writer->segment = segment;
	writer->segment_offset = offset;
	writer->mapped_end = offset + step;
	return 0;
}

void writer_file_update(struct vt_writer *writer)
{
	if (writer->copy && writer->fd >= 0)
		writer_write(writer->fd, writer->home, sizeof(*writer->home), 0);
	if (writer->copy && writer->parts.main_fd >= 0)
		writer_write(writer->parts.main_fd, writer->header, sizeof(*writer->header), 0);
}

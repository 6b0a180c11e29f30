#include "pack/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zstd.h>

#include "model/memory.h"
#include "pack/file.h"
#include "pack/ungroup.h"
#include "vramtrace/format.h"

/* No frame header and no block is larger. */
#define FRAME_HEADER_BYTES 32u
#define BLOCK_BYTES	   (128u << 10)

/* Chunks of idle threads pack to next to nothing, but only so many of them fit into one process. */
#define MOST_IDLE_BYTES (1ull << 30)
#define MOST_RATIO	200u

struct unpacking {
	struct unpacked *out;
	const char *folder; /* where out->fd lies */
	ZSTD_DCtx *context; /* NULL: zstd has unpacked it already */
	struct ungroup ungroup;
	bool grouped; /* its chunks are in columns */
	bool begun;
	bool full; /* most has come, and more */
	uint64_t n_written;
	uint64_t expected; /* bytes of the first frame, 0 unknown */
	uint64_t most;	   /* bytes that are taken */
	bool limited;	   /* most is less than what the header says */
	bool whole;	   /* up to the end of a frame */
	const char *error; /* what the decoder found wrong; NULL nothing */
};

static bool is_packed(int fd)
{
	struct stat st;
	uint8_t magic[4];

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) ||
		fd_read_at(fd, magic, sizeof(magic), 0) != sizeof(magic))
		return false;
	/* A frame, or one that zstd's tools step over. */
	return !memcmp(magic, "\x28\xb5\x2f\xfd", 4) ||
	       ((magic[0] & 0xf0) == 0x50 && !memcmp(magic + 1, "\x2a\x4d\x18", 3));
}

/* What zstd alone made of a packed trace: its chunks may still be in columns. */
static bool is_grouped(int fd)
{
	struct vt_file_header header;

	return fd_read_at(fd, &header, sizeof(header), 0) == sizeof(header) &&
	       !memcmp(header.magic, VT_MAGIC, sizeof(header.magic)) && header.group_chunks;
}

static int no_room(struct unpacking *unpacking, uint64_t bytes)
{
	snprintf(unpacking->out->why, sizeof(unpacking->out->why),
		"unpacked it takes %llu MiB, which do not fit into %.100s: give a larger folder in "
		"TMPDIR",
		(unsigned long long)(bytes >> 20) + 1, unpacking->folder);
	return VT_E_NO_SPACE;
}

/* Where the trace ends by its own header; nothing of a file that is none is of interest. */
static uint64_t end_of_trace(const struct vt_file_header *header)
{
	uint64_t end;

	if (memcmp(header->magic, VT_MAGIC, sizeof(header->magic)))
		return 0;
	if (__builtin_mul_overflow(header->n_chunks, (uint64_t)header->chunk_bytes, &end) ||
		__builtin_add_overflow(end, (uint64_t)header->header_bytes, &end))
		return UINT64_MAX;
	return end;
}

/* Called with the first bytes, before the rest is unpacked. */
static int look_at_header(struct unpacking *unpacking, const uint8_t *data, size_t bytes)
{
	struct vt_file_header header = {0};
	uint64_t most = MOST_IDLE_BYTES + MOST_RATIO * unpacking->out->packed_bytes;
	uint64_t expected = unpacking->expected;
	struct statvfs disk;

	memcpy(&header, data, bytes < sizeof(header) ? bytes : sizeof(header));
	unpacking->most = end_of_trace(&header);
	unpacking->grouped = unpacking->most && header.group_chunks;
	if (unpacking->grouped)
		expected = unpacking->most;
	unpacking->limited = unpacking->most > most;
	if (unpacking->limited)
		unpacking->most = most;
	if (unpacking->most < bytes)
		unpacking->most = bytes;
	if (expected > unpacking->most)
		expected = unpacking->most;
	if (!fstatvfs(unpacking->out->fd, &disk) && disk.f_blocks &&
		expected / disk.f_frsize > disk.f_bavail)
		return no_room(unpacking, expected);
	return 0;
}

/* Of the plain trace. */
static int write_plain(void *user, const uint8_t *data, size_t bytes)
{
	struct unpacking *unpacking = user;

	if (bytes > unpacking->most - unpacking->n_written) {
		bytes = (size_t)(unpacking->most - unpacking->n_written);
		unpacking->full = true;
	}
	if (!fd_write(unpacking->out->fd, data, bytes))
		return errno == ENOSPC || errno == EDQUOT || errno == EFBIG
			       ? no_room(unpacking, unpacking->most)
			       : VT_E_IO;
	unpacking->n_written += bytes;
	return 0;
}

static int put(struct unpacking *unpacking, const uint8_t *data, size_t bytes)
{
	int error = unpacking->begun ? 0 : look_at_header(unpacking, data, bytes);

	unpacking->begun = true;
	if (error)
		return error;
	return unpacking->grouped ? ungroup_put(&unpacking->ungroup, data, bytes)
				  : write_plain(unpacking, data, bytes);
}

/* Takes what was unpacked; rest is what the decoder said. Returns 0 when there may be more, 1 at
 * the end, or VT_E_*. */
static int take(struct unpacking *unpacking, const uint8_t *data, size_t bytes, size_t rest)
{
	int error = bytes ? put(unpacking, data, bytes) : 0;

	if (error)
		return error;
	if (ZSTD_isError(rest) || unpacking->ungroup.damaged) {
		unpacking->out->damaged = true;
		unpacking->error = ZSTD_isError(rest) ? ZSTD_getErrorName(rest) : NULL;
		return 1;
	}
	unpacking->whole = !rest;
	if (unpacking->full) {
		/* A trace that was packed by hand may have unused room behind its end. */
		unpacking->out->damaged = unpacking->limited;
		return 1;
	}
	return unpacking->whole && unpacking->n_written && unpacking->n_written == unpacking->most;
}

static uint64_t content_size(const uint8_t *packed, size_t bytes)
{
	unsigned long long size = ZSTD_getFrameContentSize(packed, bytes);

	return size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR ? 0 : size;
}

static int unpack_all(struct unpacking *unpacking, int packed_fd)
{
	uint8_t packed[1 << 16], plain[1 << 17];
	ZSTD_inBuffer in = {packed, 0, 0};
	ZSTD_outBuffer out = {plain, sizeof(plain), 0};
	size_t n_reads = 0;
	int done = 0;

	while (!done) {
		size_t rest;

		/* A full buffer: the decoder may hold more. */
		if (in.pos == in.size && (out.pos < out.size || unpacking->whole)) {
			ssize_t n = fd_read(packed_fd, packed, sizeof(packed));

			if (n < 0)
				return VT_E_IO;
			if (!n)
				break;
			in.size = (size_t)n;
			in.pos = 0;
			if (!n_reads++)
				unpacking->expected = content_size(packed, in.size);
		}
		out.pos = 0;
		rest = ZSTD_decompressStream(unpacking->context, &out, &in);
		done = take(unpacking, plain, out.pos, rest);
	}
	if (!done && (!unpacking->whole || !ungroup_is_whole(&unpacking->ungroup)))
		unpacking->out->damaged = true;
	return done < 0 ? done : 0;
}

/* What zstd alone has unpacked. */
static int ungroup_all(struct unpacking *unpacking, int fd)
{
	uint8_t data[1 << 16];
	int done = 0;
	ssize_t n;

	while (!done && (n = fd_read(fd, data, sizeof(data))) > 0)
		done = take(unpacking, data, (size_t)n, 0);
	if (!done && n < 0)
		return VT_E_IO;
	if (!done && !ungroup_is_whole(&unpacking->ungroup))
		unpacking->out->damaged = true;
	return done < 0 ? done : 0;
}

/* The beginning of a trace is needed to make anything of it. */
static int check_beginning(struct unpacking *unpacking)
{
	struct unpacked *out = unpacking->out;

	if (!out->damaged || unpacking->n_written)
		return 0;
	snprintf(out->why, sizeof(out->why), "is damaged: nothing of it can be unpacked%s%.100s",
		unpacking->error ? ": " : "", unpacking->error ? unpacking->error : "");
	return VT_E_DAMAGED;
}

static int unpack(struct unpacked *out, int packed_fd)
{
	struct unpacking unpacking = {.out = out};
	bool columns_alone = !is_packed(packed_fd);
	struct stat st;
	int error;

	out->fd = file_unnamed(&unpacking.folder);
	if (out->fd < 0) {
		snprintf(out->why, sizeof(out->why),
			"is packed, and cannot be unpacked into %.100s: %s; give another folder in "
			"TMPDIR",
			unpacking.folder, strerror(errno));
		return VT_E_OPEN;
	}
	if (fstat(packed_fd, &st))
		return VT_E_IO;
	out->packed_bytes = (uint64_t)st.st_size;
	unpacking.context = columns_alone ? NULL : ZSTD_createDCtx();
	if (!unpacking.context && !columns_alone)
		return VT_E_NO_MEMORY;
	unpacking.ungroup = (struct ungroup){.writer = write_plain, .user = &unpacking};
	/* A file that may grow no more is an error to report, not a reason to be killed. */
	signal(SIGXFSZ, SIG_IGN);
	error = columns_alone ? ungroup_all(&unpacking, packed_fd)
			      : unpack_all(&unpacking, packed_fd);
	ungroup_release(&unpacking.ungroup);
	ZSTD_freeDCtx(unpacking.context);
	return error ? error : check_beginning(&unpacking);
}

int unpack_open(struct unpacked *out, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would be waited for */
	int error, saved;

	*out = (struct unpacked){.fd = -1};
	if (fd < 0)
		return VT_E_OPEN;
	if (!is_packed(fd) && !is_grouped(fd)) {
		out->fd = fd;
		return 0;
	}
	error = unpack(out, fd);
	saved = errno;
	close(fd);
	if (error && out->fd >= 0) {
		close(out->fd);
		out->fd = -1;
	}
	errno = saved;
	return error;
}

enum pack_content unpack_look(int fd)
{
	/* Nothing comes out before the first block is whole. */
	static const size_t most = BLOCK_BYTES + FRAME_HEADER_BYTES;
	uint8_t plain[sizeof(VT_MAGIC) - 1], *data = memory_new(most, 1);
	ssize_t n = fd_read_at(fd, data, most, 0);
	ZSTD_inBuffer in = {data, n > 0 ? (size_t)n : 0, 0};
	ZSTD_outBuffer out = {plain, sizeof(plain), 0};
	enum pack_content content = PACK_NO_TRACE;
	ZSTD_DCtx *context = NULL;

	if (in.size >= sizeof(plain) && !memcmp(data, VT_MAGIC, sizeof(plain)))
		content = PACK_PLAIN_TRACE;
	else if (is_packed(fd))
		context = ZSTD_createDCtx();
	if (context && !ZSTD_isError(ZSTD_decompressStream(context, &out, &in)) &&
		out.pos == sizeof(plain) && !memcmp(plain, VT_MAGIC, sizeof(plain)))
		content = PACK_PACKED_TRACE;
	ZSTD_freeDCtx(context);
	free(data);
	return content;
}

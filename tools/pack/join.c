#include "pack/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/memory.h"
#include "pack/file.h"
#include "trace/parts.h"
#include "vramtrace/error.h"

/* Copies n chunks of the part. What it does not hold any more counts as read. */
static int copy_chunks(int to, const struct vt_part *part, const struct vt_file_header *header)
{
	uint8_t *chunk = memory_new(header->chunk_bytes, 1);
	int error = 0;

	for (uint64_t i = 0; i < part->n_chunks && !error; i++) {
		uint64_t offset =
			header->header_bytes + (part->first_chunk + i) * header->chunk_bytes;
		ssize_t n = fd_read_at(part->fd, chunk, header->chunk_bytes, offset);

		if (n < 0 || !fd_write(to, chunk, header->chunk_bytes))
			error = VT_E_IO;
	}
	free(chunk);
	return error;
}

static int join(int to, int fd, struct vt_file_header *header, const struct vt_parts *parts)
{
	uint8_t *start = memory_new(header->header_bytes, 1);
	int error = 0;

	header->parted = 0;
	header->n_chunks = 0;
	for (size_t i = 0; i < parts->n_items; i++)
		header->n_chunks += parts->items[i].n_chunks;
	if (fd_read_at(fd, start, header->header_bytes, 0) != (ssize_t)header->header_bytes)
		error = VT_E_TRUNCATED;
	memcpy(start, header, sizeof(*header));
	if (!error && !fd_write(to, start, header->header_bytes))
		error = VT_E_IO;
	for (size_t i = 0; i < parts->n_items && !error; i++)
		error = copy_chunks(to, &parts->items[i], header);
	free(start);
	return error;
}

int join_parts(int fd, const char *path, int *joined)
{
	struct vt_file_header header;
	struct vt_parts parts;
	const char *folder;
	int error, to;

	*joined = fd;
	if (fd_read_at(fd, &header, sizeof(header), 0) != sizeof(header) ||
		memcmp(header.magic, VT_MAGIC, sizeof(header.magic)) || !header.parted ||
		header.byte_order != VT_BYTE_ORDER || header.format > VT_FORMAT ||
		header.header_bytes < sizeof(header) || header.header_bytes > 1u << 20 ||
		header.chunk_bytes < 4096 || header.chunk_bytes > 1u << 24)
		return 0;
	error = vt_parts_open(&parts, path, &header, VT_PARTS_ALL);
	if (error)
		return error;
	to = file_unnamed(&folder);
	error = to < 0 ? VT_E_OPEN : join(to, fd, &header, &parts);
	vt_parts_close(&parts);
	if (error && to >= 0) {
		int saved = errno;

		close(to);
		errno = saved;
	}
	if (error)
		return error;
	*joined = to;
	return 0;
}

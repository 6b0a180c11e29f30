#include "pack/snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model/memory.h"
#include "pack/file.h"
#include "trace/reader.h"

static uint64_t chunk_offset(const struct snapshot *snapshot, uint64_t i)
{
	return snapshot->header.header_bytes + i * snapshot->header.chunk_bytes;
}

/* The reader has checked that the schema is inside the file. */
static int read_schema(struct snapshot *snapshot)
{
	size_t bytes = snapshot->header.schema_bytes;
	ssize_t n;

	snapshot->schema = memory_new(bytes + 1, 1);
	n = fd_read_at(snapshot->fd, snapshot->schema, bytes, sizeof(struct vt_file_header));
	if (n < 0)
		return VT_E_IO;
	return (size_t)n == bytes ? 0 : VT_E_TRUNCATED;
}

/* How much of a chunk counts. What is no chunk is damage, which is kept as it is. */
static uint32_t used_of(const struct snapshot *snapshot, const struct vt_chunk_header *chunk)
{
	uint32_t used = chunk->used;

	if (!chunk->magic)
		return 0;
	if (chunk->sealed || chunk->magic != VT_CHUNK_MAGIC ||
		used > snapshot->header.chunk_bytes - sizeof(*chunk))
		return SNAPSHOT_ALL;
	return used;
}

static int look_at_chunks(struct snapshot *snapshot)
{
	snapshot->used = memory_new(snapshot->n_chunks, sizeof(*snapshot->used));
	for (uint64_t i = 0; i < snapshot->n_chunks; i++) {
		struct vt_chunk_header chunk;
		ssize_t n =
			fd_read_at(snapshot->fd, &chunk, sizeof(chunk), chunk_offset(snapshot, i));

		if (n < 0)
			return VT_E_IO;
		snapshot->used[i] = SNAPSHOT_ALL;
		if (n < (ssize_t)sizeof(chunk))
			continue;
		snapshot->used[i] = used_of(snapshot, &chunk);
		if (chunk.magic == VT_CHUNK_MAGIC && chunk.lane >= snapshot->next_lane)
			snapshot->next_lane = chunk.lane + 1;
	}
	return 0;
}

int snapshot_take(struct snapshot *snapshot, int fd)
{
	struct vt_reader *reader;
	struct stat st;
	int error = vt_reader_open_fd(&reader, fd, NULL, VT_PARTS_ALL);
	uint64_t room;

	*snapshot = (struct snapshot){.fd = fd};
	if (error)
		return error;
	memcpy(&snapshot->header, vt_reader_header(reader), sizeof(snapshot->header));
	vt_reader_close(reader);
	if (fstat(fd, &st))
		return VT_E_IO;
	room = (uint64_t)st.st_size - snapshot->header.header_bytes;
	snapshot->n_chunks =
		room / snapshot->header.chunk_bytes + (room % snapshot->header.chunk_bytes != 0);
	if (snapshot->n_chunks > snapshot->header.n_chunks)
		snapshot->n_chunks = snapshot->header.n_chunks;
	error = read_schema(snapshot);
	if (!error)
		error = look_at_chunks(snapshot);
	if (error)
		snapshot_release(snapshot);
	return error;
}

void snapshot_release(struct snapshot *snapshot)
{
	free(snapshot->schema);
	free(snapshot->used);
	*snapshot = (struct snapshot){.fd = -1};
}

ssize_t snapshot_read(const struct snapshot *snapshot, uint64_t i, uint8_t *data)
{
	uint32_t chunk_bytes = snapshot->header.chunk_bytes, used = snapshot->used[i];
	struct vt_chunk_header *chunk = (struct vt_chunk_header *)data;
	ssize_t n = fd_read_at(snapshot->fd, data, chunk_bytes, chunk_offset(snapshot, i));

	/* Cut short, as far as its records go: damage is kept as it is. */
	if (n < (ssize_t)sizeof(*chunk) || used == SNAPSHOT_ALL ||
		(size_t)n < sizeof(*chunk) + used)
		return n;
	/* What was written since does not count. */
	chunk->used = used;
	chunk->sealed = 0;
	chunk->checksum = 0;
	memset(data + sizeof(*chunk) + used, 0, (size_t)n - sizeof(*chunk) - used);
	return n;
}

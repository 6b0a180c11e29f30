#include "pack/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "model/memory.h"
#include "model/progress.h"
#include "pack/columns.h"
#include "pack/file.h"

/* The last few percent cost three times as long: not for traces that one has to wait for. */
#define SMALL_BYTES (64u << 20)
#define LEVEL_SMALL 9
#define LEVEL_LARGE 6
#define MAX_WORKERS 8

struct stream {
	ZSTD_CCtx *context;
	int fd;
	uint8_t *buffer;
	size_t buffer_bytes;
	uint64_t packed_bytes;
};

/* exact: what comes is as long as the trace. */
static int stream_begin(struct stream *stream, int fd, uint64_t plain_bytes, bool exact)
{
	long n_workers = sysconf(_SC_NPROCESSORS_ONLN);
	ZSTD_CCtx *context = ZSTD_createCCtx();

	*stream = (struct stream){context, fd, NULL, ZSTD_CStreamOutSize(), 0};
	stream->buffer = memory_new(stream->buffer_bytes, 1);
	if (!context)
		return VT_E_NO_MEMORY;
	ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel,
		plain_bytes < SMALL_BYTES ? LEVEL_SMALL : LEVEL_LARGE);
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	if (exact)
		ZSTD_CCtx_setPledgedSrcSize(context, plain_bytes);
	/* Refused by a libzstd that was built without threads: it is then done here. */
	if (plain_bytes >= SMALL_BYTES && n_workers > 1)
		ZSTD_CCtx_setParameter(context, ZSTD_c_nbWorkers,
			n_workers < MAX_WORKERS ? (int)n_workers : MAX_WORKERS);
	return 0;
}

static void stream_end(struct stream *stream)
{
	ZSTD_freeCCtx(stream->context);
	free(stream->buffer);
}

static int stream_put(struct stream *stream, const void *data, size_t bytes, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = {data, bytes, 0};
	size_t rest;

	do {
		ZSTD_outBuffer out = {stream->buffer, stream->buffer_bytes, 0};

		rest = ZSTD_compressStream2(stream->context, &out, &in, end);
		if (ZSTD_isError(rest)) {
			/* The only other one: there is more or less than was said. */
			errno = EIO;
			return ZSTD_getErrorCode(rest) == ZSTD_error_memory_allocation
				       ? VT_E_NO_MEMORY
				       : VT_E_IO;
		}
		if (!fd_write(stream->fd, stream->buffer, out.pos))
			return VT_E_IO;
		stream->packed_bytes += out.pos;
	} while (end == ZSTD_e_end ? rest : in.pos < in.size);
	return 0;
}

static bool in_columns(const struct snapshot *trace)
{
	return trace->n_chunks >= COLUMNS_LEAST_CHUNKS;
}

/* The header of the packed trace with its schema, header_bytes long. To be freed. */
static uint8_t *make_header(const struct pack *pack)
{
	const struct snapshot *trace = pack->trace;
	struct vt_file_header header;
	uint64_t n_chunks = trace->header.n_chunks;
	size_t schema_bytes, header_bytes;
	char *schema;
	uint8_t *data;

	memcpy(&header, &trace->header, sizeof(header));
	if (pack->symbols) {
		schema = symbol_schema(trace->schema, header.schema_bytes, &schema_bytes);
		if (__builtin_add_overflow(
			    trace->header.n_chunks, pack->symbols->n_chunks, &n_chunks))
			n_chunks = UINT64_MAX;
	} else {
		schema_bytes = header.schema_bytes;
		schema = memory_new(schema_bytes, 1);
		memcpy(schema, trace->schema, schema_bytes);
	}
	header.n_chunks = n_chunks;
	if (header.launcher_end == VT_END_UNKNOWN)
		header.launcher_end = pack->end;
	header.group_chunks = in_columns(trace) ? COLUMNS_GROUP_CHUNKS : 0;
	header.n_plain_chunks = pack->symbols ? (uint32_t)pack->symbols->n_chunks : 0;
	header_bytes = (sizeof(header) + schema_bytes + 63) / 64 * 64;
	if (header_bytes < header.header_bytes)
		header_bytes = header.header_bytes;
	header.header_bytes = (uint32_t)header_bytes;
	header.schema_bytes = (uint32_t)schema_bytes;
	data = memory_new(header_bytes, 1);
	memcpy(data, &header, sizeof(header));
	memcpy(data + sizeof(header), schema, schema_bytes);
	free(schema);
	return data;
}

/* Bytes of the trace's chunks in its file; the last one may be cut short. */
static int count_bytes(struct pack *pack, uint8_t *chunk, uint64_t *bytes)
{
	const struct snapshot *trace = pack->trace;
	ssize_t last = 0;

	if (trace->n_chunks)
		last = snapshot_read(trace, trace->n_chunks - 1, chunk);
	pack->unreadable = last < 0;
	if (last < 0)
		return VT_E_IO;
	*bytes = trace->n_chunks ? (trace->n_chunks - 1) * trace->header.chunk_bytes + (size_t)last
				 : 0;
	return 0;
}

/* The chunk as it is; with columns, the group that it is the last one of. */
static int put_chunk(struct stream *stream, struct columns *columns, const uint8_t *chunk,
	size_t bytes, bool last)
{
	if (!columns)
		return stream_put(stream, chunk, bytes, ZSTD_e_continue);
	columns_add(columns, chunk, bytes);
	if (!last)
		return 0;
	chunk = columns_group(columns, &bytes);
	return stream_put(stream, chunk, bytes, ZSTD_e_continue);
}

static int put_chunks(
	struct pack *pack, struct stream *stream, struct columns *columns, uint8_t *chunk)
{
	struct progress progress = progress_start();
	uint64_t n_chunks = pack->trace->n_chunks;
	int error = 0;

	for (uint64_t i = 0; i < n_chunks && !error; i++) {
		ssize_t n = snapshot_read(pack->trace, i, chunk);
		bool last = i + 1 == n_chunks || (i + 1) % COLUMNS_GROUP_CHUNKS == 0;

		pack->unreadable = n < 0;
		error = n < 0 ? VT_E_IO : put_chunk(stream, columns, chunk, (size_t)n, last);
		progress_step(&progress, "packing", pack->path, i, n_chunks);
	}
	progress_end(&progress);
	return error;
}

int pack_write(struct pack *pack, int fd)
{
	uint8_t *header = make_header(pack);
	uint8_t *chunk = memory_new(pack->trace->header.chunk_bytes, 1);
	size_t header_bytes = ((struct vt_file_header *)header)->header_bytes;
	uint64_t chunk_bytes = 0;
	struct columns *columns = NULL;
	struct stream stream = {0};
	int error = count_bytes(pack, chunk, &chunk_bytes);

	pack->plain_bytes = pack->trace->header.header_bytes + chunk_bytes;
	if (!error)
		error = stream_begin(&stream, fd,
			header_bytes + chunk_bytes + (pack->symbols ? pack->symbols->bytes : 0),
			!in_columns(pack->trace));
	if (!error)
		error = stream_put(&stream, header, header_bytes, ZSTD_e_continue);
	if (!error && pack->symbols)
		error = stream_put(
			&stream, pack->symbols->data, pack->symbols->bytes, ZSTD_e_continue);
	if (in_columns(pack->trace))
		columns = columns_new(pack->trace->schema, pack->trace->header.schema_bytes,
			pack->trace->header.chunk_bytes);
	if (!error)
		error = put_chunks(pack, &stream, columns, chunk);
	if (!error)
		error = stream_put(&stream, NULL, 0, ZSTD_e_end);
	pack->packed_bytes = stream.packed_bytes;
	stream_end(&stream);
	columns_free(columns);
	free(header);
	free(chunk);
	return error;
}

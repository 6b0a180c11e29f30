#include "pack/ungroup.h"

#include <stdlib.h>
#include <string.h>

#include "model/memory.h"

#define MAX_HEADER_BYTES (1u << 24)
#define MAX_CHUNK_BYTES	 (1u << 24)

/* Bytes up to which the header or group that has begun is known to reach; 0: it makes no sense. */
static size_t needed(const struct ungroup *ungroup)
{
	struct vt_file_header header;

	if (ungroup->columns) {
		if (ungroup->n_data < 4)
			return 4;
		return columns_group_bytes(ungroup->columns, ungroup->data);
	}
	if (ungroup->n_data < sizeof(header))
		return sizeof(header);
	memcpy(&header, ungroup->data, sizeof(header));
	if (header.header_bytes < sizeof(header) || header.header_bytes > MAX_HEADER_BYTES ||
		header.schema_bytes > header.header_bytes - sizeof(header) ||
		header.chunk_bytes > MAX_CHUNK_BYTES)
		return 0;
	return header.header_bytes;
}

static int put_header(struct ungroup *ungroup)
{
	struct vt_file_header header;

	memcpy(&header, ungroup->data, sizeof(header));
	ungroup->columns = columns_new((const char *)ungroup->data + sizeof(header),
		header.schema_bytes, header.chunk_bytes);
	ungroup->plain_left = (uint64_t)header.n_plain_chunks * header.chunk_bytes;
	header.group_chunks = header.n_plain_chunks = 0;
	memcpy(ungroup->data, &header, sizeof(header));
	return ungroup->writer(ungroup->user, ungroup->data, ungroup->n_data);
}

static int put_whole(struct ungroup *ungroup)
{
	const uint8_t *chunks;
	size_t bytes;

	if (!ungroup->columns)
		return put_header(ungroup);
	chunks = columns_join(ungroup->columns, ungroup->data, ungroup->n_data, &bytes);
	ungroup->damaged = !chunks;
	return bytes ? ungroup->writer(ungroup->user, chunks, bytes) : 0;
}

static void keep(struct ungroup *ungroup, const uint8_t *data, size_t bytes)
{
	if (bytes > ungroup->room - ungroup->n_data) {
		size_t room = 2 * (ungroup->n_data + bytes);
		uint8_t *more = memory_new(room, 1);

		if (ungroup->n_data)
			memcpy(more, ungroup->data, ungroup->n_data);
		free(ungroup->data);
		ungroup->data = more;
		ungroup->room = room;
	}
	memcpy(ungroup->data + ungroup->n_data, data, bytes);
	ungroup->n_data += bytes;
}

/* Takes some of the bytes into the header or group that has begun. Returns how many. */
static size_t gather(struct ungroup *ungroup, const uint8_t *data, size_t bytes, int *error)
{
	size_t want = needed(ungroup), n = want - ungroup->n_data;

	ungroup->damaged = !want;
	if (!want)
		return 0;
	if (n > bytes)
		n = bytes;
	keep(ungroup, data, n);
	/* Its first bytes tell how many more there are. */
	if (ungroup->n_data == needed(ungroup)) {
		*error = put_whole(ungroup);
		ungroup->n_data = 0;
	}
	return n;
}

int ungroup_put(struct ungroup *ungroup, const uint8_t *data, size_t bytes)
{
	int error = 0;

	while (bytes && !error && !ungroup->damaged) {
		size_t n;

		if (ungroup->plain_left) {
			n = bytes < ungroup->plain_left ? bytes : (size_t)ungroup->plain_left;
			error = ungroup->writer(ungroup->user, data, n);
			ungroup->plain_left -= n;
		} else {
			n = gather(ungroup, data, bytes, &error);
		}
		data += n;
		bytes -= n;
	}
	return error;
}

bool ungroup_is_whole(const struct ungroup *ungroup)
{
	return !ungroup->damaged && !ungroup->n_data && !ungroup->plain_left;
}

void ungroup_release(struct ungroup *ungroup)
{
	columns_free(ungroup->columns);
	free(ungroup->data);
	*ungroup = (struct ungroup){0};
}

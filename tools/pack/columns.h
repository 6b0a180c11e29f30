/*
 * Chunks in columns: all numbers of one field together, which zstd then packs to half of what it
 * makes of whole records, because times, which hardly repeat, no longer lie between all that does.
 * A number of chunks make a group; from a group its chunks come back byte by byte. A chunk that the
 * schema does not describe to the last byte stays as it is, damage included.
 *
 * A group, in the writer's byte order: its length after this word, and how many chunks; for each
 * its bytes in the file, and whether it is split (u32 each); then the columns that are not empty,
 * up to the end: number (u32), bytes (u32), content. Column 0 has the headers of split chunks, and
 * the whole of others; column 1 the numbers of records; column 2 + 32 * record + field has that
 * field.
 */
#ifndef VRAMTRACE_PACK_COLUMNS_H
#define VRAMTRACE_PACK_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Chunks of a group; a file that is cut short loses the group that it ends in. Traces with fewer
 * chunks than COLUMNS_LEAST_CHUNKS stay as they are. */
#define COLUMNS_GROUP_CHUNKS 64u
#define COLUMNS_LEAST_CHUNKS 16u

struct columns;

/* For traces with this schema text. chunk_bytes: of each. To be freed with columns_free. */
struct columns *columns_new(const char *schema, size_t bytes, uint32_t chunk_bytes);
void columns_free(struct columns *columns);

/* Adds a chunk of at most chunk_bytes to the group. */
void columns_add(struct columns *columns, const uint8_t *chunk, size_t bytes);

/* The group that was gathered, with its length in *bytes; the next one begins. Valid until the next
 * call. NULL: it has no chunks. */
const uint8_t *columns_group(struct columns *columns, size_t *bytes);

/* Bytes of the group that begins with these: the length and this word; 0: of none. */
size_t columns_group_bytes(const struct columns *columns, const uint8_t head[4]);

/* The chunks of a whole group, as they were, with their length in *bytes. Valid until the next
 * call. NULL: it is damaged. */
const uint8_t *columns_join(
	struct columns *columns, const uint8_t *group, size_t group_bytes, size_t *bytes);

#endif

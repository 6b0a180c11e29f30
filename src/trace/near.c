#include "trace/near.h"

#include <string.h>
#include <sys/mman.h>

#include "trace/writer_internal.h"

/* Places are looked up by address: two that share a pair keep apart, a third displaces the older.
 * 16 KiB, of which a loop touches what it uses. */
#define N_PAIRS (VT_NEAR_N_PLACES / 2)

/* Enough for the longest of the short records; what might not fit is written in full. */
#define ROOM_BYTES 64u

struct place {
	uint64_t address;
	uint32_t n_grains;
	uint32_t number;
};

struct vt_near {
	uint64_t allocator_id; /* of the last block in the chunk */
	uint32_t n_chunks;     /* of the lane, when that was written */
	uint32_t first;	       /* number of the first place of the chunk */
	uint32_t next;	       /* number of the next place */
	struct place pairs[N_PAIRS][2];
};

static struct vt_near *near_of(struct vt_lane *lane)
{
	void *memory;

	if (lane->near)
		return lane->near;
	memory = mmap(NULL, sizeof(struct vt_near), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory != MAP_FAILED)
		lane->near = memory;
	return lane->near;
}

/* After a record in full: short ones may follow it in its chunk. */
static void note_full(struct vt_lane *lane, uint64_t allocator_id)
{
	struct vt_near *near = near_of(lane);

	if (!near)
		return;
	if (near->n_chunks != lane->n_chunks)
		near->first = near->next;
	near->n_chunks = lane->n_chunks;
	near->allocator_id = allocator_id;
}

/* Whether the block can be told in short right after what the lane has written. */
static inline bool is_short(const struct vt_lane *lane, uint64_t time_ns, uint64_t allocator_id,
	uint64_t address, uint64_t bytes)
{
	const struct vt_near *near = lane->near;

	return near && near->n_chunks == lane->n_chunks && near->allocator_id == allocator_id &&
	       (size_t)(lane->end - lane->at) >= ROOM_BYTES && time_ns >= lane->delta.time_ns &&
	       address && bytes && !((address | bytes) % VT_NEAR_GRAIN_BYTES) &&
	       bytes / VT_NEAR_GRAIN_BYTES <= UINT32_MAX;
}

/* Where the address is, or is to be. */
static struct place *place_of(struct vt_near *near, uint64_t address)
{
	uint64_t hash = address / VT_NEAR_GRAIN_BYTES * 0x9e3779b97f4a7c15u;
	struct place *pair = near->pairs[(hash >> 40) % N_PAIRS];

	if (pair[0].address == address)
		return &pair[0];
	if (pair[1].address == address)
		return &pair[1];
	return near->next - pair[0].number < near->next - pair[1].number ? &pair[1] : &pair[0];
}

/* Whether the place holds address, named in this chunk and still remembered. */
static bool is_near(const struct vt_near *near, const struct place *place, uint64_t address)
{
	uint32_t ago = near->next - place->number;

	return place->address == address && ago <= VT_NEAR_N_PLACES &&
	       ago <= near->next - near->first;
}

static void name(struct vt_near *near, struct place *place, uint64_t address, uint32_t n_grains)
{
	*place = (struct place){address, n_grains, near->next};
	/* Numbers of long ago must not come again. */
	if (++near->next == UINT32_MAX) {
		memset(near->pairs, 0, sizeof(near->pairs));
		near->next = near->first = 0;
		near->n_chunks = 0;
	}
}

static int64_t grains_to(const struct vt_lane *lane, uint64_t address)
{
	return (int64_t)(address / VT_NEAR_GRAIN_BYTES - lane->delta.address / VT_NEAR_GRAIN_BYTES);
}

static int put_alloc(struct vt_lane *lane, const struct vt_rec_block_alloc *record)
{
	uint64_t later_ns = record->time_ns - lane->delta.time_ns;
	uint32_t n_grains = (uint32_t)(record->bytes / VT_NEAR_GRAIN_BYTES);
	struct vt_near *near = lane->near;
	struct place *place;
	int error;

	if (record->allocated_jump || record->reserved_jump ||
		!is_short(lane, record->time_ns, record->allocator_id, record->address,
			record->bytes)) {
		error = writer_put_block_alloc(lane, record);
		note_full(lane, record->allocator_id);
		return error;
	}
	place = place_of(near, record->address);
	if (is_near(near, place, record->address)) {
		bool same = place->n_grains == n_grains;

		error = writer_put_block_alloc_near(lane,
			&(struct vt_rec_block_alloc_near){later_ns, near->next - place->number - 1,
				same ? 0 : n_grains, record->stack_id});
		if (!same)
			name(near, place, record->address, n_grains);
	} else {
		error = writer_put_block_alloc_at(lane,
			&(struct vt_rec_block_alloc_at){later_ns, grains_to(lane, record->address),
				n_grains, record->stack_id});
		name(near, place, record->address, n_grains);
	}
	lane->delta = (struct vt_delta){record->time_ns, record->address};
	return error;
}

static int put_free(struct vt_lane *lane, const struct vt_rec_block_free *record)
{
	uint64_t later_ns = record->time_ns - lane->delta.time_ns;
	uint32_t n_grains = (uint32_t)(record->bytes / VT_NEAR_GRAIN_BYTES);
	struct vt_near *near = lane->near;
	struct place *place;
	int error;

	if (record->allocated_jump || record->reserved_jump ||
		!is_short(lane, record->time_ns, record->allocator_id, record->address,
			record->bytes)) {
		error = writer_put_block_free(lane, record);
		note_full(lane, record->allocator_id);
		return error;
	}
	place = place_of(near, record->address);
	if (is_near(near, place, record->address) && place->n_grains == n_grains) {
		error = writer_put_block_free_near(lane,
			&(struct vt_rec_block_free_near){later_ns, near->next - place->number - 1});
	} else {
		error = writer_put_block_free_at(
			lane, &(struct vt_rec_block_free_at){
				      later_ns, grains_to(lane, record->address), n_grains});
		name(near, place, record->address, n_grains);
	}
	lane->delta = (struct vt_delta){record->time_ns, record->address};
	return error;
}

/* Of a bounded trace another thread may end the lane's chunk at any moment but these. */
int vt_near_put_alloc(struct vt_lane *lane, const struct vt_rec_block_alloc *record)
{
	int error;

	if (!writer_is_kept(lane))
		return put_alloc(lane, record);
	error = writer_begin_keeping(lane);
	if (error)
		return error;
	error = put_alloc(lane, record);
	writer_end_keeping(lane, VT_REC_block_alloc, record);
	return error;
}

int vt_near_put_free(struct vt_lane *lane, const struct vt_rec_block_free *record)
{
	int error;

	if (!writer_is_kept(lane))
		return put_free(lane, record);
	error = writer_begin_keeping(lane);
	if (error)
		return error;
	error = put_free(lane, record);
	writer_end_keeping(lane, VT_REC_block_free, record);
	return error;
}

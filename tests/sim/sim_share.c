/* Memory shared with others: tokens that name it, addresses of our own for it. */
#include "sim.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAGIC 0x637573696d746b31ull

struct sim_token sim_token_of(int what, const struct sim_device *dev, u64 base, u64 bytes, u64 id)
{
	return (struct sim_token){MAGIC, what, getpid(), dev->ordinal, base, bytes, id};
}

bool sim_token_valid(const struct sim_token *token, int what)
{
	return token->magic == MAGIC && token->what == what;
}

bool sim_token_mine(const struct sim_token *token)
{
	return token->pid == getpid();
}

int sim_token_write(const struct sim_token *token)
{
	int fd = memfd_create("simulated cuda", MFD_CLOEXEC);

	if (fd >= 0 && pwrite(fd, token, sizeof(*token), 0) != sizeof(*token)) {
		close(fd);
		return -1;
	}
	return fd;
}

bool sim_token_read(int fd, int what, struct sim_token *token)
{
	return pread(fd, token, sizeof(*token), 0) == sizeof(*token) &&
	       sim_token_valid(token, what);
}

struct sim_external *sim_external_new(u64 bytes)
{
	struct sim_external *external = calloc(1, sizeof(*external));

	if (!external)
		return NULL;
	*external = (struct sim_external){.bytes = bytes, .n_refs = 1};
	external->host = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (external->host == MAP_FAILED) {
		free(external);
		return NULL;
	}
	return external;
}

void sim_external_drop(struct sim_external *external)
{
	if (--external->n_refs > 0)
		return;
	munmap(external->host, external->bytes);
	free(external);
}

static void end_external(struct sim_range *range)
{
	sim_external_drop(range->object);
}

/* Shared memory under addresses of its own, of which nothing is said yet. */
static CUresult share_new(struct sim_range like, struct sim_range **out)
{
	u32 n = sim_n_pages(like.bytes);
	u64 address = 0;

	if (like.bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (like.bytes <= like.arena->n_pages * SIM_PAGE_BYTES)
		address = sim_address_take(like.arena, n, SIM_PAGE_BYTES);
	if (!address)
		return CUDA_ERROR_MAP_FAILED;
	*out = sim_range_new(CUSIM_SHARED, like.dev, like.ctx, address, like.bytes);
	if (!*out) {
		sim_address_give(like.arena, address, n);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	(*out)->share = like.share;
	(*out)->arena = like.arena;
	(*out)->n_addresses = n;
	return CUDA_SUCCESS;
}

bool sim_share_is_told(const struct sim_range *range)
{
	return range->kind == CUSIM_SHARED &&
	       (range->share == SIM_SHARE_EXTERNAL || range->share == SIM_SHARE_GRAPHICS);
}

static CUresult share_piece(
	struct sim_range like, const struct sim_piece *piece, struct sim_range **out)
{
	struct sim_external *external = piece->external;
	CUresult result;

	if (piece->offset > external->bytes || piece->bytes > external->bytes - piece->offset)
		return CUDA_ERROR_INVALID_VALUE;
	like.arena = piece->arena;
	like.bytes = piece->bytes;
	result = share_new(like, out);
	if (result != CUDA_SUCCESS)
		return result;
	if (sim_share_is_told(*out))
		sim.ledger.devices[like.dev->ordinal].shared_told_bytes += like.bytes;
	external->n_refs++;
	(*out)->host = external->host + piece->offset;
	(*out)->object = external;
	(*out)->end = end_external;
	return CUDA_SUCCESS;
}

CUresult sim_share_external(
	CUcontext ctx, enum sim_share share, const struct sim_piece *piece, struct sim_range **out)
{
	return share_piece(
		(struct sim_range){.dev = ctx->dev, .ctx = ctx, .share = share}, piece, out);
}

CUresult sim_share_token(CUcontext ctx, struct sim_device *dev, enum sim_share share,
	const struct sim_token *token, struct sim_range **out)
{
	struct sim_range like = {
		.dev = dev, .ctx = ctx, .share = share, .bytes = token->bytes, .arena = &sim.arena};
	struct sim_piece piece = {.bytes = token->bytes, .arena = &sim.arena};
	CUresult result;

	if (sim_token_mine(token)) {
		struct sim_range *range = sim_index_get(&sim.ranges, token->base);

		if (!range || range->id != token->id)
			return CUDA_ERROR_INVALID_VALUE;
		result = share_new(like, out);
		if (result == CUDA_SUCCESS) {
			(*out)->target = token->base;
			(*out)->target_id = token->id;
		}
		return result;
	}
	piece.external = sim_external_new(token->bytes);
	if (!piece.external)
		return CUDA_ERROR_MAP_FAILED;
	result = share_piece(like, &piece, out);
	sim_external_drop(piece.external);
	return result;
}

bool sim_alias_valid(const struct sim_range *range)
{
	const struct sim_range *target;

	if (!range->target)
		return true;
	target = sim_index_get(&sim.ranges, range->target);
	return target && target->id == range->target_id;
}

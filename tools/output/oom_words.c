/* Why memory was refused, and what would have been enough, in words. */
#include <inttypes.h>
#include <string.h>

#include "output/fragmentation_text.h"
#include "output/line.h"
#include "output/oom_text.h"

#define MAX_LABEL 200u

static void put_label(FILE *out, const struct stack_source *source, uint64_t stack_id)
{
	char label[MAX_LABEL];

	stack_label(source, stack_id, label, sizeof(label));
	format_put_text(out, (struct vt_text){label, strlen(label)});
}

const char *oom_call_name(const struct model *model, const struct oom *oom)
{
	const struct episode *episode = &oom->episode;
	const char *name = episode->n_calls
				   ? model_call_name(model, episode->api_id, episode->caller_api)
				   : "the allocator itself";

	return name ? name : "a call";
}

const char *oom_action_name(enum oom_action action)
{
	static const char *const names[] = {
		[OOM_RELEASE_CACHE] = "release_cache",
		[OOM_RETRY] = "retry",
		[OOM_TRIM_POOL] = "trim_pool",
		[OOM_TRIM_GRAPHS] = "trim_graphs",
		[OOM_WAIT_FOR_STREAMS] = "wait_for_streams",
		[OOM_MOVE_PINNING] = "move_pinning_blocks",
		[OOM_END_OTHERS] = "end_other_processes",
		[OOM_RAISE_LIMIT] = "raise_limit",
		[OOM_FREE_SITE] = "free_live_blocks",
		[OOM_RELEASE_ADDRESSES] = "release_addresses",
	};

	return names[action];
}

/* The level that has most of what its member at `offset` says; NULL: none has any. */
static const struct fragmentation_row *level_with_most(const struct oom *oom, size_t offset)
{
	const struct fragmentation_row *best = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < oom->levels.n_rows; i++) {
		const struct fragmentation_row *row = &oom->levels.rows[i];
		uint64_t bytes;

		memcpy(&bytes, (const char *)row + offset, sizeof(bytes));
		if (bytes > most) {
			most = bytes;
			best = row;
		}
	}
	return best;
}

#define LEVEL_WITH_MOST(oom, member)                                                               \
	level_with_most(oom, offsetof(struct fragmentation_row, member))

static void put_level(FILE *out, const struct fragmentation_row *row)
{
	if (row->level == FRAGMENTATION_POOL && !row->graphs) {
		fputs("a pool", out);
		if (row->pool)
			fprintf(out, " (0x%" PRIx64 ")", row->pool);
	} else if (row->level == FRAGMENTATION_POOL) {
		fputs("memory for graphs", out);
	} else {
		if (row->layer == VT_LAYER_TORCH)
			fputs("PyTorch", out);
		else
			fragmentation_put_name(out, row);
	}
}

static void put_others(FILE *out, const struct oom *oom)
{
	const struct model_listed *listed = &oom->listed;

	if (!listed->seen) {
		fprintf(out, "other processes hold %s", format_bytes(oom->others_bytes).text);
		return;
	}
	fprintf(out, "%s other %s %s", format_count(listed->n_processes).text,
		line_plural(listed->n_processes, "process holds", "processes hold"),
		format_bytes(listed->used_bytes).text);
	if (listed->n_processes > 1)
		fprintf(out, ", most of it process %" PRIu64 " with %s", listed->largest_pid,
			format_bytes(listed->largest_bytes).text);
	else
		fprintf(out, ", process %" PRIu64, listed->largest_pid);
}

static void put_limit(FILE *out, const struct oom *oom)
{
	if (oom->limit_bytes)
		fprintf(out, "the pool was made for at most %s",
			format_bytes(oom->limit_bytes).text);
	else
		fputs("the allocator refused by itself, without asking the driver: a memory "
		      "fraction or another cap of its own is set",
			out);
	if (oom->free_known)
		fprintf(out, "; the device had %s free", format_bytes(oom->free_bytes).text);
}

static void put_pieces(FILE *out, const struct stack_source *source, const struct oom *oom)
{
	const struct fragmentation_row *row = LEVEL_WITH_MOST(oom, pinned_bytes);
	uint64_t asked = oom->episode.reported ? oom->episode.report_bytes : oom->episode.bytes;

	if (!row)
		row = LEVEL_WITH_MOST(oom, idle_bytes);
	if (!row)
		return;
	if (row->level == FRAGMENTATION_DRIVER) {
		fprintf(out, "%s is free in pages that small allocations share",
			format_bytes(row->idle_bytes).text);
	} else {
		put_level(out, row);
		fprintf(out, " has %s reserved and idle", format_bytes(row->idle_bytes).text);
		if (row->holes_known)
			fprintf(out, ", the largest piece %s%s",
				format_bytes(row->largest_free_bytes).text,
				row->largest_free_bytes >= asked
					? " (which is for another stream or pool)"
					: "");
		else
			fputs(", in pieces", out);
	}
	if (row->n_pinners) {
		fprintf(out, "; pinned by %s live, most of it from ",
			format_bytes(row->pinning_bytes).text);
		put_label(out, source, row->pinners[0].stack_id);
	}
}

void oom_groups_make(
	struct site_groups *groups, const struct stack_source *source, const struct oom *oom)
{
	int device = oom->episode.want == EPISODE_ADDRESS_SPACE ? MODEL_DEVICE_UNKNOWN
								: oom->episode.device;

	site_groups_make(groups, &oom->holders, device, source);
}

static void put_full(FILE *out, const struct stack_source *source, const struct oom *oom)
{
	struct site_groups groups;

	fputs("what is live leaves too little room", out);
	oom_groups_make(&groups, source, oom);
	for (size_t i = 0; i < groups.n_items; i++) {
		const struct site_group *group = &groups.items[i];

		if (group->level == SITE_IDLE)
			continue;
		fprintf(out, ", most of it %s from ", format_bytes(group->bytes).text);
		format_put_text(out, (struct vt_text){group->label, strlen(group->label)});
		if (group->grows)
			fputs(", which asks for a little more each time", out);
		break;
	}
	site_groups_release(&groups);
}

static void put_unexplained(FILE *out, const struct oom *oom)
{
	const struct episode *episode = &oom->episode;

	if (episode->want == EPISODE_HOST && !oom->is_past)
		fprintf(out, "the host refused page-locked memory, with %s page-locked already",
			format_bytes(oom->host_kinds[VT_KIND_PINNED].live_bytes +
				     oom->host_kinds[VT_KIND_REGISTERED].live_bytes)
				.text);
	else if (oom->is_past)
		fputs("what the memory was like then is no longer in the trace "
		      "(VRAMTRACE_MAX_SIZE)",
			out);
	else if (!oom->free_known)
		fputs("how much was free is not known", out);
	else if (oom->free_bytes >= oom->need_bytes)
		fprintf(out,
			"the driver refused with %s free, and nothing that was recorded says why",
			format_bytes(oom->free_bytes).text);
	else
		fprintf(out,
			"%s is in use that no recorded call and no process that is known accounts "
			"for",
			format_signed_bytes(oom->account.unexplained_bytes).text);
}

static void put_pending(FILE *out, const struct oom *oom)
{
	const struct fragmentation_row *row = LEVEL_WITH_MOST(oom, pending_bytes);

	if (oom->n_remedies && oom->remedies[0].action == OOM_RETRY) {
		fprintf(out,
			"%s in one piece came free while the call was refused, and was not "
			"looked at again: the same request would have succeeded next",
			format_bytes(oom->remedies[0].bytes).text);
		return;
	}
	if (!row)
		return;
	fprintf(out, "%s was freed to ", format_bytes(row->pending_bytes).text);
	put_level(out, row);
	fputs(" and still waits for work on a stream", out);
}

void oom_put_reason(FILE *out, const struct stack_source *source, const struct oom *oom)
{
	const struct fragmentation_row *row;

	switch (oom->class) {
	case OOM_IMPOSSIBLE:
		fprintf(out, "the request is larger than the whole device of %s",
			format_bytes(oom->total_bytes).text);
		break;
	case OOM_ADDRESS_SPACE:
		fprintf(out, "address space ran out, not memory: %s is reserved, %s of it mapped",
			format_bytes(oom->reserved_address_bytes).text,
			format_bytes(oom->mapped_bytes).text);
		break;
	case OOM_LIMIT:
		put_limit(out, oom);
		break;
	case OOM_OTHER_PROCESS:
		put_others(out, oom);
		break;
	case OOM_OTHER_ALLOCATOR:
		row = LEVEL_WITH_MOST(oom, returnable_bytes);
		if (!row)
			break;
		put_level(out, row);
		fprintf(out, " holds %s in this process and does not use it",
			format_bytes(row->returnable_bytes).text);
		break;
	case OOM_PENDING:
		put_pending(out, oom);
		break;
	case OOM_FRAGMENTATION:
		put_pieces(out, source, oom);
		break;
	case OOM_EXHAUSTED:
		put_full(out, source, oom);
		break;
	case OOM_UNEXPLAINED:
		put_unexplained(out, oom);
		break;
	}
}

void oom_put_remedy(FILE *out, const struct stack_source *source, const struct oom *oom,
	const struct oom_remedy *remedy)
{
	struct format_text bytes = format_bytes(remedy->bytes);

	switch (remedy->action) {
	case OOM_RELEASE_CACHE:
		fprintf(out, "release the cache of PyTorch (torch.cuda.empty_cache()): %s",
			bytes.text);
		break;
	case OOM_RETRY:
		fprintf(out, "ask again: %s in one piece came free while the call was refused",
			bytes.text);
		break;
	case OOM_TRIM_POOL:
		fprintf(out, "trim the pool (cudaMemPoolTrimTo): up to %s", bytes.text);
		break;
	case OOM_TRIM_GRAPHS:
		fprintf(out, "trim the memory for graphs (cudaDeviceGraphMemTrim): up to %s",
			bytes.text);
		break;
	case OOM_WAIT_FOR_STREAMS:
		fprintf(out, "wait for the streams that hold what was freed: up to %s", bytes.text);
		break;
	case OOM_MOVE_PINNING:
		fprintf(out, "%s, were it not for what pins it, first of all ", bytes.text);
		put_label(out, source, remedy->stack_id);
		break;
	case OOM_END_OTHERS:
		fprintf(out, "end other processes on this GPU: ");
		put_others(out, oom);
		break;
	case OOM_RAISE_LIMIT:
		fprintf(out, "raise the limit by at least %s", bytes.text);
		break;
	case OOM_FREE_SITE:
		fprintf(out, "free the %s from ", bytes.text);
		put_label(out, source, remedy->stack_id);
		break;
	case OOM_RELEASE_ADDRESSES:
		fprintf(out, "give back address space that nothing is mapped to: %s", bytes.text);
		break;
	}
}

/* What the files of the snapshot share. */
#ifndef VRAMTRACE_ANALYSIS_EXPORT_SNAPSHOT_PARTS_H
#define VRAMTRACE_ANALYSIS_EXPORT_SNAPSHOT_PARTS_H

#include "analysis/export_snapshot.h"

/* Memory with an address that is there now. */
struct range {
	struct tree_node node; /* key: address */
	uint64_t bytes;
	uint64_t number; /* of the model's block or mapping */
	int64_t stream;
	uint32_t kind;
	bool direct; /* no allocator's: one piece fills it */
	bool mapped; /* a part of an allocator's segment that grows */
	bool captured;
	uint64_t reservation; /* address of the one it is mapped into */
	uint64_t stack_id;
};

struct piece {
	struct tree_node node; /* key: address */
	uint64_t bytes;
	bool pending;
	uint64_t stack_id;
};

/* What became of a block or mapping of the model that is an allocator's. */
struct fate {
	uint64_t number;
	int64_t stream;
	bool captured;
};

/* The fate of a block or mapping, NULL: no allocator's. */
const struct fate *fate_find(const struct snapshot_fates *fates, uint64_t number);

/* Segments and blocks from the ranges and the pieces in them. */
void snapshot_lay_out(
	struct snapshot_layout *layout, const struct tree *ranges, const struct tree *pieces);

#endif

#!/bin/sh
# What a program tells of its own allocator through vramtrace.h: blocks by their stacks inside the piece that CUDA gave, and no byte
# twice. Without the recorder the calls do nothing.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

"$examples/arena-shared" >plain.out || fail "the example fails without the recorder"
for how in shared static; do
	traced VRAMTRACE_QUIET=1 VRAMTRACE_OUTPUT=$how.vt "$examples/arena-$how" >$how.out
	cmp plain.out $how.out
	"$vramtrace" report --json $how.vt >$how.report
	python3 - $how.report <<-'END'
		import json, sys
		d = json.load(open(sys.argv[1]))
		MIB = 1 << 20
		arena, = d["allocators"]
		got = {k: arena[k] for k in ("name", "allocated_bytes", "reserved_bytes", "peak_allocated_bytes", "blocks", "segments",
		                             "allocations", "frees", "outside_bytes", "self_check")}
		want = {"name": "arena", "allocated_bytes": 29 * MIB, "reserved_bytes": 64 * MIB,
		        "peak_allocated_bytes": 24 * MIB + 9 * MIB // 2 + 6 * MIB, "blocks": 11, "segments": 1, "allocations": 21,
		        "frees": 10, "outside_bytes": 0, "self_check": None}
		assert got == want, got
		leaks = sorted((r["level"], r["bytes"], r["count"], r["allocator"]) for r in d["leaks"])
		stacks = all(r["stack"] is None for r in d["leaks"])
		blocks = [(b, c) for level, b, c, _ in leaks if level == "block"]
		assert sum(b for b, _ in blocks) == 29 * MIB and sum(c for _, c in blocks) == 11, leaks
		assert stacks or len(blocks) == 2, leaks
		assert leaks[-1] == ("idle", 35 * MIB, 1, "arena"), leaks
		assert sum(r["bytes"] for r in d["leaks"]) == 64 * MIB, leaks
		assert sum(r["bytes"] for r in d["peak_sites"]) == 64 * MIB
		assert d["torch"] is None and d["devices"][0]["end"]["tracked_bytes"] == 64 * MIB
	END
done

cat >many.c <<'END'
#include <cuda.h>
#include <stdio.h>
#include <vramtrace/vramtrace.h>

/* More pools than are kept apart, a name that is too long, arguments that say nothing, and blocks before there is a trace. */
int main(void)
{
	char name[300];
	CUcontext context;
	CUdeviceptr base;

	vt_block_alloc("early", name, 1);
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuMemAlloc_v2(&base, 1 << 20))
		return 1;
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "pool %d", i);
		vt_block_alloc(name, (void *)(base + 1024 * i), 512);
	}
	vt_block_alloc(NULL, (void *)base, 512);
	vt_block_alloc("pool 1", NULL, 512);
	vt_block_alloc("pool 1", (void *)(base + (900 << 10)), 0);
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%070d%d", 0, i);
		vt_block_alloc(name, (void *)(base + (800 << 10) + 1024 * i), 512);
		vt_block_free(name, (void *)(base + (800 << 10) + 1024 * i), 0);
	}
	vt_block_free("pool 2", (void *)(base + 2048), 0);
	vt_block_free("pool 3", (void *)base, 512);
	return 0;
}
END
sanitize=
case $MODE in
asan) sanitize=-fsanitize=address,undefined ;;
tsan) sanitize=-fsanitize=thread ;;
cov) sanitize=--coverage ;;
esac
# shellcheck disable=SC2086 # words
${CC:-cc} $sanitize -g -fPIC -Wall -Wextra -Werror -I"$SOURCE_DIR/include" $CUDA_FLAGS many.c -o many -L"$BUILD_DIR/sim" -lcuda
traced VRAMTRACE_QUIET=1 VRAMTRACE_OUTPUT=many.vt ./many
"$vramtrace" report --json many.vt >many.report
python3 - many.report <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
pools = {p["name"]: p for p in d["allocators"]}
assert len(pools) == 256 and "early" not in pools, len(pools)
assert pools["pool 1"]["blocks"] == 1 and pools["pool 2"]["blocks"] == 0 and pools["pool 2"]["unknown_frees"] == 0
assert pools["pool 3"]["unknown_frees"] == 1 and pools["pool 3"]["blocks"] == 1
more = pools["(more pools)"]
assert more["allocations"] == 300 - 255 + 2 and more["frees"] == 2, more
# The first pool has the memory, the others' blocks lie in it.
assert pools["pool 0"]["outside_bytes"] == 0 and pools["pool 1"]["outside_bytes"] == 512
assert any("more pools" in n for n in d["coverage"]["notes"]), d["coverage"]["notes"]
assert sum(r["bytes"] for r in d["leaks"]) == 1 << 20
END

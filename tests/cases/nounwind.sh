#!/bin/sh
# Without libunwind there are no stacks, the report says so, and nothing else is different.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

if [ "$MODE" = tsan ]; then
	echo "needs stacks, and libunwind does not get on with TSan"
	exit 77
fi

# An empty file of that name, found first, keeps the loader from going on to the real one.
mkdir hidden
: >hidden/libunwind.so.8

record() { # NAME [VARIABLE=VALUE...]
	name=$1
	shift
	traced VRAMTRACE_OUTPUT="$name.vt" "$@" "$programs/random_calls-driver" --calls 5000 --threads 1 >"$name.out" 2>"$name.err" ||
		fail "$name: exit status $?: $(cat "$name.err")"
	has_lines "$name.err" 1
	"$vramtrace" report --json "$name.vt" >"$name.json"
	"$vramtrace" report "$name.vt" >"$name.text"
	json "$name.json" '[(k, {n: v for n, v in t.items()}) for x in d["devices"] for k, t in x["kinds"].items()]' >"$name.kinds"
	json "$name.json" '[sum(e["count"] for e in d[k]) for k in ("leaks", "failures", "failed_frees")]' >>"$name.kinds"
	json "$name.json" 'sum(len(e["stack"] or []) for k in ("leaks", "peak_sites", "transfers") for e in d[k])' >"$name.frames"
	json "$name.json" 'd["coverage"]["notes"]' >"$name.notes"
}

record with
record without LD_LIBRARY_PATH="$PWD/hidden:$LD_LIBRARY_PATH"
record none VRAMTRACE_STACK=none

cmp with.out without.out
cmp with.kinds without.kinds
cmp with.kinds none.kinds
[ "$(cat with.frames)" -gt 100 ] || fail "there should be stacks: $(cat with.frames)"
[ "$(cat without.frames)$(cat none.frames)" = 00 ] || fail "there should be no stacks: $(cat without.frames none.frames)"
[ "$(cat with.notes)" = '[]' ] || fail "notes: $(cat with.notes)"
grep -q 'libunwind' without.notes || fail "the report's JSON does not say why there are no stacks: $(cat without.notes)"
grep -q 'VRAMTRACE_STACK' none.notes || fail "the report's JSON does not say why there are no stacks: $(cat none.notes)"
grep -q 'libunwind' without.text || fail "the report does not say why there are no stacks"
if grep -q 'libunwind' with.text; then fail "the report complains of libunwind"; fi

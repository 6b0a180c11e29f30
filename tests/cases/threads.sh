#!/bin/sh
# Threads that live shortly share the places they write to; threads that outlive the end harm nothing.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

traced VRAMTRACE_OUTPUT=short.vt "$programs/threads_exit" short 2000 2>err || fail "exit status $?: $(cat err)"
has_lines err 1
"$vramtrace" dump --json short.vt >dump.json
python3 - dump.json <<'END'
import collections, json, sys
allocs, frees, threads = collections.Counter(), collections.Counter(), 0
for line in open(sys.argv[1]):
    record = json.loads(line)
    if record["record"] == "alloc":
        allocs[record["tid"]] += 1
    elif record["record"] == "free":
        frees[record["tid"]] += 1
    threads += record["record"] == "thread"
assert sum(allocs.values()) == sum(frees.values()) == 2000, (sum(allocs.values()), sum(frees.values()))
assert allocs == frees and max(allocs.values()) == 1, "two threads were taken for one"
assert threads == 2001, threads
END
size=$(stat -c %s short.vt)
# Two chunks for each thread that is there at one time would be 1.1 MB; a chunk for each thread would be 131 MB.
[ "$size" -lt 3000000 ] || fail "2000 threads took $size bytes"

runs=30
case $MODE in
asan | tsan) runs=10 ;;
esac
for i in $(seq $runs); do
	traced VRAMTRACE_OUTPUT=out.vt "$programs/threads_exit" outlive >out 2>err || fail "run $i: exit status $?: $(cat err)"
	[ ! -s out ] && [ "$(grep -vc '^vramtrace: ' err)" -eq 0 ] || fail "run $i: $(cat out err)"
	"$vramtrace" report --json out.vt >report.json 2>err || fail "run $i: $(cat err)"
	[ "$(json report.json '[d["traces"][0]["end"], d["traces"][0]["end_status"], sum(d["traces"][0]["damage"].values())]')" = \
		"['exit', 0, 0]" ] || fail "run $i: $(head -c 1500 report.json)"
	rm out.vt
done
echo "2000 threads in $size bytes"

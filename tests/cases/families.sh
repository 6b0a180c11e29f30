#!/bin/sh
# The random program over all families of the API: every call ends as it must, the bytes are right, and the simulated driver's
# ledger adds up; the same under the recorder.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

calls=60000
case $MODE in
asan | tsan | cov) calls=12000 ;;
esac

adds_up='all(d["total_bytes"] == d["other_bytes"] + d["page_bytes"] + d["free_bytes"] and
	d["page_bytes"] == sum(d["pages"].values()) + sum(d["untracked"].values()) and
	all(d[kind]["allocations"] for kind in ("array", "graph", "shared", "vmm", "pool")) for d in d["devices"])'

for route in runtime-shared runtime-static driver dlsym; do
	for preload in '' "$recorder"; do
		name=$route${preload:+-recorded}
		env ${preload:+LD_PRELOAD="$preload" VRAMTRACE_OUTPUT="$name.vt"} CUSIM_DEVICES=2 CUSIM_OTHER=100M \
			CUSIM_LEDGER="$name.json" "$programs/random_calls-$route" --families all --calls $calls --threads 8 \
			--devices 2 --seed 7 >"$name.out" 2>"$name.err" || fail "$name: exit status $?: $(cat "$name.err")"
		[ "$(json "$name.json" "$adds_up")" = True ] || fail "$name: the ledger does not add up: $(cat "$name.json")"
	done
done

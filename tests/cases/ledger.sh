#!/bin/sh
# A random program through every route: what the trace says equals what the simulated driver counted, to the byte.
#
# Peaks too: random_calls reaches its peaks while nobody frees (see there), so that they do not depend on the order of
# concurrent calls, which nobody outside the driver can know.
set -eu
: "${VRAMTRACE_STACK:=}"
. "$SOURCE_DIR/tests/cases/lib/case.sh"

calls=100000
case $MODE in
asan | tsan | cov) calls=8000 ;;
esac

check() { # NAME ROUTE THREADS DEVICES SEED [VARIABLE=VALUE...]
	name=$1 route=$2 threads=$3 devices=$4 seed=$5
	shift 5
	# ThreadSanitizer has nothing to find in a program of one thread, and sees the command in the other runs.
	[ "$MODE" != tsan ] || [ "$threads" -gt 1 ] || return 0
	traced CUSIM_DEVICES="$devices" CUSIM_LEDGER="$name.json" VRAMTRACE_OUTPUT="$name.vt" "$@" \
		"$programs/random_calls-$route" --calls $calls --threads "$threads" --devices "$devices" \
		--seed "$seed" >"$name.out" 2>"$name.err" || fail "$name: exit status $?: $(cat "$name.err")"
	has_lines "$name.err" 1
	"$vramtrace" report --json "$name.vt" >"$name.report"
	"$vramtrace" dump --json "$name.vt" >"$name.dump"
	# Call sites are known where stacks are.
	sites=$name.out
	case "$* $VRAMTRACE_STACK" in *none*) sites= ;; esac
	python3 "$SOURCE_DIR/tests/cases/lib/check_ledger.py" "$name.json" "$name.report" "$name.dump" ${sites:+"$sites"}
	rm "$name.dump"
}

for route in runtime-shared runtime-static driver dlsym; do
	check "$route" $route 8 2 1
done
check single driver 1 2 2
check plain runtime-shared 4 1 3 VRAMTRACE_STACK=none VRAMTRACE_MEMINFO=0

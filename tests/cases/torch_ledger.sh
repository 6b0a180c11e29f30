#!/bin/sh
# A random program over the simulated PyTorch allocator: what the trace says of its blocks, segments, sums and peaks equals the
# allocator's own ledger, to the byte; with every sort of setting, with threads, captures, refusals and events that take their time.
#
# At every step: a run that is stopped is the beginning of one that is not, and each is compared in the end.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"
export LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$BUILD_DIR/sim/torch/lib"

ops=20000 growth=2
case $MODE in
asan | tsan | cov) ops=4000 growth=3 ;;
esac

check() { # NAME "VARIABLE=VALUE ..." ARGUMENT...
	name=$1 variables=$2
	shift 2
	# ThreadSanitizer has nothing to find in a program of one thread, and sees the command in the other runs.
	case "$MODE $*" in
	*--threads*) ;;
	tsan*) return 0 ;;
	esac
	# shellcheck disable=SC2086 # words
	traced VRAMTRACE_QUIET=1 VRAMTRACE_OUTPUT="$name.vt" $variables "$programs/torch_random" "$name.json" "$@" \
		>"$name.out" 2>&1 || fail "$name: exit status $?: $(cat "$name.out")"
	[ ! -s "$name.out" ] || fail "$name: printed $(cat "$name.out")"
	"$vramtrace" report --json "$name.vt" >"$name.report"
	python3 "$SOURCE_DIR/tests/cases/lib/check_torch.py" "$name.json" "$name.report"
	rm "$name.report" "$name.vt"
}

expand=PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
split=PYTORCH_ALLOC_CONF=max_split_size_mb:32

check native '' --ops $ops
check expand $expand --ops $ops
check split "$split CUSIM_MEMORY=2G" --ops $ops --seed 2
check full CUSIM_MEMORY=1G --ops $ops --seed 3
check full-expand "$expand CUSIM_MEMORY=1G" --ops $ops --seed 3
check limit '' --ops $ops --limit 900
check capture '' --ops $ops --capture
check capture-expand $expand --ops $ops --capture
check threads CUSIM_DEVICES=2 --ops $((ops / 4)) --threads 8 --devices 2
check threads-expand "$expand CUSIM_DEVICES=2 CUSIM_MEMORY=3G" --ops $((ops / 4)) --threads 8 --devices 2
check no-stacks "VRAMTRACE_STACK=none VRAMTRACE_MEMINFO=0" --ops $ops
# Events that the same library records for others.
check noise '' --ops $ops --noise
# Other versions report under other names.
check names-1.13 C10SIM_NAMES=1.13 --ops $ops
check names-next C10SIM_NAMES=next --ops $ops
# The driver refuses now and then.
check faults CUSIM_FAIL=cuMemAlloc_v2:3:2,cuMemAlloc_v2:40:2,cuMemAlloc_v2:41:2 --ops $ops
check faults-expand "$expand CUSIM_FAIL=cuMemCreate:3:2,cuMemMap:40:2,cuMemCreate:101:2" --ops $ops

at=1
while [ $at -lt $ops ]; do
	check step-$at '' --ops $ops --seed 11 --stop $at
	check step-expand-$at $expand --ops $ops --seed 11 --stop $at
	at=$((growth * at + 1))
done

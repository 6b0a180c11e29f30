#!/bin/sh
# The random program over all families, with failures injected into some runs: what the trace says equals what the simulated
# driver counted, to the byte.
#
# At every step: with one thread and one seed, a run that is stopped is the beginning of one that is not. Runs stopped after
# 1, 2, 3, ... calls, with growing gaps, look at the ledgers on the way; each ends with its own comparison of all of them.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

calls=25000 seeds='1 2' gap=3
case $MODE in
asan | tsan | cov) calls=4000 seeds=1 gap=1 ;;
esac

stop=
check() { # NAME ROUTE THREADS DEVICES SEED CALLS HOW [VARIABLE=VALUE...]
	name=$1 route=$2 threads=$3 devices=$4 seed=$5 n=$6 how=$7
	shift 7
	# ThreadSanitizer has nothing to find in a program of one thread, and sees the command in the other runs.
	[ "$MODE" != tsan ] || [ "$threads" -gt 1 ] || return 0
	traced CUSIM_DEVICES="$devices" CUSIM_LEDGER="$name.json" VRAMTRACE_OUTPUT="$name.vt" "$@" \
		"$programs/random_calls-$route" --families all --calls "$n" --threads "$threads" --devices "$devices" \
		--seed "$seed" ${stop:+--stop "$stop"} >"$name.out" 2>"$name.err" || fail "$name: exit status $?: $(cat "$name.err")"
	"$vramtrace" report --json "$name.vt" >"$name.report"
	"$vramtrace" dump --json "$name.vt" >"$name.dump"
	# shellcheck disable=SC2086 # words
	python3 "$SOURCE_DIR/tests/cases/lib/check_families.py" "$name.json" "$name.report" "$name.dump" $how
	rm "$name.dump" "$name.report" "$name.vt"
}

# `faults EXPORT...` makes the calls number 3 and 40 of each fail.
faults() {
	list=
	for export; do
		list=$list${list:+,}$export:3:999,$export:40:999
	done
	echo "CUSIM_FAIL=$list"
}

memory=$(faults cuMemAlloc cuMemAllocPitch_v2 cuMemAllocManaged cuMemFree cuMemAllocHost_v2 cuMemFreeHost cuMemHostRegister_v2 \
	cuMemHostUnregister cuMemAllocAsync cuMemAllocAsync_ptsz cuMemcpyHtoD_v2 cuMemcpy2D_v2 cuMemcpyBatchAsync_v2 \
	cuMemsetD8_v2)
pages=$(faults cuMemAddressReserve cuMemCreate cuMemMap cuMemSetAccess cuMemUnmap cuMemAddressFree cuMemRelease \
	cuArrayCreate_v2 cuArray3DCreate_v2 cuMipmappedArrayCreate cuArrayDestroy cuMipmappedArrayDestroy \
	cuMemPrefetchAsync_v2 cuMemPrefetchBatchAsync cuMemDiscardBatchAsync)
others=$(faults cuIpcOpenMemHandle_v2 cuIpcCloseMemHandle cuExternalMemoryGetMappedBuffer cuMemPoolImportPointer \
	cuMemImportFromShareableHandle cuGraphicsResourceGetMappedPointer_v2 cuGraphicsUnmapResources cuGraphAddMemAllocNode \
	cuGraphInstantiate_v2 cuGraphLaunch cuGraphExecDestroy cuModuleLoadData cuGreenCtxCreate cuCtxSetLimit)

for route in driver runtime-shared; do
	check $route-1 $route 1 1 7 $calls 'sampled single' CUSIM_OTHER=100M
	check $route-8 $route 8 2 7 $calls sampled CUSIM_OTHER=100M
done
for seed in $seeds; do
	for family in memory pages others; do
		eval "injected=\$$family"
		check $family-$seed driver 1 1 $seed $calls 'sampled single' "$injected"
		check $family-8-$seed driver 8 2 $seed $calls sampled "$injected"
	done
done
check unsampled driver 4 2 3 $calls '' VRAMTRACE_MEMINFO=0 VRAMTRACE_STACK=none

at=1
while [ $at -lt $calls ]; do
	stop=$at
	check step-$at driver 1 1 11 $calls 'sampled single' "$pages"
	at=$((at + at / gap + 1))
done

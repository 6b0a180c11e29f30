#!/bin/sh
# The recorder's unwinder against libunwind, stack by stack, in a C++ program built in several ways.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

if [ "$MODE" = tsan ]; then
	echo "needs libunwind, which does not get on with TSan"
	exit 77
fi
if [ "$(uname -m)" != x86_64 ]; then
	echo "stacks come from libunwind alone on this machine"
	exit 77
fi

# run_checked NAME COMPILER FLAG...
run_checked() {
	name=$1
	shift
	# shellcheck disable=SC2086
	"$@" -std=gnu++17 -g -pthread -Wno-psabi $CUDA_FLAGS -o "$name" "$SOURCE_DIR/tests/cases/lib/unwind_shapes.cc" \
		-L"$BUILD_DIR/sim" -lcuda
	traced_system VRAMTRACE_UNWINDER=check VRAMTRACE_OUTPUT="$name.vt" "./$name" "$((name_count * 7))" 12 2>err ||
		fail "$name: exit status $?: $(cat err)"
	name_count=$((name_count + 1))
	"$vramtrace" report --json "$name.vt" >report.json
	counts=$(json report.json '" ".join(str(d["coverage"]["unwind_check"][k]) for k in ("captures", "delegated", "differences"))')
	echo "$name: captures, left to libunwind, different: $counts"
	# shellcheck disable=SC2086
	set -- $counts
	[ "$1" -gt 5000 ] || fail "$name: only $1 captures"
	[ "$3" -eq 0 ] || fail "$name: $3 of $1 stacks differ from libunwind's: $(cat err)"
	[ "$2" -lt "$(($1 / 10))" ] || fail "$name: $2 of $1 stacks were left to libunwind"
}

name_count=1
if command -v g++ >/dev/null; then
	run_checked g++-O2 g++ -O2
	# Under ASan two ways will do.
	[ "$MODE" = asan ] || run_checked g++-O3-with-rbp g++ -O3 -mavx2 -fno-omit-frame-pointer
fi
if command -v clang++ >/dev/null; then
	run_checked clang++-O0 clang++ -O0
fi
if [ "$name_count" -eq 1 ]; then
	echo "needs a C++ compiler"
	exit 77
fi

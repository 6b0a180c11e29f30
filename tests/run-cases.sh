#!/bin/sh
# Runs tests, two at a time, and counts them.
#
#   run-cases.sh GROUP FILE...       FILE: a CMocka program, or a case (*.sh, *.py)
#
# A case runs in an empty folder of its own, $BUILD_DIR/run/GROUP/NAME, with
#   BUILD_DIR    the build's absolute path        SOURCE_DIR   the repository's
#   MODE         how it was built                 SANITIZER    the sanitizer's runtime library, or empty: goes into
#                                                              LD_PRELOAD before libvramtrace.so for programs that
#                                                              were not built with it (python3, true, sh)
#   CC, CUDA_FLAGS   the compiler, and what it needs to find the CUDA headers
#   LD_LIBRARY_PATH   starts with the simulated CUDA (check-gpu: untouched)
# It exits 0 (passed), 77 (skipped; the last line says why) or anything else (failed; its output is shown). A CMocka
# program counts with each of its tests. The last line here is "N passed, N failed[, N skipped]"; before it stands what
# took longest.
# TEST_TIMEOUT: seconds one file may take (default 300). TESTS: run only the files whose name holds this word.

: "${BUILD_DIR:?}" "${MODE:=release}" "${TEST_TIMEOUT:=300}"
SOURCE_DIR=$(cd "$(dirname "$0")/.." && pwd)
export BUILD_DIR MODE SOURCE_DIR TEST_TIMEOUT

# One file: its output into NAME.log, "passed failed skipped" into NAME.count, its time into NAME.time, one line for the
# reader.
run_one() {
	file=$2
	case $file in /*) ;; *) file=$SOURCE_DIR/$file ;; esac
	name=$(basename "$file")
	dir=$BUILD_DIR/run/$1/$name
	log=$dir.log
	rm -rf "$dir" "$log" "$dir.count"
	mkdir -p "$dir"
	case $name in
	*.sh) set -- sh "$file" ;;
	*.py) set -- python3 "$file" ;;
	*) set -- "$file" ;;
	esac
	[ "${name%.*}" != "$name" ] || ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=1
	start=$(date +%s%3N)
	(cd "$dir" && exec timeout -k 10 "$TEST_TIMEOUT" "$@") >"$log" 2>&1 </dev/null &
	group=$!
	wait $group
	rc=$?
	# timeout led a process group of its own: whatever the test left running ends with it.
	kill -KILL "-$group" 2>/dev/null
	took=$(($(date +%s%3N) - start))
	times >"$dir.times"
	awk -v ms=$took -v name="$name" 'NR == 2 {
		gsub(/[ms]/, " ")
		printf "%.1f %.1f %s\n", ms / 1000, 60 * ($1 + $3) + $2 + $4, name
	}' "$dir.times" >"$dir.time"
	rm "$dir.times"
	took=$((took / 1000))
	last=$(tail -n 1 "$log")
	passed=0 failed=0 skipped=0
	case $rc in
	0) passed=1 ;;
	77) skipped=1 ;;
	*) failed=1 ;;
	esac
	if [ "${name%.*}" = "$name" ]; then
		last=
		ran=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
		bad=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) test.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
		skipped=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
		passed=$ran
		[ "$bad" -eq 0 ] || failed=$bad
		[ "$rc" -eq 0 ] || last="$bad failed, $ran passed"
		# A program that ran no test has not passed.
		[ "$rc" -ne 0 ] || [ $((ran + skipped)) -gt 0 ] || { failed=1 rc=1 last='no test ran'; }
	fi
	echo "$passed $failed $skipped" >"$dir.count"
	case $rc in
	0)
		printf '  ok     %s' "$name"
		[ "$passed" -le 1 ] || printf ': %s tests' "$passed"
		[ "$took" -lt 2 ] || printf ' (%s s)' "$took"
		echo
		[ "${V:-0}" != 1 ] || cat "$log"
		;;
	77) printf '  skip   %s: %s\n' "$name" "$last" ;;
	*)
		[ "$rc" -ne 124 ] || last="still running after $TEST_TIMEOUT s"
		{
			printf '  FAIL   %s: %s (exit status %s; all of it in %s)\n' "$name" "$last" "$rc" "$log"
			tail -n 60 "$log" | sed 's/^/         | /'
		} >"$dir.failure"
		cat "$dir.failure"
		;;
	esac
}

if [ "$1" = --one ]; then
	run_one "$2" "$3"
	exit 0
fi

group=$1
shift
if [ $# -eq 0 ]; then
	echo "$0: no tests in group $group" >&2
	exit 1
fi
if [ "$group" != gpu ]; then
	LD_LIBRARY_PATH=$BUILD_DIR/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	export LD_LIBRARY_PATH
fi
# The preloaded library may come before the sanitizer's runtime; what counts is that libc comes after it.
ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0:abort_on_error=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}
TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=$SOURCE_DIR/tests/tsan/suppressions${TSAN_OPTIONS:+:$TSAN_OPTIONS}
case $MODE in
asan) SANITIZER=$(realpath "$(${CC:-gcc} -print-file-name=libasan.so)") ;;
tsan) SANITIZER=$(realpath "$(${CC:-gcc} -print-file-name=libtsan.so)") ;;
*) SANITIZER= ;;
esac
export ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS SANITIZER

# A python3 that is a script of pyenv takes ten times as long to start as the interpreter that it finds.
python=$(python3 -c 'import sys; print(sys.executable)')
[ "$(command -v python3)" = "$python" ] || PATH=${python%/*}:$PATH

rm -rf "${BUILD_DIR:?}/run/$group"
mkdir -p "$BUILD_DIR/run/$group"
for file; do
	case $file in
	*"${TESTS:-}"*) printf '%s\n' "$file" ;;
	esac
done | xargs -P "${TEST_JOBS:-2}" -I '{}' sh "$0" --one "$group" '{}'

sort -rn "$BUILD_DIR/run/$group"/*.time 2>/dev/null | head -n 10 | awk '
	{ list = list (NR > 1 ? ", " : "") $3 " " $1 " (" $2 ")" }
	END { if (NR > 1) print "slowest, in seconds (of processor time): " list }'
cat "$BUILD_DIR/run/$group"/*.count 2>/dev/null | awk '
	{ passed += $1; failed += $2; skipped += $3 }
	END {
		printf "%d passed, %d failed", passed, failed
		if (skipped) printf ", %d skipped", skipped
		print ""
		exit failed > 0 || passed + skipped == 0
	}'

#!/bin/sh
# Processes without CUDA: no trace, no word, the same exit status and output; also where there is neither driver nor libunwind.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

# An empty file of that name, found first, keeps the loader from going on to the real one.
mkdir hidden
: >hidden/libunwind.so.8
: >hidden/libcuda.so.1

# unchanged COMMAND...: as without the recorder.
unchanged() {
	for path in "$LD_LIBRARY_PATH" "$PWD/hidden" ''; do
		rc=0
		env LD_LIBRARY_PATH="$path" "$@" >out.without 2>err.without || rc=$?
		with=0
		traced_system LD_LIBRARY_PATH="$path" "$@" >out 2>err || with=$?
		[ $with -eq $rc ] || fail "$*: exit status $with, not $rc: $(cat err)"
		cmp out out.without
		cmp err err.without
		no_traces "$*"
	done
}

unchanged true
unchanged false
unchanged sh -c 'exit 7'
unchanged sh -c 'kill -9 $$'
unchanged sh -c 'for i in 3 1 2; do echo $i; done | sort -n | tr 123 abc | while read -r x; do echo "<$x>"; done'
unchanged sh -c 'ls /no/such/place; echo to stderr >&2; exec cat /proc/self/comm'
unchanged python3 -c 'import ctypes, json, subprocess, sys; print(json.dumps(subprocess.check_output(["echo", "x"]).decode())); sys.exit(5)'
unchanged python3 -c 'import os; pid = os.fork(); print(os.waitpid(pid, 0)[1]) if pid else os._exit(3)'

# Programs with a sanitizer: while it starts, it looks up functions through the recorder.
echo 'int puts(const char *); int main(void) { return puts("hello") < 0; }' >hello.c
for sanitizer in address thread undefined; do
	case $MODE in
	release | debug) ;;
	*) continue ;;
	esac
	${CC:-cc} -fsanitize=$sanitizer hello.c -o hello-$sanitizer
	unchanged ./hello-$sanitizer
done

# A program that probes for CUDA must not find the recorder instead.
for path in "$PWD/hidden" ''; do
	traced LD_LIBRARY_PATH="$path" "$programs/lookup_absent" >out 2>err || fail "lookup_absent: $(cat out err)"
	[ ! -s out ] && [ ! -s err ]
	no_traces lookup_absent
done
env LD_LIBRARY_PATH="$PWD/hidden" "$programs/lookup_absent" || fail "the test itself is wrong without the recorder"

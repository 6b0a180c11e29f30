# Sourced by the cases: the recorder, the command, and how programs are run under the recorder.

recorder=$BUILD_DIR/libvramtrace.so
vramtrace=$BUILD_DIR/vramtrace
examples=$BUILD_DIR/examples
programs=$BUILD_DIR/cases

# libunwind takes a lock when a thread ends, after TSan has let go of that thread, and crashes in it: in any program.
[ "$MODE" != tsan ] || export VRAMTRACE_STACK=none

fail() {
	echo "$*"
	exit 1
}

# traced [VARIABLE=VALUE...] COMMAND [ARGUMENT...]: a program of this build under the recorder.
traced() {
	env LD_PRELOAD="$recorder" "$@"
}

# The same for programs of the system, which were not built with the sanitizer that the recorder may need.
traced_system() {
	env LD_PRELOAD="${SANITIZER:+$SANITIZER }$recorder" "$@"
}

# has_lines FILE N: fails unless the file has exactly so many lines.
has_lines() {
	[ "$(wc -l <"$1")" -eq "$2" ] || fail "$1 should have $2 lines: $(cat "$1")"
}

no_traces() {
	for trace in ./*.vt; do
		[ ! -e "$trace" ] || fail "${1:-nothing} should have left no trace, but there is $trace"
	done
}

# json FILE EXPRESSION: prints what the Python expression makes of the document d.
json() {
	python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"
}

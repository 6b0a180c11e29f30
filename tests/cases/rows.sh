#!/bin/sh
# Every row of driver.def, with every result that the driver can give: the call and its answer are as without the recorder, and the
# trace holds what it should. The programs are made by lib/rows_generate.py from the rows.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

if [ "$MODE" = tsan ]; then
	echo 'one thread, and nearly a minute: nothing for ThreadSanitizer to find here'
	exit 77
fi

rows=$BUILD_DIR/rows
lib=$SOURCE_DIR/tests/cases/lib
LD_LIBRARY_PATH=$rows
export LD_LIBRARY_PATH VRAMTRACE_QUIET=1

step() { # NAME COMMAND...: shows what it says only if it fails
	name=$1
	shift
	"$@" >"$name.out" 2>&1 || fail "$name: $(cat "$name.out")"
	printf '%s: ' "$name"
	tail -n 1 "$name.out"
}

calls() { # NAME SAMPLED all|capture [VARIABLE=VALUE...]
	name=$1 sampled=$2 what=$3
	shift 3
	step "$name" traced "$@" VRAMTRACE_OUTPUT="$name.vt" "$rows/rows_caller" "$sampled" "$what" "$name.manifest"
	# The records of the others are compared in the other modes; here it is the recorder that is looked at.
	[ "$MODE" != asan ] || [ "$name" = sampled ] || return 0
	"$vramtrace" dump --json "$name.vt" >"$name.json"
	step "$name-records" python3 "$lib/rows_check.py" "$name.manifest" "$name.json" "$SOURCE_DIR" "$sampled" "$what"
}

# Without the recorder, to know that a failure is its fault.
step plain "$rows/rows_caller" plain all
step plain-routes "$rows/rows_caller" plain routes "$rows/rows_decoy.so" "$rows/rows_linked.so"

calls sampled sampled all VRAMTRACE_MEMINFO=1
calls unsampled unsampled all VRAMTRACE_MEMINFO=0
# Opening the unwinder would clear what opening NVML left for dlerror.
calls capture sampled capture VRAMTRACE_MEMINFO=1 VRAMTRACE_STACK=none
# With copies timed, which takes calls of the driver around them, but none in a capture.
(
	export VRAMTRACE_COPY_TIMING=1
	calls timed sampled all VRAMTRACE_MEMINFO=1
	calls timed-capture sampled capture VRAMTRACE_MEMINFO=1 VRAMTRACE_STACK=none
)
step off traced VRAMTRACE_OUTPUT=no/such/folder/off.vt "$rows/rows_caller" unsampled all
step paused traced VRAMTRACE_ENABLED=0 VRAMTRACE_MEMINFO=0 VRAMTRACE_OUTPUT=paused.vt "$rows/rows_caller" unsampled all

step routes traced VRAMTRACE_OUTPUT=routes.vt "$rows/rows_caller" sampled routes "$rows/rows_decoy.so" "$rows/rows_linked.so"
[ ! -e routes.vt ] || fail "look-ups and calls of a decoy left a trace"
LD_LIBRARY_PATH=$rows/old
step old-plain-routes "$rows/rows_caller" plain routes "$rows/rows_decoy.so" "$rows/rows_linked.so"
step old-routes traced "$rows/rows_caller" sampled routes "$rows/rows_decoy.so" "$rows/rows_linked.so"

#!/bin/sh
# vramtrace run: the program's output and exit status are its own, its end is known, and all its processes are reported.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

here=$(pwd -P)

# run STATUS ARGUMENT...: `vramtrace run ARGUMENT...` ends with STATUS; what it prints goes to out and err.
run() {
	status=$1
	shift
	rc=0
	LD_PRELOAD=$SANITIZER "$vramtrace" run "$@" >out 2>err </dev/null || rc=$?
	[ $rc -eq "$status" ] || fail "run $*: exit status $rc, not $status: $(cat err)"
}

says() { # FILE TEXT
	grep -qF -- "$2" "$1" || fail "'$2' is not in $1: $(cat "$1")"
}

ended() { # TRACE END STATUS
	"$vramtrace" report --json "$1" >report.json
	[ "$(json report.json 'd["traces"][0]["end"], d["traces"][0]["end_status"]')" = "('$2', $3)" ] ||
		fail "$1: ended $(json report.json 'd["traces"][0]')"
}

run 0 -o hello.vt -- "$examples/hello-shared"
has_lines err 0
says out hello
says out 'ended: exit 0'
says out '1.0 MiB linear in 1 block'
says out 'next: vramtrace leaks hello.vt'
ended hello.vt exit 0
[ "$(stat -c %a hello.vt)" = 600 ] || fail 'others may read the trace'

# Nothing is overwritten, and the right one of both is reported.
run 0 -q -o hello.vt -- "$examples/hello-static"
[ "$(cat out)" = hello ] || fail "-q printed $(cat out)"
[ -e hello.1.vt ] || fail "no second trace: $(ls)"
run 0 -o hello.vt -- "$examples/hello-static"
says out hello.2.vt

# No CUDA: a line on stderr, no file, the exit status.
rm ./*.vt
run 7 -- sh -c 'echo out; exit 7'
[ "$(cat out)" = out ] || fail "printed $(cat out)"
has_lines err 1
no_traces 'a shell'
run 143 -- sh -c 'kill $$'
run 0 -- true
run 3 sh -c 'exit 3'

# Several programs, one after the other and one in the place of another; and a folder that changes meanwhile.
run 0 -- sh -c "$examples/hello-shared && $examples/hello-static; cd / && exec $examples/hello-shared"
[ "$(grep -c 'AT THE END' out)" -eq 3 ] || fail "not three reports: $(cat out)"
[ "$(ls vramtrace.hello-shared.*.vt | wc -l)" -eq 2 ] || fail "not two of them: $(ls)"
rm ./*.vt

# The user's own variable says where; a percent sign and characters of globs are just characters.
mkdir 'odd %p [x]*'
(
	cd 'odd %p [x]*'
	VRAMTRACE_OUTPUT=mine-%e.vt run 0 -- "$examples/hello-shared"
	[ -e mine-hello-shared.vt ] || fail "no trace of that name: $(ls)"
	says out 'AT THE END'
)

run 0 --stack none --copies none --depth 7 --max-size 64M --layers driver -o options.vt -- "$examples/hello-shared"
"$vramtrace" info --json options.vt >info.json
[ "$(json info.json 'sorted(k + "=" + v for k, v in d["traces"][0]["environment"].items() if k != "VRAMTRACE_RUN")')" = \
	"['VRAMTRACE_COPIES=none', 'VRAMTRACE_LAYERS=driver', 'VRAMTRACE_MAX_SIZE=64M', 'VRAMTRACE_OUTPUT=$here/options.vt', 'VRAMTRACE_QUIET=1', 'VRAMTRACE_STACK=none', 'VRAMTRACE_STACK_DEPTH=7']" ] ||
	fail "the recorder was told $(json info.json 'd["traces"][0]["environment"]')"

# Who ends `run` ends the program, and hears how it ended. TSan holds signals back while a program waits for its child.
if [ "$MODE" != tsan ]; then
	"$vramtrace" run -o killed.vt -- "$programs/random_calls-driver" --calls 100000000 >out 2>err </dev/null &
	launcher=$!
	tries=0
	while [ ! -s killed.vt ] && [ $tries -lt 100 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
	sleep 0.3
	kill $launcher
	rc=0
	wait $launcher || rc=$?
	[ $rc -eq 143 ] || fail "exit status $rc, not 143: $(cat err)"
	says out 'ended: SIGTERM'
	ended killed.vt signal 15
fi

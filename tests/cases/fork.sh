#!/bin/sh
# Children: the parent's trace goes on as if they were not there; a child that uses CUDA has its own, others have none.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

program=$programs/fork_child

# is TRACE N_ALLOCATIONS N_LIVE: a whole trace of a process that ended with exit status 0 (or $status).
is() {
	"$vramtrace" report --json "$1" >report.json 2>err || fail "$way: $1: $(cat err)"
	seen=$(json report.json '[d["traces"][0]["complete"], d["traces"][0]["end_status"], d["devices"][0]["allocations"],
		d["devices"][0]["kinds"]["linear"]["live_bytes"], d["unknown_frees"], d["missed_frees"]]')
	[ "$seen" = "[True, ${status:-0}, $2, $(($3 << 20)), 0, 0]" ] || fail "$way: $1: $seen"
}

pid_of() {
	"$vramtrace" report --json "$1" >report.json
	json report.json "d['traces'][0]['$2']"
}

# runs WAY N: the program ends well, says so in N lines, and leaves N traces.
runs() {
	way=$1
	rm -f ./*.vt
	traced VRAMTRACE_OUTPUT=%p.vt "$program" "$way" >out 2>err || fail "$way: exit status $?: $(cat err)"
	has_lines err "$2"
	set -- "$2" ./*.vt
	[ $# -eq $(($1 + 1)) ] || fail "$way: traces: $*"
	parent=$2 child=${3:-}
	if [ -n "$child" ] && [ "$(pid_of "$parent" ppid)" = "$(pid_of "$child" pid)" ]; then
		parent=$3 child=$2
	fi
	[ -z "$child" ] || [ "$(pid_of "$child" ppid)" = "$(pid_of "$parent" pid)" ] || fail "$way: not parent and child"
}

runs before 2
is "$parent" 3 3
status=7 is "$child" 2 2
unset status
for way in idle quick killed refused system; do
	runs $way 1
	is "$parent" 4 4
done
for way in exec vfork spawn; do
	runs $way 2
	is "$parent" 4 4
	is "$child" 2 2
done
# TSan takes the child for a process in which the other threads go on.
if [ "$MODE" != tsan ]; then
	runs storm 1
	is "$parent" 8004 4
fi

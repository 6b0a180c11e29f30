#!/bin/sh
# A trace that cannot be written, or cannot be written to its end, and wrong settings: the program does not notice, the user is
# told in one line.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

hello=$examples/hello-shared
random=$programs/random_calls-driver

# stops FILE WORD N: N random calls under a limit on the file; said once, and the trace is whole as far as it goes.
stops() {
	traced VRAMTRACE_OUTPUT="$1" "$random" --calls "$3" --threads 4 >out 2>err || fail "$1: exit status $?: $(cat err)"
	[ "$(grep -vc '^copy_site_' out)" -eq 1 ] || fail "the program printed: $(cat out)"
	[ "$(grep -c "$1: $2" err)" -eq 1 ] || fail "$1: $2 is not said once: $(cat err)"
	[ "$(grep -vc '^vramtrace: ' err)" -eq 0 ] || fail "strange lines: $(cat err)"
	[ -e "$1" ] || return 0
	# The limit under test is the program's: with a sanitizer's long stacks the report may be larger.
	(ulimit -S -f unlimited && "$vramtrace" report --json "$1") >report.json 2>err || fail "report of $1: $(cat err)"
	[ ! -s err ] || fail "the trace is damaged: $(cat err)"
	[ "$(json report.json 'd["traces"][0]["lost_events"] > 1000')" = True ] || fail "nothing is said to be lost"
	[ "$(json report.json 'd["traces"][0]["complete"]')" = False ] || fail "the trace is called complete"
}

if [ "${1:-}" = full ]; then
	for size in 4k 40k 100k 300k; do
		mount -t tmpfs -o size=$size none disk || fail "cannot mount"
		stops disk/x.vt 'no space left' 20000
		umount disk
	done
	exit 0
fi

"$hello" >expected

# runs [VARIABLE=VALUE...]: hello under the recorder prints and exits as ever; what is said goes to err.
runs() {
	traced "$@" "$hello" >out 2>err || fail "$*: exit status $?: $(cat err)"
	cmp out expected || fail "$*: changed the output"
}

# says WORD...: err is one line for each word, in this order, each begins with the program's name.
says() {
	has_lines err $#
	n=0
	for word; do
		n=$((n + 1))
		case $(sed -n ${n}p err) in
		vramtrace:*"$word"*) ;;
		*) fail "line $n does not speak of '$word': $(cat err)" ;;
		esac
	done
}

runs VRAMTRACE_OUTPUT=no/such/folder/x.vt
says no/such/folder/x.vt
mkdir folder
runs VRAMTRACE_OUTPUT=folder/
says folder/
runs VRAMTRACE_OUTPUT=/proc/x.vt
says /proc/x.vt
if [ "$(id -u)" -ne 0 ]; then
	chmod 555 folder
	runs VRAMTRACE_OUTPUT=folder/x.vt
	says folder/x.vt
	chmod 755 folder
fi
long=$(printf '%4090s' '' | tr ' ' y)
runs VRAMTRACE_OUTPUT="$long"
says VRAMTRACE_OUTPUT vramtrace.hello-shared
rm vramtrace.hello-shared.*.vt
no_traces

# What is there stays: a number is added. A folder of that name is there too.
runs VRAMTRACE_OUTPUT=folder
says folder.1
echo precious >x.vt
runs VRAMTRACE_OUTPUT=x.vt
says x.1.vt
runs VRAMTRACE_OUTPUT=x.vt
says x.2.vt
[ "$(cat x.vt)" = precious ] || fail "x.vt was overwritten"
cp x.1.vt before.vt
ln -s target.vt link.vt
runs VRAMTRACE_OUTPUT=link.vt
says link.1.vt
[ ! -e target.vt ] || fail "a link was followed"
[ "$(stat -c %a x.1.vt link.1.vt | sort -u)" = 600 ] || fail "others can read the trace"
umask 0
runs VRAMTRACE_OUTPUT=open.vt
[ "$(stat -c %a open.vt)" = 600 ] || fail "others can read the trace"
umask 022
cmp x.1.vt before.vt

# Wrong values: one line each, before the line at exit, and the default is used.
for setting in ENABLED=yes QUIET=2 MEMINFO= STACK=all STACK_DEPTH=0 COPIES=some LAYERS=cuda MAX_SIZE=5 OUTPUT= NO_SUCH=1; do
	runs VRAMTRACE_OUTPUT=w.vt "VRAMTRACE_$setting"
	case $setting in
	OUTPUT=) says VRAMTRACE_OUTPUT vramtrace.hello-shared ;;
	*) says "VRAMTRACE_${setting%%=*}" w.vt ;;
	esac
	rm -f ./w*.vt ./vramtrace.*.vt
done
runs VRAMTRACE_OUTPUT=w.vt VRAMTRACE_STACK=all VRAMTRACE_COPIES=some VRAMTRACE_MEMINFO=9
sort err -o err
says VRAMTRACE_COPIES VRAMTRACE_MEMINFO VRAMTRACE_STACK w.vt

# Quiet is quiet in every case.
rm -f ./*.vt
runs VRAMTRACE_QUIET=1 VRAMTRACE_OUTPUT=no/such/folder/x.vt VRAMTRACE_STACK=all
[ ! -s err ] || fail "not quiet: $(cat err)"
runs VRAMTRACE_QUIET=1 VRAMTRACE_OUTPUT=x.vt
[ ! -s err ] && [ -s x.vt ] || fail "quiet: $(cat err)"

(
	ulimit -S -f 500
	stops ulimit.vt 'reached the size limit' 20000
)

# A full disk, in a mount that nobody else sees.
if ! unshare -m true 2>/dev/null; then
	echo "not allowed to mount: without the full disk"
	exit 0
fi
mkdir disk
exec unshare -m sh "$0" full

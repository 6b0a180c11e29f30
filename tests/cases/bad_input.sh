#!/bin/sh
# Files that are no traces, and command lines that make no sense: one clear line, the right exit status, no output.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"
if [ "$MODE" = tsan ]; then
	echo 'one thread at a time: nothing for ThreadSanitizer to find here'
	exit 77
fi

traced VRAMTRACE_OUTPUT=good.vt VRAMTRACE_QUIET=1 "$programs/random_calls-driver" --calls 5000 >/dev/null
mkdir folder
: >empty.vt
head -c 5000 good.vt >cut_header.vt
head -c 70 good.vt >cut_early.vt
head -c 20000 /dev/zero >zeros.vt
head -c 20000 /dev/urandom >random.vt
printf 'x' >tiny.vt
cp "$vramtrace" elf.vt
{ head -c 8 good.vt; head -c 100000 /dev/urandom; } >magic_only.vt
# The format number follows the magic.
cp good.vt newer.vt
printf '\377' | dd of=newer.vt bs=1 seek=8 conv=notrunc status=none
mkfifo fifo.vt

# refused STATUS WORD ARGUMENT...: the command says one line with WORD in it, and nothing else.
refused() {
	status=$1 word=$2
	shift 2
	rc=0
	timeout 20 "$vramtrace" "$@" >out 2>err </dev/null || rc=$?
	[ $rc -eq "$status" ] || fail "vramtrace $*: exit status $rc, not $status: $(cat err)"
	[ ! -s out ] || fail "vramtrace $*: printed $(head -n 3 out)"
	has_lines err 1
	case $(cat err) in
	vramtrace:*"$word"*) ;;
	*) fail "vramtrace $*: does not begin with 'vramtrace:' or name $word: $(cat err)" ;;
	esac
}

n=0
for command in report peak leaks timeline whatif dump info; do
	for file in missing.vt empty.vt cut_header.vt cut_early.vt zeros.vt random.vt tiny.vt elf.vt magic_only.vt newer.vt \
		fifo.vt /dev/null; do
		refused 3 "$file" $command "$file"
		n=$((n + 1))
	done
	[ $command = dump ] || [ $command = timeline ] || refused 3 folder $command folder
	refused 2 --nonsense $command --nonsense good.vt
	refused 2 -Z $command -Z good.vt
	refused 2 'no trace' $command
	refused 2 -o $command good.vt -o
	refused 2 no/such/place $command good.vt -o no/such/place
	refused 2 folder $command good.vt -o folder
done
refused 3 folder/missing.vt report folder/missing.vt

for command in peak leaks; do
	for value in -1 x '' 5x 99999999999999999999; do
		refused 2 --limit $command good.vt --limit "$value"
	done
	for value in x '' 1.5 -2 99999999999999999999; do
		refused 2 --device $command good.vt --device "$value"
	done
	for value in x '' '5 ' 5Q -1 99999999999999999999 99999999999T; do
		refused 2 --min-bytes $command good.vt --min-bytes "$value"
	done
	for value in x '' never -1 peak:x; do
		refused 2 --at $command good.vt --at "$value"
	done
done
for value in 0 x '' -1 99999999999999999999; do
	refused 2 --points timeline good.vt --points "$value"
done
refused 2 --limit report good.vt --limit 3
refused 2 nonsense nonsense
refused 2 '' ''
refused 2 'no command' run
refused 2 'no command' run -o x.vt --
refused 2 no/such run -o no/such/place.vt -- true
refused 127 no-such-program run -o x.vt -- no-such-program
refused 126 ./good.vt run -o x.vt -- ./good.vt
for option in --stack --max-size --depth --copies --layers; do
	refused 2 $option run $option nonsense -- true
	refused 2 $option run $option
done

# A good trace among bad ones: the good one is shown, each bad one costs its line.
rc=0
"$vramtrace" info empty.vt good.vt random.vt >out 2>err || rc=$?
[ $rc -eq 3 ] || fail "info with two bad traces: exit status $rc"
[ -s out ] || fail "the good trace is not shown"
has_lines err 2

# Cut behind the header is no reason to show nothing.
head -c 100000 good.vt >cut.vt
for command in report peak leaks timeline dump info; do
	"$vramtrace" $command cut.vt >out 2>err || fail "$command of a cut trace: exit status $?: $(cat err)"
	[ -s out ] || fail "$command of a cut trace printed nothing"
done
"$vramtrace" report --json cut.vt >cut.json 2>/dev/null
[ "$(json cut.json 'd["traces"][0]["complete"]')" = False ] || fail "the cut trace is called complete"
echo "$n files refused"

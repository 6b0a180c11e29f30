#!/bin/sh
# vramtrace pack: a packed trace reads the same where nothing is left of what was traced; damaged, running, full disks.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"
if [ "$MODE" = tsan ]; then
	echo 'one thread at a time: nothing for ThreadSanitizer to find here'
	exit 77
fi

# A trace can be read in a mount of its own only by root.
if [ "${1:-}" = full ]; then
	mkdir disk
	mount -t tmpfs -o size=40k none disk || fail "cannot mount"
	rc=0
	"$vramtrace" pack -o disk/big.zst big.vt 2>err || rc=$?
	[ $rc -eq 2 ] && grep -q 'disk/big.zst: cannot be written: No space left' err || fail "full disk: $rc, $(cat err)"
	[ -z "$(ls -A disk)" ] || fail "left behind on the full disk: $(ls -A disk)"
	rc=0
	TMPDIR=disk "$vramtrace" info big.vt.zst >out 2>err || rc=$?
	[ $rc -eq 3 ] && grep -q 'do not fit into disk.*TMPDIR' err || fail "no room to unpack: $rc, $(cat err)"
	has_lines err 1
	[ ! -s out ] || fail "printed: $(cat out)"
	rc=0
	TMPDIR=$PWD/disk LD_PRELOAD=$SANITIZER "$vramtrace" run --pack -q -o kept.vt -- "$programs/random_calls-driver" \
		--calls 20000 >out 2>err || rc=$?
	umount disk
	[ $rc -eq 0 ] || fail "run --pack: exit status $rc"
	grep -q 'kept.vt: is kept' err || fail "not said to be kept: $(cat err)"
	"$vramtrace" info kept.vt >out
	"$vramtrace" info kept.vt.zst >out
	exit 0
fi

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

# documents FOLDER: everything that is printed of FOLDER/t.vt, which is either, goes to FOLDER.out.
documents() {
	(
		cd "$1"
		for command in report leaks peak timeline; do
			"$vramtrace" $command --json t.vt
			"$vramtrace" $command --ascii t.vt
		done
		"$vramtrace" dump --json t.vt | grep -v '"record": "symbol"'
		# What tells of the file itself is the same for none.
		"$vramtrace" info --json t.vt | grep -Ev '"(size_bytes|chunks|packed_bytes|symbol)":'
	) >"$1.out"
}

# --- The program and its libraries are gone: nothing can be looked up any more --------------------------------------
mkdir there plain gone packed
cp -r "$BUILD_DIR/sim" "$recorder" "$examples/demo-shared" there/
LD_LIBRARY_PATH=$PWD/there/sim LD_PRELOAD=$PWD/there/libvramtrace.so VRAMTRACE_OUTPUT=plain/t.vt VRAMTRACE_QUIET=1 \
	there/demo-shared >/dev/null
documents plain
"$vramtrace" pack plain/t.vt -o packed/t.vt 2>err
has_lines err 1
case $(cat err) in
'vramtrace: plain/t.vt: '*' KiB packed to '*' KiB with the names of '*' addresses: packed/t.vt') ;;
*) [ "$MODE" = tsan ] || fail "said: $(cat err)" ;;
esac
[ "$(stat -c %a packed/t.vt)" = 600 ] || fail "others may read it"
[ $(($(stat -c %s packed/t.vt) * 3)) -lt "$(stat -c %s plain/t.vt)" ] || fail "not smaller: $(ls -l plain packed)"
cp plain/t.vt gone/
# Other files of the same names: one that is no program, one with the same build id and fewer names.
mv there/demo-shared whole
strip -o there/demo-shared whole
echo 'not a library' >there/libvramtrace.so
documents packed
cmp plain.out packed.out || fail "packed and with other files it reads: $(diff plain.out packed.out | head -n 20)"
rm -r there whole
documents packed
cmp plain.out packed.out || fail "packed it reads: $(diff plain.out packed.out | head -n 20)"
documents gone
# TSan: no stacks.
if [ "$MODE" != tsan ]; then
	! cmp -s plain.out gone.out || fail "without names it reads the same: so this test shows nothing"
	grep -q 'remember_request demo.c:' packed.out || fail "no names: $(head -n 50 packed.out)"
	! grep -q 'remember_request demo.c:' gone.out || fail "names where nothing is left of the program"
fi
"$vramtrace" info packed/t.vt >out
grep -q 'packed to' out || fail "info does not tell: $(cat out)"

# --- Names, folders, what is there already ----------------------------------------------------------------------------
traced VRAMTRACE_OUTPUT=big.vt VRAMTRACE_QUIET=1 "$programs/random_calls-driver" --calls 30000 --threads 4 >/dev/null
"$vramtrace" pack -q big.vt 2>err
[ ! -s err ] && [ -e big.vt.zst ] || fail "-q: $(cat err)"
sum=$(cksum <big.vt.zst)
refused 2 'not overwritten without --force' pack big.vt
refused 2 'big.vt.zst: is packed already' pack big.vt.zst
refused 2 'is the trace itself' pack big.vt -o big.vt --force
refused 2 'is a trace' pack big.vt -o plain/t.vt --force
refused 2 'is a trace' report plain/t.vt -o big.vt.zst
refused 2 'no plain file' pack big.vt -o /dev/null --force
refused 2 no/such pack big.vt -o no/such/x.zst
refused 2 'no folder' pack big.vt plain/t.vt -o x.zst
refused 2 'no folder' pack plain -o x.zst
refused 3 missing.vt pack missing.vt
refused 2 'no trace' pack
refused 2 --nonsense pack --nonsense big.vt
: >empty.vt
head -c 5000 big.vt >cut_header.vt
head -c 20000 /dev/urandom >random.vt
for file in empty.vt cut_header.vt random.vt /dev/null; do
	refused 3 "$file" pack "$file" -o x.zst
done
mkdir none
refused 3 none pack none
[ ! -e x.zst ] || fail "something was written"
[ "$(cksum <big.vt.zst)" = "$sum" ] || fail "big.vt.zst was changed"
"$vramtrace" pack --force big.vt 2>err
[ "$(cksum <big.vt.zst)" = "$sum" ] || fail "packed again, it is another file"
(
	ulimit -S -f 20
	"$vramtrace" pack big.vt -o limited.zst 2>err && exit 1
	grep -q 'limited.zst: cannot be written: File too large' err
) || fail "no room: $(cat err)"
[ -z "$(ls -A . | grep '^\.vramtrace' || true)" ] && [ ! -e limited.zst ] || fail "left behind: $(ls -A)"

mkdir folder into
cp big.vt folder/a.vt
cp packed/t.vt folder/c.vt.zst
cp plain/t.vt folder/b.vt
rc=0
"$vramtrace" pack big.vt random.vt plain/t.vt -o into 2>err || rc=$?
[ $rc -eq 3 ] && has_lines err 3
[ "$(ls into)" = "$(printf 'big.vt.zst\nt.vt.zst')" ] || fail "into the folder: $(ls into)"
"$vramtrace" pack -q folder/b.vt
# b is there twice, but was recorded once.
"$vramtrace" report --json folder >out
[ "$(json out '[t["file"] for t in d["traces"]]')" = "['folder/a.vt', 'folder/b.vt', 'folder/c.vt.zst']" ] ||
	fail "in the folder: $(json out '[t["file"] for t in d["traces"]]')"
rm folder/b.vt
"$vramtrace" report --json folder >out
[ "$(json out 'len(d["traces"])')" = 3 ] || fail "without b.vt there are $(json out '[t["file"] for t in d["traces"]]')"
"$vramtrace" pack folder 2>err
has_lines err 1
rm folder/a.vt
refused 0 'all its traces are packed already' pack folder

# --- Damaged traces, damaged packs ------------------------------------------------------------------------------------
head -c 150000 big.vt >cut.vt
"$vramtrace" pack cut.vt 2>err
grep -q 'cut.vt: is damaged: packed as it is' err || fail "the cut trace: $(cat err)"
"$vramtrace" report --json cut.vt >a.json 2>/dev/null
"$vramtrace" report --json cut.vt.zst >b.json 2>/dev/null
[ "$(sed '/"file"/s/cut.vt.zst/cut.vt/' b.json | cksum)" = "$(cksum <a.json)" ] || fail "the damage is not the same"
[ "$(json b.json 'd["traces"][0]["damage"]["missing_bytes"] > 0, d["traces"][0]["damage"]["pack_damaged"]')" = \
	'(True, False)' ] || fail "damage: $(json b.json 'd["traces"][0]["damage"]')"

cat >damaged.py <<'EOF'
"""Packs cut short and changed: exit 0 and said to be damaged, or 3 and one line; nothing else."""
import json, pathlib, subprocess, sys
good, n = pathlib.Path("big.vt.zst").read_bytes(), {0: 0, 3: 0}
whole = json.loads(subprocess.check_output([sys.argv[1], "info", "--json", "big.vt.zst"]))["traces"][0]["events"]
# With a sanitizer each is a tenth of a second, and fuzz_smoke.sh unpacks many more with one.
n_cuts, n_changes = (20, 15) if sys.argv[2] == "asan" else (40, 30)
last = 0
def info(what, data):
    pathlib.Path("bad.vt.zst").write_bytes(data)
    done = subprocess.run([sys.argv[1], "info", "--json", "bad.vt.zst"], capture_output=True, text=True, timeout=20)
    if done.returncode not in n:
        sys.exit(f"{what}: exit status {done.returncode}: {done.stderr}")
    n[done.returncode] += 1
    if done.returncode == 3:
        if done.stdout or done.stderr.count("\n") != 1 or not done.stderr.startswith("vramtrace: bad.vt.zst: "):
            sys.exit(f"{what}: {done.stdout}{done.stderr}")
        return 0
    trace = json.loads(done.stdout)["traces"][0]
    if trace["complete"] or not trace["damaged"]:
        sys.exit(f"{what}: called complete")
    if done.stderr or trace["events"] > whole:
        sys.exit(f"{what}: {done.stderr}{trace}")
    return trace["events"]
for i in range(n_cuts):
    events = info(f"cut {i}", good[:len(good) * i // n_cuts])
    if events < last:
        sys.exit(f"cut {i}: {events} events, {last} before")
    last = events
info("without the checksum", good[:-4])
for i in range(n_changes):
    at = 8 + (len(good) - 8) * i // n_changes
    info(f"changed at {at}", good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1:])
if n[0] < 10 or n[3] < 2 or not last:
    sys.exit(f"exit statuses: {n}")
EOF
python3 damaged.py "$vramtrace" "$MODE" || fail "damaged packs"
head -c $(($(stat -c %s big.vt.zst) * 3 / 4)) big.vt.zst >bad.vt.zst
"$vramtrace" report bad.vt.zst >out
grep -q 'the trace is damaged:.* not all of it could be unpacked' out || fail "not said: $(head -n 3 out)"
"$vramtrace" dump bad.vt.zst >out 2>err
grep -q 'bad.vt.zst: is damaged' err || fail "not said: $(cat err)"

# --- run --pack ---------------------------------------------------------------------------------------------------------
# run STATUS ARGUMENT...: what is printed goes to out and err.
run() {
	status=$1
	shift
	rc=0
	LD_PRELOAD=$SANITIZER "$vramtrace" run --pack "$@" >out 2>err </dev/null || rc=$?
	[ $rc -eq "$status" ] || fail "run --pack $*: exit status $rc, not $status: $(cat err)"
}

mkdir runs
cd runs
run 0 -o r.vt -- "$examples/hello-shared"
[ ! -e r.vt ] && [ -e r.vt.zst ] || fail "after run --pack: $(ls)"
grep -q 'next: vramtrace leaks r.vt.zst' out || fail "the report is of another: $(cat out)"
has_lines err 1
"$vramtrace" report --json r.vt.zst >out
[ "$(json out 'd["traces"][0]["end"], d["traces"][0]["end_status"]')" = "('exit', 0)" ] || fail "the end is lost"
run 0 -q -o r.vt -- "$examples/hello-shared"
[ ! -e r.vt ] && [ -e r.1.vt.zst ] && [ ! -s err ] || fail "the second one: $(ls), $(cat err)"
[ "$(cat out)" = hello ] || fail "-q printed $(cat out)"
run 0 -q -- sh -c "$examples/hello-shared; $examples/hello-static"
no_traces 'run --pack'
[ "$(ls vramtrace.hello-*.vt.zst | wc -l)" -eq 2 ] || fail "of two programs: $(ls)"
run 5 -q -o r.vt -- sh -c 'exit 5'
TMPDIR=/no/such/folder run 0 -q -o unread.vt -- "$examples/hello-shared"
[ -e unread.vt ] && grep -q 'unread.vt: is kept' err || fail "removed without having been read: $(cat err)"

# --- While it runs -------------------------------------------------------------------------------------------------------
wait_for_trace() {
	tries=0
	while [ ! -s "$1" ] && [ $tries -lt 100 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
	sleep 0.3
}

env LD_PRELOAD="$recorder" VRAMTRACE_OUTPUT=running.vt VRAMTRACE_QUIET=1 "$programs/random_calls-driver" \
	--calls 100000000 --threads 2 >/dev/null &
program=$!
wait_for_trace running.vt
"$vramtrace" pack running.vt 2>err || fail "running: $(cat err)"
grep -q 'still runs: packed as of now' err || fail "running: $(cat err)"
kill -9 $program
wait $program || true
"$vramtrace" report --json running.vt.zst >out
[ "$(json out 'd["traces"][0]["end"], d["traces"][0]["events"] > 0')" = "('running', True)" ] || fail "as of then it ran"
[ "$(json out 'set(d["traces"][0]["damage"].values())')" = '{0}' ] || fail "damage: $(json out 'd["traces"][0]["damage"]')"
rm running.vt

# What one of its programs still writes to is left alone, and so it is not lost.
run 0 -q -o left.vt -- sh -c "$programs/random_calls-driver --calls 100000000 >/dev/null 2>&1 & echo \$! >pid; sleep 1"
program=$(cat pid)
[ -e left.vt ] && [ ! -e left.vt.zst ] && grep -q 'left.vt: is still being written' err || {
	kill -9 "$program"
	fail "still written to: $(ls), $(cat err)"
}
kill -9 "$program"

# The same of one that ended, when somebody else has it open: as a process would whose number is another here.
if python3 -c 'import fcntl; fcntl.fcntl(open("r.vt.zst"), fcntl.F_SETLEASE, fcntl.F_RDLCK)' 2>/dev/null; then
	run 0 -q -o held.vt -- sh -c "$examples/hello-shared; sleep 60 3>>held.vt & echo \$! >pid; sleep 0.5"
	kill "$(cat pid)"
	[ -e held.vt ] && [ ! -e held.vt.zst ] && grep -q 'held.vt: is still being written' err ||
		fail "open elsewhere: $(ls), $(cat err)"
fi
cd ..

if ! unshare -m true 2>/dev/null; then
	echo "not allowed to mount: without the full disk"
	exit 0
fi
exec unshare -m sh "$0" full

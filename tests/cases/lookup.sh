#!/bin/sh
# Every way to look up a name: what goes to the driver is recorded, once; what does not is not; every answer is the one that would
# have been given without the recorder.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

lib=$SOURCE_DIR/tests/cases/lib
sanitize=
case $MODE in
asan) sanitize=-fsanitize=address,undefined ;;
tsan) sanitize=-fsanitize=thread ;;
esac
build() { # NAME [FLAG...]
	source=$1
	shift
	# shellcheck disable=SC2086
	${CC:-cc} $sanitize -g -D_GNU_SOURCE -fPIC -shared -o "$source.so" "$lib/$source.c" "$@"
}
echo 'DECOY_1 { global: *; }; DECOY_2 { } DECOY_1;' >decoy.map
build decoy -Wl,--version-script=decoy.map
build next
build plugin -L"$BUILD_DIR/sim" -lcuda

# runs N WAY [LIBRARY]: the way uses N functions of the driver, and each use is in the trace: of its five calls three succeed, one
# asks for nothing, and one for too much.
runs() {
	n=$1
	shift
	rm -f ./*.vt
	env ${preload:+LD_PRELOAD="$preload"} "$programs/lookup_routes" "$@" >expected || fail "$*: wrong without the recorder"
	traced LD_PRELOAD="${preload:+$preload }$recorder" VRAMTRACE_OUTPUT=x.vt \
		"$programs/lookup_routes" "$@" >out 2>err || fail "$*: exit status $?: $(cat out err)"
	diff expected out || fail "$*: the output has changed"
	if [ "$n" = none ]; then
		[ ! -s err ] || fail "$*: $(cat err)"
		no_traces "$*"
		return
	fi
	has_lines err 1
	"$vramtrace" dump --json x.vt >dump.json
	seen=$(grep -c '"record": "alloc"' dump.json || true)/$(grep -c '"record": "failure"' dump.json || true)
	[ "$seen" = "$((3 * n))/$((2 * n))" ] || fail "$*: recorded $seen, not $((3 * n))/$((2 * n))"
}
preload=''

runs 1 handle
runs 1 default
runs 1 next
# RTLD_NEXT of an object behind the recorder means what lies behind that object: the driver's own, and it stays so.
runs 2 plugin "$PWD/plugin.so"
runs 2 get-proc-address
runs 0 names
runs 0 decoy "$PWD/decoy.so"
runs none only-decoy "$PWD/decoy.so"

# Another tool's preloaded library before the recorder: both see each call, once.
preload=$PWD/next.so
runs 1 default
grep -q 'the other tool saw 5' out || fail "the other tool was left out: $(cat out)"
preload=''

# A driver that is newer than the recorder.
mkdir newer
build newer -Wl,-soname,libcuda.so.1
mv newer.so newer/libcuda.so.1
traced LD_LIBRARY_PATH="$PWD/newer:$LD_LIBRARY_PATH" VRAMTRACE_OUTPUT=names.vt "$programs/lookup_routes" names >out 2>&1
grep -q 'dlsym cuMemTeleportAsync: libcuda.so.1' out || fail "what is not covered is not found: $(cat out)"
"$vramtrace" report --json names.vt >report.json
[ "$(json report.json 'd["coverage"]["not_covered"]')" = "['cuMemTeleportAsync']" ] || fail "what is not covered is not named"

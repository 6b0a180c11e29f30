#!/bin/sh
# Code that is unloaded takes what was learnt of it along: another build of a plugin, loaded where the first one was, is unwound by
# its own rules. Without the recorder's dlclose it would not be, which shows that the test can fail.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

if [ "$MODE" = asan ] || [ "$MODE" = tsan ]; then
	echo "the sanitizers keep libraries loaded, or have no libunwind"
	exit 77
fi
if [ "$(uname -m)" != x86_64 ]; then
	echo "stacks come from libunwind alone on this machine"
	exit 77
fi

source=$SOURCE_DIR/tests/cases/lib/unwind_reload.c
# shellcheck disable=SC2086
${CC:-cc} -O1 -g $CUDA_FLAGS -o program "$source" -L"$BUILD_DIR/sim" -lcuda -ldl -pthread
for frame in 400 800 1600; do
	${CC:-cc} -O1 -g -fomit-frame-pointer -fPIC -shared -DFRAME=$frame -o "./plugin$frame.so" "$source"
done

cp plugin800.so other.so

checked() { # NAME N [OPTION]     N: so often at least must another plugin have come where one had been
	name=$1 n_again=$2
	shift 2
	traced VRAMTRACE_UNWINDER=check VRAMTRACE_OUTPUT="$name.vt" ./program "$@" ./plugin400.so ./plugin800.so ./plugin1600.so \
		>out 2>err || fail "$name: exit status $?: $(cat out err)"
	[ "$(tail -n 1 out)" -ge "$n_again" ] || fail "$name: only $(cat out) of 60 plugins came where another had been"
	"$vramtrace" report --json "$name.vt" >report.json
	counts=$(json report.json '" ".join(str(d["coverage"]["unwind_check"][k]) for k in ("captures", "delegated", "differences"))')
	echo "$name: captures, left to libunwind, different: $counts"
}

checked seen 30
# shellcheck disable=SC2086
set -- $counts
[ "$1" -ge 2400 ] && [ "$2" -eq 0 ] && [ "$3" -eq 0 ] || fail "stacks differ: $(cat err)"
grep -q 'unwinder' err && fail "differences were spoken of: $(cat err)"

checked busy 0 --busy
# shellcheck disable=SC2086
set -- $counts
[ "$1" -ge 2400 ] && [ "$3" -eq 0 ] || fail "stacks differ while libraries come and go: $(cat err)"

checked unseen 30 --unseen
# shellcheck disable=SC2086
set -- $counts
[ "$3" -gt 10 ] || fail "a dlclose that was not seen went unnoticed, so would a broken one"
[ "$(grep -c 'unwinder: frame' err)" -eq 5 ] || fail "5 differences should be shown: $(cat err)"

# With libunwind alone nothing is compared.
traced VRAMTRACE_UNWINDER=libunwind VRAMTRACE_OUTPUT=libunwind.vt ./program ./plugin400.so 2>err >out || fail "$(cat err)"
"$vramtrace" report --json libunwind.vt >report.json
[ "$(json report.json 'd["coverage"]["unwind_check"]')" = None ] || fail "nothing should have been compared"

#!/bin/sh
# Names of functions: from the file, from a separate debug file, or none at all when the file is another one now or gone;
# code that no file holds; and what --hide-paths leaves of it all.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

case $MODE in
asan | tsan)
	echo "the stacks are of the same code in the other modes"
	exit 77
	;;
esac

source=$SOURCE_DIR/tests/cases/lib/symbols.c
mkdir app
cp "$source" app/symbols.c
library() { # OUTPUT NUMBER
	(cd app && ${CC:-cc} -g -O2 -fno-omit-frame-pointer -D_GNU_SOURCE -fPIC -shared -Wl,--build-id -DLIBRARY="$2" -o "$1" symbols.c)
}
library libcallee.so 1
(cd app && ${CC:-cc} -g -O2 -fno-omit-frame-pointer -D_GNU_SOURCE -Wl,--build-id -o program symbols.c -L. -lcallee \
	-L"$BUILD_DIR/sim" -lcuda -Wl,-rpath,"$PWD")
traced VRAMTRACE_OUTPUT=plain.vt app/program >out
traced VRAMTRACE_OUTPUT=generated.vt app/program generated >out

# The frames of the library, and what is said about its file.
frames() { # TRACE
	"$vramtrace" report --json "$1" >report.json
	json report.json '" ".join(
		(f["function"] or "?") + ("" if f["line"] is None else ":" + f["file"].rsplit("/", 1)[-1])
		for f in d["leaks"][0]["stack"] if (f["module"] or "").split(" ")[0].endswith("libcallee.so"))'
}
state() { # KEY
	json report.json "[f.rsplit('/', 1)[-1] for f in d['symbols']['$1'] if 'libcallee' in f]"
}
expect() { # WHAT EXPECTED FOUND
	[ "$2" = "$3" ] || fail "$1: expected '$2', not '$3'"
}

whole='library_inlined:symbols.c library_static:symbols.c library_call:symbols.c'
expect whole "$whole" "$(frames plain.vt)"
expect whole '[]' "$(state changed)"

# Stripped, with the debug file beside it; and without it, where only what the library exports has a name.
cp app/libcallee.so whole.so
if command -v objcopy >/dev/null; then
	mkdir app/.debug
	objcopy --only-keep-debug app/libcallee.so app/.debug/libcallee.debug
	strip app/libcallee.so
	objcopy --add-gnu-debuglink=app/.debug/libcallee.debug app/libcallee.so
	expect 'debug file' "$whole" "$(frames plain.vt)"
	mv app/.debug elsewhere
	unset DEBUGINFOD_URLS
	expect stripped '? library_call' "$(frames plain.vt)"
	# A server is asked only where the user names one.
	id=$(readelf -n app/libcallee.so | sed -n 's/.*Build ID: //p')
	mkdir -p "server/buildid/$id"
	cp elsewhere/libcallee.debug "server/buildid/$id/debuginfo"
	export DEBUGINFOD_CACHE_PATH="$PWD/cache"
	if /sbin/ldconfig -p | grep -q 'libdebuginfod\.so\.1 '; then
		expect 'debug server' "$whole" "$(DEBUGINFOD_URLS=file://$PWD/server/ frames plain.vt)"
	fi
	rm -r server
	# A debug file of another build proves nothing.
	library other.so 3
	mkdir app/.debug
	objcopy --only-keep-debug app/other.so app/.debug/libcallee.debug
	expect 'other debug file' '? library_call' "$(frames plain.vt)"
	rm -r app/.debug
fi

# Another build in its place; nothing; the same one back.
library libcallee.so 2
expect changed '? ?' "$(frames plain.vt)"
expect changed "['libcallee.so']" "$(state changed)"
"$vramtrace" leaks plain.vt >leaks.txt
grep -q '^      #[0-9]* *libcallee\.so+0x' leaks.txt || fail "no offset: $(cat leaks.txt)"
[ "$(grep -c 'libcallee.so has changed since it was recorded' leaks.txt)" -eq 1 ] || fail "no note, or two: $(cat leaks.txt)"
rm app/libcallee.so
expect missing '? ?' "$(frames plain.vt)"
expect missing "['libcallee.so']" "$(state missing)"
"$vramtrace" peak plain.vt | grep -q 'libcallee.so is not on this machine' || fail "nothing about a file that is gone"
cp whole.so app/libcallee.so
expect again "$whole" "$(frames plain.vt)"

# The generated code has no name and no file, and the stack goes on around it or ends there.
"$vramtrace" report --json generated.vt >report.json
expect generated True "$(json report.json 'd["leaks"][0]["stack"][0]["function"] is not None')"
expect generated True "$(json report.json 'all(f["function"] is None and f["offset"] is None
	for f in d["leaks"][0]["stack"] if f["module"] is None)')"
"$vramtrace" leaks generated.vt >leaks.txt
if json report.json '[f for f in d["leaks"][0]["stack"] if f["module"] is None]' | grep -q address; then
	grep -q '^      #[0-9]* *0x[0-9a-f]* (in no file)$' leaks.txt || fail "the generated code is not labelled: $(cat leaks.txt)"
fi

# Code that makes no frame may hide its caller, or end the stack: the report says so, and nothing stands where it is not.
"$vramtrace" report --json plain.vt >report.json
expect 'nothing missing' '[]' "$(json report.json 'd["leaks"][0]["stack_missing"]')"
if [ "$(uname -m)" = x86_64 ]; then
	for name in generated unframed lost; do
		[ -e $name.vt ] || traced VRAMTRACE_OUTPUT=$name.vt app/program $name >out
		"$vramtrace" report --json $name.vt >report.json
		expect $name "['unwind_info']" "$(json report.json 'd["leaks"][0]["stack_missing"]')"
		"$vramtrace" leaks $name.vt | grep -q '^      (native frames may be missing: ' || fail "$name: nothing about it"
		json report.json '" ".join(f["function"] or "?" for f in d["leaks"][0]["stack"])' >functions
		case "$(cat functions) " in
		'allocate ? through_generated library_inlined library_static library_call main '*) ;;
		'allocate ? library_inlined library_static library_call main '*) [ $name = unframed ] ;;
		'allocate ? ') [ $name = lost ] ;;
		*) false ;;
		esac || fail "$name: $(cat functions)"
	done
fi

# What leaves the house: no folder, no host, no argument.
host=$(uname -n)
for command in report peak leaks info; do
	for more in '' --json; do
		# shellcheck disable=SC2086
		"$vramtrace" $command $more --hide-paths "$PWD/generated.vt" >hidden
		sed 's|[0-9.]* MiB/s||' hidden | grep -q / && fail "$command $more: a path: $(grep / hidden)"
		grep -qw "$host" hidden && fail "$command $more: the host: $(grep -w "$host" hidden)"
		grep -q 'program generated' hidden && fail "$command $more: an argument"
	done
	"$vramtrace" $command --json generated.vt >open
	[ $command = info ] || grep -q "$PWD/app" open || fail "$command: --hide-paths had nothing to hide"
done
"$vramtrace" leaks --show-paths generated.vt | grep -q "$PWD/app" || fail "--show-paths does not show them"
"$vramtrace" leaks --show-paths --hide-paths generated.vt 2>err && fail "both at once"
grep -q 'exclude one another' err

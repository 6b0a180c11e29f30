#!/bin/sh
# dlopen goes on working as it did: files are looked for on the caller's own path, and RTLD_DEEPBIND does what it should where it is
# left in.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

if [ "$MODE" = asan ] || [ "$MODE" = tsan ]; then
	echo "the sanitizers have a dlopen of their own, with which a caller's path does not count"
	exit 77
fi

source=$SOURCE_DIR/tests/cases/lib/opener.c
build() { # OUTPUT [FLAG...]
	output=$1
	shift
	mkdir -p "$(dirname "$output")"
	${CC:-cc} -g -D_GNU_SOURCE -fPIC -o "$output" "$source" "$@"
}
library() { # OUTPUT NAME [FLAG...]
	output=$1 name=$2
	shift 2
	build "$output" -shared -DLIBRARY="\"$name\"" "$@"
}
# The program finds libouter.so beside it, and that finds its own libinner.so, not the program's.
for tag in --enable-new-dtags --disable-new-dtags; do
	rm -rf app
	# shellcheck disable=SC2016
	build app/bin/program -rdynamic -Wl,"$tag",-rpath,'$ORIGIN/../lib'
	# shellcheck disable=SC2016
	library app/lib/libouter.so outer -Wl,"$tag",-rpath,'$ORIGIN/own'
	library app/lib/own/libinner.so inner
	[ "$tag" = --disable-new-dtags ] || library app/lib/libinner.so wrong

	for name in libouter.so libinner.so libnone.so "$PWD/app/lib/libouter.so"; do
		app/bin/program "$name" >expected || true
		traced app/bin/program "$name" >out 2>err || true
		diff expected out || fail "$tag: $name: something else was opened"
		[ ! -s err ] || fail "$name: $(cat err)"
	done
	app/bin/program libouter.so >expected
	grep -q 'libouter.so is outer, and calls that of the program' expected
	grep -q 'libinner.so is inner' expected

	# With RTLD_DEEPBIND a library's own functions come first.
	app/bin/program libouter.so deep >deep
	grep -q 'libouter.so is outer, and calls that of outer' deep || fail "RTLD_DEEPBIND does nothing here: $(cat deep)"
	traced app/bin/program libouter.so deep >out
	diff expected out || fail "RTLD_DEEPBIND was left in"
	traced VRAMTRACE_DEEPBIND=keep app/bin/program libouter.so deep >out
	diff deep out || fail "VRAMTRACE_DEEPBIND=keep: RTLD_DEEPBIND was taken out"
done
no_traces

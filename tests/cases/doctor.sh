#!/bin/sh
# What `vramtrace doctor` says of programs that cannot be traced, or not in full, and of those that can.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

lib=$SOURCE_DIR/tests/cases/lib
hello=$examples/hello-shared

# doctor STATUS ARGUMENT...: its text goes into out.
doctor() {
	want=$1
	shift
	rc=0
	"$vramtrace" doctor "$@" >out 2>err || rc=$?
	[ $rc -eq "$want" ] || fail "doctor $*: exit status $rc, not $want: $(cat out err)"
}
says() { # PATTERN
	grep -q -- "$1" out || fail "no line '$1': $(cat out)"
}
says_not() {
	if grep -q -- "$1" out; then fail "there is a line '$1': $(cat out)"; fi
}

doctor 0
says "^ok  *recorder: $recorder"
says "^ok  *CUDA driver: $BUILD_DIR/sim/libcuda.so.1"
says '^ok  *the recorder knows all memory calls of this driver'
says '^ok  *traces go to \.'
says_not '^problem'

doctor 0 -- "$hello"
says "^ok  *$hello can be preloaded into"
says "^ok  *CUDA runtime: $BUILD_DIR/sim/libcudart.so.13"
says_not '^problem'
doctor 0 "$examples/hello-static" --device 3
says "^ok  *CUDA runtime: inside $examples/hello-static"
doctor 0 -- sh -c 'exit 1'
says '^ok  *CUDA runtime: none is linked'

# Programs that nothing can be preloaded into.
echo 'int main(void) { return 0; }' >program.c
${CC:-cc} -static -o static program.c
doctor 1 -- ./static
says '^problem  *./static is statically linked.*; link it dynamically'
if [ "$(id -u)" -eq 0 ]; then
	cp "$hello" setuid
	chown 65534 setuid
	chmod u+s setuid
	doctor 1 -- ./setuid
	says '^problem  *./setuid runs with the rights of another user'
	chown 0:65534 setuid
	chmod 2755 setuid
	doctor 1 -- ./setuid
	says '^problem  *./setuid runs with the rights of another group'
	chown 0:0 setuid
	doctor 0 -- ./setuid
fi
cp "$hello" foreign
printf '\267' | dd of=foreign bs=1 seek=18 conv=notrunc 2>dd.log
doctor 1 -- ./foreign
says '^problem  *./foreign is for aarch64, the recorder for '

# What cannot be run at all.
doctor 1 -- ./nosuch
says '^problem  *./nosuch: No such file'
doctor 1 -- no-such-program
says '^problem  *no-such-program is not in PATH'
doctor 1 -- ./
says '^problem  *./ is not a file'
echo 'exit 0' >data
chmod 644 data
doctor 1 -- ./data
says '^problem  *./data is not executable; chmod'

# Scripts stand for what runs them.
printf '#!%s\n' "$PWD/static" >script
chmod +x script
doctor 1 -- ./script
says "^ok  *./script is a script, run by $PWD/static"
says "^problem  *$PWD/static is statically linked"
printf '#!/usr/bin/env -S A=1 sh -e\n' >script
doctor 0 -- ./script
says '^ok  *./script is a script, run by sh$'
printf '#!%s\n' "$PWD/gone" >script
doctor 1 -- ./script
says "^problem  *$PWD/gone: No such file"
chmod +x data
doctor 0 -- ./data
says '^warning  *./data is neither a program nor begins with #!'
printf '#!%s\n' "$PWD/endless" >endless
chmod +x endless
doctor 1 -- ./endless
says 'scripts run by scripts'

# Libraries: one that is gone, and one that stands between.
echo 'int gone(void) { return 0; }' >gone.c
${CC:-cc} -shared -fPIC -o libgone.so gone.c
${CC:-cc} -shared -fPIC -D_GNU_SOURCE -o libother.so "$lib/next.c"
${CC:-cc} -o linked program.c -Wl,--no-as-needed -L. -lgone -lother
doctor 1 -- ./linked
says '^problem  *libgone.so is not found'
export LD_LIBRARY_PATH="$PWD:$LD_LIBRARY_PATH"
doctor 0 -- ./linked
says "^warning  *$PWD/libother.so exports cuMemAlloc_v2 too"
if [ "$MODE" = release ]; then
	LD_PRELOAD=$PWD/libother.so doctor 0 -- "$hello"
	says "^warning  *$PWD/libother.so exports cuMemAlloc_v2 too"
fi

# The machine: a newer driver, no unwinder, no place to write to.
mkdir newer hidden
${CC:-cc} -shared -fPIC -Wl,-soname,libcuda.so.1 -o newer/libcuda.so.999.10.1 "$lib/newer.c"
ln -s libcuda.so.999.10.1 newer/libcuda.so.1
LD_LIBRARY_PATH="$PWD/newer" doctor 0
says "^ok  *CUDA driver: $PWD/newer/libcuda.so.1, 999.10.1"
says '^warning  *1 memory call of this driver is unknown to the recorder: cuMemTeleportAsync'
: >hidden/libunwind.so.8
: >hidden/libcuda.so.1
LD_LIBRARY_PATH="$PWD/hidden" doctor 0
says '^warning  *no call stacks: libunwind.so.8 is not found; install libunwind8'
says '^ok  *CUDA driver: none on this machine'
VRAMTRACE_OUTPUT=/proc/x.vt doctor 1
says '^problem  *traces cannot be written to /proc: No space'
VRAMTRACE_OUTPUT=none/x.vt doctor 1
says '^problem  *traces cannot be written to none: No such file'
VRAMTRACE_OUTPUT="$PWD/%h/x.vt" doctor 0
says '^ok  *traces go to .*/%h/x.vt'
VRAMTRACE_ENABLED=0 doctor 1
says '^problem  *VRAMTRACE_ENABLED=0'
VRAMTRACE_DEEPBIND=keep doctor 0
says '^warning  *VRAMTRACE_DEEPBIND=keep'

# For scripts.
doctor 1 --json -o findings.json -- ./static
has_lines out 0
[ "$(json findings.json '[d["schema"], d["problems"]] + [f["check"] for f in d["findings"] if f["level"] == "problem"]')" = \
	"['vramtrace.doctor', 1, 'static']" ] || fail "$(cat findings.json)"
doctor 2 --nonsense
doctor 2 -o /nonexistent/findings.json
# A recorder that is not there.
cp "$vramtrace" .
rc=0
./vramtrace doctor >out 2>err || rc=$?
[ $rc -eq 1 ] || fail "exit status $rc without a recorder"
says '^problem  *recorder: no libvramtrace.so'

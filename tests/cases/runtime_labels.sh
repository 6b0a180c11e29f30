#!/bin/sh
# The public name of a runtime call stands beside the driver calls it makes, whichever runtime the caller is bound to; and nothing
# that the program sees is different.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

lib=$SOURCE_DIR/tests/cases/lib
sim=$BUILD_DIR/sim
sanitize=
case $MODE in
asan) sanitize=-fsanitize=address,undefined ;;
tsan) sanitize=-fsanitize=thread ;;
cov) sanitize=--coverage ;;
esac
build() { # OUTPUT [FLAG...]
	output=$1
	shift
	# shellcheck disable=SC2086
	${CC:-cc} $sanitize -g -fPIC -o "$output" "$@"
}

# runs NAME COMMAND...: the output is that without the recorder. What each record says of its calls goes into NAME.labels.
runs() {
	name=$1
	shift
	env ${preload:+LD_PRELOAD="$preload"} "$@" >expected 2>&1 || fail "$name: wrong without the recorder: $(cat expected)"
	traced LD_PRELOAD="${preload:+$preload:}$recorder" VRAMTRACE_OUTPUT="$name.vt" "$@" >out 2>err ||
		fail "$name: exit status $?: $(cat out err)"
	diff expected out || fail "$name: the output has changed"
	has_lines err 1
	"$vramtrace" dump --json "$name.vt" >"$name.json"
	python3 - "$name.json" >"$name.labels" <<-'END'
		import json, sys
		for line in open(sys.argv[1]):
		    r = json.loads(line)
		    if r["record"] in ("alloc", "free", "failure", "copy", "set"):
		        print(r["record"], r["api_id_name"], r.get("caller_api_name") or "-")
	END
}

# labels NAME: NAME.labels is what stands on standard input.
labels() {
	cat >"$1.expected"
	diff "$1.expected" "$1.labels" || fail "$1: the labels are wrong"
}
preload=''

# The second free of nothing makes a call of the driver that frees nothing: no record.
runs shared "$programs/runtime_labels"
cat >plain <<-'END'
	alloc cuMemAlloc_v2 cudaMalloc
	failure cuMemAlloc_v2 cudaMalloc
	alloc cuMemAllocPitch_v2 cudaMallocPitch
	alloc cuMemAllocManaged cudaMallocManaged
	alloc cuMemHostAlloc cudaMallocHost
	alloc cuMemHostAlloc cudaHostAlloc
	alloc cuMemHostRegister_v2 cudaHostRegister
	copy cuMemcpyHtoD_v2 cudaMemcpy
	copy cuMemcpyAsync cudaMemcpyAsync
	set cuMemsetD8_v2 cudaMemset
	set cuMemsetD8Async cudaMemsetAsync
	set cuMemsetD2D8_v2 cudaMemset2D
	free cuMemHostUnregister cudaHostUnregister
	free cuMemFreeHost cudaFreeHost
	free cuMemFreeHost cudaFreeHost
	free cuMemFree_v2 cudaFree
	free cuMemFree_v2 cudaFree
	free cuMemFree_v2 cudaFree
	free cuMemFree_v2 cudaFree
	alloc cuMemAllocAsync cudaMallocAsync
	free cuMemFreeAsync cudaFreeAsync
	alloc cuMemAllocFromPoolAsync cudaMallocFromPoolAsync
	free cuMemFreeAsync cudaFreeAsync
END
labels shared <plain

# The header's names for a default stream of each thread.
# shellcheck disable=SC2086
build per_thread -DCUDA_API_PER_THREAD_DEFAULT_STREAM $CUDA_FLAGS "$SOURCE_DIR/tests/cases/runtime_labels.c" -L"$sim" -lcudart
runs per_thread ./per_thread
sed -e 's/\(cuMemcpyHtoD_v2\|cuMemsetD8_v2\|cuMemsetD2D8_v2\) \(.*\)/\1_ptds \2_ptds/' \
	-e 's/\(cu[A-Za-z0-9]*Async\) \(.*\)/\1_ptsz \2_ptsz/' plain | labels per_thread

# A runtime inside the program has no names to be called by.
# shellcheck disable=SC2086
build static $CUDA_FLAGS "$SOURCE_DIR/tests/cases/runtime_labels.c" "$sim/libcudart_static.a" -ldl
runs static ./static
sed 's/ [^ ]*$/ -/' plain | labels static

# Other runtimes: of another version, and a second copy of the same under a name of its own.
sed 's/libcudart.so.13/libcudart.so.12/' "$SOURCE_DIR/tests/sim/libcudart.map" >old.map
other() { # SONAME MAP
	build "$1" -shared -Wl,-soname,"$1" -Wl,--version-script="$2" -Wl,--whole-archive "$sim/libcudart_static.a" \
		-Wl,--no-whole-archive -ldl
}
other libcudart.so.12 old.map
other libcudart-1234abcd.so.13 "$SOURCE_DIR/tests/sim/libcudart.map"
plugin() { # NAME RUNTIME
	build "$1" -shared -D_GNU_SOURCE -Wl,-rpath,"$PWD" "$lib/runtime_plugin.c" "$2"
}
plugin ours.so "$sim/libcudart.so"
plugin old.so ./libcudart.so.12
plugin copy.so ./libcudart-1234abcd.so.13

host=$programs/runtime_host
used() { # NAME N: N plugins did their calls.
	for _ in $(seq "$2"); do
		printf '%s\n' 'alloc cuMemAlloc_v2 cudaMalloc' 'free cuMemFree_v2 cudaFree' 'alloc cuMemAlloc_v2 cudaMalloc'
	done | labels "$1"
}
runs local "$host" l ./ours.so
used local 1
grep -q 'seen by name 1' out
grep -q 'use 1' out || fail "the runtime's error is lost: $(cat out)"
runs global "$host" g ./ours.so
used global 1
runs two-versions "$host" l ./ours.so l ./old.so
used two-versions 2
runs two-copies "$host" l ./ours.so l ./copy.so
used two-copies 2
# In the global scope the first copy is everybody's, if it is of the version that is wanted.
runs shadowed "$host" g ./ours.so l ./copy.so
used shadowed 2
runs not-shadowed "$host" g ./ours.so l ./old.so
used not-shadowed 2
# What is opened where another library was closed.
runs reopened "$host" l ./ours.so l ./ours.so l ./copy.so
used reopened 3

# The sanitizers put up neither with RTLD_DEEPBIND nor with another's dlsym before theirs.
if [ "$MODE" = asan ] || [ "$MODE" = tsan ]; then
	exit 0
fi
notes() { # NAME
	"$vramtrace" info --json "$1.vt" >info.json
	json info.json 'd["traces"][0]["notes"]' >notes
}

# RTLD_DEEPBIND puts a library's own libraries before the recorder.
runs deep "$host" l ./ours.so ld ./copy.so
used deep 2
notes deep
grep -q 'RTLD_DEEPBIND; the flag was taken out' notes || fail "the flag is not noted: $(cat notes)"
VRAMTRACE_DEEPBIND=keep
export VRAMTRACE_DEEPBIND
runs kept "$host" l ./ours.so ld ./copy.so
used kept 1
notes kept
grep -q 'RTLD_DEEPBIND, left in by VRAMTRACE_DEEPBIND=keep' notes || fail "the flag is not noted: $(cat notes)"
unset VRAMTRACE_DEEPBIND

# A tool before the recorder that gives the runtime the driver's own functions.
build no_hooks.so -shared "$lib/no_hooks.c"
preload=$PWD/no_hooks.so
runs bypassed "$programs/runtime_labels"
labels bypassed <<-'END'
	alloc cudaMalloc -
	alloc cudaMallocPitch -
	alloc cudaMallocManaged -
	alloc cudaMallocHost -
	alloc cudaHostAlloc -
	alloc cudaHostRegister -
	free cudaHostUnregister -
	free cudaFreeHost -
	free cudaFreeHost -
	free cudaFree -
	free cudaFree -
	free cudaFree -
	alloc cudaMallocAsync -
	free cudaFreeAsync -
	alloc cudaMallocFromPoolAsync -
	free cudaFreeAsync -
END
notes bypassed
grep -q 'driver hooks were bypassed for 16 runtime calls' notes || fail "the bypass is not noted: $(cat notes)"

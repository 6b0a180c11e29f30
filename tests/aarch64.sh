#!/bin/sh
# Runs examples/hello.c built for aarch64 under the preload on an emulated processor, and reads its trace with this machine's
# command: the assembly of the hooks works, and a trace can be read on another architecture.
#   aarch64.sh CLI
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
build=build/aarch64
find build/arm64 -name libunwind.so.8 -o -name liblzma.so.5 | xargs -I '{}' cp '{}' $build/
rm -f $build/hello.vt
qemu-aarch64-static -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$PWD/$build/sim:$PWD/$build" \
	-E LD_PRELOAD="$PWD/$build/libvramtrace.so" -E VRAMTRACE_OUTPUT="$PWD/$build/hello.vt" $build/examples/hello-shared
"$1" report $build/hello.vt

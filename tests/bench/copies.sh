#!/bin/sh
# What a traced copy costs: asynchronous copies of 4 KiB from pinned memory, at 40 frames, 50 stacks in turn, with and without
# timing on the device, as ratios to the bare call; medians of five runs in rotation.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
program=$BUILD_DIR/bench/hot_path
one() { # HOW: bare, or STACK-TIMING
	case $1 in
	bare) "$program" 300000 40 50 copy ;;
	*) LD_PRELOAD=$BUILD_DIR/libvramtrace.so VRAMTRACE_OUTPUT="$dir/%p.vt" VRAMTRACE_QUIET=1 VRAMTRACE_STACK="${1%-*}" \
		VRAMTRACE_COPY_TIMING="${1#*-}" "$program" 300000 40 50 copy ;;
	esac
}
all='bare none-0 native-0 none-1 native-1'
for round in 1 2 3 4 5; do
	for how in $all; do
		one "$how" >>"$dir/$how"
		rm -f "$dir"/*.vt
	done
done
median() { sort -n "$dir/$1" | sed -n 3p; }
printf '%-44s %10s %10s\n' 'one asynchronous copy, 40 frames' 'ns' 'ratio'
for how in $all; do
	case $how in
	bare) what='without the recorder' ;;
	*-0) what="VRAMTRACE_STACK=${how%-*}" ;;
	*) what="VRAMTRACE_STACK=${how%-*} COPY_TIMING=1" ;;
	esac
	awk -v what="$what" -v ns="$(median "$how")" -v bare="$(median bare)" \
		'BEGIN { printf "%-44s %10.1f %10.2f\n", what, ns, ns / bare }'
done

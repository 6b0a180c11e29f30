#!/bin/sh
# Nanoseconds that recording adds to one call of the driver, at 40 frames, 50 stacks in turn; medians of five runs in rotation.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
program=$BUILD_DIR/bench/hot_path
one() {
	case $1 in
	bare) "$program" ;;
	*) LD_PRELOAD=$BUILD_DIR/libvramtrace.so VRAMTRACE_OUTPUT="$dir/%p.vt" VRAMTRACE_QUIET=1 \
		VRAMTRACE_STACK="${1%-*}" VRAMTRACE_UNWINDER="${1#*-}" "$program" ;;
	esac
}
for round in 1 2 3 4 5; do
	for how in bare none-fast native-libunwind native-fast; do
		one "$how" >>"$dir/$how"
		if [ "$how" = native-fast ]; then ls -l "$dir"/*.vt | awk '{print $5}' >"$dir/size"; fi
		rm -f "$dir"/*.vt
	done
done
median() { sort -n "$dir/$1" | sed -n 3p; }
printf '%-28s %10s %10s\n' 'one call, 40 frames' 'ns' 'added ns'
for how in bare none-fast native-libunwind native-fast; do
	awk -v how="$how" -v ns="$(median "$how")" -v bare="$(median bare)" \
		'BEGIN { printf "%-28s %10.1f %10.1f\n", how == "bare" ? "without the recorder" : "stacks: " how, ns, ns - bare }'
done
awk '{ printf "%-28s %10.1f\n", "bytes an event in the trace", $1 / 1000000 }' "$dir/size"

#!/bin/sh
# Nanoseconds that recording adds to one call of the driver below a Python program, by what VRAMTRACE_STACK keeps; medians of
# five runs in rotation. Beside them what other ways to take the native stack cost at the same place.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
here=$(dirname "$0")/lib
python=$("${PYTHON:-python3}" -c 'import sys; print(sys.executable)')
c_frames=${C_FRAMES:-18} python_frames=${PYTHON_FRAMES:-4}
one() {
	set -- "$1" "$python" "$here/python_path.py" "$BUILD_DIR/bench/python_path.so" "$c_frames" "$python_frames"
	how=$1
	shift
	case $how in
	bare) "$@" ;;
	*) LD_PRELOAD=$BUILD_DIR/libvramtrace.so VRAMTRACE_OUTPUT="$dir/%p.vt" VRAMTRACE_QUIET=1 VRAMTRACE_STACK="$how" "$@" ;;
	esac
}
for round in 1 2 3 4 5; do
	for how in bare none native python both; do
		one "$how" >>"$dir/$how"
		rm -f "$dir"/*.vt
	done
done
median() { awk -v n="$2" '{ print $n }' "$dir/$1" | sort -n | sed -n 3p; } # FILE COLUMN
row() { awk -v what="$1" -v ns="$2" -v base="$3" -v unit="$4" \
	'BEGIN { printf "%-44s %10.1f %10.1f %8.1f\n", what, ns, ns - base, (ns - base) / unit }'; }
# What recording adds is set against what unwinding adds for a stack that repeats.
unit=$(awk -v a="$(median native 1)" -v b="$(median none 1)" 'BEGIN { print a - b }')
rows() { # TITLE COLUMN
	printf '%-44s %10s %10s %8s\n' "$1" ns 'added ns' 'x native'
	for how in bare none native python both; do
		name="VRAMTRACE_STACK=$how"
		[ "$how" != bare ] || name='without the recorder'
		row "$name" "$(median "$how" "$2")" "$(median bare "$2")" "$unit"
	done
}
"$python" -c 'import sys; print("Python", sys.version.split()[0], end=", ")'
printf '%s Python frames, %s native; processor time\n' "$python_frames" "$(median bare 6)"
rows 'one call, the stack repeats' 1
row 'backtrace() of glibc alone' "$(median bare 4)" 0 "$unit"
row 'unw_step() over all frames alone' "$(median bare 5)" 0 "$unit"
rows 'one call, 14 C frames more, a new path' 2
rows 'one call, 14 Python frames more, a new path' 3

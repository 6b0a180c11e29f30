#!/bin/sh
# Checks of built files.
#   elf.sh needed LIB NAME...      LIB's NEEDED entries are exactly these (the dynamic linker itself is allowed)
#   elf.sh exports LIB MAP         LIB exports exactly the names of the version script
#   elf.sh glibc VERSION FILE...   no FILE needs a glibc newer than VERSION
export LC_ALL=C
check=$1
shift

case $check in
needed)
	lib=$1
	shift
	got=$(readelf -dW "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-linux' | sort | xargs)
	want=$(printf '%s\n' "$@" | sort | xargs)
	[ "$got" = "$want" ] || { echo "$lib: NEEDED is '$got', not '$want'" >&2; exit 1; }
	;;
exports)
	got=$(mktemp) want=$(mktemp)
	trap 'rm -f "$got" "$want"' EXIT
	readelf --dyn-syms -W "$1" | awk '$5 ~ /GLOBAL|WEAK|UNIQUE/ && $7 != "UND" { print $8 }' | sort >"$got"
	sed -n 's/^\([A-Za-z0-9_]*\);$/\1/p' "$2" | sort >"$want"
	[ -s "$want" ] || { echo "$2: no names" >&2; exit 1; }
	if ! diff "$want" "$got" >/dev/null; then
		echo "$1: exports differ from $2:" >&2
		diff "$want" "$got" | sed -n 's/^</  not exported:/p; s/^>/  not in the map:/p' >&2
		exit 1
	fi
	;;
glibc)
	max=$1
	shift
	rc=0
	for file; do
		newest=$(readelf -VW "$file" | grep -o 'Name: GLIBC_[0-9.]*' | sed 's/.*_//' | sort -uV | tail -n 1)
		if [ "$(printf '%s\n' "$newest" "$max" | sort -V | tail -n 1)" != "$max" ]; then
			echo "$file: needs glibc $newest, over $max:" >&2
			readelf --dyn-syms -W "$file" | grep -F "@GLIBC_$newest" | awk '{ print "  " $8 }' >&2
			rc=1
		fi
	done
	exit $rc
	;;
*)
	echo "usage: elf.sh needed|exports|glibc ..." >&2
	exit 2
	;;
esac

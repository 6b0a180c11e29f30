#!/bin/sh
# Shows that tests tell the model of PyTorch's allocator from wrong ones: each of ten wrong rules is put into a copy of one
# source file, and test_allocator has to fail with it. Run by make test, or by hand after a change to tools/analysis/allocator*.c
# or their tests (3 s). Exit 1 when a wrong model passes, or a rule is no longer where it is looked for.
#
#   make build/release/tests/unit/test_allocator && sh tests/whatif_mutants.sh [BUILD FOLDER]
set -eu
cd "$(dirname "$0")/.."

build=${1:-build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
objects="$build/tests/unit/test_allocator.o"
archive="$build/tests/libunder_test.a"
caught=0 missed=0

# link OUT OBJECT...: objects here come before those of the archive.
link() {
	out=$1
	shift
	# shellcheck disable=SC2086
	${CC:-cc} -o "$out" $objects "$@" "$archive" -lcmocka -lm -lpthread 2>"$work/link.log" || {
		cat "$work/link.log"
		exit 2
	}
}

# mutant FILE NAME SED...: the rule that is wrong, and the changes that make it so, each of which must change something.
mutant() {
	file=tools/analysis/$1.c
	name=$2
	shift 2
	cp "$file" "$work/mutant.c"
	for change; do
		sed "$change" "$work/mutant.c" >"$work/changed.c"
		if cmp -s "$work/mutant.c" "$work/changed.c"; then
			echo "GONE    $name: nothing in $file to change by $change"
			missed=$((missed + 1))
			return
		fi
		mv "$work/changed.c" "$work/mutant.c"
	done
	${CC:-cc} -std=gnu11 -O1 -D_GNU_SOURCE -Iinclude -Isrc -Itools -c -o "$work/mutant.o" "$work/mutant.c"
	link "$work/test" "$work/mutant.o"
	if "$work/test" >"$work/test.log" 2>&1; then
		echo "PASSES  $name"
		missed=$((missed + 1))
	else
		echo "caught  $name: $(sed -n 's/^\[  FAILED  \] \([a-z_]*\)$/\1/p' "$work/test.log" | sort -u | tr '\n' ' ')"
		caught=$((caught + 1))
	fi
}

link "$work/test"
"$work/test" >"$work/test.log" 2>&1 || {
	cat "$work/test.log"
	exit 2
}

mutant allocator "split when the rest is 1 MiB" 's/ rest > SMALL_BYTES;/ rest >= SMALL_BYTES;/'
mutant allocator "1 MiB counted as large" 's/bytes <= SMALL_BYTES/bytes < SMALL_BYTES/'
mutant allocator "10 MiB taken from a segment of 20 MiB" 's/bytes < MIN_LARGE_BYTES/bytes <= MIN_LARGE_BYTES/'
mutant allocator_set "the highest address among equals" 's/<< 64 | address/<< 64 | ~address/' \
	's/find(set, bytes, 0)/find(set, bytes, UINT64_MAX)/' 's/block->address + 1/block->address - 1/'
mutant allocator "the growing end is taken as any block" 's/if (block && block->segment->page_bytes)/if (!set)/'
mutant allocator_release "collection that stops early" \
	's/if (!is_collectable(block) || (double)age/if (freed >= target || !is_collectable(block) || (double)age/'
mutant allocator "the cap checked with the request" 's/reserved_bytes + new_bytes > /reserved_bytes + bytes > /'
mutant allocator "no limit to what an oversize block may waste" 's/if (bytes >= settings->max_split_bytes &&/if (!set \&\&/'
mutant allocator "graph pools ignored" 's/if (!id)/if (true)/'
mutant allocator_release "no release of oversize blocks" 's/if (limit == UINT64_MAX)/if (limit)/'

echo "$caught of $((caught + missed)) wrong models caught"
[ "$missed" -eq 0 ]

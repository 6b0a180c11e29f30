#!/bin/sh
# What the README and the man page say about the program is so: the coverage table, the variables, the commands.
set -eu
cd "$SOURCE_DIR"
export LC_ALL=C
work=$OLDPWD

sh tests/coverage-table.sh check

# A table that lost a row must be noticed.
mkdir -p "$work/tree/src/hooks" "$work/tree/tests"
cp README.md "$work/tree/"
cp tests/coverage-table.sh "$work/tree/tests/"
grep -v 'cuMemAllocPitch_v2' src/hooks/driver.def >"$work/tree/src/hooks/driver.def"
if sh "$work/tree/tests/coverage-table.sh" check 2>/dev/null; then
	echo "a changed table was not noticed"
	exit 1
fi
sh "$work/tree/tests/coverage-table.sh" update
sh "$work/tree/tests/coverage-table.sh" check

same() {
	if ! diff "$work/$1" "$work/$2" >"$work/diff"; then
		echo "$3:"
		cat "$work/diff"
		exit 1
	fi
	[ -s "$work/$1" ]
}

grep -o '"VRAMTRACE_[A-Z_]*"' src/record/options.c | tr -d '"' | grep -v '_$' | sort -u >"$work/read"
sed -n 's/^\.It Ev \(VRAMTRACE_[A-Z_]*\).*/\1/p' tools/man/vramtrace.1 | sort -u >"$work/described"
same read described 'variables that the recorder reads (<) and those of the man page (>)'

"$BUILD_DIR/vramtrace" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | sort -u >"$work/commands"
sed -n '/^\.Sh COMMANDS/,/^\.Ss/s/^\.It Cm \([a-z]*\).*/\1/p' tools/man/vramtrace.1 | sort -u >"$work/pages"
same commands pages 'commands of vramtrace --help (<) and those of the man page (>)'

while read -r command; do
	"$BUILD_DIR/vramtrace" "$command" --help
done <"$work/commands" | sed -n 's/^  .... *\(--[a-z-]*\).*/\1/p' | sort -u >"$work/options"
sed -n '/^\.Ss Options of run/,/^\.Sh ENV/s/^\.It Fl \(. , \)\{0,1\}-\([a-z-]*\).*/--\2/p' tools/man/vramtrace.1 |
	sort -u >"$work/flags"
same options flags 'options of the commands (<) and those of the man page (>)'

#!/bin/sh
# The README's table of covered driver entry points, made from src/hooks/driver.def.
#   coverage-table.sh          prints the table
#   coverage-table.sh check    fails when README.md does not hold exactly this table between its markers
#   coverage-table.sh update   puts it there
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
begin='<!-- coverage:begin -->' end='<!-- coverage:end -->'

# A row is ROW(export, name, version, stream, family, effect). A call has several exports: versions of its interface, and
# forms for the per-thread default stream.
table() {
	awk -F'[(), \t]+' '
	/^#if/ { newer = 1 }
	/^#endif/ { newer = 0 }
	/^ROW\(/ {
		n_exports++
		n_newer += newer
		if (!($6 in calls))
			families[++n_families] = $6
		if (!n_variants[$6, $3]++)
			calls[$6] = calls[$6] " " $3
	}
	END {
		title["LOOKUP"] = "Look-up of entry points"
		title["CONTEXT"] = "Start and contexts"
		title["DEVICE"] = "Device and managed memory"
		title["HOST"] = "Page-locked host memory"
		title["POOL"] = "Stream-ordered memory"
		title["VMM"] = "Virtual memory management"
		title["COPY"] = "Linear copies"
		title["SET"] = "Memory sets"
		title["WAIT"] = "Calls that wait for the device"
		title["CAPTURE"] = "Stream capture"
		title["ARRAY"] = "Arrays"
		title["SHARED"] = "Memory of other processes and APIs"
		title["GRAPH"] = "Graphs"
		title["CODE"] = "Code"
		title["OBJECT"] = "Streams and events, counted"
		title["LAUNCH"] = "First launches"
		title["COPY_BOX"] = "Copies of rectangles and boxes"
		title["COPY_ARRAY"] = "Copies from and to arrays"
		title["COPY_BATCH"] = "Batches of copies"
		title["MIGRATE"] = "Managed memory on the move"
		print "| family | calls, each with the number of its exported variants |"
		print "|---|---|"
		for (f = 1; f <= n_families; f++) {
			family = families[f]
			n = split(calls[family], names, " ")
			line = ""
			for (i = 1; i <= n; i++)
				line = line (i > 1 ? ", " : "") "`" names[i] "` " n_variants[family, names[i]]
			n_calls += n
			printf "| %s | %s |\n", family in title ? title[family] : family, line
		}
		printf "\n%d calls, %d exported entry points, %d of them only when built with newer headers than 11.8.\n",
			n_calls, n_exports, n_newer
	}' src/hooks/driver.def
}

between() {
	awk -v begin="$begin" -v end="$end" '$0 == end { inside = 0 } inside; $0 == begin { inside = 1 }' README.md
}

case ${1:-print} in
print)
	table
	;;
check)
	want=$(table)
	if [ "$(between)" != "$want" ]; then
		echo "README.md: its coverage table is not that of src/hooks/driver.def; run: sh $0 update" >&2
		exit 1
	fi
	;;
update)
	grep -qxF -e "$begin" README.md && grep -qxF -e "$end" README.md || {
		echo "README.md: no lines '$begin' and '$end'" >&2
		exit 1
	}
	new=$(mktemp)
	trap 'rm -f "$new"' EXIT
	{
		sed "/^$begin\$/q" README.md
		table
		sed -n "/^$end\$/,\$p" README.md
	} >"$new"
	cat "$new" >README.md
	;;
*)
	echo "usage: coverage-table.sh [check|update]" >&2
	exit 2
	;;
esac

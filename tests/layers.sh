#!/bin/sh
# Checks that every #include follows the arrows of the architecture; prints file:line of each that does not.
#
#   hooks -> record -> trace     hooks -> python     record -> python     hooks, python -> elf
#   cmd_* -> analysis -> model -> trace     cmd_* -> symbol -> model     cmd_* -> output -> (result structs)
#   cmd_* -> doctor -> model     cmd_* -> pack -> symbol
#
# An arrow may be followed over several steps. Quoted includes are written from src/ or tools/ ("trace/reader.h"), or
# name a file beside the including one ("cmd.h").

cd "$(dirname "$0")/.." || exit 2

find src include tools -name '*.[chS]' -o -name '*.def' | sort | xargs awk '
BEGIN {
	may["src/trace"] = "trace"
	may["src/elf"] = "elf"
	may["src/python"] = "python elf"
	may["src/record"] = "record trace python elf"
	may["src/hooks"] = "hooks record trace python elf"
	may["tools/model"] = "model trace"
	may["tools/analysis"] = "analysis model trace"
	may["tools/symbol"] = "symbol model trace"
	may["tools/pack"] = "pack symbol model trace"
	may["tools/doctor"] = "doctor model"
	may["tools/output"] = "output analysis doctor symbol model trace"
	may["tools"] = "output analysis doctor pack symbol model trace"
	may["include/vramtrace"] = ""

	# Headers from outside, and the only place that may include them.
	only("^(cuda.*|driver_types|vector_types)\\.h$", "^src/hooks/", "src/hooks")
	only("^uthash\\.h$", "^(src/record/table\\.h|tools/)", "src/record/table.h and tools")
	only("^libunwind.*\\.h$", "^src/record/", "src/record")
	only("^(libelf|gelf)\\.h$", "^tools/(symbol|doctor)/", "tools/symbol and tools/doctor")
	only("^(libdw|dwarf|libiberty/.*|demangle)\\.h$|^elfutils/", "^tools/symbol/", "tools/symbol")
	only("^n?curses\\.h$", "^tools/output/", "tools/output")
	only("^zstd.*\\.h$", "^tools/pack/", "tools/pack")
	only("^zlib\\.h$|pb-c\\.h$", "^tools/output/", "tools/output")
}
function only(pattern, where, text)
{
	n_rules++
	rule[n_rules] = pattern
	place[n_rules] = where
	place_text[n_rules] = text
}
function wrong(why)
{
	printf "%s:%d: %s: %s\n", FILENAME, FNR, header, why
	n_wrong++
}
function exists(path,    line, got)
{
	got = (getline line < path) >= 0
	close(path)
	return got
}
FNR == 1 {
	folder = FILENAME
	sub(/\/[^\/]*$/, "", folder)
	part = folder
	while (part != "" && !(part in may) && sub(/\/[^\/]*$/, "", part))
		;
	if (!(part in may)) {
		header = "folder"
		wrong("no arrow is known for it; add it to tests/layers.sh")
		nextfile
	}
}
/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
	quoted = $0 ~ /^[ \t]*#[ \t]*include[ \t]*"/
	header = $0
	sub(/^[ \t]*#[ \t]*include[ \t]*[<"]/, "", header)
	sub(/[>"].*/, "", header)
	for (i = 1; i <= n_rules; i++)
		if (header ~ rule[i] && FILENAME !~ place[i])
			wrong("only " place_text[i] " may include it")
	if (!quoted || header ~ /^vramtrace\//)
		next
	n_checked++
	if (header ~ /(^|\/)\.\.\//) {
		wrong("written with ..")
		next
	}
	target = header
	if (sub(/\/.*/, "", target)) {
		if ((" " may[part] " ") !~ (" " target " "))
			wrong("no arrow leads from " part " to " target)
	} else if (!exists(folder "/" header)) {
		wrong("not beside the file that includes it")
	}
}
END {
	if (n_wrong)
		printf "%d includes against the arrows\n", n_wrong
	exit n_wrong > 0
}'

#!/bin/sh
# The torch layer can be left out, and says what it does not see; PyTorch's own functions are called all the same.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"
export LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$BUILD_DIR/sim/torch/lib"

runs() { # NAME "VARIABLE=VALUE ..."
	name=$1
	# shellcheck disable=SC2086 # words
	traced VRAMTRACE_QUIET=1 VRAMTRACE_OUTPUT="$name.vt" $2 "$programs/torch_random" "$name.json" --ops 2000 >"$name.out" 2>&1 ||
		fail "$name: exit status $?: $(cat "$name.out")"
	"$vramtrace" report --json "$name.vt" >"$name.report"
	"$vramtrace" report "$name.vt" >"$name.text"
}
is() { # NAME EXPRESSION TEXT
	[ "$(json "$1.report" "$2")" = "$3" ] || fail "$1: $2 is $(json "$1.report" "$2"), not $3"
}
seen() { # NAME: reports that reached libc10
	json "$1.json" 'list(d["reports"].values())'
}

runs both ''
is both 'd["coverage"]["torch"]' "{'limits': [], 'blocks': True}"
is both 'd["torch"]["devices"][0]["version"]' 2.11.0+sim
is both 'd["traces"][0]["torch"]' 2.11.0+sim
is both 'd["allocators"]' '[]'
grep -q '^BLOCKS  *PyTorch 2.11.0+sim on GPU 0: ' both.text || fail "no line about PyTorch: $(cat both.text)"
# Blocks explain the bytes, with the program's own line; what is left has no stack.
[ "$MODE" = tsan ] || is both '{r["level"] for r in d["leaks"] if r["owner"] == "torch"} == {"block", "idle"}' True
is both '[r["verdict"] for r in d["leaks"] if r["level"] == "idle"]' "['cache']"

# Without stacks no loaded file is recorded, PyTorch's neither: what does not report is then not known to be there.
[ "$MODE" != tsan ] || exit 0

runs driver VRAMTRACE_LAYERS=driver
[ "$(seen driver)" = "$(seen both)" ] || fail "libc10 got $(seen driver) reports, not $(seen both)"
is driver 'd["coverage"]["torch"]["limits"]' "[\"PyTorch's blocks were not recorded: VRAMTRACE_LAYERS=driver\"]"
is driver 'd["torch"]' "{'devices': []}"
is driver '{r["level"] for r in d["leaks"]}' "{'driver'}"
grep -q "PyTorch's blocks were not recorded" driver.text || fail "the text does not say so: $(cat driver.text)"

"$vramtrace" run -q --layers driver -o run.vt -- "$programs/torch_random" run.json --ops 500 >run.text
"$vramtrace" info --json run.vt >run.report
is run '"block_alloc" in d["traces"][0]["records"]' False

# What comes from elsewhere is not reported as blocks, and is said.
runs async PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
is async 'd["coverage"]["torch"]["blocks"], "backend:cudaMallocAsync" in d["coverage"]["torch"]["limits"][0]' '(False, True)'
is async 'd["devices"][0]["kinds"]["pool"]["allocations"] > 500' True
runs uncached PYTORCH_NO_CUDA_MEMORY_CACHING=1
is uncached '"cache was off" in d["coverage"]["torch"]["limits"][0]' True
is uncached 'd["devices"][0]["kinds"]["linear"]["allocations"] > 500' True

# In a program without PyTorch nothing is said of it.
traced VRAMTRACE_QUIET=1 VRAMTRACE_OUTPUT=plain.vt "$examples/hello-shared" >plain.out
"$vramtrace" report --json plain.vt >plain.report
is plain 'd["torch"], d["coverage"]["torch"]' '(None, None)'

#!/bin/sh
# Ranges and marks of NVTX become phases and marks: of a program that does by itself what the headers of NVTX do, and of one that is
# compiled with them, where the toolkit has them. `run` names the recorder to NVTX, unless something else is named.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

check() { # FILE
	"$vramtrace" report --json "$1" >report.json
	python3 - report.json <<-'END'
		import json, sys
		d = json.load(open(sys.argv[1]))
		phases = {p["name"]: (p["count"], p["open"], p["copies"]["calls"]) for p in d["phases"]}
		want = {"early": (1, 0, 1), "outer": (1, 0, 3), "inner *": (2, 0, 2), "wide \u00e9\u4e16\U0001f600": (1, 0, 0),
		        "lib:registered": (1, 0, 1), "lib:attributes": (1, 0, 0), "range": (1, 0, 1), "": (1, 0, 0), "left": (1, 1, 0)}
		assert phases == want, phases
		marks = {m["name"]: m["count"] for m in d["marks"]}
		assert marks == {"mark *": 3, "lib:mark of the library": 1}, marks
		assert d["devices"][0]["peak"]["phase"] == "inner 2", d["devices"][0]["peak"]
	END
}

runs() { # PROGRAM NAME
	"$1" || fail "$2 fails without the recorder"
	traced VRAMTRACE_QUIET=1 VRAMTRACE_OUTPUT="$2.vt" NVTX_INJECTION64_PATH="$recorder" "$1" || fail "$2"
	check "$2.vt"
	# Without the variable nothing is seen of it, and another tool stays.
	traced VRAMTRACE_QUIET=1 VRAMTRACE_OUTPUT="$2-without.vt" "$1"
	"$vramtrace" report --json "$2-without.vt" >report.json
	[ "$(json report.json 'd["phases"] + d["marks"]')" = '[]' ] || fail "$2: NVTX was found by itself"
	"$vramtrace" run -q -o "$2-run.vt" -- "$1" || fail "$2: run"
	check "$2-run.vt"
	NVTX_INJECTION64_PATH=none "$vramtrace" run -q -o "$2-other.vt" -- "$1" || fail "$2: run with another tool"
	"$vramtrace" report --json "$2-other.vt" >report.json
	[ "$(json report.json 'd["phases"]')" = '[]' ] || fail "$2: the user's own tool was set aside"
}

runs "$programs/nvtx_user" user

sanitize=
case $MODE in
asan) sanitize=-fsanitize=address,undefined ;;
tsan) exit 0 ;; # NVTX's own start has no fences
cov) sanitize=--coverage ;;
esac
echo '#include <nvtx3/nvToolsExt.h>' >probe.c
# shellcheck disable=SC2086 # words
if ! ${CC:-cc} $CUDA_FLAGS -fsyntax-only probe.c 2>/dev/null; then
	echo "this toolkit has no nvtx3: without a program that uses it"
	exit 0
fi
# shellcheck disable=SC2086 # words
${CC:-cc} $sanitize -g -DWITH_NVTX $CUDA_FLAGS "$SOURCE_DIR/tests/cases/nvtx_user.c" -o headers -L"$BUILD_DIR/sim" -lcuda -ldl
runs ./headers headers

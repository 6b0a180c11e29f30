#!/bin/sh
# What a program says of where it is: marks and phases in reports, in time lines and beside copies; and what the kernel says of the
# host's memory meanwhile. Without the recorder the calls do nothing.
set -eu
. "$SOURCE_DIR/tests/cases/lib/case.sh"

"$programs/annotate" >/dev/null || fail "the program fails without the recorder"
traced VRAMTRACE_QUIET=1 VRAMTRACE_OUTPUT=marks.vt "$programs/annotate" >locked
"$vramtrace" report --json marks.vt >report.json
"$vramtrace" timeline --json --points 50 marks.vt >timeline.json
"$vramtrace" timeline --csv --points 50 marks.vt >timeline.csv
python3 - report.json timeline.json timeline.csv locked <<'END'
import csv, json, sys
report, timeline = (json.load(open(path)) for path in sys.argv[1:3])
MIB = 1 << 20
phases = {p["name"]: p for p in report["phases"]}
counts = {name: (p["count"], p["open"], p["copies"]["calls"]) for name, p in phases.items()}
assert counts == {"load": (1, 0, 4), "step *": (10, 0, 30), "copy in": (10, 0, 30), "handed over": (1, 0, 2),
                  "red": (200, 0, 0), "green": (200, 0, 0), "blue": (200, 0, 0), "tail": (1, 1, 0)}, counts
assert phases["step *"]["copies"]["bytes"] == 30 * MIB
assert phases["step *"]["copies"]["host_time_ns"] == phases["copy in"]["copies"]["host_time_ns"]
whole = sum(t["host_time_ns"] for t in report["transfer_totals"])
assert sum(phases[n]["copies"]["host_time_ns"] for n in ("load", "step *", "handed over")) == whole > 0
peaks = {n: [(k["device"], k["tracked_bytes"]) for k in p["peaks"]] for n, p in phases.items()}
assert peaks["load"] == [(0, 64 * MIB)] and peaks["step *"] == [(0, 160 * MIB)] and peaks["tail"] == [(0, 64 * MIB)], peaks
peak = report["devices"][0]["peak"]
assert peak["phase"] == "step 7" and peak["mark"] is None and peak["tracked_bytes"] == 160 * MIB, peak
marks = {m["name"]: m["count"] for m in report["marks"]}
assert marks == {"step *": 10, "tick": 600, "x" * 255: 1}, marks

spans = [p for p in timeline["phases"] if p["name"].startswith("step ")]
assert [p["name"] for p in spans] == ["step %d" % i for i in range(10)], spans
assert all(p["begin_ns"] < p["end_ns"] for p in spans) and len({p["thread"] for p in spans}) == 1
assert sum(p["end_ns"] - p["begin_ns"] for p in spans) == phases["step *"]["time_ns"]
assert [p["end_ns"] for p in timeline["phases"] if p["name"] == "tail"] == [None]
assert len(timeline["phases"]) == 623 and len(timeline["marks"]) == 611 and timeline["marks_left_out"] == 0

host, = report["host_samples"]
seconds = report["traces"][0]["duration_ns"] / 1e9
assert 2 <= host["samples"] <= 2 + seconds, host
assert MIB < host["last"]["resident_bytes"] <= host["most_resident"]["bytes"]
assert host["last"]["machine_available_bytes"] > 0 and host["last"]["machine_swap_used_bytes"] is not None
locked = int(open(sys.argv[4]).read())
# What is locked and then left alone shows in the last sample.
assert host["last"]["locked_bytes"] >= locked, (host, locked)
assert len(timeline["host"]) == 50 and timeline["host"][-1]["resident_bytes"] > 0
rows = list(csv.DictReader(open(sys.argv[3])))
assert len(rows) == 50 and int(rows[-1]["resident_bytes"]) > 0 and int(rows[-1]["machine_available_bytes"]) > 0
END

"$vramtrace" report --ascii marks.vt >report.txt
grep -q '^PEAK .*, phase "step 7"' report.txt || fail "no phase at the peak: $(cat report.txt)"
grep -q '^PHASES .*"' report.txt && grep -q '"step \*", 10 times; peak 160.0 MiB; .* of host time in copies' report.txt ||
	fail "no phases: $(cat report.txt)"
grep -q '^HOST  *process: .* resident at most' report.txt || fail "no host: $(cat report.txt)"
"$vramtrace" transfers --ascii marks.vt >transfers.txt
grep -q '^ *10  .* 30  *30.0 MiB .* step \*$' transfers.txt || fail "no copies by phase: $(cat transfers.txt)"
"$vramtrace" timeline --ascii marks.vt | grep -q '\^.* marks$' || fail "no marks below the axis"
"$vramtrace" dump marks.vt >dump.txt
grep -q 'phase.*action=begin.*told=api.*name="step 3"' dump.txt || fail "dump: $(grep phase dump.txt | head)"

# No samples are wanted.
traced VRAMTRACE_QUIET=1 VRAMTRACE_MEMINFO=0 VRAMTRACE_OUTPUT=none.vt "$programs/annotate" >/dev/null
"$vramtrace" report --json none.vt >none.json
[ "$(json none.json 'd["host_samples"]')" = '[]' ] || fail "samples that nobody wanted"

# From Python, as the README says.
[ "$MODE" = release ] || exit 0
sed -n '/^import ctypes/,/^```/p' "$SOURCE_DIR/README.md" | sed '/^```/d' >told.py
[ -s told.py ] || fail "the README shows no use from Python"
cat >>told.py <<'END'
cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) and not cuda.cuCtxSetCurrent(context)
mark("step 1")
with phase("prefill"):
    assert not cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20))
END
python3 told.py || fail "from Python, without the recorder"
traced VRAMTRACE_QUIET=1 VRAMTRACE_OUTPUT=told.vt python3 told.py
"$vramtrace" report --json told.vt >told.json
[ "$(json told.json 'd["phases"][0]["name"], d["phases"][0]["count"], d["marks"][0]["name"]')" = "('prefill', 1, 'step *')" ] ||
	fail "from Python: $(json told.json 'd["phases"], d["marks"]')"

#!/usr/bin/env python3
"""Programs whose copies cost what they need not, on the simulated CUDA with a link of limited speed: each is found, at the
right function and with the right numbers, and the one that does it right is left alone. The device's time of copies is what
the program's own events say."""
import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(os.environ["SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["BUILD_DIR"])
sys.path.insert(0, str(SOURCE / "tests/gpu/workloads"))
import check_transfers  # noqa: E402

LINK = "2G"
# What calls cost on the simulated device, in microseconds, beyond what they do.
SLOW = {
    "c5": "cuMemcpyDtoH_v2:300,cuStreamSynchronize:300",
    "c6": "cuMemHostAlloc:1500,cuMemFreeHost:700,cuMemHostRegister_v2:1500,cuMemHostUnregister:700",
    "c7": "cuMemcpyPeer:200",
    "c8": "cuMemAlloc_v2:100,cuMemFree_v2:100,cuMemAllocAsync:200",
    "p2": "cuMemHostAlloc:300",
}
DIVISOR = {"clean": 2048}  # small enough for copies that are made at once to return at once
wrong = []


def run(name, **more):
    trace = f"{name}.vt"
    pathlib.Path(trace).unlink(missing_ok=True)
    env = dict(os.environ, LD_PRELOAD=str(BUILD / "libvramtrace.so"), VRAMTRACE_OUTPUT=trace, VRAMTRACE_QUIET="1",
               CUSIM_LINK=LINK, CUSIM_DEVICES="2", **more)
    if name in SLOW:
        env["CUSIM_SLOW"] = SLOW[name]
    done = subprocess.run([BUILD / "gpu/transfers-shared", name, str(DIVISOR.get(name, 64))], env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}: exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout), report(trace)


def report(*traces):
    done = subprocess.run([BUILD / "vramtrace", "transfers", "--json", *traces], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{traces}: exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def check(right, what):
    if not right:
        wrong.append(what)


def check_cases():
    for name in "c1", "c3", "c5", "c6", "c7", "c8", "p1", "p2", "p4":
        truth, seen = run(name)
        check(truth, f"{name}: the program expects nothing")
        wrong.extend(f"{name}: {line}" for line in check_transfers.differences(truth, seen))
        for finding in seen["transfer_findings"]:
            check(finding["advice"], f"{name}: {finding['finding']} without advice")
    _, seen = run("clean")
    # Copies are made at once here, and a sanitizer makes them take long.
    found = [f["finding"] for f in seen["transfer_findings"] if os.environ["MODE"] == "release" or f["finding"] != "async_blocked"]
    check(not found, f"clean: found {found}")
    check(sum(t["bytes"] for t in seen["transfer_totals"]) > 1 << 20, "clean: no copies")


def check_details():
    """What else the traces of the cases show."""
    seen = report("c1.vt")
    kinds = {(t["direction"], t["host_kind"]) for t in seen["transfer_totals"]}
    check({("h2d", "pageable"), ("d2h", "pageable"), ("h2d", "pinned"), ("h2d", "registered")} <= kinds, f"c1: {kinds}")
    check([r["source"] for r in seen["transfer_rates"]][:2] == ["synchronous_copies"] * 2, f"c1: {seen['transfer_rates']}")
    # Pageable memory has a fifth of the link.
    slow = next(t for t in seen["transfer_totals"] if (t["direction"], t["host_kind"]) == ("h2d", "pageable"))
    finding = next(f for f in seen["transfer_findings"] if "upload_pageable" in check_transfers.functions(f))
    check(0.5 < finding["lost_time_ns"] / (slow["host_time_ns"] * 0.8) < 1.1, f"c1: lost {finding['lost_time_ns']} of {slow['host_time_ns']}")
    seen = report("c7.vt")
    rows = {check_transfers.functions(r)[1] if len(r["stack"] or []) > 1 else "": r["copies_without_peer_access"]
            for r in seen["transfers"] if r["direction"] == "p2p"}
    check(sorted(rows.values()) == [0, 20], f"c7: {rows}")
    seen = report("p2.vt")
    finding = next(f for f in seen["transfer_findings"] if f["finding"] == "pinned_not_reused")
    check("long_copy" in check_transfers.functions(finding["other"]), f"p2: {finding['other']}")
    seen = report("p4.vt")
    finding = next(f for f in seen["transfer_findings"] if f["finding"] == "registered_twice")
    check("register_first" in check_transfers.functions(finding["other"]), f"p4: {finding['other']}")


def check_headings():
    """What costs without a copy has a heading, too."""
    done = subprocess.run([BUILD / "vramtrace", "report", "c8.vt"], capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if "lost in" in line]
    check(lines and lines[0].startswith("TRANSFERS "), f"no heading: {done.stdout}")


def check_merged():
    """Several traces: totals are added up, findings ranked together."""
    one, other, both = report("c1.vt"), report("c5.vt"), report("c1.vt", "c5.vt")
    for key in "bytes", "calls", "host_time_ns":
        seen, want = (sum(t[key] for r in reports for t in r["transfer_totals"]) for reports in ([both], [one, other]))
        check(seen == want, f"merged: {key} {seen}, not {want}")
    lost = [f["lost_time_ns"] for f in both["transfer_findings"] if f["lost_time_ns"] is not None]
    check(lost == sorted(lost, reverse=True) and {f["trace"] for f in both["transfer_findings"]} == {0, 1}, f"merged: {lost}")
    text = subprocess.run([BUILD / "vramtrace", "transfers", "c1.vt", "c5.vt"], capture_output=True, text=True).stdout
    for part in "from pageable memory", "waited in", "c5.vt", "pin the source", "upload_pageable":
        check(part in text, f"merged text: no {part!r}")


def check_filters():
    def seen(*options):
        done = subprocess.run([BUILD / "vramtrace", "transfers", *options, "c7.vt"], capture_output=True, text=True)
        return json.loads(done.stdout) if "--json" in options else done.stdout

    whole = seen("--json")
    check(len(whole["transfers"]) == 2 and len(whole["transfer_findings"]) == 1, f"filters: {len(whole['transfers'])} rows")
    check(len(seen("--json", "--limit", "1")["transfers"]) == 1, "--limit")
    check(len(seen("--json", "--device", "1")["transfers"]) == 2, "--device 1")
    check(seen("--json", "--min-bytes", "1G")["transfers"] == [], "--min-bytes 1G")
    check(seen("--json", "--min-bytes", "1G")["transfer_findings"] == [], "--min-bytes 1G")
    check(seen("--json", "--min-bytes", "1G")["transfer_totals"] == whole["transfer_totals"], "--min-bytes: totals")
    check("and 1 more stack (--limit)" in seen("--limit", "1"), "--limit 1 does not say what it leaves out")


def table():
    """What is wrong with the times of one run, and its report."""
    truth, seen = run("table", VRAMTRACE_COPY_TIMING="1")
    lines = {}
    for row, rate, seen_rate, timed in check_transfers.rates(truth, seen):
        what = f"table: {row['direction']} {row['host_kind']} {row['bytes']}"
        if timed is None:
            lines[what] = "not timed"
        elif row["bytes"] >= 1 << 20 and not (0.95 < timed < 1.05 and 0.9 < seen_rate / rate < 1.1):
            lines[what] = f"{timed} of the time by the program's events; {seen_rate} B/s, not {rate}"
    return lines, seen


def check_table():
    # On a busy machine a thread may lose its processor between our event and the program's: not each time in the same row.
    again, seen = table()
    for _ in range(4):
        if again:
            more, seen = table()
            again = {what: line for what, line in more.items() if what in again}
    for what, line in again.items():
        check(False, f"{what}: {line}")
    check(seen["transfer_rates"][0]["source"] == "timed_copies", f"table: {seen['transfer_rates']}")
    _, untimed = run("table")
    check(all(t["timed_calls"] == 0 and t["gpu_time_ns"] is None for t in untimed["transfer_totals"]), "timed without being asked to")


if os.environ["MODE"] == "tsan":
    print("findings name call sites, and there are no stacks under TSan")
    sys.exit(77)
check_cases()
check_details()
check_headings()
check_merged()
check_filters()
check_table()
for line in wrong:
    print("FAIL:", line)
sys.exit(bool(wrong))

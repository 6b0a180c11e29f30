#!/usr/bin/env python3
"""A bounded trace says the same as a whole one of the same records: what lives, totals by call site, peaks and who held memory
then, the timeline. Only copies and post-mortems are those of the events that are kept.

Whole traces of random programs are written again as bounded ones; one program is recorded so in the first place.
"""
import json
import os
import subprocess
import sys

BUILD = os.environ["BUILD_DIR"]
VRAMTRACE = f"{BUILD}/vramtrace"
SLOW = os.environ["MODE"] in ("asan", "tsan", "cov")
SIM = os.environ["LD_LIBRARY_PATH"]
# Of single events, or not told by a checkpoint.
WINDOW = {
    "transfers", "transfer_totals", "transfer_findings", "transfer_timeline", "page_locked", "migrations", "oom",
    "captured_sets", "captured_copies", "sets", "bytes_set", "pending_by_stream", "pending_bytes", "threads", "file",
    "start_time", "kept_from_ns", "fragmentation", "self_check", "host_samples", "phases", "marks", "peak_active_bytes",
    "peak_inactive_split_bytes", "copies",
    # How leaks are judged.
    "verdict", "leak", "growth_bytes", "growth_since_ns", "rate_bytes_per_s", "bytes_per_mark", "mark", "mean_lifetime_ns",
    "longest_lifetime_ns", "bursts", "burst_count", "ended_threads", "untracked_growth"}


def run(*command, **variables):
    done = subprocess.run(command, capture_output=True, env=dict(os.environ, **variables))
    assert done.returncode == 0, (command, done.returncode, done.stderr)
    return done.stdout


def ask(*arguments):
    return json.loads(run(VRAMTRACE, *arguments))


def traced(path, *command, **variables):
    more = {"VRAMTRACE_STACK": "none"} if os.environ["MODE"] == "tsan" else {}
    run(*command, LD_PRELOAD=f"{BUILD}/libvramtrace.so", VRAMTRACE_QUIET="1", VRAMTRACE_OUTPUT=path,
        LD_LIBRARY_PATH=f"{SIM}:{BUILD}/sim/torch/lib", **more, **variables)


def differences(where, a, b):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            if key not in WINDOW and not (key == "peak_bytes" and ".owners" in where):
                yield from differences(f"{where}.{key}", a.get(key), b.get(key))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(f"{where}[{i}]", x, y)
    elif a != b:
        yield f"{where}: {str(a)[:80]} became {str(b)[:80]}"


def by_content(report):
    """Call sites of equal rank have no order."""
    for key in "leaks", "leak_owners", "failures", "peak_sites", "failed_frees":
        sites = [{k: v for k, v in site.items() if k not in WINDOW} for site in report[key] or []]
        report[key] = sorted(sites, key=lambda site: json.dumps(site, sort_keys=True))
    return report


def compare_timelines(name, whole, bounded):
    a, b = ask("timeline", "--json", "--points", "100", whole), ask("timeline", "--json", "--points", "100", bounded)
    for x, y in zip(a["devices"], b["devices"]):
        for key, high in x.items():
            if not isinstance(high, list) or not high or not isinstance(high[0], (int, float)):
                continue
            assert max(high) == max(y[key]), f"{name}: the timeline's highest {key}: {max(high)}, {max(y[key])}"


def compare(name, max_bytes):
    whole, bounded = f"{name}.vt", f"{name}-bounded.vt"
    said = run(f"{BUILD}/cases/rebound", whole, bounded, str(max_bytes)).decode().split()
    assert int(said[-1]) > 1, f"{name}: no part had to go: {said}"
    size = sum(os.path.getsize(file) for file in os.listdir(".") if file.startswith(bounded))
    assert size <= max_bytes, f"{name}: {size} bytes on disk"
    a, b = (by_content(ask("report", "--json", path)) for path in (whole, bounded))
    wrong = list(differences("", a, b))
    assert not wrong, f"{name}: {len(wrong)} differences:\n" + "\n".join(wrong[:20])
    compare_timelines(name, whole, bounded)
    text = run(VRAMTRACE, "report", bounded).decode()
    assert "single events are kept from " in text, text
    run(VRAMTRACE, "pack", "-q", "-o", f"{name}.vt.zst", bounded)
    wrong = list(differences("", b, by_content(ask("report", "--json", f"{name}.vt.zst"))))
    assert not wrong, f"{name}, packed: {wrong[:20]}"


def record_threads(calls):
    driver = f"{BUILD}/cases/random_calls-driver"
    traced("threads.vt", driver, "--calls", calls, "--threads", "4", "--devices", "2", "--families", "all",
           VRAMTRACE_MAX_SIZE="2M", CUSIM_DEVICES="2", CUSIM_LEDGER="threads.json")
    ledger, report = json.load(open("threads.json"))["devices"], ask("report", "--json", "threads.vt")
    assert report["traces"][0]["complete"] and not report["unknown_frees"] and not report["missed_frees"]
    for device in report["devices"]:
        for kind in ("linear", "pool", "vmm", "managed") if device["ordinal"] is not None else ():
            seen, true = device["kinds"][kind], ledger[device["ordinal"]][kind]
            for key, name in ("live_bytes", "live_bytes"), ("live", "live_count"), ("allocations", "allocations"), (
                    "frees", "frees"):
                assert seen[key] == true[name], (device["ordinal"], kind, key, seen[key], true[name])


def record_bounded():
    """As programs are recorded: their own ledger says what lives."""
    calls = "60000"
    run("python3", f"{os.environ['SOURCE_DIR']}/tests/bench/long_run.py", "--seconds", "1", "--rate", calls, "--size", "1", "--every", "0.3")
    record_threads("4000" if SLOW else "20000")
    # The launcher finds one trace, not one for each part.
    out = run(VRAMTRACE, "run", "--max-size", "1M", "-o", "run.vt", "--", f"{BUILD}/cases/steady", calls)
    assert out.decode().count("single events are kept from ") == 1, out
    assert len([file for file in os.listdir(".") if file.startswith("run.vt")]) > 2
    run(VRAMTRACE, "run", "-q", "--pack", "--max-size", "1M", "-o", "pack.vt", "--", f"{BUILD}/cases/steady", calls)
    assert [file for file in os.listdir(".") if file.startswith("pack.vt")] == ["pack.vt.zst"]
    assert ask("report", "--json", "pack.vt.zst")["traces"][0]["kept_from_ns"]


def main():
    if os.environ["MODE"] == "tsan":  # the rest has one thread, or is of the command alone
        return record_threads("4000")
    n = 15000 if SLOW else 25000
    driver = f"{BUILD}/cases/random_calls-driver"
    traced("driver.vt", driver, "--calls", str(n), "--threads", "4", "--devices", "2", "--families", "all", CUSIM_DEVICES="2")
    compare("driver", 1 << 20)
    torch = f"{BUILD}/cases/torch_random"
    if not SLOW:
        traced("torch.vt", torch, "torch.json", "--ops", "100000")
        compare("torch", 1 << 20)
    traced("expand.vt", torch, "expand.json", "--ops", "50000", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    compare("expand", 1 << 20)
    record_bounded()


sys.exit(main())

#!/usr/bin/env python3
"""Golden traces, read by the current command: see tests/data/README.md."""
import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "gpu/workloads"))
import check_known  # noqa: E402


def torch_differences(truth, report):
    """PyTorch's statistics against what is attributed to its allocator."""
    stats = truth["stats"]
    torch = next(o for o in report["devices"][0]["owners"] if o["owner"] == "torch")
    pairs = {
        "allocations": "num_device_alloc",
        "frees": "num_device_free",
        "peak_bytes": "reserved_bytes.all.peak",
        "live_bytes": "reserved_bytes.all.current",
    }
    return [f"{ours}: report {torch[ours]}, truth {stats[theirs]}" for ours, theirs in pairs.items()
            if torch[ours] != stats[theirs]]


def packed_differences(truth, report):
    """What stood in the report when it was packed; nothing of the program is left to look anything up in."""
    def sites(key):
        return [{**{k: site[k] for k in ("kind", "bytes", "count", "owner")},
                 "stack": [[frame[k] for k in ("function", "file", "line", "module")] for frame in site["stack"]]}
                for site in report[key]]

    found = {"events": report["traces"][0]["events"], "peak_sites": sites("peak_sites"), "leaks": sites("leaks")}
    return [f"{key}: report {found[key]}, truth {truth[key]}" for key in truth if found[key] != truth[key]]


def main():
    cli = pathlib.Path(os.environ["BUILD_DIR"], "vramtrace")
    failed, n = [], 0
    for path in sorted(TESTS.glob("data/format-*/*.truth.json")):
        truth = json.loads(path.read_text())
        packed = truth["kind"] == "packed"
        trace = path.with_name(path.name.replace(".truth.json", ".vt.zst" if packed else ".vt"))
        done = subprocess.run([cli, "report", "--json", trace], capture_output=True, text=True)
        if done.returncode:
            failed.append(f"{trace.name}: exit {done.returncode}: {done.stderr}")
            continue
        report = json.loads(done.stdout)
        if truth["kind"] == "known":
            found = check_known.differences(truth["truth"], report)
        elif packed:
            found = packed_differences(truth["truth"], report)
        else:
            found = torch_differences(truth, report)
        failed += [f"{trace.name}: {line}" for line in found]
        n += 1
    for line in failed:
        print("FAIL:", line)
    if not failed:
        print(f"ok {n} traces")
    return bool(failed) or n < 3


if __name__ == "__main__":
    sys.exit(main())

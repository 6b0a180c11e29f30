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
import check_blocks  # noqa: E402
import check_known  # noqa: E402
import check_stacks  # noqa: E402

CLI = pathlib.Path(os.environ["BUILD_DIR"], "vramtrace")


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


def blocks_differences(truth, report):
    device, = report["torch"]["devices"]
    owner = next(o for o in report["devices"][0]["owners"] if o["owner"] == "torch")
    held = truth["stats"]["reserved_bytes.all.current"]
    wrong = [] if owner["live_bytes"] == held else [f"owner torch: live {owner['live_bytes']}, truth {held}"]
    return wrong + check_blocks.compare_sums(device, truth["stats"]) + check_blocks.compare_layout(device, truth["snapshot"])


def oom_differences(truth, report):
    """PyTorch refused one request, and said at the end what it held."""
    oom, = report["oom"]
    row = next(row for row in report["fragmentation"] if row["level"] == "torch" and row["at"] == "oom:1")
    found = {
        "class": oom["class"],
        "requested_bytes": oom["requested_bytes"],
        "would_suffice": {action: bytes for action, bytes in ((i["action"], i["bytes"]) for i in oom["would_suffice"])
                          if action in truth["would_suffice"]},
        "allocated_bytes": row["live_bytes"],
        "reserved_bytes": row["reserved_bytes"],
    }
    return [f"{key}: report {found[key]}, truth {truth[key]}" for key in truth if found[key] != truth[key]]


def pages_differences(truth, report):
    """What the driver did not give back, by the change of free memory, against what the program still held."""
    row = next(row for row in report["fragmentation"] if row["level"] == "driver" and row["at"] == "end")
    found = {"held": row["reserved_bytes"], "live": row["reserved_bytes"] - row["pinned_bytes"]}
    return [f"{key}: report {found[key]}, truth {truth[key]}" for key in truth if found[key] != truth[key]]


def lines_differences(truth, trace):
    """sys._getframe() beside each allocation; one place dropped its eight at once."""
    n, seen, different = check_stacks.lines(CLI, trace, truth)
    wrong = [f"ours {ours}, truth {theirs}" for ours, theirs in different]
    return wrong if seen == n - 8 else [*wrong, f"{seen} of {n} allocations found"]


KINDS = {"known": check_known.differences, "packed": packed_differences, "torch": torch_differences,
         "blocks": blocks_differences, "oom": oom_differences, "pages": pages_differences}


def differences(trace, kind, truth):
    if kind == "lines":
        return lines_differences(truth, trace)
    done = subprocess.run([CLI, "report", "--json", trace], capture_output=True, text=True)
    if done.returncode:
        return [f"exit {done.returncode}: {done.stderr}"]
    return KINDS[kind](truth, json.loads(done.stdout))


def main():
    failed, n = [], 0
    for path in sorted(TESTS.glob("data/format-*/*.truth.json")):
        truth = json.loads(path.read_text())
        trace = path.with_name(path.name.replace(".truth.json", ".vt.zst" if truth["kind"] == "packed" else ".vt"))
        failed += [f"{trace.name}: {line}" for line in differences(trace, truth["kind"], truth.get("truth", truth))]
        n += 1
    for line in failed:
        print("FAIL:", line)
    if not failed:
        print(f"ok {n} traces")
    return bool(failed) or n < 13


if __name__ == "__main__":
    sys.exit(main())

"""check_known.py TRUTH REPORT: compares what known.c says it did with the report of its trace. Prints each difference."""
import json
import sys


def differences(truth, report):
    """A list of lines, empty when the report is right to the byte."""
    device = report["devices"][0]
    linear = device["kinds"]["linear"]
    got = {
        "linear_live_bytes": linear["live_bytes"],
        "linear_live": linear["live"],
        "linear_allocations": linear["allocations"],
        "linear_peak_bytes": linear["peak_live_bytes"],
        "pinned_bytes": report["host_memory"]["pinned_bytes"],
    }
    for direction in ("h2d", "d2h", "d2d"):
        rows = [t for t in report["transfers"] if t["direction"] == direction]
        got[direction] = [sum(t["calls"] for t in rows), sum(t["bytes"] for t in rows)]
    got["sets"] = [device["sets"], device["bytes_set"]]
    return [f"{key}: report {got[key]}, truth {truth[key]}" for key in truth if got[key] != truth[key]]


if __name__ == "__main__":
    found = differences(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))
    print("\n".join(found) or "ok")
    sys.exit(bool(found))

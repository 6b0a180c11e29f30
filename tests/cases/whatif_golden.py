#!/usr/bin/env python3
"""vramtrace whatif on recordings of real runs (tests/data/README.md): each is reproduced, with PyTorch's own statistics; and what
is said of other settings is held against real runs under them, at least as sure as it was when the recording was added.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

DATA = pathlib.Path(__file__).resolve().parent.parent / "data/whatif"
MODE = os.environ["MODE"]
CLI = pathlib.Path(os.environ["BUILD_DIR"], "vramtrace")
SMALL_BYTES = 12 << 10  # packed: what is fast enough with a sanitizer, too
SURE = ("exact", "about", "range", "lower_bound")
SETTLED = "nothing is known after"
PERHAPS = "whether a request is refused"


def whatif(trace, settings, *more):
    words = [f"--set={word}" for word in settings]
    done = subprocess.run([CLI, "whatif", "--json", *words, *more, trace], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def own_differences(found, own):
    check = found["self_check"]
    wrong = [f"{key}: {check[key]}, truth {truth}" for key, truth in own.items() if check.get(key, check["addresses"]) != truth]
    equal = check["equal"] and check["addresses_equal"] == own["allocations"]
    return wrong + ([] if equal else [f"not reproduced: {check}"])


def refusal_differences(row, truth):
    """A refusal that was said to come came, unless it was left open."""
    perhaps = any(PERHAPS in reason for reason in row["reasons"])
    return [] if truth["refused"] or perhaps else ["a refusal was predicted, none came"]


def value_differences(row, truth):
    peak, real, sort = row["peak_reserved_bytes"], truth["peak_reserved_bytes"], row["class"]
    pair = peak["value"], row["device_allocations"]["value"]
    if sort == "exact" and pair != (real, truth["device_allocations"]):
        return [f"exact, but {pair}"]
    if sort == "about" and abs(peak["value"] - real) > real / 100:
        return [f"about {peak['value']}"]
    if sort in ("range", "lower_bound") and real < peak["low"] or sort == "range" and real > peak["high"]:
        return [f"{sort} {peak['low']}..{peak['high']}"]
    return []


def row_differences(row, truth):
    less_sure = SURE.index(row["class"]) > SURE.index(truth["class"])
    wrong = [f"now {row['class']}: {row['reasons']}"] if less_sure else []
    if any(SETTLED in reason for reason in row["reasons"]):
        return wrong + refusal_differences(row, truth)
    return wrong + (["a refusal came"] if truth["refused"] else value_differences(row, truth))


def check_settings(trace, truth, own):
    found = whatif(trace, truth["set"])
    row = found["predictions"][1 if truth["set"] else 0] if found["predictions"] else None
    wrong = own_differences(found, own) + (row_differences(row, truth) if row else ["no prediction"])
    return [f"{truth}: {text}" for text in wrong]


def check_capacity(trace, truth):
    """What sufficed in a real run is not said to fail here, and what did not, not to suffice."""
    wrong = []
    for key, fits in (("suffices", True), ("does_not", False)):
        row = whatif(trace, truth["set"], f"--capacity={truth[key]}")["predictions"][1 if truth["set"] else 0]
        wrong += [] if row["fits"] in (fits, None) else [f"{truth}: {key}: fits is {row['fits']}"]
    return wrong


def check_needed(trace, truth):
    """What is said to be needed is no more than what sufficed in a real run, and more than what did not: as sure as it is said."""
    row = whatif(trace, truth["set"])["predictions"][1 if truth["set"] else 0]
    needed, sort = row["needed_bytes"], row["needed_class"]
    slack = needed["value"] / 100 if sort == "about" else 0
    too_much = needed["low"] - slack > truth["suffices"]
    too_little = sort in SURE[:2] and truth["does_not"] is not None and needed["value"] + slack <= truth["does_not"]
    return [f"{truth}: needed is {sort} {needed}"] if too_much or too_little else []


def main():
    if MODE == "tsan":  # only the command runs, and whatif.py runs its threads
        print("SKIP: only the command runs here")
        return 0
    work, failed = [], []
    for path in sorted(DATA.glob("*.truth.json")):
        truth = json.loads(path.read_text())
        trace = path.with_name(path.name.replace(".truth.json", ".vt.zst"))
        if MODE == "release" or trace.stat().st_size < SMALL_BYTES:
            work += [(check_settings, trace, real, truth["own"]) for real in truth["real"]]
            work += [(check_capacity, trace, capacity) for capacity in truth.get("capacity", [])]
            work += [(check_needed, trace, needed) for needed in truth.get("needed", [])]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (_, trace, *_), wrong in zip(work, pool.map(lambda job: job[0](*job[1:]), work)):
            failed += [f"FAIL: {trace.name}: {text}" for text in wrong]
    print("\n".join(failed) or f"ok {len(work)} comparisons")
    return bool(failed) or len(work) < (50 if MODE == "release" else 15)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""
What recording costs where PyTorch trains, beside what else there is, in one run. The stacks of its blocks, timed one by one inside
the recorder (a build with the times taken around it, libvramtrace-timed.so): until the stack is a number, for stacks that were
seen before and for new ones. torch.empty + del and a step of training without and with the recorder, PyTorch's own memory history
and its profiler. A pair of cuMemAlloc and cuMemFree under compute-sanitizer's leak check. Environment as main_job.py, and
  ROUNDS   how often each way is timed, in rotation (default 5)
  STEPS    of the training whose captures are timed (default 400)
Exit 77 without a GPU or PyTorch; 1 when something was more than it should be.
"""
import json
import os
import pathlib
import shutil
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import main_job as job  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "5"))
TIMED = job.BUILD / "libvramtrace-timed.so"


def timed_run(suffix, **more):
    """Of one training: {known, native, new, written: (samples, mean, median, 90th, 99th percentile in ns)}."""
    out, trace = job.OUT / f"captures-{suffix}.times", job.OUT / f"captures-{suffix}.vt"
    done = job.run([sys.executable, job.WORK / "torch_train.py", job.OUT / "captures.json", os.environ.get("STEPS", "400")],
                   LD_PRELOAD=str(TIMED), TIMED_OUTPUT=str(out), VRAMTRACE_OUTPUT=str(trace), VRAMTRACE_QUIET="1", **more)
    trace.unlink(missing_ok=True)
    if done.returncode or not out.exists():
        job.check(f"captures, {suffix}: exit status", done.returncode, 0, False)
        print(done.stderr[-800:])
        return None
    lines = [line.split() for line in out.read_text().splitlines()]
    return {name: tuple(map(float, values)) for name, *values in lines}


def report_captures():
    if not TIMED.exists():
        print(f"      {TIMED.name} is not built: captures are not timed")
        return
    runs = {}
    for turn in range(min(ROUNDS, 3)):
        for name, more in (("both", {}), ("native", {"VRAMTRACE_STACK": "native"}), ("python", {"VRAMTRACE_STACK": "python"}),
                           ("libunwind", {"VRAMTRACE_UNWINDER": "libunwind"})):
            found = timed_run(f"{name}-{turn}", **more)
            if found:
                runs.setdefault(name, []).append(found)
    titles = {"known": "seen before", "native": "its native frames", "new": "new", "written": "new, until it is written"}
    print(f"      {'one stack until it is a number, ns':<46}{'samples':>9}{'mean':>8}{'median':>8}{'90 %':>8}{'99 %':>8}")
    for name, found in runs.items():
        for series in ("known", "native", "new", "written") if name == "both" else ("known",):
            rows = [run[series] for run in found if series in run]
            if rows:
                values = "".join(f"{statistics.median(column):>8.0f}" for column in list(zip(*rows))[1:])
                print(f"      {name + ', ' + titles[series]:<46}"
                      f"{sum(row[0] for row in rows):>9.0f}{values}")
    if "both" in runs:
        known, new = ([statistics.median(c) for c in zip(*(run[s] for run in runs["both"]))] for s in ("known", "new"))
        job.check("captures: mean, median, ns", (round(known[1]), round(known[2])), "<= (300, 150)", known[1] <= 300 and known[2] <= 150)
        job.check("captures: 99th percentile, ns", round(known[4]), "<= 2000", known[4] <= 2000)
        job.check("captures: mean of the first sight of a stack, ns", round(new[1]), "<= 3000", new[1] <= 3000)
    if "libunwind" in runs and "both" in runs:
        theirs, ours = (statistics.median(run["known"][1] for run in runs[n]) for n in ("libunwind", "both"))
        print(f"      with libunwind instead of the recorder's own unwinder: x {theirs / ours:.1f}")


def medians(ways, run):
    """{way: medians of what run(way) returns, key by key}, in rotation."""
    values = {name: {} for name in ways}
    for turn in range(ROUNDS):
        for name in ways:
            for key, value in (run(name, turn) or {}).items():
                values[name].setdefault(key, []).append(value)
    return {name: {key: statistics.median(each) for key, each in found.items()} for name, found in values.items() if found}


def report_pairs():
    ways = {"bare": ("none", None), "recorder": ("none", {}), "recorder, native stacks": ("none", {"VRAMTRACE_STACK": "native"}),
            "recorder, Python stacks": ("none", {"VRAMTRACE_STACK": "python"}), "recorder, no stacks": ("none", {"VRAMTRACE_STACK": "none"}),
            "PyTorch's history, python": ("python", None), "PyTorch's history, all": ("all", None),
            "PyTorch's profiler": ("profiler", None)}

    def run(name, turn):
        history, variables = ways[name]
        if history == "profiler" and turn:
            return None
        trace = None if variables is None else job.OUT / f"cost-{turn}.vt"
        done = job.run([sys.executable, job.WORK / "torch_cost.py", history], trace, **(variables or {}))
        if trace:
            trace.unlink(missing_ok=True)
        if done.returncode:
            print(f"      {name}: exit status {done.returncode}: {done.stderr[-300:]}")
            return None
        return json.loads(done.stdout.splitlines()[-1])

    found = medians(ways, run)
    bare = found["bare"]
    print(f"      {'':<28}{'torch.empty + del, us':>22}{'added':>9}{'training step, ms':>20}{'ratio':>8}")
    for name, each in found.items():
        print(f"      {name:<28}{each['pair_ns'] / 1e3:>22.2f}{(each['pair_ns'] - bare['pair_ns']) / 1e3:>9.2f}"
              f"{each['step_ns'] / 1e6:>20.3f}{each['step_ns'] / bare['step_ns']:>8.3f}")
    added = {name: each["pair_ns"] - bare["pair_ns"] for name, each in found.items()}
    job.check("pair: added by the recorder, ns", round(added["recorder"]), "<= 500", added["recorder"] <= 500)
    for history, least in (("python", 4), ("all", 10)):
        ratio = added[f"PyTorch's history, {history}"] / max(added["recorder"], 1)
        job.check(f"pair: PyTorch's history, {history}, adds so many times that", round(ratio, 1), f">= {least}", ratio >= least)


def report_sanitizer():
    """A program of C that does nothing else."""
    program = job.BUILD / "bench/hot_path"
    sanitizer = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if not program.exists() or not sanitizer:
        print(f"      {'compute-sanitizer' if program.exists() else program} is not here: no comparison with it")
        return

    def run(name, turn):
        calls = "2000" if name == "compute-sanitizer" else "20000"
        command = [sanitizer, "--tool", "memcheck", "--leak-check", "full"] if name == "compute-sanitizer" else []
        trace = job.OUT / "pair.vt" if name == "recorder" else None
        done = job.run([*command, program, calls, "40", "50", "pair"], trace, timeout=120)
        if trace:
            trace.unlink(missing_ok=True)
        numbers = [line for line in done.stdout.split("\n") if line.replace(".", "", 1).isdigit()]
        if not numbers:
            print(f"      {name}: exit status {done.returncode}: {(done.stdout + done.stderr)[-300:]}")
            return None
        return {"ns": float(numbers[0])}

    found = medians(("bare", "recorder", "compute-sanitizer"), run)
    for name, each in found.items() if "bare" in found else ():
        print(f"      cuMemAlloc + cuMemFree, 40 frames, {name:<20}{each['ns'] / 1e3:>9.2f} us, x {each['ns'] / found['bare']['ns']:.2f}")


if __name__ == "__main__":
    if job.run([sys.executable, "-c", "import torch"]).returncode:
        print("no PyTorch here")
        sys.exit(77)
    sys.exit(job.main((report_captures, report_pairs, report_sanitizer)))

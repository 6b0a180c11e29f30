#!/usr/bin/env python3
"""
The recorder's unwinder on a real GPU: PyTorch programs run with VRAMTRACE_UNWINDER=check, so that every native stack is compared
with libunwind's. Prints for each how many stacks were compared, how many the recorder left to libunwind, and how many were
different, of which there must be none. Then step times of a training without the recorder, with libunwind and with the
recorder's own unwinder, in turn: figures to look at, not a check. Exit 77 where there is no GPU or no PyTorch.

  BUILD_DIR    a build (libvramtrace.so, vramtrace), default build/release
  VRAMTRACE    an unpacked release instead (lib/libvramtrace.so, bin/vramtrace)
  STEPS        of training, default 60
  ROUNDS       of step times, default 5; 0: none
  OUT          folder for traces, default a new temporary one
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

WORK = pathlib.Path(__file__).resolve().parent / "workloads"
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", "build/release")).resolve()
ROOT = os.environ.get("VRAMTRACE")
LIBRARY = pathlib.Path(ROOT, "lib/libvramtrace.so") if ROOT else BUILD / "libvramtrace.so"
CLI = pathlib.Path(ROOT, "bin/vramtrace") if ROOT else BUILD / "vramtrace"
STEPS = int(os.environ.get("STEPS", "60"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
OUT = pathlib.Path(os.environ.get("OUT") or tempfile.mkdtemp(prefix="vramtrace-gpu-"))


def train(name, **more):
    """Runs the training, returns its step times in ms and its stderr. The first steps warm up."""
    out = OUT / f"{name}.times.json"
    done = subprocess.run([sys.executable, WORK / "torch_train.py", out, str(STEPS)], env=dict(os.environ, **more),
                          capture_output=True, text=True, timeout=1200)
    if done.returncode:
        sys.exit(f"{name}: exit status {done.returncode}: {done.stderr[-2000:]}")
    return [1e3 * t for t in json.loads(out.read_text())["times"][STEPS // 4:]], done.stderr


def traced(name, unwinder, **more):
    trace = OUT / f"{name}.vt"
    trace.unlink(missing_ok=True)
    times, err = train(name, LD_PRELOAD=str(LIBRARY), VRAMTRACE_OUTPUT=str(trace), VRAMTRACE_UNWINDER=unwinder, **more)
    return trace, times, err


def compare():
    n_wrong = 0
    print(f"{'program':<40}{'compared':>10}{'left to libunwind':>20}{'different':>11}")
    for name, more in (
        ("training", {}),
        ("training, no caching allocator", {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}),
        ("training, stacks of 256 frames", {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "VRAMTRACE_STACK_DEPTH": "256"}),
        ("training, native stacks alone", {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "VRAMTRACE_STACK": "native"}),
    ):
        trace, _, err = traced("check", "check", **more)
        report = json.loads(subprocess.run([CLI, "report", "--json", trace], capture_output=True, text=True).stdout)
        counts = report["coverage"]["unwind_check"] or {"captures": 0, "delegated": 0, "differences": 0}
        share = counts["delegated"] / counts["captures"] if counts["captures"] else 0
        print(f"{name:<40}{counts['captures']:>10,}{counts['delegated']:>12,} {share:>7.2%}{counts['differences']:>11,}",
              flush=True)
        if counts["differences"] or not counts["captures"]:
            n_wrong += 1
            print(err, end="")
    return n_wrong


def step_times():
    """Medians, in turn, so that what else the host does falls on all alike."""
    ways = {"without the recorder": None, "libunwind": "libunwind", "the recorder's own": "fast"}
    medians = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, unwinder in ways.items():
            more = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
            times = traced("times", unwinder, **more)[1] if unwinder else train("times", **more)[0]
            medians[way].append(statistics.median(times))
    bare = statistics.median(medians["without the recorder"])
    print(f"\n{'no caching allocator, step time':<40}{'median ms':>10}{'lowest':>10}{'highest':>10}{'ratio':>8}")
    for way, each in medians.items():
        median = statistics.median(each)
        print(f"{way:<40}{median:>10.2f}{min(each):>10.2f}{max(each):>10.2f}{median / bare:>8.3f}")


def main():
    probe = subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.is_available())"], capture_output=True, text=True)
    if probe.stdout.strip() != "True":
        print("needs PyTorch and a GPU")
        return 77
    n_wrong = compare()
    if ROUNDS:
        step_times()
    print("stacks are equal" if not n_wrong else f"{n_wrong} programs with other stacks than libunwind's, or none")
    return n_wrong > 0


sys.exit(main())

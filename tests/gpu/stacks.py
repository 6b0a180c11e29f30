#!/usr/bin/env python3
"""
Stacks on a real GPU: what the command shows for PyTorch, JAX and CuPy against what they and the interpreter say, how long a
report takes, and what stacks cost. Environment as main_job.py; PYTHON names another interpreter for the workloads. Exit 77
without a GPU.
"""
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import main_job as job  # noqa: E402
sys.path.insert(0, str(job.WORK))
import check_stacks  # noqa: E402

PYTHON = os.environ.get("PYTHON", sys.executable)
MODES = ("both", "python", "native", "none")
UNCACHED = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
COLD_S = 3  # what a report may take, on two cores


def workload(name, *arguments, trace=None, **more):
    """Runs a workload; its exit status is a row only when it is not 0."""
    done = job.run([PYTHON, job.WORK / f"{name}.py", *arguments], trace, **more)
    if done.returncode:
        job.check(f"{name}: exit status", done.returncode, 0)
        print(done.stderr[-1500:])
    return done.returncode == 0


def same_frame(ours, theirs):
    """PyTorch may have the name where we have the qualified one."""
    return ours[0] == theirs[0] and ours[2] == theirs[2] and theirs[1] in (ours[1], ours[1].rpartition(".")[2])


def same_frames(ours, theirs):
    return len(ours) == len(theirs) and all(map(same_frame, ours, theirs))


def share(name, n_same, n, least=0.99):
    job.check(name, f"{n_same} of {n}", f">= {least:.0%}", n > 0 and n_same >= least * n)


def check_snapshot():
    """Blocks by address: the frames that PyTorch recorded for them."""
    trace, out = job.OUT / "stacks.vt", job.OUT / "stacks-torch.json"
    if not workload("torch_stacks", out, 20, trace=trace, timeout=600):
        return
    theirs = {b["address"]: b for b in json.loads(out.read_text())["blocks"]}
    stacks = check_stacks.Stacks(job.CLI, trace, "block")
    compared, different, n_python = 0, [], 0
    for alloc in stacks.allocs:
        block = theirs.get(int(alloc["address"], 16)) if alloc["live"] and alloc["stack"] else None
        if not block or block["bytes"] != alloc["bytes"]:
            continue
        want = [tuple(f) for f in block["frames"]]
        compared += 1
        n_python += bool(want)
        if not same_frames(check_stacks.python_part(alloc["stack"]), want):
            different.append((check_stacks.python_part(alloc["stack"]), want))
    share("snapshot: blocks found in the trace", compared, len(theirs))
    share(f"snapshot: Python frames equal PyTorch's, {n_python} with some", compared - len(different), compared)
    for got, want in different[:3]:
        print(f"      ours    {got}\n      PyTorch {want}")
    print("      captures by outcome:", stacks.outcomes)
    show_kinds(stacks)


def show_kinds(stacks):
    """Where a user would look for his own line: forward, backward, optimiser, loader."""
    script = str(job.WORK / "torch_stacks.py")
    parts = collections.Counter()
    for entry in stacks.leaks:
        frames = check_stacks.python_part(entry["stack"])
        natives = " ".join(f["function"] or "" for f in entry["stack"] or [] if f["kind"] == "native")
        parts["forward"] += any(f[0] == script and f[1].endswith("forward") for f in frames)
        parts["optimizer"] += any("/torch/optim/" in f[0] for f in frames) and any(f[0] == script for f in frames)
        parts["backward, Python"] += any(f[0] == script and f[1].endswith("backward") for f in frames)
        parts["backward, native"] += not frames and "torch::autograd::" in natives
        parts["pinned"] += entry["kind"] == "pinned" and any("pin_memory" in f[0] for f in frames)
    for part in "forward", "optimizer", "backward, Python", "backward, native", "pinned":
        job.check(f"sites of: {part}", parts[part], "> 0", parts[part] > 0)


def check_lines():
    """Every tensor an allocation of the driver, at a place that the program knows."""
    for mode in ("both", "python"):
        trace, out = job.OUT / f"lines-{mode}.vt", job.OUT / f"lines-{mode}.json"
        if not workload("torch_lines", out, trace=trace, VRAMTRACE_STACK=mode, **UNCACHED):
            continue
        n, seen, different = check_stacks.lines(job.CLI, trace, json.loads(out.read_text())["records"])
        # One place drops its tensor at once.
        share(f"lines, {mode}: allocations found in the trace", seen, n - 8)
        share(f"lines, {mode}: Python frames equal sys._getframe()", seen - len(different), seen, 1)
        for got, want in different[:3]:
            print(f"      ours  {got}\n      truth {want}")


def check_others():
    """The user's line is in the stack of what JAX and CuPy allocate."""
    for name in ("jax", "cupy"):
        script, trace = str(job.WORK / f"{name}_run.py"), job.OUT / f"stacks-{name}.vt"
        if job.run([PYTHON, script]).returncode:
            print(f"      {name}: does not run here without the preload either")
            continue
        if not workload(f"{name}_run", trace=trace):
            continue
        n_lines = len(pathlib.Path(script).read_text().splitlines())
        entries = [e for e in check_stacks.leaks(job.CLI, trace) if e["kind"] in ("linear", "pool", "vmm")]
        own = [f for e in entries for f in check_stacks.python_part(e["stack"]) if f[0] == script]
        job.check(f"{name}: a line of the program", sorted({f[2] for f in own}), f"1 to {n_lines}",
                  bool(own) and all(1 <= f[2] <= n_lines for f in own))


def forget(paths):
    """Takes files out of the page cache, as far as the kernel lets us."""
    for path in paths:
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def check_report_time():
    trace = job.OUT / "stacks.vt"
    if not trace.exists():
        return
    files = [trace, job.CLI, *check_stacks.Stacks(job.CLI, trace).modules]
    cores = set(sorted(os.sched_getaffinity(0))[:2])
    size = sum(os.path.getsize(f) for f in files if os.path.exists(f)) >> 20
    for state in "cold", "warm":
        if state == "cold":
            forget(files)
        begin = time.perf_counter()
        done = subprocess.run([str(job.CLI), "report", str(trace)], capture_output=True, text=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, cores))
        took = time.perf_counter() - begin
        job.check(f"report, {state}, of a trace with {size} MiB of modules, s", round(took, 2), f"<= {COLD_S}",
                  took <= COLD_S and done.returncode == 0 and "c10::" in done.stdout)


def medians(name, variables, *arguments):
    """The median of a workload's times, in us, without the preload and with it in each mode; the least of three runs of each."""
    result = {}
    for attempt in range(3):
        for mode in ("plain", *MODES):
            out, trace = job.OUT / "times.json", job.OUT / f"times-{mode}-{name}-{attempt}.vt"
            more = {} if mode == "plain" else {"VRAMTRACE_STACK": mode}
            if not workload(name, out, *arguments, trace=None if mode == "plain" else trace, **more, **variables):
                return {}
            times = json.loads(out.read_text())["times"]
            result.setdefault(mode, []).append(1e6 * statistics.median(times[len(times) // 5:]))
            trace.unlink(missing_ok=True)
    return {mode: min(values) for mode, values in result.items()}


def report_costs():
    """Ratios to read, not checks."""
    for title, name, variables, arguments in (
            ("one allocation of the driver", "torch_allocations", UNCACHED, ()),
            ("a step of training", "torch_train", {}, (200,)),
            ("a step of training, nothing cached", "torch_train", UNCACHED, (60,))):
        found = medians(name, variables, *arguments)
        for mode, value in found.items():
            print(f"      {title}, {mode:<7} {value:>12.2f} us  {value / found['plain']:.3f}", flush=True)


if __name__ == "__main__":
    sys.exit(job.main((check_snapshot, check_lines, check_others, check_report_time, report_costs)))

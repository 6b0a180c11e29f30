#!/usr/bin/env python3
"""
The main job on a real GPU: programs run unchanged under the preload, and what their traces say is compared with an independent
truth. Prints a table, one check a line, and ends with "N passed, N failed". Exit 77 where there is no GPU.

  BUILD_DIR    a build (libvramtrace.so, vramtrace, gpu/known-shared), default build/release
  VRAMTRACE    an unpacked release instead (lib/libvramtrace.so, bin/vramtrace)
  CUDA_HOME    the toolkit: its static runtime is linked into known.c; without it KNOWN_STATIC names such a program
  OUT          folder for traces and reports, default a new temporary one
"""
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
WORK = HERE / "workloads"
sys.path.insert(0, str(WORK))
import check_known  # noqa: E402

BUILD = pathlib.Path(os.environ.get("BUILD_DIR", "build/release")).resolve()
ROOT = os.environ.get("VRAMTRACE")
LIBRARY = pathlib.Path(ROOT, "lib/libvramtrace.so") if ROOT else BUILD / "libvramtrace.so"
CLI = pathlib.Path(ROOT, "bin/vramtrace") if ROOT else BUILD / "vramtrace"
OUT = pathlib.Path(os.environ.get("OUT") or tempfile.mkdtemp(prefix="vramtrace-gpu-"))
results = []


def check(name, got, want, ok=None):
    """One row of the table."""
    ok = got == want if ok is None else ok
    results.append(ok)
    print(f"{'ok  ' if ok else 'FAIL'}  {name:<58} {got!s:<28} want {want}", flush=True)


def environment(trace=None, **more):
    env = dict(os.environ, **more)
    if trace:
        env["LD_PRELOAD"] = str(LIBRARY)
        env["VRAMTRACE_OUTPUT"] = str(trace)
    return env


def run(command, trace=None, timeout=300, **more):
    """Runs it, under the preload when trace is given. Never raises: a failure is a row of the table."""
    try:
        return subprocess.run([str(c) for c in command], env=environment(trace, **more), capture_output=True, text=True,
                              timeout=timeout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, -1, "", str(error))


def report(trace):
    done = run([CLI, "report", "--json", trace])
    (OUT / (pathlib.Path(trace).stem + ".json")).write_text(done.stdout)
    try:
        return json.loads(done.stdout)
    except ValueError:
        print(f"      report of {trace}: exit {done.returncode}, {done.stderr[:200]}")
        return None


def runtime_folder():
    """Where libcudart.so.13 is: the toolkit's, or pip's."""
    import site

    places = [pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "lib64")]
    places += [pathlib.Path(s, "nvidia/cu13/lib") for s in site.getsitepackages()]
    return next((str(p) for p in places if (p / "libcudart.so.13").exists()), "")


def known_static():
    """known.c with NVIDIA's static runtime inside."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    archive = pathlib.Path(home, "lib64/libcudart_static.a")
    program = OUT / "known-static"
    if archive.exists() and shutil.which("cc"):
        built = run(["cc", "-g", "-O1", HERE / "known.c", f"-I{home}/include", archive, "-ldl", "-lrt", "-lpthread", "-o",
                     program])
        if built.returncode == 0:
            return program
    return pathlib.Path(os.environ.get("KNOWN_STATIC", BUILD / "gpu-real/known-static"))


def check_known_programs():
    seen = {}
    for name, program in (("shared", BUILD / "gpu/known-shared"), ("static", known_static())):
        trace = OUT / f"known-{name}.vt"
        done = run([program], trace, LD_LIBRARY_PATH=runtime_folder())
        check(f"known-{name}: exit status", done.returncode, 0)
        result = report(trace)
        if not result or done.returncode:
            print(done.stderr)
            continue
        differences = check_known.differences(json.loads(done.stdout), result)
        check(f"known-{name}: report equals the program's own count", differences or "equal", "equal")
        seen[name] = {k: result["devices"][0][k] for k in ("kinds",)}, [
            {k: t[k] for k in ("direction", "host_kind", "calls", "bytes")} for t in result["transfers"]]
        device = result["devices"][0]
        rest = device["total_bytes"] - device["end"]["free_bytes"] - device["end"]["tracked_bytes"]
        check(f"known-{name}: device used less tracked (context, code), MiB", rest >> 20, "> 0", rest > 0)
    check("known: shared and static reports are equal", "equal" if seen.get("shared") == seen.get("static") else seen, "equal")


def check_torch():
    trace, stats_file = OUT / "torch.vt", OUT / "torch-stats.json"
    done = run([sys.executable, WORK / "torch_train.py", stats_file, 100], trace)
    check("torch: exit status", done.returncode, 0)
    result = report(trace)
    if not result or not stats_file.exists():
        print(done.stderr[-2000:])
        return
    stats = json.loads(stats_file.read_text())["stats"]
    owners = {o["owner"]: o for o in result["devices"][0]["owners"]}
    torch = owners.get("torch", {})
    check("torch: allocations = num_device_alloc", torch.get("allocations"), stats["num_device_alloc"])
    check("torch: frees = num_device_free", torch.get("frees"), stats["num_device_free"])
    check("torch: peak bytes = reserved_bytes.all.peak", torch.get("peak_bytes"), stats["reserved_bytes.all.peak"])
    check("torch: live bytes = reserved_bytes.all.current", torch.get("live_bytes"), stats["reserved_bytes.all.current"])
    print("      owners:", {k: (v["allocations"], v["peak_bytes"]) for k, v in owners.items()})
    print(run([CLI, "report", trace]).stdout)


def check_others():
    for name in ("jax", "cupy", "numba"):
        trace = OUT / f"{name}.vt"
        plain = run([sys.executable, WORK / f"{name}_run.py"])
        if plain.returncode:
            print(f"      {name}: does not run here without the preload either: {plain.stderr[-200:]}")
            continue
        done = run([sys.executable, WORK / f"{name}_run.py"], trace)
        check(f"{name}: exit status and output as without the preload", (done.returncode, done.stdout), (0, plain.stdout))
        result = report(trace)
        if result:
            device = result["devices"][0]
            copies = {(t["direction"], t["host_kind"]): t["calls"] for t in result["transfers"]}
            check(f"{name}: allocations, peak MiB, copies", (device["allocations"], device["peak"]["tracked_bytes"] >> 20), "> 0",
                  device["allocations"] > 0 and device["peak"]["tracked_bytes"] > 0 and bool(copies))
            print("      copies:", copies)


def check_exceptions():
    trace = OUT / "exception.vt"
    bindings = OUT / "bindings"
    done = run([sys.executable, WORK / "torch_exception.py"], trace)
    check("exceptions: all 200 arrive", done.stdout.strip(), "caught 200")
    run([sys.executable, WORK / "torch_exception.py"], OUT / "exception2.vt", LD_DEBUG="bindings", LD_DEBUG_OUTPUT=str(bindings))
    pattern = re.compile(r"binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `(_Unwind_\w+)'")
    targets = {}
    for path in OUT.glob("bindings.*"):
        for line in path.open(errors="replace"):
            found = pattern.search(line)
            if found and "libstdc++" in found[1]:
                targets.setdefault(os.path.basename(found[2]), set()).add(found[3])
        path.unlink()
    for target, names in targets.items():
        print(f"      libstdc++'s {len(names)} _Unwind_* names are bound to {target}")
    check("exceptions: libstdc++ unwinds through libgcc alone", sorted(targets), ["libgcc_s.so.1"])


def report_step_time():
    """A ratio to read, not a check: from one start to the next the same program may run half as fast again."""
    medians = {"plain": [], "preload": []}
    for attempt in range(5):
        for name in medians:
            stats = OUT / "times.json"
            run([sys.executable, WORK / "torch_train.py", stats, 300], OUT / f"time{attempt}.vt" if name == "preload" else None)
            medians[name].append(statistics.median(json.loads(stats.read_text())["times"][50:]))
    for name, values in medians.items():
        print(f"      step time, {name}: median of each run, ms", sorted(round(1e3 * v, 2) for v in values))
    print("      step time, ratio of the medians with / without the preload:",
          round(statistics.median(medians["preload"]) / statistics.median(medians["plain"]), 3))


def main(parts):
    """Runs the parts, prints the table and its closing line. Returns the exit status."""
    if shutil.which("nvidia-smi") is None or run(["nvidia-smi", "-L"]).returncode:
        print("no GPU here")
        return 77
    print(run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]).stdout.strip(), "·",
          run(["date", "-u", "+%F"]).stdout.strip(), "· Python", sys.version.split()[0])
    for part in parts:
        try:
            part()
        except Exception as error:  # a broken part is a failed row, the others still run
            check(f"{part.__name__}", f"{type(error).__name__}: {error}", "no exception", False)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main((check_known_programs, check_torch, check_others, check_exceptions, report_step_time)))

#!/usr/bin/env python3
"""
What copies cost, on a real GPU: rates by size and host memory against the program's own events, programs and PyTorch loops whose
copies cost what they need not, loops that do it right, timing on the device, and what a traced copy costs. Environment as
main_job.py. Two GPUs are needed for peer copies; without them that line says so. Exit 77 without a GPU.
"""
import json
import pathlib
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import ledgers  # noqa: E402
import main_job as job  # noqa: E402
sys.path.insert(0, str(job.WORK))
import check_transfers  # noqa: E402

TIMED = {"VRAMTRACE_COPY_TIMING": "1"}


def transfers(trace):
    done = job.run([job.CLI, "transfers", "--json", trace])
    (job.OUT / (pathlib.Path(trace).stem + "-transfers.json")).write_text(done.stdout)
    return json.loads(done.stdout)


def program(name, argument, trace=None, **more):
    return job.run([job.BUILD / name, argument], trace, LD_LIBRARY_PATH=ledgers.library_folders(), **more)


def check_table():
    """cuda-facts A5: host time of an asynchronous call, and the rate, by size, direction and host memory."""
    plain = program("gpu/transfers-shared", "table")
    done = program("gpu/transfers-shared", "table", job.OUT / "table.vt", **TIMED)
    if plain.returncode or done.returncode:
        job.check("table: exit statuses", (plain.returncode, done.returncode), (0, 0))
        print(plain.stderr, done.stderr)
        return
    bare = {(r["direction"], r["host_kind"], r["bytes"]): r for r in json.loads(plain.stdout)}
    print("      size        direction  memory       host time of a call   rate, GB/s: report  program  program bare   device time/program's")
    for row, rate, seen, timed in check_transfers.rates(json.loads(done.stdout), transfers(job.OUT / "table.vt")):
        key = row["direction"], row["host_kind"], row["bytes"]
        bare_rate = bare[key]["bytes"] * bare[key]["count"] / bare[key]["event_ns"]
        print(f"      {row['bytes']:<11} {row['direction']:<10} {row['host_kind']:<12} {bare[key]['host_ns'] / row['count'] / 1e3:10.1f} us"
              f"        {(seen or 0) / 1e9:10.1f} {rate / 1e9:10.1f} {bare_rate:10.1f} {timed or 0:12.3f}")
        if row["bytes"] < 1 << 20:
            continue  # what lies between two events counts for more than the copy
        name = f"table: {row['direction']} {row['host_kind']} {row['bytes'] >> 20} MiB"
        # Pageable memory is not as fast in one run as in the next: the program of this very run is what counts. What is copied
        # by the device itself is: there the program counts that had no events of the recorder between its own.
        truth = rate if row["host_kind"] == "pageable" else bare_rate * 1e9
        job.check(f"{name}: rate of the report / of the program", round(seen / truth, 3), "1 +- 0.1", abs(seen / truth - 1) < 0.1)
        timed *= truth / rate
        job.check(f"{name}: time on the device / by the program's events", round(timed, 3), "1 +- 0.05", abs(timed - 1) < 0.05)


def check_cases():
    for name in "c1", "c3", "c5", "c6", "c7", "c8", "p1", "p2", "p4":
        trace = job.OUT / f"{name}.vt"
        done = program("gpu/transfers-shared", name, trace)
        if done.returncode == 77:
            print(f"      {name}: needs two GPUs")
            continue
        if done.returncode:
            job.check(f"{name}: exit status", done.returncode, 0)
            print(done.stderr)
            continue
        seen = transfers(trace)
        job.check(f"{name}: right finding, function, count, bytes", check_transfers.differences(json.loads(done.stdout), seen) or "all", "all")
        print("     ", [(f["finding"], f["count"], f["bytes"], f["lost_time_ns"]) for f in seen["transfer_findings"]])
    done = program("gpu/transfers-shared", "clean", job.OUT / "clean.vt")
    found = [(f["finding"], f["lost_time_ns"]) for f in transfers(job.OUT / "clean.vt")["transfer_findings"]]
    job.check("clean: exit status, findings", (done.returncode, found), (0, []))


def check_torch():
    for name in "clean", "pageable", "offload", "item", "pin", "rounded":
        trace = job.OUT / f"torch-{name}.vt"
        done = job.run([sys.executable, job.WORK / "torch_transfers.py", name], trace)
        if done.returncode:
            job.check(f"torch {name}: exit status", done.returncode, 0)
            print(done.stderr[-1500:])
            continue
        # Workers of a loader leave traces only if they use CUDA, which they do not.
        seen = transfers(trace)["transfer_findings"]
        found = [(f["finding"], f["count"], f["bytes"]) for f in seen]
        for want in json.loads(done.stdout):
            fits = [f for f in found if f[0] == want["finding"] and want["count"] in (None, f[1]) and want["bytes"] in (None, f[2])]
            job.check(f"torch {name}: {want['finding']}, count, bytes", fits or found, (want["finding"], want["count"], want["bytes"]), bool(fits))
        if name == "clean":
            job.check("torch clean: findings", found, [])
            print(job.run([job.CLI, "transfers", "--limit", "3", trace]).stdout)


def check_timing():
    """Timing disturbs nothing: captures, threads and contexts that end; graphs of PyTorch give the same result."""
    for name in "captures", "threads", "contexts", "crowd":
        plain = program("cases/copy_timing", name)
        trace = job.OUT / f"timing-{name}.vt"
        done = program("cases/copy_timing", name, trace, **TIMED)
        job.check(f"timing {name}: as without the recorder", (done.returncode, done.stdout), (plain.returncode, plain.stdout))
        records = [json.loads(line) for line in job.run([job.CLI, "dump", "--json", trace]).stdout.splitlines()]
        captured = [r for r in records if r["record"] == "copy" and r["flags"] & 16]
        timed = [r for r in records if r["record"] == "copy_time" and r["gpu_time_ns"]]
        job.check(f"timing {name}: copies timed; captured ones among them", (len(timed), sum(bool(r["timed_id"]) for r in captured)),
                  "> 0, 0", bool(timed) and not any(r["timed_id"] for r in captured))
    plain = job.run([sys.executable, job.WORK / "torch_graph.py"])
    done = job.run([sys.executable, job.WORK / "torch_graph.py"], job.OUT / "timing-graph.vt", **TIMED)
    job.check("timing: PyTorch's graph gives the same result", (done.returncode, done.stdout), (0, plain.stdout))


def report_cost():
    """Ratios to read, not checks: asynchronous copies of 4 KiB from pinned memory, 40 frames, 50 stacks in turn."""
    hows = {"bare": None, "stacks none": {"VRAMTRACE_STACK": "none"}, "stacks native": {"VRAMTRACE_STACK": "native"},
            "none, timed": {"VRAMTRACE_STACK": "none", **TIMED}, "native, timed": {"VRAMTRACE_STACK": "native", **TIMED}}
    ns = {how: [] for how in hows}
    for attempt in range(5):
        for how, more in hows.items():
            trace = job.OUT / f"cost-{attempt}-{how.replace(' ', '-').replace(',', '')}.vt" if more else None
            done = job.run([job.BUILD / "bench/hot_path", 300000, 40, 50, "copy"], trace, LD_LIBRARY_PATH=ledgers.library_folders(),
                           **(more or {}))
            if done.returncode:
                job.check("cost: exit status", done.returncode, 0)
                print(done.stderr)
                return
            ns[how].append(float(done.stdout))
            if trace:
                trace.unlink()
    bare = statistics.median(ns["bare"])
    for how, values in ns.items():
        print(f"      a copy, {how:<14} {statistics.median(values):8.0f} ns, ratio {statistics.median(values) / bare:.2f}")


if __name__ == "__main__":
    sys.exit(job.main((check_table, check_cases, check_torch, check_timing, report_cost)))

#!/usr/bin/env python3
"""
Running out of memory on a real GPU: class, bytes and advice of each way, and the experiment with pages in both variants.
Environment as main_job.py. Nothing takes more than about 4 GiB of the device, except with WHOLE_CARD=1: that fills it.
Exit 77 without a GPU or PyTorch.
"""
import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import main_job as job  # noqa: E402

MIB, GIB = 1 << 20, 1 << 30


def torch_run(workload, conf=""):
    name = workload + ("-expandable" if conf else "")
    trace, out = job.OUT / f"oom-{name}.vt", job.OUT / f"oom-{name}-truth.json"
    more = {"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {}
    done = job.run([sys.executable, job.WORK / "torch_oom_run.py", workload, out], trace, **more)
    result = job.report(trace)
    if done.returncode or not result or not out.exists():
        job.check(f"{name}: exit status", done.returncode, 0, False)
        print(done.stderr[-1500:])
        return None, None
    return result, json.loads(out.read_text())


def row_of(result, level, at):
    rows = [row for row in result["fragmentation"] if row["level"] == level and row["at"] == at]
    return rows[-1] if rows else {}


def suffices(oom, action):
    return next((item["bytes"] for item in oom["would_suffice"] if item["action"] == action), None)


def check_oom(name, workload, klass, conf=""):
    """The one episode, its class and request; None when there is none."""
    result, truth = torch_run(workload, conf)
    if not result:
        return None, None, None
    job.check(f"{name}: refused, as it should be", truth["refused"], True)
    job.check(f"{name}: episodes", len(result["oom"]), 1)
    if not result["oom"]:
        return None, None, None
    oom = result["oom"][0]
    job.check(f"{name}: class", oom["class"], klass)
    rounded = -(-truth["requested"] // 512) * 512
    job.check(f"{name}: bytes asked for", oom["requested_bytes"], truth["requested"],
              oom["requested_bytes"] in (truth["requested"], rounded))
    job.check(f"{name}: a stack", len(oom["stack"] or []), "> 3", len(oom["stack"] or []) > 3)
    print(f"       {oom['reason']}")
    return result, truth, oom


def check_carved():
    result, truth, oom = check_oom("A1", "carved", "fragmentation")
    if oom:
        row = row_of(result, "torch", "oom:1")
        job.check("A1: pinned = inactive split of PyTorch", row.get("pinned_bytes"), truth["stats"]["inactive_split_bytes.all.current"])
        job.check("A1: live", row.get("live_bytes"), truth["stats"]["allocated_bytes.all.current"])
        job.check("A1: what pins is 3 blocks", sum(p["count"] for p in row.get("pinners", [])), 3)
        job.check("A1: advice", row.get("advice"), "expandable_segments", "expandable_segments" in (row.get("advice") or ""))
        job.check("A1: would have come back", suffices(oom, "move_pinning_blocks"), row.get("pinned_bytes"))
    result, truth = torch_run("carved", "expandable_segments:True")
    if result:
        job.check("A1, expandable segments: refusals", (truth["refused"], len(result["oom"])), (False, 0))
        job.check("A1, expandable segments: live", row_of(result, "torch", "end").get("live_bytes"),
                  truth["stats"]["allocated_bytes.all.current"])


def check_drift():
    reserved = {}
    for conf in ("", "expandable_segments:True"):
        result, truth = torch_run("drift", conf)
        if not result:
            return
        row = row_of(result, "torch", "end")
        name = "A3, expandable segments" if conf else "A3"
        job.check(f"{name}: reserved", row.get("reserved_bytes"), truth["stats"]["reserved_bytes.all.current"])
        reserved[conf] = row.get("reserved_bytes")
        if not conf:
            job.check("A3: verdict", row.get("verdict"), "size_drift")
            job.check("A3: advice", row.get("advice"), "expandable_segments", "expandable_segments" in (row.get("advice") or ""))
    job.check("A3: reserved with expandable segments, of without", f"{reserved['expandable_segments:True'] / reserved['']:.2f}",
              "< 0.5", reserved["expandable_segments:True"] < reserved[""] / 2)


def check_rest():
    result, truth, oom = check_oom("A5", "too_late", "pending_free")
    if oom:
        job.check("A5: the same request again", truth["again"], False)
        job.check("A5: a retry would do", suffices(oom, "retry"), 768 * MIB)
    check_oom("A10", "too_large", "impossible_request")
    result, truth, oom = check_oom("A11, memory fraction", "fraction", "limit")
    if oom:
        job.check("A11: the driver was not asked", oom["refused_calls"], 0)
    result, truth, oom = check_oom("A12", "cache", "other_allocator")
    if oom:
        job.check("A12: PyTorch's cache", suffices(oom, "release_cache"), truth["idle"])
        job.check("A12: free was measured", oom["free_measured"], True)
    result, truth, oom = check_oom("full", "full", "exhausted")
    if oom:
        job.check("full: rows of the account add up", sum(oom["account"].values()), oom["total_bytes"])
    result, truth, oom = check_oom("A13", "address_space", "address_space")
    if oom:
        job.check("A13: reserved", oom["reserved_address_bytes"], truth["reserved"], oom["reserved_address_bytes"] >= truth["reserved"])


def check_neighbour():
    other = subprocess.Popen([sys.executable, str(job.WORK / "torch_oom_run.py"), "hold", str(job.OUT / "hold.json")],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        held = other.stdout.readline().strip()
        job.check("A10, a neighbour: holds 4 GiB", held, "held")
        result, truth, oom = check_oom("A10, a neighbour", "neighbour", "other_process")
        if oom:
            job.check("A10, a neighbour: GiB of others", round((oom["other_processes"]["bytes"] or 0) / GIB, 1), ">= 4",
                      (oom["other_processes"]["bytes"] or 0) >= 4 * GIB)
            print(f"       {oom['other_processes']}")
    finally:
        other.communicate("", timeout=60)


def check_pages_of(block, n):
    """n blocks of so many MiB, or as many as there are: half of it is freed."""
    trace, name = job.OUT / f"oom-pages-{block}-{n}.vt", f"pages, {n or 'all'} blocks of {block} MiB"
    done = job.run([job.BUILD / "gpu/pages-shared", block * MIB, n, 512 * MIB], trace, LD_LIBRARY_PATH=job.runtime_folder())
    result = job.report(trace)
    if done.returncode or not result:
        job.check(f"{name}: exit status", done.returncode, 0, False)
        print(done.stderr)
        return
    truth, row = json.loads(done.stdout), row_of(result, "driver", "end")
    pinned = truth["held"] - truth["live"]
    job.check(f"{name}: held = what the driver does not give back", row.get("reserved_bytes"), truth["held"])
    job.check(f"{name}: pinned", row.get("pinned_bytes"), pinned)
    job.check(f"{name}: pages", row.get("pinned_pages"), pinned // MIB)
    job.check(f"{name}: class", [oom["class"] for oom in result["oom"]],
              ([] if n else ["exhausted"]) + ["fragmentation" if block == 1 else "exhausted"])


def check_pages():
    """2 GiB in blocks of 1 MiB, and of 2 MiB; and with WHOLE_CARD=1 the whole device."""
    for block in (1, 2):
        check_pages_of(block, 2048 // block)
        if os.environ.get("WHOLE_CARD") == "1":
            check_pages_of(block, 0)


if __name__ == "__main__":
    if job.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"]).returncode:
        print("no GPU or no PyTorch here")
        sys.exit(77)
    sys.exit(job.main((check_pages, check_carved, check_drift, check_rest, check_neighbour)))

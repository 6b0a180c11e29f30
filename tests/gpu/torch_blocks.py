#!/usr/bin/env python3
"""
PyTorch's blocks on a real GPU: sums, peaks, and every segment and block at the end against PyTorch's own statistics and snapshot,
for models and settings. Environment as main_job.py. Exit 77 without a GPU or PyTorch.
"""
import json
import os
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import main_job as job  # noqa: E402
sys.path.insert(0, str(job.WORK))
import check_blocks  # noqa: E402

# Bytes allocated and reserved once the model is on the device, as published and measured.
PUBLISHED = {"resnet18": [46861312, 67108864], "resnet50": [102475264, 123731968]}


def run_one(workload, conf="", **more):
    name = "blocks-" + workload + ("-" + conf.replace(":", "-") if conf else "") + "".join("-" + k.lower() for k in more)
    trace, out = job.OUT / f"{name}.vt", job.OUT / f"{name}-truth.json"
    if conf:
        more["PYTORCH_CUDA_ALLOC_CONF"] = conf
    done = job.run([sys.executable, job.WORK / "torch_blocks_run.py", workload, out], trace, **more)
    result = job.report(trace)
    if done.returncode or not result or not out.exists():
        job.check(f"{name}: exit status", done.returncode, 0, False)
        print(done.stderr[-1500:])
        return name, None, None
    return name, result, json.loads(out.read_text())


def check_one(workload, conf=""):
    name, result, truth = run_one(workload, conf)
    if not result:
        return
    device, = result["torch"]["devices"]
    stats = truth["stats"]
    wrong = check_blocks.compare_sums(device, stats)
    job.check(f"{name}: sums and peaks, {device['allocations']} blocks", wrong or "equal", "equal")
    wrong = check_blocks.compare_layout(device, truth["snapshot"])
    n_blocks = sum(len(s["blocks"]) for s in truth["snapshot"])
    job.check(f"{name}: {len(truth['snapshot'])} segments, {n_blocks} blocks", wrong[:3] or "equal", "equal")
    rows = sum(r["bytes"] for r in result["leaks"] if r["allocator"] == "torch")
    job.check(f"{name}: rows of blocks and the rest = reserved", rows, stats["reserved_bytes.all.current"])
    print(f"       allocated {device['allocated_bytes']:,} (peak {device['peak_allocated_bytes']:,}), reserved "
          f"{device['reserved_bytes']:,} (peak {device['peak_reserved_bytes']:,}), inactive split "
          f"{device['inactive_split_bytes']:,}, pending {device['pending_bytes']:,}, PyTorch {device['version']}")
    if workload in PUBLISHED and not conf:
        job.check(f"{name}: allocated and reserved after the move", truth["after_move"], PUBLISHED[workload])
    if workload == "streams":
        job.check(f"{name}: blocks that wait for the other stream", device["pending_blocks"], 5)
    if workload == "refused":
        job.check(f"{name}: refusals", device["refused"], 2)


def check_models():
    for workload in ("resnet18", "resnet50", "gpt2", "transformer", "streams", "threads", "graph", "refused"):
        check_one(workload)


def check_settings():
    for conf in ("expandable_segments:True", "max_split_size_mb:64"):
        for workload in ("transformer", "gpt2", "streams", "graph"):
            check_one(workload, conf)


def check_not_seen():
    name, result, truth = run_one("transformer", "backend:cudaMallocAsync")
    if result:
        coverage = result["coverage"]["torch"]
        job.check(f"{name}: says that blocks are not seen", (coverage["blocks"], "cudaMallocAsync" in coverage["limits"][0]),
                  (False, True))
        pool = result["devices"][0]["kinds"]["pool"]["live_bytes"]
        job.check(f"{name}: pool bytes = allocated", pool, truth["stats"]["allocated_bytes.all.current"])
    name, result, truth = run_one("transformer", PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    if result:
        coverage = result["coverage"]["torch"]
        job.check(f"{name}: says that blocks are not seen", (coverage["blocks"], "cache was off" in coverage["limits"][0]), (False, True))
        linear = result["devices"][0]["kinds"]["linear"]
        job.check(f"{name}: allocations of the driver", linear["allocations"], "> 1000", linear["allocations"] > 1000)


if __name__ == "__main__":
    if job.run([sys.executable, "-c", "import torch"]).returncode:
        print("no PyTorch here")
        sys.exit(77)
    sys.exit(job.main((check_models, check_settings, check_not_seen)))

#!/usr/bin/env python3
"""
Every ledger on a real GPU: one allocation of each family against what the driver says about it, the account that adds up, other
backends of PyTorch, and CUDA graphs. Environment as main_job.py; ADDUP and FAMILIES may name ready programs. Exit 77 without a GPU.
"""
import json
import os
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import main_job as job  # noqa: E402

MIB = 1 << 20


def library_folders():
    """Folders with NVIDIA's runtime libraries: the toolkit's, and pip's."""
    import site

    folders = [pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "lib64")]
    folders += [p for s in site.getsitepackages() for p in pathlib.Path(s, "nvidia").glob("*/lib")]
    return ":".join(str(p) for p in folders if p.exists())


def program(name):
    named = os.environ.get(name.upper())
    return pathlib.Path(named) if named else job.BUILD / f"gpu/{name}-shared"


def check_families():
    trace = job.OUT / "families.vt"
    done = job.run([program("families")], trace, LD_LIBRARY_PATH=library_folders())
    job.check("families: exit status", done.returncode, 0)
    result = job.report(trace)
    if done.returncode or not result:
        print(done.stderr)
        return
    truth = {s["stage"]: s for s in json.loads(done.stdout)}
    device = result["devices"][0]
    kinds, end = device["kinds"], device["end"]
    job.check("linear: asked", kinds["linear"]["live_bytes"], truth["linear"]["asked"])
    job.check("linear: pages held = change of free memory", end["linear_held_bytes"], truth["linear"]["taken"])
    arrays = truth["array"]["asked"] + truth["mipmapped"]["asked"]
    job.check("arrays: bytes of the descriptors", end["by_kind"]["array"], arrays)
    taken = truth["array"]["taken"] + truth["mipmapped"]["taken"]
    job.check("arrays: against the change of free memory, MiB", round(arrays / MIB, 1), f"{taken / MIB:.1f} +- 4",
              abs(taken - arrays) <= 4 * MIB)
    job.check("pool: used", end["by_kind"]["pool_used"], truth["pool_used"]["taken"])
    job.check("pool: reserved", end["by_kind"]["pool_reserved"], truth["pool_reserved"]["taken"])
    job.check("vmm: physical", end["by_kind"]["vmm"], truth["vmm"]["taken"])
    job.check("managed", end["by_kind"]["managed"], truth["managed"]["asked"])
    job.check("pinned", result["host_memory"]["pinned_bytes"], truth["pinned"]["asked"])
    job.check("registered", result["host_memory"]["registered_bytes"], truth["registered"]["asked"])
    job.check("graph memory: reserved by the driver's attribute", end["by_kind"]["graph"], truth["graph"]["asked"])
    boxes = sum(t["bytes"] for t in result["transfers"])
    job.check("boxes through an array: bytes copied", boxes, truth["boxes"]["asked"])


def check_addup():
    for stages in (["context"], ["context", "memory"], ["context", "cublas"], ["context", "stack"], ["context", "graphs"]):
        name = "addup-" + "-".join(stages)
        trace = job.OUT / f"{name}.vt"
        done = job.run([program("addup"), *stages], trace, LD_LIBRARY_PATH=library_folders())
        result = job.report(trace)
        if done.returncode or not result:
            job.check(f"{name}: exit status", done.returncode, 0)
            print(done.stderr)
            continue
        truth, end = json.loads(done.stdout), result["devices"][0]["end"]
        causes = {k: v for k, v in end["untracked_by_cause"].items() if v}
        job.check(f"{name}: free memory as the program sees it", end["free_bytes"] - truth["free_bytes"], "0 +- 4 MiB",
                  abs(end["free_bytes"] - truth["free_bytes"]) <= 4 * MIB)
        total = end["tracked_bytes"] + (end["untracked_bytes"] or 0) + (end["other_processes_bytes"] or 0) + end["free_bytes"]
        job.check(f"{name}: rows add up to the card", total, truth["total_bytes"])
        unexplained = end["untracked_by_cause"]["unexplained"]
        job.check(f"{name}: unexplained, MiB", round(unexplained / MIB, 2), "within 4", abs(unexplained) <= 4 * MIB)
        print("      ", {k: round(v / MIB, 1) for k, v in causes.items()}, "others",
              round((end["other_processes_bytes"] or 0) / MIB, 1))


def check_backends():
    for conf in ("backend:native", "expandable_segments:True", "backend:cudaMallocAsync"):
        name = "torch-" + conf.split(":")[0 if "exp" in conf else 1]
        trace, out = job.OUT / f"{name}.vt", job.OUT / f"{name}-stats.json"
        done = job.run([sys.executable, job.WORK / "torch_backend.py", out], trace, PYTORCH_CUDA_ALLOC_CONF=conf)
        result = job.report(trace)
        if done.returncode or not result:
            job.check(f"{name}: exit status", done.returncode, 0)
            print(done.stderr[-1500:])
            continue
        truth, device = json.loads(out.read_text()), result["devices"][0]
        kinds = {k: v["live_bytes"] for k, v in device["kinds"].items()}
        if conf == "backend:native":
            job.check(f"{name}: linear bytes of torch = reserved", owner_bytes(device), truth["reserved"])
        elif conf == "expandable_segments:True":
            job.check(f"{name}: physical bytes = reserved", kinds.get("vmm"), truth["reserved"])
        else:
            job.check(f"{name}: pool bytes = allocated", kinds.get("pool"), truth["allocated"])
            job.check(f"{name}: pool reserved", device["end"]["by_kind"]["pool_reserved"], truth["reserved"])


def owner_bytes(device):
    return next((o["live_bytes"] for o in device["owners"] if o["owner"] == "torch"), None)


def check_graphs():
    trace = job.OUT / "graph.vt"
    plain = job.run([sys.executable, job.WORK / "torch_graph.py"])
    done = job.run([sys.executable, job.WORK / "torch_graph.py"], trace)
    job.check("graph: captured in global mode, replayed, same result", (done.returncode, done.stdout), (0, plain.stdout))
    if done.returncode:
        print(done.stderr[-1500:])
    result = job.report(trace)
    if result:
        job.check("graph: launches counted", result["coverage"]["graph_launches"], 20)


if __name__ == "__main__":
    sys.exit(job.main((check_families, check_addup, check_backends, check_graphs)))

#!/usr/bin/env python3
"""
A distributed training on two GPUs: one trace a rank, each against PyTorch's own statistics, NCCL's memory by its owner, and the
context that rank 1 has on GPU 0 for nothing; then copies between the two (transfers.c, c7). Environment as main_job.py. Exit 77
without two GPUs and PyTorch.
"""
import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import main_job as job  # noqa: E402
import ledgers  # noqa: E402
sys.path.insert(0, str(job.WORK))
import check_transfers  # noqa: E402


def check_ranks():
    folder = job.OUT / "ranks"
    folder.mkdir(exist_ok=True)
    done = job.run([sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone", job.WORK / "torch_ddp.py",
                    folder], folder / "rank%r.%p.vt")
    job.check("torchrun: exit status", done.returncode, 0)
    if done.returncode:
        print(done.stderr[-2000:])
        return
    truths = [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in (0, 1)]
    traces = {json.loads(job.run([job.CLI, "report", "--json", t]).stdout)["traces"][0]["pid"]: t for t in folder.glob("*.vt")}
    job.check("traces of processes that used CUDA", len(traces), 2, len(traces) >= 2)
    for truth in truths:
        rank = truth["rank"]
        report = job.report(traces[truth["pid"]])
        job.check(f"rank {rank}: in the trace", str(report["traces"][0]["rank"]), str(rank))
        devices = {d["ordinal"]: d for d in report["devices"]}
        device, torch = devices[rank], next(d for d in report["torch"]["devices"] if d["ordinal"] == rank)
        job.check(f"rank {rank}: GPU", truth["uuid"] in device["uuid"], True)
        got = torch["allocated_bytes"], torch["reserved_bytes"], torch["peak_reserved_bytes"]
        job.check(f"rank {rank}: allocated, reserved, peak reserved", got,
                  (truth["allocated"], truth["reserved"], truth["peak_reserved"]))
        owners = {o["owner"]: o["live_bytes"] for o in device["owners"]}
        job.check(f"rank {rank}: NCCL's memory", owners.get("nccl", 0), "> 0", owners.get("nccl", 0) > 0)
        other = devices.get(1 - rank)
        print(f"      rank {rank}: {owners}, on the other GPU {other and (other['end'], other['allocations'])}")
    print(job.run([job.CLI, "report", folder]).stdout)


def check_peer_copies():
    done = job.run([job.BUILD / "gpu/transfers-shared", "c7"], job.OUT / "c7.vt", LD_LIBRARY_PATH=ledgers.library_folders())
    job.check("c7: exit status", done.returncode, 0)
    if done.returncode:
        print(done.stderr)
        return
    seen = json.loads(job.run([job.CLI, "transfers", "--json", job.OUT / "c7.vt"]).stdout)
    job.check("c7: right finding, function, count, bytes", check_transfers.differences(json.loads(done.stdout), seen) or "all", "all")
    print("     ", [(f["finding"], f["count"], f["bytes"], f["lost_time_ns"]) for f in seen["transfer_findings"]])


if __name__ == "__main__":
    if job.run([sys.executable, "-c", "import torch; assert torch.cuda.device_count() > 1"]).returncode:
        print("no two GPUs or no PyTorch here")
        sys.exit(77)
    sys.exit(job.main((check_ranks, check_peer_copies)))

#!/usr/bin/env python3
"""
Several processes on one real GPU, with PyTorch: shared tensors, forks, a DataLoader, an idle context, two ranks of torchrun. Each
process against PyTorch's own statistics, and all of them together against what the driver says is in use. Environment as
main_job.py. Exit 77 without a GPU and PyTorch.
"""
import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import main_job as job  # noqa: E402

MIB = 1 << 20
SCRIPT = job.WORK / "torch_processes.py"


class Seen:
    """The report of all traces of one way, beside what the processes said."""

    def __init__(self, way, command):
        self.way = way
        self.folder = job.OUT / f"processes-{way}"
        self.folder.mkdir(exist_ok=True)
        before = device_used()
        done = job.run([*command, SCRIPT, way, self.folder], self.folder / "%p.vt")
        job.check(f"{way}: exit status", done.returncode, 0)
        if done.returncode:
            print(done.stderr[-3000:])
        self.truths = [json.loads(path.read_text()) for path in sorted(self.folder.glob("*.json"))]
        self.all = json.loads(job.run([job.CLI, "report", "--json", self.folder]).stdout)
        self.pids = [trace["pid"] for trace in self.all["traces"]]
        self.used = max((truth["used"] for truth in self.truths), default=0) - before
        print(job.run([job.CLI, "report", self.folder]).stdout.partition("\n\n/")[0])

    def trace(self, name):
        return self.pids.index(next(truth["pid"] for truth in self.truths if truth["name"] == name))

    def check_each(self):
        """PyTorch's numbers of each process; and every process that used CUDA left a whole trace."""
        job.check(f"{self.way}: traces of the processes that used CUDA", len(self.pids), len(self.truths))
        for truth in self.truths:
            index = self.pids.index(truth["pid"])
            devices = [d for d in self.all["torch"]["devices"] if d["trace"] == index] if self.all["torch"] else []
            got = [(d["allocated_bytes"], d["reserved_bytes"], d["peak_reserved_bytes"]) for d in devices] or [(0, 0, 0)]
            job.check(f"{self.way}: {truth['name']}: allocated, reserved, peak", got,
                      [(truth["allocated"], truth["reserved"], truth["peak_reserved"])])
            trace = self.all["traces"][index]
            job.check(f"{self.way}: {truth['name']}: damage, lost", (any(trace["damage"].values()), trace["lost_events"]), (False, 0))

    def check_total(self):
        """At the peak all hold what they have; what others used before is taken off what the driver says."""
        if len(self.pids) < 2:
            return
        (gpu,) = self.all["gpus"]
        reserved = sum(truth["reserved"] for truth in self.truths)
        job.check(f"{self.way}: tracked in all at the peak = reserved in all", gpu["peak"]["tracked_bytes"], reserved)
        held = gpu["peak"]["tracked_bytes"] + gpu["peak"]["untracked_bytes"]
        job.check(f"{self.way}: with untracked, of what the driver says, MiB", (held // MIB, self.used // MIB), "within 15 %",
                  abs(held - self.used) < 0.15 * self.used)

    def check_parents(self, n_children):
        roots = [p for p in self.all["processes"] if p["parent"] is None]
        parent = self.trace("parent")
        children = [p for p in self.all["processes"] if p["parent"] == parent]
        job.check(f"{self.way}: roots, children of the parent", (len(roots), len(children)), (1, n_children))


def device_used():
    done = job.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"])
    return int(done.stdout.split()[0]) * MIB


def check_ipc():
    seen = Seen("ipc", [sys.executable])
    seen.check_each()
    seen.check_total()
    seen.check_parents(2)
    (gpu,) = seen.all["gpus"]
    shared = {share["trace"]: share["peak_shared_bytes"] or share["shared_count"] for share in gpu["shares"]}
    job.check("ipc: the parent sees no memory of others", shared[seen.trace("parent")], 0)
    text = job.run([job.CLI, "report", seen.folder]).stdout
    job.check("ipc: workers see memory of the parent, uncounted", text.count("of others, not counted here"), 2)
    job.check("ipc: no context is called idle", len(seen.all["idle_contexts"]), 0)


def check_fork():
    seen = Seen("fork", [sys.executable])
    seen.check_each()
    seen.check_total()
    seen.check_parents(2)


def check_loader():
    seen = Seen("loader", [sys.executable])
    seen.check_each()
    seen.check_parents(0)


def check_idle():
    seen = Seen("idle", [sys.executable])
    seen.check_each()
    idle = [(i["trace"], i["device"], i["advice"]) for i in seen.all["idle_contexts"]]
    job.check("idle: the worker's context, and no other", idle, [(seen.trace("idle worker"), 0, "keep_out")])
    known = [i["bytes"] and i["bytes"] // MIB for i in seen.all["idle_contexts"]]
    job.check("idle: what it takes, MiB", known, "100 to 1000", all(n is not None and 100 < n < 1000 for n in known) and known != [])


def check_ranks():
    seen = Seen("rank", [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone"])
    seen.check_each()
    seen.check_total()
    jobs = seen.all["jobs"]
    job.check("rank: one launch, no rank missing", [(j["world_size"], j["missing_ranks"]) for j in jobs], [(2, [])])
    for rank in jobs[0]["ranks"] if jobs else []:
        truth = seen.truths[[t["name"] for t in seen.truths].index(f"rank {rank['rank']}")]
        job.check(f"rank {rank['rank']}: peak, reserved, live, owner",
                  (rank["peak_bytes"], rank["peak_reserved_bytes"], rank["live_bytes"], rank["largest_owner"]),
                  (truth["peak_reserved"], truth["peak_reserved"], truth["allocated"], "torch"))
    outliers = [(o["rank"], o["metric"]) for j in jobs for o in j["outliers"]]
    job.check("rank: rank 1 holds more than rank 0", outliers, "with (1, 'peak')", (1, "peak") in outliers)


if __name__ == "__main__":
    if job.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"]).returncode:
        print("no GPU or no PyTorch here")
        sys.exit(77)
    sys.exit(job.main((check_ipc, check_fork, check_loader, check_idle, check_ranks)))

#!/usr/bin/env python3
"""Several processes in one report: the tree, totals of each GPU against the ledgers of all of them, memory that one shows another
counted once, idle contexts, ranks, and what damage leaves."""
import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

SOURCE, BUILD = os.environ["SOURCE_DIR"], os.environ["BUILD_DIR"]
sys.dont_write_bytecode = True
sys.path.insert(0, f"{SOURCE}/tests/cases/lib")
from trace_writer import Trace  # noqa: E402

VRAMTRACE, FAMILY = f"{BUILD}/vramtrace", f"{BUILD}/cases/processes"
MIB = 1 << 20
if os.environ["MODE"] == "tsan":
    print("no process of these has two threads")
    sys.exit(77)


def folder(name):
    """A new one, that the processes run in."""
    shutil.rmtree(name, ignore_errors=True)
    os.mkdir(name)
    return name


def start(where, command, **environ):
    """One machine for all. What a process measures is its own while no other one takes or gives memory, so steps take turns.
    Without stacks, whose names would take most of the time."""
    return subprocess.Popen(command, cwd=where, env=dict(
        os.environ, LD_PRELOAD=f"{BUILD}/libvramtrace.so", VRAMTRACE_OUTPUT="%p.vt", VRAMTRACE_QUIET="1", CUSIM_DEVICES="2",
        CUSIM_LEDGER="%p.json", CUSIM_MACHINE="machine", **{"VRAMTRACE_STACK": "none", **environ}))


def family(where, steps, status=0, **environ):
    process = start(where, [FAMILY, *steps.split()], **environ)
    assert process.wait(timeout=60) == status, f"{steps}: exit status {process.returncode}"
    return process.pid


def ask(*command, status=0):
    done = subprocess.run([VRAMTRACE, *command], capture_output=True, text=True)
    assert done.returncode == status, f"{command}: exit status {done.returncode}: {done.stdout[-2000:]}{done.stderr}"
    return done.stdout


class Report:
    def __init__(self, *paths, status=0):
        self.all = json.loads(ask("report", "--json", *paths, status=status))
        self.pids = [trace["pid"] for trace in self.all["traces"]]
        self.processes = self.all["processes"]
        assert [process["trace"] for process in self.processes] == list(range(len(self.pids)))

    def tree(self):
        """Pid of the parent by pid, None: it left no trace."""
        return {self.pids[p["trace"]]: None if p["parent"] is None else self.pids[p["parent"]] for p in self.processes}

    def of(self, pid):
        return self.processes[self.pids.index(pid)]

    def gpu(self, number):
        found = [gpu for gpu in self.all["gpus"] if gpu["uuid"].endswith(f"80{number:02x}")]
        assert len(found) == 1, (number, self.all["gpus"])
        return found[0]

    def idle(self):
        return sorted((self.pids[i["trace"]], i["device"], i["bytes"], i["advice"]) for i in self.all["idle_contexts"])


def check_ledgers(where, report):
    """What each process held in the end, of each GPU; and the sum over all that wrote a ledger."""
    tracked, untracked, n = collections.Counter(), collections.Counter(), 0
    for path in pathlib.Path(where).glob("*.json"):
        ledger = json.loads(path.read_text())
        for ordinal, device in enumerate(ledger["devices"]):
            shares = [(gpu, share) for gpu in report.all["gpus"] for share in gpu["shares"]
                      if report.pids[share["trace"]] == ledger["pid"] and share["device"] == ordinal]
            held = sum(device["pages"].values()), sum(device["untracked"].values())
            if not shares:
                assert held == (0, 0), (path, ordinal, held)
                continue
            (gpu, share), = shares
            assert gpu["uuid"].endswith(f"80{device['machine_number']:02x}"), gpu["uuid"]
            assert (share["end"]["tracked_bytes"], share["end"]["untracked_bytes"]) == held, (path, ordinal, share, held)
            tracked[gpu["uuid"]] += held[0]
            untracked[gpu["uuid"]] += held[1]
            n += 1
    for gpu in report.all["gpus"]:
        end = gpu["end"]
        assert (end["tracked_bytes"], end["untracked_bytes"]) == (tracked[gpu["uuid"]], untracked[gpu["uuid"]]), gpu
    return n


def check_shares(report):
    """The totals are the sums of their rows; nobody held more at the common peak than at its own."""
    for gpu in report.all["gpus"]:
        for moment in "peak", "end":
            for key in "tracked_bytes", "untracked_bytes":
                assert gpu[moment][key] == sum(share[moment][key] for share in gpu["shares"]), (moment, key, gpu)
        for share in gpu["shares"]:
            assert share["peak"]["tracked_bytes"] <= share["own_peak_tracked_bytes"], share


def check_tree():
    where = folder("tree")
    parent = family(where, "( c0 a64 +A -B f +C -F ) ( -A c0 a32 +B -C a48 +D -F ) ( q ) s( -D c0 v( c0 a2 p2 ) w +E -F ) "
                    "( -A c1 a6 ) -E c0 a4 +F w")
    report = Report(where)
    check_shares(report)
    assert check_ledgers(where, report) == 6
    tree = report.tree()
    # fork three times, two of them with memory; vfork from a posix_spawn child; the one without CUDA leaves nothing
    by_depth = collections.Counter("root" if up is None else "child" if up == parent else "grandchild" for up in tree.values())
    assert by_depth == {"root": 1, "child": 4, "grandchild": 1}, tree
    assert tree[parent] is None and report.of(parent)["orphan"]
    # 64 and 32, then 32 and 48: each moment of both together.
    peak = report.gpu(0)["peak"]
    assert peak["tracked_bytes"] >= 96 * MIB and peak["tracked_bytes"] <= 98 * MIB, peak
    assert report.gpu(1)["peak"]["tracked_bytes"] == 6 * MIB
    grandchild, = (pid for pid, up in tree.items() if up not in (None, parent))
    assert report.idle() == [(tree[grandchild], 0, 64 * MIB, "keep_out")], report.idle()
    text = ask("report", where)
    for words in ("6 processes · 2 GPUs", f"pid {grandchild} · processes", "in 1 idle context", "GPU 1   ", "of GPU-73696d75-6c61-7465-6420-637564618001",
                  "keep CUDA calls out of it", "next: vramtrace report tree/"):
        assert words in text, (words, text)
    assert "orphan" not in text, text
    lines = text.splitlines()
    indent = [line.index("pid ") for line in lines if " · peak " in line]
    assert sorted(set(indent)) == [15, 17, 19] and indent[0] == 15, text
    # Of one trace there is nothing to add up.
    alone = Report(f"{where}/{parent}.vt")
    assert alone.all["gpus"] is None and alone.all["jobs"] == [] and len(alone.processes) == 1


def check_ends():
    """Killed, gone without a word, another program by now, and those whose parent was gone."""
    where = folder("ends")
    parent = family(where, "( c0 a8 k ) ( c0 a4 q ) ( c0 a2 e c0 a6 ) w c0 a1")
    report = Report(where)
    check_shares(report)
    ends = collections.Counter(trace["end"] for trace in report.all["traces"])
    assert ends == {"killed": 2, "exec": 1, "exit": 2}, ends
    after, = (p for p in report.processes if p["exec_from"] is not None)
    before = report.processes[after["exec_from"]]
    assert report.pids[after["trace"]] == report.pids[before["trace"]] and before["exec_from"] is None
    assert before["parent"] == after["parent"] == report.of(parent)["trace"]
    assert len(report.pids) == 5 and report.all["traces"][report.of(parent)["trace"]]["complete"]
    assert "after exec" in ask("report", where)

    where = folder("orphans")
    process = start(where, [FAMILY, *"( c0 a4 +R -D a4 +E -F ) ( -E c0 a2 +F ) -R c0 a2".split()])
    assert process.wait(timeout=60) == 0
    pathlib.Path(where, "D").touch()
    end = time.monotonic() + 60
    while len(list(pathlib.Path(where).glob("*.json"))) < 3 and time.monotonic() < end:
        time.sleep(0.01)
    report = Report(where)
    (orphan,), (child,) = ([pid for pid, up in report.tree().items() if (up, pid == process.pid) == wanted]
                           for wanted in ((None, False), (process.pid, False)))
    # The one asked for its parent while that lived, the other only behind its end.
    assert (report.of(child)["outlived_parent"], report.of(child)["orphan"]) == (True, False)
    assert (report.of(orphan)["outlived_parent"], report.of(orphan)["orphan"]) == (False, True)
    assert check_ledgers(where, report) == 3
    text = ask("report", where)
    assert "which left no trace" in text and f"pid {child} outlived its parent, pid {process.pid}" in text, text


def check_unseen_ends():
    """A parent that ends with _exit held what it did while it waited for its children."""
    where = folder("waited")
    parent = family(where, "s( ( -H c0 a64 q ) -G c0 a32 +H w q ) c0 a16 +G w q")
    report = Report(where)
    child, = (pid for pid, up in report.tree().items() if up == parent)
    assert report.gpu(0)["peak"]["tracked_bytes"] == 112 * MIB, report.gpu(0)
    assert len({process["alive_ns"] for process in report.processes}) == 1, report.processes
    assert report.of(parent)["last_ns"] < report.of(child)["last_ns"] < report.of(child)["alive_ns"]

    # Its id was given out again; and one said when it ended.
    where, like = folder("gone"), a_trace()
    forge(like, f"{where}/parent.vt", 50, 1, 100, 0, [(0, 64)], ends=False)
    forge(like, f"{where}/child.vt", 60, 50, 200, 2, [(1, 8), (6, 128)], 9)
    forge(like, f"{where}/again.vt", 50, 2, 5000, 5, [(0, 32)], 6)
    forge(like, f"{where}/its_child.vt", 61, 50, 5001, 5, [(4, 4)], 10)
    report = Report(where)
    alive = {pathlib.Path(report.all["traces"][p["trace"]]["file"]).stem: p["alive_ns"] // 10**9 for p in report.processes}
    assert alive == {"parent": 5, "child": 9, "again": 6, "its_child": 10}, alive
    gpu = report.all["gpus"][0]
    assert gpu["peak"]["tracked_bytes"] == 136 * MIB, gpu


def check_gpus():
    """One GPU has different ordinals, and the other way round; the memory of one that another sees is counted once."""
    where = folder("gpus")
    pids = [family(where, steps, CUDA_VISIBLE_DEVICES=visible)
            for steps, visible in (("c0 a10", "1"), ("c0 a20 c1 a40", "1,0"), ("c1 a80", "0,1"))]
    report = Report(where)
    check_shares(report)
    assert check_ledgers(where, report) == 4
    seen = {number: sorted((pids.index(report.pids[s["trace"]]), s["device"], s["own_peak_tracked_bytes"] // MIB)
                           for s in report.gpu(number)["shares"]) for number in (0, 1)}
    assert seen == {0: [(1, 1, 40)], 1: [(0, 0, 10), (1, 0, 20), (2, 1, 80)]}, seen
    # One after the other: never more than the largest.
    assert report.gpu(1)["peak"]["tracked_bytes"] == 80 * MIB, report.gpu(1)
    assert not report.all["idle_contexts"]

    where = folder("ipc")
    owner = family(where, "( c0 a32 xH +O -I ) ( -O c0 iH iH a2 +I ) w")
    report = Report(where)
    check_shares(report)
    assert owner not in report.pids and len(report.pids) == 2 and set(report.tree().values()) == {None}
    assert check_ledgers(where, report) == 2
    gpu = report.gpu(0)
    assert gpu["peak"]["tracked_bytes"] == gpu["end"]["tracked_bytes"] == 34 * MIB, gpu
    assert sorted(share["shared_count"] for share in gpu["shares"]) == [0, 2]
    assert not report.all["idle_contexts"], "who looks at another one's memory is not idle"
    text = ask("report", where)
    assert "sees 2 blocks of others, not counted here" in text and f"orphans of pid {owner}, which left no trace" in text, text


def check_overlap():
    """A context that is made while another process takes memory there seems to take that, too: it is cut to what is in use. Within a
    millisecond it could have been either's."""
    where = folder("overlap")
    first = start(where, [FAMILY, *"c0 a16 z5 +T -U".split()], CUSIM_AWAIT="cuDevicePrimaryCtxRetain:G")
    second = start(where, [FAMILY, *"-G.at c0 a200 z5 +G -T a8 +U".split()])
    assert [process.wait(timeout=60) for process in (first, second)] == [0, 0]
    report = Report(where)
    check_shares(report)
    alone = [device["end"]["untracked_by_cause"]["context"] // MIB for device in report.all["devices"]
             if device["ordinal"] == 0]
    assert sorted(alone) == [64, 64 + 200 + 64], alone
    gpu = report.gpu(0)
    assert (gpu["peak"]["tracked_bytes"], gpu["peak"]["untracked_bytes"]) == (224 * MIB, 128 * MIB), gpu
    assert [share["peak"]["untracked_bytes"] // MIB for share in gpu["shares"]] == [64, 64], gpu
    assert [share["end"]["untracked_bytes"] // MIB for share in gpu["shares"]] == [64, 64], gpu
    assert "and 128.0 MiB untracked" in ask("report", where)


def check_idle():
    """Contexts that a process has for nothing: the other GPU's, one only to pin memory, one until it was destroyed."""
    where = folder("idle")
    pids = [family(where, steps, VRAMTRACE_STACK=stack) for steps, stack in
            (("c0 c1 a8", "native"), ("c0 p4", "none"), ("c0", "none"), ("c0 a1 f", "none"), ("c1 c0 r1 a1", "none"))]
    report = Report(where)
    assert report.idle() == sorted([(pids[0], 0, 64 * MIB, "choose_device"), (pids[1], 0, 64 * MIB, "pin_elsewhere"),
                                    (pids[2], 0, 64 * MIB, "keep_out"), (pids[4], 1, 64 * MIB, "choose_device")]), report.idle()
    for idle in report.all["idle_contexts"]:
        assert idle["api"] == "cuDevicePrimaryCtxRetain", idle
        # The last one was let go of while there was work to do.
        assert (idle["until_ns"] is None) == (report.pids[idle["trace"]] != pids[4]), idle
        stack = [frame["function"] for frame in idle["stack"] or []]
        assert ("use_context" in stack) == (report.pids[idle["trace"]] == pids[0]), stack
    text = ask("report", where)
    assert "256.0 MiB in 4 idle contexts: context, but no allocation on this GPU" in text, text
    assert "torch.cuda.set_device" in text and "GPU 1 of pid" in text, text
    assert "IDLE " not in ask("report", f"{where}/{pids[3]}.vt")
    assert "64.0 MiB  GPU 0, from" in ask("report", f"{where}/{pids[2]}.vt")


def check_real_ranks():
    """Two ranks on two GPUs, with NCCL, whose memory each sees of the other: the second one touched the first one's GPU."""
    where = f"{SOURCE}/tests/data/ranks"
    found = json.loads(ask("report", "--json", where))
    truths = [json.loads(pathlib.Path(where, f"rank-{rank}.json").read_text()) for rank in (0, 1)]
    torch = {(d["trace"], d["ordinal"]): (d["allocated_bytes"], d["reserved_bytes"], d["peak_reserved_bytes"])
             for d in found["torch"]["devices"]}
    assert torch == {(t["rank"], t["rank"]): (t["allocated"], t["reserved"], t["peak_reserved"]) for t in truths}, torch
    assert [gpu["uuid"] for gpu in found["gpus"]] == [f"GPU-{t['uuid']}" for t in truths]
    job, = found["jobs"]
    assert [(r["rank"], r["reserved_bytes"], r["largest_owner"]) for r in job["ranks"]] == \
        [(t["rank"], t["reserved"], "nccl") for t in truths], job
    assert not job["outliers"], job
    idle, = found["idle_contexts"]
    assert (idle["trace"], idle["device"], idle["bytes"], idle["advice"]) == (1, 0, 548995072, "choose_device"), idle
    assert ("<module>", 23) in [(frame["function"], frame["line"]) for frame in idle["stack"]], idle


def check_multiprocessing():
    """Python starts slowly with AddressSanitizer, and what it starts anew is no news there."""
    methods = ("fork", 2), ("spawn", 1), ("forkserver", 2)
    for method, n_roots in methods[:1] if os.environ["MODE"] == "asan" else methods:
        where = folder(method)
        preload = f"{os.environ['SANITIZER']} {BUILD}/libvramtrace.so".strip()
        done = subprocess.run([sys.executable, f"{SOURCE}/tests/cases/lib/python/workers.py", method, "2"], cwd=where, text=True,
                              stdout=subprocess.PIPE, env=dict(os.environ, LD_PRELOAD=preload, VRAMTRACE_OUTPUT="%p.vt",
                                                               VRAMTRACE_QUIET="1", VRAMTRACE_STACK="none", RANK="5"))
        assert done.returncode == 0, (method, done.returncode)
        truth = dict(map(int, line.split()) for line in done.stdout.splitlines())
        report = Report(where)
        roots = [pid for pid, up in report.tree().items() if up is None]
        assert len(roots) == n_roots and len(report.pids) == 2 + (method == "spawn"), (method, report.tree())
        shares = {report.pids[s["trace"]]: s["own_peak_tracked_bytes"] for s in report.all["gpus"][0]["shares"]}
        for pid, number in truth.items():
            assert shares.pop(pid) == (number + number % 2) * MIB, (method, pid, number)
        assert not any(number != 100 * MIB for number in shares.values()), (method, shares)
        # Workers have the rank of who started them.
        assert {len(job["ranks"]) for job in report.all["jobs"]} == {1}, report.all["jobs"]
        assert method != "spawn" or len(report.all["jobs"][0]["ranks"][0]["traces"]) == 3, report.all["jobs"]


def check_launch():
    """As torchrun does: processes side by side that know their rank, one GPU each; one of them has its context on the wrong GPU
    first, one is refused memory."""
    where = folder("ranks")
    steps = ("c0 a100 +0 -1 -2 f a60", "-0 c0 c1 a100 +1 -2 f a60", "-1 c1 a300 +2")
    launched = [start(where, [FAMILY, *text.split()], RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="4", MASTER_PORT="29500",
                      **({"CUSIM_FAIL": "cuMemAlloc_v2:2:2"}, {}, {"VRAMTRACE_STACK": "native"})[rank]) for rank, text in enumerate(steps)]
    assert [process.wait(timeout=60) for process in launched] == [1, 0, 0]
    again = [start(where, [FAMILY, "c0", "a2", f"+again{rank}", f"-again{1 - rank}"], RANK=str(rank), WORLD_SIZE="4",
                   MASTER_PORT="29500") for rank in (0, 1)]
    assert [process.wait(timeout=60) for process in again] == [0, 0]
    report = Report(where)
    job, second = report.all["jobs"]
    assert (len(second["ranks"]), second["missing_ranks"], second["outliers"]) == (2, [2, 3], []), second
    assert (job["world_size"], job["missing_ranks"]) == (4, [3])
    for rank, row in enumerate(job["ranks"]):
        assert (row["rank"], row["local_rank"], row["reserved_bytes"]) == (rank, rank, None), row
        assert [report.pids[trace] for trace in row["traces"]] == [launched[rank].pid], row
    assert [row["peak_bytes"] // MIB for row in job["ranks"]] == [100, 100, 300], job
    assert [row["live_bytes"] // MIB for row in job["ranks"]] == [0, 60, 300], job
    assert [row["ooms"] for row in job["ranks"]] == [1, 0, 0] and job["ranks"][2]["largest_owner"] == "processes", job
    assert [(o["rank"], o["metric"]) for o in job["outliers"]][0] == (0, "ooms"), job["outliers"]
    assert (2, "peak", 300 * MIB, 100 * MIB) in [tuple(o.values()) for o in job["outliers"]], job["outliers"]
    text = ask("report", where)
    assert "rank 0 stands out: was refused memory 1 time" in text and "no trace of rank 3" in text, text
    assert "rank 2 stands out: peak 300.0 MiB, median 100.0 MiB" in text, text
    assert (launched[1].pid, 0, 64 * MIB, "choose_device") in report.idle(), report.idle()
    assert check_ledgers_of_launch(where, report, launched)


def check_ledgers_of_launch(where, report, launched):
    for process in launched[1:]:
        ledger = json.loads(pathlib.Path(where, f"{process.pid}.json").read_text())
        rank = report.all["jobs"][0]["ranks"][launched.index(process)]
        assert rank["live_bytes"] == sum(device["linear"]["live_bytes"] for device in ledger["devices"]), rank
    return True


def a_trace():
    return min(pathlib.Path("tree").glob("*.vt"))


def forge(like, path, pid, ppid, ticks, at_s, blocks, last_s=None, rank=None, world=None, ends=True):
    """A process that takes blocks, (second, MiB) each, and lives from at_s to last_s."""
    trace = Trace(like)
    second = 10**9
    trace.header[24:40] = (10**18 + at_s * second).to_bytes(8, "little") + (at_s * second).to_bytes(8, "little")
    trace.header[40:44] = pid.to_bytes(4, "little")
    trace.put("process", pid=pid, ppid=ppid, start_ticks=ticks, host=b"here", boot_id=b"boot", exe=b"/bin/x", cmdline=b"x\0")
    for name, value in (("RANK", rank), ("WORLD_SIZE", world)):
        if value is not None:
            trace.put("environment", name=name.encode(), value=str(value).encode())
    trace.put("api", api_id=1, name=b"cuMemAlloc_v2")
    trace.put("device", ordinal=0, total_bytes=1 << 37, page_bytes=2 * MIB, name=b"GPU", uuid=b"0123456789abcdef")
    trace.put("context", time_ns=1, action=1, context_id=1, device=0)
    for n, (when_s, size) in enumerate(blocks):
        trace.put("alloc", time_ns=when_s * second + 1, api_id=1, kind=1, device=0, context_id=1, address=(n + 1) << 40,
                  bytes=size * MIB)
    if ends:
        trace.put("end", time_ns=(last_s - at_s) * second, reason=1, status=0)
    trace.write(path)


def check_recycled():
    """Pids come again: the parent is the one that had the pid when the child began."""
    where, like = folder("recycled"), a_trace()
    forge(like, f"{where}/old.vt", 50, 1, 100, 0, [(0, 64)], 10)
    forge(like, f"{where}/old_child.vt", 60, 50, 200, 2, [(1, 8)], 9)
    forge(like, f"{where}/new.vt", 50, 1, 5000, 20, [(1, 32)], 40)
    forge(like, f"{where}/new_child.vt", 61, 50, 6000, 25, [(1, 4)], 60)
    forge(like, f"{where}/stray.vt", 62, 50, 9000, 70, [(0, 128)], 80)
    forge(like, f"{where}/x.vt", 70, 71, 300, 71, [(0, 2)], 72)
    forge(like, f"{where}/y.vt", 71, 70, 300, 71, [(0, 2)], 72)
    report = Report(where)
    names = [pathlib.Path(trace["file"]).stem for trace in report.all["traces"]]
    up = {name: None if p["parent"] is None else names[p["parent"]] for name, p in zip(names, report.processes)}
    # x and y say that they are the parents of one another: one of them must be wrong.
    assert (up.pop("x"), up.pop("y")) in ((None, "x"), ("y", None)), report.processes
    assert up == {"old": None, "old_child": "old", "new": None, "new_child": "new", "stray": None}, up
    assert [p["outlived_parent"] for p in report.processes if names[p["trace"]] == "new_child"] == [True]
    gpu = report.all["gpus"][0]
    # 64 + 8, then 32 + 4, and in the end 128, beside x and y.
    assert gpu["peak"]["tracked_bytes"] == 132 * MIB and gpu["peak"]["time_ns"] == 71 * 10**9 + 1, gpu["peak"]


def check_statistics():
    """Eight ranks that differ a little, and one that differs more; then two groups of four, as pipelines have, of which none
    stands out."""
    like = a_trace()

    def outliers(name, sizes):
        where = folder(name)
        for rank, size in enumerate(sizes):
            forge(like, f"{where}/{rank}.vt", 100 + rank, 99, 1000, 0, [(1, size)], 10, rank, len(sizes))
        report = Report(where)
        (job,) = report.all["jobs"]
        assert len(job["ranks"]) == len(sizes) and not job["missing_ranks"]
        return [(o["rank"], o["value"] // MIB, o["median"] // MIB) for o in job["outliers"] if o["metric"] == "peak"]

    assert outliers("one", [1000, 1010, 1004, 1600, 990, 1002, 1008, 996]) == [(3, 1600, 1003)]
    assert outliers("low", [1000, 1010, 1004, 400, 990, 1002, 1008, 996]) == [(3, 400, 1001)]
    assert outliers("groups", [1000, 1000, 1000, 1000, 3000, 3000, 3000, 3000]) == []
    assert outliers("spread", [1000, 1200, 1400, 1600, 1800, 2000]) == []
    assert outliers("two", [1000, 1040]) == []
    assert outliers("apart", [1000, 1200]) == [(1, 1200, 1000)]
    assert outliers("small", [2, 20]) == []


def check_damage():
    """A trace that is cut off is used up to there, one that is none is named; the others are not harmed."""
    where = folder("damage")
    pids = [family(where, "c0 a16"), family(where, "c0 a32")]
    whole = Report(where)
    pathlib.Path(where, "none.vt").write_bytes(b"not a trace")
    path = pathlib.Path(where, f"{pids[0]}.vt")
    data = path.read_bytes().rstrip(b"\0")
    path.write_bytes(data[:8192 + (len(data) - 8192) * 2 // 3])
    report = Report(where, status=3)
    assert sorted(report.pids) == sorted(pids)
    share = {pid: [s["end"] for s in report.all["gpus"][0]["shares"] if report.pids[s["trace"]] == pid] for pid in pids}
    assert share[pids[1]] == [s["end"] for s in whole.all["gpus"][0]["shares"] if whole.pids[s["trace"]] == pids[1]]
    done = subprocess.run([VRAMTRACE, "report", where], capture_output=True, text=True)
    assert done.returncode == 3 and "none.vt" in done.stderr and "1 damaged" in done.stdout, (done.stdout, done.stderr)


def check_run():
    """`run` shows them together, too."""
    where = folder("run")
    done = subprocess.run([VRAMTRACE, "run", "-o", "%p.vt", "--", FAMILY, *"( c0 a8 ) ( c0 a4 ) w".split()], cwd=where,
                          capture_output=True, text=True)
    assert done.returncode == 0 and "2 processes · 1 GPU" in done.stdout, (done.stdout, done.stderr)
    assert done.stdout.count("AT THE END") == 2, done.stdout


for check in (check_tree, check_ends, check_unseen_ends, check_gpus, check_overlap, check_idle, check_real_ranks, check_multiprocessing, check_launch, check_recycled, check_statistics,
              check_damage, check_run):
    begin = time.monotonic()
    check()
    print(f"{check.__name__}: {time.monotonic() - begin:.1f} s")

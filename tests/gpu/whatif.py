#!/usr/bin/env python3
"""
vramtrace whatif against real runs. Each workload of torch_whatif_run.py is recorded under the default settings, under
expandable segments and (four of them) with a limit under max_split_size_mb; the replay of the recording must equal it. What is
then predicted for other settings, and the capacity said to be needed, are compared with real runs, which nothing records.
"exact" must be right, "about" within 1 % and a lower bound no higher; a range that misses is counted. On one GPU with 16
processors it takes some 4 minutes, with a build or an unpacked release as main_job.py takes it:

    OUT=results python3 tests/gpu/whatif.py

  PARTS    peaks, capacities (default: both)
  ONLY     workloads, separated by commas
  WORKERS  runs at one time (default: one less than processors, 14 at most)
  LIMIT_S  no new run begins after this (default 400)
  FORK     0: each real run imports PyTorch itself; else they are forks of one process that has, without CUDA
OUT gets whatif.md (the tables), whatif.json (all figures) and golden.tar (packed recordings with the real figures); the first
two are written after each part. Native stacks are wanted: without them sizes are known less well. Exit 77 without a GPU or
PyTorch.
"""
import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import shutil
import sys
import tarfile
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import main_job as job  # noqa: E402

MIB = 1 << 20
STEP = 2 * MIB
GOLDEN_BYTES = 300 << 10
WORKLOADS = ("gpt", "seqgrow", "accum", "resnet", "varres", "infer", "phases", "sawtooth", "graph", "stress", "streams", "prefetch")
RUN_S = 150  # for one run
EXPANDABLE, ROUND_LIST = "expandable_segments:True", "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]"
RECORDED = {"default": "", "expandable": EXPANDABLE}
LIMITED, WITH_LIMIT = "max_split_size_mb:32", ("seqgrow", "varres", "sawtooth", "stress")
# Name, settings, and the limit on PyTorch: none, the default's peak, or the live peak and a third of the slack.
SETTINGS = (("again", "", None), ("expand", EXPANDABLE, None), ("split 32", "max_split_size_mb:32", None),
            ("split 128", "max_split_size_mb:128", None), ("round 4", "roundup_power2_divisions:4", None),
            ("round list", ROUND_LIST, None), ("segment 64", "large_segment_size_mb:64", None),
            ("G 0.6, peak", "garbage_collection_threshold:0.6", "peak"), ("split 32, tight", "max_split_size_mb:32", "tight"),
            ("split 64 G 0.7, tight", "max_split_size_mb:64,garbage_collection_threshold:0.7", "tight"))
CAPACITIES = (("default", ""), ("expand", EXPANDABLE), ("split 128", "max_split_size_mb:128"))
STARTED = time.monotonic()
LIMIT_S = float(os.environ.get("LIMIT_S", "400"))
stage = pathlib.Path(tempfile.gettempdir(), "vramtrace-whatif")  # a name that may stand in a trace
names = iter(range(1 << 30))
names_lock = threading.Lock()
forks = multiprocessing.get_context("forkserver")
use_forks = os.environ.get("FORK") != "0"
misses, skipped = [], []


class Skipped(Exception):
    """There was no time left for a run."""


def fraction_of(limit, total):
    """Of the device, as text that both sides read: half a MiB above the limit, where all sums are whole MiB."""
    return f"{(limit + MIB // 2) / total:.15f}"


def in_fork(*arguments):
    """In a process that shares what importing PyTorch took."""
    import torch_whatif_run

    torch_whatif_run.run(*arguments)


def start_fork(workload, out, fraction, conf):
    process = forks.Process(target=in_fork, args=(workload, str(out), fraction, conf), daemon=True)
    with names_lock:
        process.start()
    process.join(RUN_S)
    if process.exitcode is None:
        process.kill()
    return f"exit {process.exitcode}"


def start_program(workload, out, fraction, conf, trace):
    more = {"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {}
    command = [sys.executable, stage / "workloads/torch_whatif_run.py", workload, out] + ([fraction] if fraction else [])
    done = job.run(command, trace, RUN_S, **more)
    return f"exit {done.returncode}: {done.stderr[-800:]}"


def real(workload, conf, fraction=None, trace=None, fork=True):
    """What PyTorch itself says of a run."""
    if time.monotonic() - STARTED > LIMIT_S:
        skipped.append((workload, conf, fraction))
        raise Skipped(f"{workload} {conf}")
    with names_lock:
        out = stage / f"truth-{next(names)}.json"
    if trace or not (fork and use_forks):
        end = start_program(workload, out, fraction, conf, trace)
    else:
        end = start_fork(workload, out, fraction, conf)
    if not out.exists():
        raise RuntimeError(f"{workload} {conf}: {end}")
    return json.loads(out.read_text())


def ask(trace, *arguments):
    done = job.run([job.CLI, "whatif", "--json", *arguments, trace])
    if done.returncode:
        raise RuntimeError(f"whatif {arguments}: exit {done.returncode}: {done.stderr[-800:]}")
    return json.loads(done.stdout)


def words(conf, recorded, fraction=None):
    """The --set options that lead from the recorded settings to conf."""
    list_of = [] if not conf else conf.split(",") if "[" not in conf else [conf]
    if "expandable" in recorded and "expandable" not in conf:
        list_of.append("expandable_segments:False")
    if "max_split" in recorded and "max_split" not in conf:
        list_of.append("max_split_size_mb:1000000")
    if fraction or "fraction" in recorded:
        list_of.append(f"per_process_memory_fraction:{fraction or 1}")
    return [f"--set={word.replace(':', '=', 1)}" for word in list_of]


def predict(trace, conf, recorded, *more, fraction=None):
    """The row for conf; that of the recorded settings where they are the same."""
    whole = f"{conf},per_process_memory_fraction:{fraction}" if fraction else conf
    options = words(conf, recorded, fraction) if whole != recorded else []
    return ask(trace, *options, *more)["predictions"][1 if options else 0]


def miss(workload, recorded, name, text):
    misses.append((workload, recorded, name, text))


class Pool:
    """Work in the background; what failed is a failed row, once."""

    def __init__(self, n):
        self.executor = concurrent.futures.ThreadPoolExecutor(n)

    def all(self, work):
        """{key: (function, arguments...)} to {key: result}, without what failed."""
        futures = {key: self.executor.submit(*call) for key, call in work.items()}
        results = {}
        for key, future in futures.items():
            try:
                results[key] = future.result()
            except Skipped:
                pass
            except Exception as error:
                job.check(f"{key}", f"{type(error).__name__}: {error}", "no exception", False)
        return results


def check_self(name, found, truth):
    """The recording, replayed under its own settings, against itself and against PyTorch's statistics."""
    check = found["self_check"]
    if not check:
        job.check(f"{name}: an answer", found["no_answer"], None)
        return False
    job.check(f"{name}: self-check, {check['addresses']} addresses, {check['driver_requests']} requests",
              (check["equal"], check["addresses_equal"], check["driver_requests_equal"]),
              (True, check["addresses"], check["driver_requests"]))
    keys = ("peak_reserved_bytes", "peak_allocated_bytes", "device_allocations", "device_frees", "retries", "refused")
    differ = [f"{key}: {check[key]} is {truth[key]}" for key in keys if check[key] != truth[key]]
    differ += [] if check["addresses"] == truth["allocations"] else [f"allocations: {check['addresses']} is {truth['allocations']}"]
    job.check(f"{name}: figures of the replay = PyTorch's", differ or "equal", "equal")
    return check["equal"]


def stopped(row):
    return any("nothing is known after" in reason for reason in row["reasons"])


def error_of(row, truth):
    return row["peak_reserved_bytes"]["value"] / truth["peak_reserved_bytes"] - 1


def judge(workload, recorded, name, row, truth):
    """A cell of the table: the real peak, and how the prediction differs. Hard rules are checks, the rest are misses."""
    peak, count, sort = row["peak_reserved_bytes"], row["device_allocations"], row["class"]
    real_peak = truth["peak_reserved_bytes"]
    where = f"{workload} ({recorded}) {name}"
    cell = f"{real_peak // MIB} {sort[0]}"
    if stopped(row):
        perhaps = any("whether a request is refused" in reason for reason in row["reasons"])
        if not truth["refused"] and not perhaps:
            miss(workload, recorded, name, "a refusal was predicted, none came")
            return cell + " predicted a refusal"
        return cell + (" refused" if truth["refused"] else " said to be perhaps refused")
    if truth["refused"]:
        miss(workload, recorded, name, f"no refusal was predicted, PyTorch refused {truth['refused']}"
             + (" and the program went on" if truth["finished"] else ""))
        return cell + " not predicted: refused"
    right = peak["value"] == real_peak and count["value"] == truth["device_allocations"]
    error = error_of(row, truth)
    if sort == "exact":
        job.check(f"{where}: exact is right", (peak["value"], count["value"]), (real_peak, truth["device_allocations"]))
    elif sort == "about":
        job.check(f"{where}: about is within 1 %", f"{100 * error:+.2f} %", "1 %", abs(error) <= 0.01)
    elif sort == "lower_bound":
        job.check(f"{where}: not below what is said", real_peak // MIB, peak["low"] // MIB, real_peak >= peak["low"])
        return cell + f" at least {peak['low'] // MIB}"
    elif not peak["low"] <= real_peak <= peak["high"]:
        miss(workload, recorded, name, f"peak {real_peak // MIB} MiB is not in {peak['low'] // MIB}..{peak['high'] // MIB}")
    if right:
        return cell
    cell += f" {100 * error:+.1f} %" if peak["value"] != real_peak else ""
    n = count["value"] - truth["device_allocations"]
    return cell + (f" n{n:+d}" if n else "")


def judge_capacity(workload, recorded, name, row, fits, lacks, retries):
    """The verdict just enough and 2 MiB below it; what both runs were is in fits and lacks."""
    needed = row["needed_bytes"]
    cell = f"{needed['low'] // MIB}" + (f"..{needed['high'] // MIB}" if needed["low"] != needed["high"] else "")
    cell += f" {row['needed_class'][0]}"
    right = not fits["refused"] and lacks["refused"] > 0
    if row["needed_class"] == "exact":
        job.check(f"{workload} ({recorded}) {name}: needed is exact", (fits["refused"], lacks["refused"] > 0), (0, True))
        if right and retries["retries"] != fits["retries"]:
            miss(workload, recorded, name, f"needed: {retries['retries']} retries predicted, {fits['retries']} came")
    if fits["refused"]:
        miss(workload, recorded, name, f"needed {needed['high'] // MIB} MiB: refused there" +
             (", the program went on" if fits["finished"] else ""))
        cell += " refused"
    if not lacks["refused"]:
        miss(workload, recorded, name, f"needed {needed['low'] // MIB} MiB: 2 MiB less are enough")
        cell += " less will do"
    return cell, right


def check_one_percent(pool, wrong, total):
    """Where "about" was not right to the segment: is it within 1 %?"""
    work = {}
    for (workload, recorded, name, conf), needed in wrong.items():
        more = -(-needed["high"] * 101 // 100 // STEP) * STEP
        less = needed["low"] * 99 // 100 // STEP * STEP
        for limit, key in ((more, "more"), (less, "less")):
            work[workload, recorded, name, key] = (real, workload, conf, fraction_of(limit, total))
    for (workload, recorded, name, key), truth in pool.all(work).items():
        job.check(f"{workload} ({recorded}) {name}: needed, 1 % {key}: refused", truth["refused"] > 0, key == "less")


def table(title, columns, cells, workloads):
    lines = [f"### {title}", "", "| workload | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for workload in workloads:
        lines.append(f"| {workload} | " + " | ".join(cells.get((workload, column), "-") for column in columns) + " |")
    return lines + [""]


def save_golden(golden, name, trace, truth):
    packed = golden / f"{name}.vt.zst"
    done = job.run([job.CLI, "pack", "-q", "-o", packed, trace])
    size = packed.stat().st_size if packed.exists() else 0
    print(f"      golden {name}: {size >> 10} KiB packed{'' if size and size < GOLDEN_BYTES else ', left out'} {done.stderr[-200:]}")
    if 0 < size < GOLDEN_BYTES:
        (golden / f"{name}.truth.json").write_text(json.dumps({"kind": "whatif", **truth}, indent=1) + "\n")
    else:
        packed.unlink(missing_ok=True)


class Session:
    def __init__(self):
        only = os.environ.get("ONLY")
        self.workloads = only.split(",") if only else WORKLOADS
        self.pool = Pool(int(os.environ.get("WORKERS", 0)) or max(2, min(14, (os.cpu_count() or 2) - 1)))
        self.own, self.truths, self.rows, self.limited, self.capacity = {}, {}, {}, {}, {}
        self.lines = []
        self.total = 0

    def trace(self, workload, recorded):
        return stage / "traces" / f"{workload}-{recorded}.vt"

    def limit(self, workload, kind):
        own = self.own[workload, "default"]
        live, peak = own["peak_allocated_bytes"], own["peak_reserved_bytes"]
        return peak if kind == "peak" else -(-(live + (peak - live) * 35 // 100) // STEP) * STEP

    def fraction(self, workload, kind):
        return fraction_of(self.limit(workload, kind), self.total) if kind else None

    def settings_of(self, workload, recorded):
        if recorded != "limited":
            return RECORDED[recorded]
        return f"{LIMITED},per_process_memory_fraction:{self.fraction(workload, 'tight')}"

    def check_forks(self, workload, forked, alone):
        """The same in a fork as in a program of its own, or there are no forks."""
        global use_forks
        use_forks = bool(forked) and forked == alone
        job.check(f"{workload}, {LIMITED}: a fork does the same", "equal" if use_forks else (forked, alone), "equal")

    def record(self):
        """The recordings without a limit, and whether forks are as good as programs."""
        probe = next((w for w in ("sawtooth", "resnet") if w in self.workloads), self.workloads[0])
        work = {(w, r): (real, w, conf, None, self.trace(w, r)) for r, conf in RECORDED.items() for w in self.workloads}
        if use_forks:
            work = {**{("probe", fork): (real, probe, LIMITED, None, None, fork) for fork in (True, False)}, **work}
        self.own = self.pool.all(work)
        if use_forks:
            self.check_forks(probe, self.own.pop(("probe", True), None), self.own.pop(("probe", False), None))
        self.total = next((own["total_bytes"] for own in self.own.values()), 0)
        told = job.run([job.CLI, "info", self.trace(*next(iter(self.own)))]).stdout
        job.check("recordings have native stacks", "no native stacks" not in told, True)

    def check_recordings(self):
        """And the recordings with a limit, which follows from the others."""
        work = {(w, "limited"): (real, w, self.settings_of(w, "limited"), None, self.trace(w, "limited"))
                for w in WITH_LIMIT if (w, "default") in self.own}
        self.limited = self.pool.all(work)
        everything = {**self.own, **self.limited}
        found = self.pool.all({key: (ask, self.trace(*key)) for key in everything})
        self.usable = [key for key in found if check_self(f"{key[0]} ({key[1]})", found[key], everything[key])]
        job.check("recordings whose every step is reproduced", len(self.usable), len(everything))

    def run_real(self):
        work = {(w, name): (real, w, conf, self.fraction(w, kind)) for name, conf, kind in SETTINGS
                for w in self.workloads if not kind or (w, "default") in self.own}
        self.truths = self.pool.all(work)
        pairs = [(w, self.own[w, r], self.truths[w, name]) for r, name in (("default", "again"), ("expandable", "expand"))
                 for w in self.workloads if w != "prefetch" and (w, r) in self.own and (w, name) in self.truths]
        job.check("runs that are as they were when recorded", [w for w, own, truth in pairs if own != truth] or len(pairs), len(pairs))

    def predict_all(self):
        work = {}
        for workload, recorded in self.usable:
            for name, conf, kind in SETTINGS:
                if (workload, "default") in self.own:
                    fraction, own = self.fraction(workload, kind), self.settings_of(workload, recorded)
                    work[workload, recorded, name] = (
                        lambda w=workload, r=recorded, o=own, c=conf, f=fraction: predict(self.trace(w, r), c, o, fraction=f),)
        self.rows = self.pool.all(work)

    def compare(self):
        for recorded in (*RECORDED, "limited"):
            cells, right, total = {}, 0, 0
            for workload in self.workloads:
                for name, _, _ in SETTINGS:
                    row, truth = self.rows.get((workload, recorded, name)), self.truths.get((workload, name))
                    if row and truth:
                        cells[workload, name] = judge(workload, recorded, name, row, truth)
                        total += 1
                        right += not stopped(row) and row["peak_reserved_bytes"]["value"] == truth["peak_reserved_bytes"]
            self.lines += table(f"Recorded under {recorded}: real peak, MiB; class; error of the peak, of device allocations",
                                [name for name, _, _ in SETTINGS], cells, self.workloads)
            self.lines += [f"{right} of {total} peaks equal.", ""]

    def peaks(self):
        self.run_real()
        self.predict_all()
        self.compare()

    def capacities(self):
        keys = [(w, r, name, conf) for w, r in self.usable if r != "limited" for name, conf in CAPACITIES]
        rows = self.pool.all({key: (predict, self.trace(key[0], key[1]), key[3], RECORDED[key[1]]) for key in keys})
        rows = {key: row for key, row in rows.items() if row["needed_bytes"]}
        by_class = sorted(rows, key=lambda key: ("exact", "about", "range", "lower_bound").index(rows[key]["needed_class"]))
        limits = {(key[0], key[3], limit): None for key in by_class
                  for limit in (rows[key]["needed_bytes"]["high"], rows[key]["needed_bytes"]["low"] - STEP)}
        runs = self.pool.all({key: (real, key[0], key[1], fraction_of(key[2], self.total)) for key in limits})
        retries = self.pool.all({key: (predict, self.trace(key[0], key[1]), key[3], RECORDED[key[1]],
                                       f"--capacity={row['needed_bytes']['high']}") for key, row in rows.items()})
        wrong, cells = {}, {recorded: {} for recorded in RECORDED}
        for key, row in rows.items():
            workload, recorded, name, conf = key
            needed = row["needed_bytes"]
            fits, lacks = runs.get((workload, conf, needed["high"])), runs.get((workload, conf, needed["low"] - STEP))
            if not fits or not lacks or key not in retries:
                continue
            self.capacity.setdefault(f"{workload} {recorded}", []).append(
                {"settings": conf, "needed_bytes": needed, "class": row["needed_class"], "fits": fits, "lacks": lacks})
            cell, right = judge_capacity(workload, recorded, name, row, fits, lacks, retries[key])
            cells[recorded][workload, name] = cell
            if not right and row["needed_class"] == "about":
                wrong[key] = needed
        for recorded in RECORDED:
            self.lines += table(f"Recorded under {recorded}: needed to finish, MiB; class", [n for n, _ in CAPACITIES],
                                cells[recorded], self.workloads)
        check_one_percent(self.pool, wrong, self.total)

    def truth_of(self, workload):
        """Real figures under other settings, as options of the command and as PyTorch's statistics."""
        return [{"set": [word[6:] for word in words(conf, "", self.fraction(workload, kind))], **self.truths[workload, name]}
                for name, conf, kind in SETTINGS if (workload, name) in self.truths]

    def save(self):
        (job.OUT / "whatif.json").write_text(json.dumps({
            "own": {" ".join(key): own for key, own in {**self.own, **self.limited}.items()},
            "rows": [[*key, row, self.truths.get((key[0], key[2]))] for key, row in self.rows.items()],
            "capacity": self.capacity, "misses": misses, "skipped": skipped}, indent=1))
        lines = [*self.lines, "Misses:", ""] + [f"- {w} ({r}) {name}: {text}" for w, r, name, text in misses]
        lines += [f"- not run, no time was left: {w} {conf} {fraction or ''}" for w, conf, fraction in skipped]
        (job.OUT / "whatif.md").write_text("\n".join(lines) + "\n")
        return lines

    def save_recordings(self):
        golden = stage / "golden"
        golden.mkdir()
        for workload, recorded in self.usable:
            own = {**self.own, **self.limited}[workload, recorded]
            save_golden(golden, f"{workload}-{recorded}", self.trace(workload, recorded),
                        {"own": own, "real": self.truth_of(workload), "capacity": self.capacity.get(f"{workload} {recorded}", [])})
        with tarfile.open(job.OUT / "golden.tar", "w") as tar:
            tar.add(golden, "golden")

    def whole(self, parts):
        for part in (self.record, self.check_recordings, *(getattr(self, part) for part in parts), self.save_recordings):
            part()
            self.save()
            print(f"      {part.__name__}: {time.monotonic() - STARTED:.0f} s", flush=True)
        print("\n".join(self.save()))
        n_same = len({w for w, _ in self.usable})
        job.check("workloads whose recording is reproduced", n_same, ">= 8", n_same >= min(8, len(self.workloads)))
        job.check("runs for which no time was left", len(skipped), 0)


def set_stage():
    """All that a trace may name lies in a folder of no meaning; what unwinds native stacks may lie beside the library."""
    job.OUT = job.OUT.resolve()
    job.OUT.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(stage, ignore_errors=True)
    (stage / "traces").mkdir(parents=True)
    shutil.copytree(job.WORK, stage / "workloads")
    for library in job.LIBRARY.parent.glob("lib*.so*"):
        shutil.copy(library, stage)
    job.LIBRARY = stage / job.LIBRARY.name
    os.chdir(stage)
    os.environ.update(OUT=str(job.OUT), PYTHONPATH=f"{stage / 'workloads'}:{os.environ.get('PYTHONPATH', '')}")
    forks.set_forkserver_preload(["torch_whatif_run"])


def whatif():
    parts = os.environ.get("PARTS", "peaks,capacities").split(",")
    set_stage()
    try:
        Session().whole(parts)
    finally:
        os.chdir("/")
        shutil.rmtree(stage, ignore_errors=True)


if __name__ == "__main__":
    if job.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"]).returncode:
        print("no GPU or no PyTorch here")
        sys.exit(77)
    sys.exit(job.main((whatif,)))

#!/usr/bin/env python3
"""
vramtrace whatif against real runs. Each workload of torch_whatif_run.py is recorded under the default settings and under
expandable segments; the replay of the recording must equal it. What is then predicted for other settings, and the capacity said
to be needed, are compared with real runs, which nothing records. "exact" must be right and "about" within 1 %; a range that
misses is counted. Environment as main_job.py (traces stay in a folder that goes away), and
  WORKERS  runs at one time (default: two of three processors, 12 at most)
  LIMIT_S  no new run begins after this (default 440)
  ONLY     workloads, separated by commas
OUT gets whatif.md (the tables), whatif.json (all figures) and golden.tar (packed recordings with the real figures).
Exit 77 without a GPU or PyTorch.
"""
import concurrent.futures
import json
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
EXPANDABLE, ROUND_LIST = "expandable_segments:True", "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]"
RECORDED = {"default": "", "expandable": EXPANDABLE}
# Name, settings, and the limit on PyTorch: none, the default's peak, or the live peak and a third of the slack.
SETTINGS = (("again", "", None), ("expand", EXPANDABLE, None), ("split 32", "max_split_size_mb:32", None),
            ("split 128", "max_split_size_mb:128", None), ("round 4", "roundup_power2_divisions:4", None),
            ("round list", ROUND_LIST, None), ("segment 64", "large_segment_size_mb:64", None),
            ("G 0.6, peak", "garbage_collection_threshold:0.6", "peak"), ("split 32, tight", "max_split_size_mb:32", "tight"),
            ("split 64 G 0.7, tight", "max_split_size_mb:64,garbage_collection_threshold:0.7", "tight"))
CAPACITIES = (("default", ""), ("expand", EXPANDABLE), ("split 128", "max_split_size_mb:128"))
STARTED = time.monotonic()
LIMIT_S = float(os.environ.get("LIMIT_S", "440"))
stage = pathlib.Path(tempfile.gettempdir(), "vramtrace-whatif")  # a name that may stand in a trace
names = iter(range(1 << 30))
names_lock = threading.Lock()
misses, skipped = [], []


class Skipped(Exception):
    """There was no time left for a run."""


def fraction_of(limit, total):
    """Of the device, as text that both sides read: half a MiB above the limit, where all sums are whole MiB."""
    return f"{(limit + MIB // 2) / total:.15f}"


def real(workload, conf, fraction=None, trace=None):
    """What PyTorch itself says of a run."""
    if time.monotonic() - STARTED > LIMIT_S:
        skipped.append((workload, conf))
        raise Skipped(f"{workload} {conf}")
    with names_lock:
        out = stage / f"truth-{next(names)}.json"
    more = {"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {}
    command = [sys.executable, stage / "workloads/torch_whatif_run.py", workload, out] + ([fraction] if fraction else [])
    done = job.run(command, trace, 150, **more)
    if not out.exists():
        raise RuntimeError(f"{workload} {conf}: exit {done.returncode}: {done.stderr[-800:]}")
    return json.loads(out.read_text())


def ask(trace, *arguments):
    done = job.run([job.CLI, "whatif", "--json", *arguments, trace])
    if done.returncode:
        raise RuntimeError(f"whatif {arguments}: exit {done.returncode}: {done.stderr[-800:]}")
    return json.loads(done.stdout)


def words(conf, recorded, fraction=None):
    """The --set options that lead from the recorded settings to conf."""
    list_of = [] if not conf else conf.split(",") if "[" not in conf else [conf]
    if recorded == EXPANDABLE and "expandable" not in conf:
        list_of.append("expandable_segments:False")
    if fraction:
        list_of.append(f"per_process_memory_fraction:{fraction}")
    return [f"--set={word.replace(':', '=', 1)}" for word in list_of]


def predict(trace, conf, recorded, *more, fraction=None):
    """The row for conf; that of the recorded settings where they are the same."""
    options = words(conf, recorded, fraction) if conf != recorded or fraction else []
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
        if not truth["refused"]:
            miss(workload, recorded, name, "a refusal was predicted, none came")
            return cell + " predicted a refusal"
        return cell + " refused"
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
    cell += f" {row['class'][0]}"
    right = not fits["refused"] and lacks["refused"] > 0
    if row["class"] == "exact":
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
        self.pool = Pool(int(os.environ.get("WORKERS", 0)) or max(2, min(12, (os.cpu_count() or 2) * 2 // 3)))
        self.traces, self.own, self.truths, self.rows = {}, {}, {}, {}
        self.total = 0
        self.capacity = {}

    def trace(self, workload, recorded):
        return stage / "traces" / f"{workload}-{recorded}.vt"

    def limit(self, workload, kind):
        own = self.own[workload, "default"]
        live, peak = own["peak_allocated_bytes"], own["peak_reserved_bytes"]
        return peak if kind == "peak" else -(-(live + (peak - live) * 35 // 100) // STEP) * STEP

    def fraction(self, workload, kind):
        return fraction_of(self.limit(workload, kind), self.total) if kind else None

    def record(self):
        """Recordings, and the real runs that need nothing of them."""
        work = {("recorded", w, r): (real, w, conf, None, self.trace(w, r)) for w in self.workloads for r, conf in RECORDED.items()}
        work.update({("real", w, name): (real, w, conf) for w in self.workloads for name, conf, kind in SETTINGS if not kind})
        for (sort, workload, name), truth in self.pool.all(work).items():
            if sort == "recorded":
                self.own[workload, name] = truth
                self.total = truth["total_bytes"]
            else:
                self.truths[workload, name] = truth
        found = self.pool.all({key: (ask, self.trace(*key)) for key in self.own})
        self.usable = [key for key in found if check_self(f"{key[0]} ({key[1]})", found[key], self.own[key])]

    def run_limited(self):
        """Runs under a limit that follows from the recording; and two of them recorded."""
        usable = {w for w, _ in self.own if (w, "default") in self.own}
        work = {(w, name): (real, w, conf, self.fraction(w, kind))
                for w in self.workloads if w in usable for name, conf, kind in SETTINGS if kind}
        self.truths.update(self.pool.all(work))
        self.limited = {}
        for workload in usable & {"seqgrow", "varres", "sawtooth", "stress"}:
            conf = f"max_split_size_mb:32,per_process_memory_fraction:{self.fraction(workload, 'tight')}"
            self.limited[workload, "limited"] = (real, workload, conf, None, self.trace(workload, "limited"))
        self.limited = self.pool.all(self.limited)
        for key, found in self.pool.all({key: (ask, self.trace(*key)) for key in self.limited}).items():
            check_self(f"{key[0]} (limited)", found, self.limited[key])

    def predict_all(self):
        work = {}
        for workload, recorded in self.usable:
            for name, conf, kind in SETTINGS:
                if (workload, "default") in self.own:
                    fraction = self.fraction(workload, kind)
                    work[workload, recorded, name] = (
                        lambda w=workload, r=recorded, c=conf, f=fraction: predict(self.trace(w, r), c, RECORDED[r], fraction=f),)
        self.rows = self.pool.all(work)

    def compare(self):
        for recorded in RECORDED:
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

    def check_capacities(self):
        keys = [(w, r, name, conf) for w, r in self.usable for name, conf in CAPACITIES]
        rows = self.pool.all({key: (predict, self.trace(key[0], key[1]), key[3], RECORDED[key[1]]) for key in keys})
        rows = {key: row for key, row in rows.items() if row["needed_bytes"]}
        limits = {(w, conf, limit) for (w, _, _, conf), row in rows.items()
                  for limit in (row["needed_bytes"]["high"], row["needed_bytes"]["low"] - STEP)}
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
                {"settings": conf, "needed_bytes": needed, "class": row["class"], "fits": fits, "lacks": lacks})
            cell, right = judge_capacity(workload, recorded, name, row, fits, lacks, retries[key])
            cells[recorded][workload, name] = cell
            if not right and row["class"] == "about":
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
        golden = stage / "golden"
        golden.mkdir()
        for (workload, recorded), own in {**{k: self.own[k] for k in self.usable}, **self.limited}.items():
            save_golden(golden, f"{workload}-{recorded}", self.trace(workload, recorded),
                        {"own": own, "real": self.truth_of(workload), "capacity": self.capacity.get(f"{workload} {recorded}", [])})
        with tarfile.open(job.OUT / "golden.tar", "w") as tar:
            tar.add(golden, "golden")
        (job.OUT / "whatif.json").write_text(json.dumps({
            "rows": [[*key, row, self.truths.get((key[0], key[2]))] for key, row in self.rows.items()],
            "capacity": self.capacity, "misses": misses, "skipped": skipped}, indent=1))
        (job.OUT / "whatif.md").write_text("\n".join(self.lines))

    def whole(self):
        self.lines = []
        for part in (self.record, self.run_limited, self.predict_all, self.compare, self.check_capacities):
            part()
            print(f"      {part.__name__}: {time.monotonic() - STARTED:.0f} s", flush=True)
        self.lines += ["Misses:", ""] + [f"- {w} ({r}) {name}: {text}" for w, r, name, text in misses]
        self.lines += [f"- not run, no time was left: {w} {conf}" for w, conf in skipped]
        self.save()
        print("\n".join(self.lines))
        job.check("workloads whose recording is reproduced", len({w for w, _ in self.usable}), ">= 8",
                  len({w for w, _ in self.usable}) >= min(8, len(self.workloads)))
        job.check("runs for which no time was left", len(skipped), 0)


def set_stage():
    """All that a trace may name lies in a folder of no meaning."""
    job.OUT = job.OUT.resolve()
    job.OUT.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(stage, ignore_errors=True)
    (stage / "traces").mkdir(parents=True)
    shutil.copytree(job.WORK, stage / "workloads")
    job.LIBRARY = pathlib.Path(shutil.copy(job.LIBRARY, stage))
    os.chdir(stage)


def whatif():
    set_stage()
    try:
        Session().whole()
    finally:
        os.chdir("/")
        shutil.rmtree(stage, ignore_errors=True)


if __name__ == "__main__":
    if job.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"]).returncode:
        print("no GPU or no PyTorch here")
        sys.exit(77)
    sys.exit(job.main((whatif,)))

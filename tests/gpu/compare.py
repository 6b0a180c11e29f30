#!/usr/bin/env python3
"""
The recorder's unwinder against libunwind in as many programs as there are cores, at once, for some minutes: each event's native
stack is taken twice and compared (VRAMTRACE_UNWINDER=check). PyTorch on the GPU, where there is one; and everywhere, on the
simulated CUDA: C++ of every shape in several builds, the random programs of the tests, and each CPython that is found, with an
event at every malloc. Prints a table; exit status 1 when a stack was different, or a program failed.

  BUILD_DIR    a build with the tests' programs, default build/release
  SECONDS      default 240, without a GPU none; what is not over so many seconds and GRACE (20) later is given up
  JOBS         programs at a time, default one for each core
  ONLY         a pattern that the names of programs match
  SHARE        of the places for PyTorch, default 0.6
  LEAST        so many captures are asked for, default 0
  OUT          folder for traces, default a new temporary one; they are removed once read
"""
import collections
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", "build/release")).resolve()
SECONDS = float(os.environ.get("SECONDS", "240"))
JOBS = int(os.environ.get("JOBS") or len(os.sched_getaffinity(0)))
ONLY = re.compile(os.environ.get("ONLY", ""))
LEAST = int(os.environ.get("LEAST", "0"))
GRACE = float(os.environ.get("GRACE", "20"))
OUT = pathlib.Path(os.environ.get("OUT") or tempfile.mkdtemp(prefix="vramtrace-compare-"))
os.environ.update(BUILD_DIR=str(BUILD), MODE="release", SOURCE_DIR=str(SOURCE))
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "tests/cases/lib"))
import python_case  # noqa: E402

SIMULATED = os.pathsep.join([str(BUILD / "sim"), str(BUILD / "sim/torch/lib"), os.environ.get("LD_LIBRARY_PATH", "")])
SLICE_S, START_S = 45, 20  # of a PyTorch program, which runs as long as it is told
SEEDS = itertools.count(1)
BEGIN = time.monotonic()
END = BEGIN + SECONDS


class Program:
    """A kind of program: what runs it for a seed, and what its runs counted."""

    def __init__(self, name, command, simulated=True, **variables):
        self.name, self.command, self.simulated, self.variables = name, command, simulated, variables
        self.needs_s = START_S
        self.counts, self.failures, self.remarks = collections.Counter(), [], collections.Counter()
        self.n_given_up = 0

    def run(self, seed):
        """Seconds, what the trace counts (None: it has no counts), how the program ended."""
        trace = OUT / f"{seed}.vt"
        env = dict(os.environ, LD_PRELOAD=f"{BUILD}/libvramtrace.so", VRAMTRACE_OUTPUT=str(trace), VRAMTRACE_QUIET="1",
                   VRAMTRACE_UNWINDER="check", **self.variables)
        env["LD_PRELOAD"] += " " + env.pop("PRELOAD", "")
        if self.simulated:
            env.update(LD_LIBRARY_PATH=SIMULATED, CUSIM_MEMORY="64G")
        begin = time.monotonic()
        try:
            done = subprocess.run([str(c) for c in self.command(seed)], env=env, capture_output=True, text=True, cwd=OUT,
                                  timeout=END + GRACE - begin)
        except subprocess.TimeoutExpired:
            trace.unlink(missing_ok=True)
            return None
        took = time.monotonic() - begin
        read = subprocess.run([BUILD / "vramtrace", "report", "--json", trace], capture_output=True, text=True)
        trace.unlink(missing_ok=True)
        try:
            counts = json.loads(read.stdout)["coverage"]["unwind_check"]
        except (ValueError, KeyError):
            counts = None
        return took, counts, seed, done

    def add(self, took, counts, seed, done):
        if self.simulated:
            self.needs_s = took
        self.counts.update(counts or {}, runs=1, seconds=took)
        if done.returncode:
            self.failures.append(f"seed {seed}: exit status {done.returncode}: {done.stderr[-600:]}")
        elif "unwinder:" in done.stderr:
            self.failures.append(f"seed {seed}: {done.stderr[:600]}")
        elif not counts:
            self.failures.append(f"seed {seed}: the trace has no counts")
        if done.stdout.startswith("{"):
            self.remarks.update(json.loads(done.stdout).get("failed", {}))


def shapes():
    """The C++ program in builds of its own, made where they are not there yet."""
    source, folder = SOURCE / "tests/cases/lib/unwind_shapes.cc", BUILD / "compare"
    folder.mkdir(exist_ok=True)
    cuda = [flag for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if home for flag in ("-isystem", f"{home}/include")]
    for compiler, flags in itertools.product(("g++", "clang++"), ("-O0", "-O1", "-O2", "-Os", "-O3 -mavx2 -fno-omit-frame-pointer")):
        name = f"{compiler} {flags}"
        path = folder / name.replace(" ", "")
        if not path.exists() and shutil.which(compiler):
            subprocess.run([compiler, *flags.split(), "-std=gnu++17", "-g", "-pthread", "-Wno-psabi", *cuda, "-o", path, source,
                            f"-L{BUILD}/sim", "-lcuda"], check=True)
        if path.exists():
            yield Program(f"C++, {name}", lambda seed, path=path: (path, seed, 300))


def interpreters():
    library = BUILD / "compare/torture.so"
    if not library.exists():
        complaint = python_case.build(python_case.SOURCES / "torture.c", library, "-shared", "-fno-builtin", f"-L{BUILD}/sim", "-lcuda")
        assert not complaint, complaint
    for found in python_case.interpreters():
        if found.hex < 0x03060000:
            continue
        variables = {} if found.free_threaded else {"PYTHONMALLOC": "malloc"}
        yield Program(f"CPython {found.version}, malloc", lambda seed, path=found.path: (path, "-B", python_case.SOURCES / "torture.py", 60000),
                      TORTURE_EVENTS="30000", PRELOAD=str(library), **variables)


def simulated():
    yield from shapes()
    yield from interpreters()
    for route in "driver", "runtime-shared", "runtime-static", "dlsym":
        path = BUILD / f"cases/random_calls-{route}"
        if path.exists():
            yield Program(f"random calls, {route}", lambda seed, path=path: (path, "--calls", 200000, "--threads", 1 + seed % 8, "--seed", seed))
    path = BUILD / "cases/torch_random"
    if path.exists():
        yield Program("random blocks", lambda seed: (path, OUT / f"blocks-{seed}.json", "--ops", 500000, "--threads", 1 + seed % 4, "--seed", seed))


def torch():
    def command(kind):
        return lambda seed: (sys.executable, "-B", HERE / "workloads/torch_variety.py",
                             max(5, min(SLICE_S, END - time.monotonic() - START_S)), seed, kind)

    for name, kind, variables in (
        ("paths", "paths", {}),
        ("training", "train", {}),
        ("threads", "threads", {}),
        ("paths, native stacks alone", "paths", {"VRAMTRACE_STACK": "native"}),
        ("paths, expandable segments", "paths", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
        ("training, nothing cached", "train", {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}),
        ("paths, stacks of 256 frames", "paths", {"VRAMTRACE_STACK_DEPTH": "256"}),
        ("threads, cudaMallocAsync", "threads", {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}),
    ):
        yield Program(f"PyTorch, {name}", command(kind), simulated=False, **variables)


def has_torch():
    done = subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.is_available())"], capture_output=True, text=True)
    return done.stdout.strip() == "True"


class Place:
    """Where one program at a time runs: the next in turn that should be through in time."""

    lock = threading.Lock()

    def __init__(self, programs, n_programs):
        self.programs, self.n_programs = programs, n_programs
        self.thread = threading.Thread(target=self.keep_busy)

    def next_program(self):
        with self.lock:
            for program in itertools.islice(self.programs, self.n_programs):
                if time.monotonic() + program.needs_s < END:
                    return program, next(SEEDS)
        return None, None

    def keep_busy(self):
        program, seed = self.next_program()
        while program:
            run = program.run(seed)
            with self.lock:
                if run:
                    program.add(*run)
                else:
                    program.n_given_up += 1
            program, seed = self.next_program()


def table(programs):
    total = collections.Counter()
    wall = time.monotonic() - BEGIN
    print(f"{'program':<50}{'runs':>5}{'compared':>14}{'left to libunwind':>19}{'different':>11}{'us each':>9}")
    for program in programs:
        counts = program.counts
        if program.n_given_up:
            print(f"      {program.name}: {program.n_given_up} runs were not over in time")
        if not counts["runs"]:
            continue
        total.update(counts)
        each = 1e6 * counts["seconds"] / (counts["captures"] or 1)
        print(f"{program.name:<50}{counts['runs']:>5}{counts['captures']:>14,}{counts['delegated']:>19,}{counts['differences']:>11,}{each:>9.1f}")
        for name, n in program.remarks.most_common(3):
            print(f"      {n} rounds ended by {name}")
        for failure in program.failures[:3]:
            print(f"      FAILED {failure}")
    print(f"{'all':<50}{total['runs']:>5}{total['captures']:>14,}{total['delegated']:>19,}{total['differences']:>11,}"
          f"   {JOBS} at a time, {wall:.0f} s, {total['captures'] / wall / 1e6:.2f} million a second")
    return total


def main():
    on_gpu = [p for p in (torch() if has_torch() else ()) if ONLY.search(p.name)]
    on_cpu = [p for p in simulated() if ONLY.search(p.name)]
    if not on_gpu and "SECONDS" not in os.environ:
        print("needs PyTorch and a GPU (with SECONDS given: on the simulated CUDA alone)")
        return 77
    n_torch = round(JOBS * float(os.environ.get("SHARE", "0.6"))) if on_gpu and on_cpu else JOBS if on_gpu else 0
    turns = (itertools.cycle(on_gpu), len(on_gpu)), (itertools.cycle(on_cpu), len(on_cpu))
    places = [Place(*turns[i >= n_torch]) for i in range(JOBS)]
    for place in places:
        place.thread.start()
    for place in places:
        place.thread.join()
    total = table(on_gpu + on_cpu)
    n_failed = sum(len(p.failures) for p in on_gpu + on_cpu)
    if total["captures"] < LEAST:
        print(f"fewer than {LEAST:,}")
    print("stacks are DIFFERENT" if total["differences"] else "stacks are equal", f"- {n_failed} runs failed" if n_failed else "")
    return bool(total["differences"] or n_failed or total["captures"] < max(LEAST, 1))


try:
    sys.exit(main())
finally:
    if "OUT" not in os.environ:
        shutil.rmtree(OUT, ignore_errors=True)

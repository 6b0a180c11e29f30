"""What the cases about Python stacks share: the interpreters of this machine, runs under the recorder, stacks by allocation."""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys


BUILD = pathlib.Path(os.environ["BUILD_DIR"])
MODE = os.environ["MODE"]
SOURCES = pathlib.Path(os.environ["SOURCE_DIR"], "tests/cases/lib/python")
CLI = BUILD / "vramtrace"
DEPTH = 128  # VRAMTRACE_STACK_DEPTH's default

Interpreter = collections.namedtuple("Interpreter", "path version hex include free_threaded compiles")
ASK = """
import sys, sysconfig
name = getattr(sys, "implementation", sys).__dict__.get("name", "cpython")
free = sysconfig.get_config_var("Py_GIL_DISABLED") or 0
version = sys.version.split()[0] + "t" * free + "d" * hasattr(sys, "gettotalrefcount")
compiles = hasattr(sys, "_jit") and sys._jit.is_available()
for answer in sys.executable, version, sys.hexversion, sysconfig.get_path("include"), name, free, compiles:
    print(answer)
"""


def skip(why):
    print(why)
    sys.exit(77)


def candidates():
    """Paths that may be interpreters, the system's first."""
    named = os.environ.get("VRAMTRACE_PYTHONS")
    if named:
        return named.replace(":", " ").split()
    paths = [shutil.which("python3"), "/usr/bin/python3"]
    if shutil.which("pyenv"):
        root = subprocess.run(["pyenv", "root"], capture_output=True, text=True).stdout.strip()
        paths += sorted(map(str, pathlib.Path(root, "versions").glob("*/bin/python")), reverse=True)
    return [path for path in paths if path]


def interpreters():
    """The interpreters found, each once. With a sanitizer only the first, or the time goes into the same again."""
    found = {}
    for path in candidates():
        if found and MODE in ("asan", "tsan") and not os.environ.get("VRAMTRACE_PYTHONS"):
            break
        done = subprocess.run([path, "-c", ASK], capture_output=True, text=True)
        answer = done.stdout.splitlines()
        if done.returncode or len(answer) != 7:
            print(f"{path}: does not run: {done.stderr[-200:]}")
        elif answer[4] != "cpython":
            print(f"{path}: is {answer[4]}")
        else:
            one = Interpreter(answer[0], answer[1], int(answer[2]), answer[3], answer[5] == "1", answer[6] == "True")
            found.setdefault(os.path.realpath(one.path), one)
    return list(found.values())


def environment(trace, **more):
    """Under the recorder. The interpreters are not ours: with a sanitizer its runtime is loaded first."""
    preload = [os.environ.get("SANITIZER"), *more.pop("preload", []), str(BUILD / "libvramtrace.so")]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VRAMTRACE_"))}
    env.update(LD_PRELOAD=" ".join(filter(None, preload)), VRAMTRACE_OUTPUT=str(trace), CUSIM_MEMORY="64G", LC_ALL="C.UTF-8")
    env.update(more)
    return env


def stack_modes():
    """Values of VRAMTRACE_STACK to try; see lib/case.sh for TSan."""
    return ["python"] if MODE == "tsan" else ["both", "python"]


def build(source, output, *flags):
    """A shared library or program of tests/cases/lib/python. Returns what the compiler complains of, empty when nothing."""
    command = [*os.environ.get("CC", "cc").split(), "-g", "-O1", "-std=gnu11", "-D_GNU_SOURCE", "-fPIC", "-Wall", "-Wextra",
               "-Wno-unused-parameter", str(source), "-o", str(output), *map(str, flags)]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def ask(*command):
    done = subprocess.run([str(CLI), *map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: exit status {done.returncode}: {done.stderr[-500:]}"
    return done.stdout


def records(path, *kinds):
    """The records of these kinds, of all when none is named, in lists by kind."""
    result = collections.defaultdict(list)
    for line in ask("dump", "--json", path).splitlines():
        if not kinds or line.split('"', 4)[3] in kinds:
            record = json.loads(line)
            result[record["record"]].append(record)
    return result


def outcomes(records_by_kind):
    """How captures ended: counts by enum vt_python_outcome."""
    return {r["outcome"]: r["count"] for r in records_by_kind["python_stacks"]}


class Trace:
    """What the command says about one trace."""

    def __init__(self, path):
        self.by_kind = records(path, "alloc", "stack", "python", "python_code", "python_stacks")
        self.report = json.loads(ask("leaks", "--json", path))
        self.flags = {s["stack_id"]: s["flags"] for s in self.by_kind["stack"]}
        self.outcomes = outcomes(self.by_kind)

    def stacks(self):
        """For each allocation, none of which was freed, by its size: its stack_id and the stack of its leak entry."""
        sites = collections.defaultdict(list)
        for alloc in self.by_kind["alloc"]:
            sites[alloc["stack_id"]].append(alloc)
        entries = {}
        for entry in self.report["leaks"]:
            entries[entry["bytes"], entry["count"], entry["first_ns"]] = entry["stack"]
        result = {}
        for stack_id, allocs in sites.items():
            key = sum(a["bytes"] for a in allocs), len(allocs), min(a["time_ns"] for a in allocs)
            for alloc in allocs:
                result[alloc["bytes"]] = stack_id, entries.get(key)
        return result


def python_part(stack):
    return [(f["file"], f["function"], f["line"]) for f in stack or [] if f["kind"] == "python"]


def headers(interpreter):
    """Where Python.h of the interpreter is, or None."""
    path = pathlib.Path(interpreter.include or "/nonexistent")
    return path if (path / "Python.h").exists() else None

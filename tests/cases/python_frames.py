#!/usr/bin/env python3
"""
Python stacks against what the interpreter itself says: lib/python/program.py allocates from every kind of frame and writes down
sys._getframe() and its callers; file, function and line of each frame must be the trace's, on every CPython that is found.

  VRAMTRACE_PYTHONS   interpreters to try, separated by blanks or colons; else python3, /usr/bin/python3 and those of pyenv, as
                      many as there is time for
"""
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import python_case as case  # noqa: E402

PROGRAM = str(case.SOURCES / "program.py")
TIME_S = 20
FEWEST = 500  # comparisons, generated functions not counted
LONG = 512    # names longer than this may be cut
COMMAND = f"""
import sys
sys.path.insert(0, {str(case.SOURCES)!r})
import program, truth; from truth import P, cu, note
truth.start(); cu(P(), note()); program.main(["nested", "exceptions"])
def function():
    cu(P(), note())
function()
"""
OLD = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context)
def nested(n):
    return nested(n - 1) if n else cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(4096))
assert not nested(3)
print("done")
"""


def ways(interpreter):
    """Name, VRAMTRACE_STACK, arguments and variables of each run."""
    some = ["nested", "generators", "coroutines", "threads", "metaclasses"]
    for mode in case.stack_modes():
        yield mode, mode, [PROGRAM], {} if mode == case.stack_modes()[0] else {"N_GENERATED": "100", "EVALUATOR": ""}
    mode = case.stack_modes()[0]
    yield "fork", mode, [PROGRAM, "forks"], {}
    yield "-c", mode, ["-c", COMMAND], {}
    yield "-m", mode, ["-m", "program", *some], {"PYTHONPATH": str(case.SOURCES)}
    yield "-O -S -E", mode, ["-O", "-S", "-E", PROGRAM, "exceptions", "special_methods"], {}
    yield "importtime", mode, ["-X", "importtime", PROGRAM, "modules"], {}
    yield "dev", mode, ["-X", "dev", "-W", "ignore", PROGRAM, "generated", *some], {"N_GENERATED": "200"}
    if interpreter.compiles:
        yield "jit", mode, [PROGRAM], {"N_GENERATED": "100", "PYTHON_JIT": "1"}
    if interpreter.hex >= 0x030c0000:
        yield "-X perf", mode, ["-X", "perf", PROGRAM, *some], {}


def evaluator(interpreter, folder):
    """The variables that tell the program of the evaluator built for this interpreter."""
    include = case.headers(interpreter)
    if not include:
        return {"NO_EVALUATOR": "no Python.h"}
    output = folder.resolve() / "evaluator.so"
    complaint = case.build(case.SOURCES / "evaluator.c", output, "-shared", f"-I{include}",
                           f"-DPYTHON_HEX={interpreter.hex:#x}")
    return {"EVALUATOR": str(output)} if not complaint else {"NO_EVALUATOR": f"does not compile: {complaint[:200]}"}


def same_text(got, want):
    """Bytes of a file name that are not UTF-8 are not kept, what is very long may be cut, no name may be null."""
    if not got or not want:
        return (got or "") == (want or "")
    got, want = (re.sub("[\ud800-\udfff\ufffd]+", "\ufffd", text) for text in (got, want))
    return got == want or len(want) > LONG and len(got) >= LONG / 2 and want.startswith(got.rstrip("\u2026."))


def same_frames(got, want):
    return len(got) == len(want) and all(
        g[2] == w[2] and same_text(g[0], w[0]) and same_text(g[1], w[1]) for g, w in zip(got, want))


def differences(trace, truth):
    """One line for each allocation whose stack is not the true one."""
    stacks = trace.stacks()
    for size, construct, frames in truth:
        if size not in stacks:
            yield f"{construct}: allocation of {size} bytes is not in the trace"
            continue
        stack_id, stack = stacks[size]
        got, want = case.python_part(stack), [tuple(f) for f in frames[:case.DEPTH]]
        cut = bool(trace.flags.get(stack_id, 0) & 2)
        if stack is None or not same_frames(got, want):
            yield f"{construct}: stack {stack_id} of {size} bytes:\n    got  {got[:8]}\n    want {want[:8]}"
        elif cut != (len(frames) > case.DEPTH):
            yield f"{construct}: stack {stack_id}: {len(frames)} frames, cut: {cut}"


def not_labelled(trace):
    """Stacks that lead through generated code, as that of -X perf, and do not say that frames may be missing."""
    through = [e for e in trace.report["leaks"] if any(f["kind"] == "native" and not f["module"] for f in e["stack"] or [])]
    if not through:
        yield "no generated code: so this shows nothing"
    for entry in through:
        if "unwind_info" not in entry["stack_missing"]:
            yield f"nothing is said to be missing: {entry['stack']}"


def run(interpreter, folder, mode, arguments, variables):
    """One run. Returns its traces with what they should say."""
    folder.mkdir()
    env = case.environment("%p.vt", VRAMTRACE_STACK=mode, PYTHONDONTWRITEBYTECODE="1", **variables)
    done = subprocess.run([interpreter.path, "-B", *arguments], env=env, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr[-1500:]}"
    assert "vramtrace: " in done.stderr, "no summary"
    truths = sorted(folder.glob("truth.*.json"))
    assert truths, "no truth"
    traces = {}
    for path in truths:
        pid = path.name.split(".")[1]
        if pid not in traces:
            traces[pid] = case.Trace(folder / f"{pid}.vt")
        yield traces[pid], json.loads(path.read_text())


def check(interpreter, folder):
    """All runs of one interpreter. Returns its row of the table, and what is wrong."""
    begin, wrong, n_compared, n_generated, skipped = time.monotonic(), [], 0, 0, None
    folder.mkdir()
    variables = evaluator(interpreter, folder)
    for name, mode, arguments, more in ways(interpreter):
        where = folder / name.replace(" ", "")
        try:
            for trace, truth in run(interpreter, where, mode, arguments, {**variables, **more}):
                found = list(differences(trace, truth))
                if name == "-X perf" and mode == "both" and platform.machine() == "x86_64":
                    found += not_labelled(trace)
                wrong += [f"{interpreter.version} {name}: {line}" for line in found]
                n_compared += len(truth)
                n_generated += sum(construct == "generated" for size, construct, frames in truth)
                invalid = trace.outcomes.get(4, 0)
                if invalid:
                    wrong.append(f"{interpreter.version} {name}: {invalid} invalid outcomes")
        except (AssertionError, OSError, ValueError, KeyError) as error:
            wrong.append(f"{interpreter.version} {name}: {type(error).__name__}: {error}")
        if skipped is None and (where / "skipped.json").exists():
            skipped = json.loads((where / "skipped.json").read_text())
    if n_compared - n_generated < FEWEST:
        wrong.append(f"{interpreter.version}: only {n_compared - n_generated} comparisons")
    took = time.monotonic() - begin
    row = f"{interpreter.version:<9} {n_compared:>8} {n_generated:>9} {len(wrong):>5} {took:>6.1f} s  {interpreter.path}"
    return row + "".join(f"; no {part}: {why}" for part, why in (skipped or {}).items()), wrong


def check_old(interpreter, folder):
    """An interpreter whose frames are not known: it says so once, and native stacks go on."""
    folder.mkdir()
    mode = case.stack_modes()[0]
    done = subprocess.run([interpreter.path, "-c", OLD], env=case.environment("old.vt", VRAMTRACE_STACK=mode), cwd=folder,
                          capture_output=True, text=True)
    wrong = []
    if (done.returncode, done.stdout) != (0, "done\n"):
        return f"{interpreter.version:<9} {'crashed':>8}", [f"{interpreter.version}: {done.returncode} {done.stderr[-500:]}"]
    trace = case.Trace(folder / "old.vt")
    said = [(r["captured"], bool(r["reason"])) for r in trace.by_kind["python"]]
    stack = trace.report["leaks"][0]["stack"] or []
    if said != [(0, True)]:
        wrong.append(f"{interpreter.version}: the trace should say once why it has no Python frames: {said}")
    if trace.by_kind["python_code"] or any(s["python"] for s in trace.by_kind["stack"]):
        wrong.append(f"{interpreter.version}: Python frames of an interpreter that is not known")
    if mode != "python" and len(stack) < 5:
        wrong.append(f"{interpreter.version}: no native stack: {stack}")
    if "Python" not in case.ask("report", folder / "old.vt"):
        wrong.append(f"{interpreter.version}: the report does not say that Python frames are missing")
    if len([line for line in done.stderr.splitlines() if "ython" in line.replace(interpreter.path, "")]) > 1:
        wrong.append(f"{interpreter.version}: more than one line on stderr: {done.stderr}")
    return f"{interpreter.version:<9} {'off':>8} {'':>9} {len(wrong):>5} {'':>8}  {interpreter.path}", wrong


def main():
    wrong, longest, begin = [], 0, time.monotonic()
    chosen = bool(os.environ.get("VRAMTRACE_PYTHONS"))
    print(f"{'CPython':<9} {'compared':>8} {'generated':>9} {'wrong':>5}")
    found = case.interpreters()
    # The old ones take no time.
    for interpreter in sorted(found, key=lambda i: i.hex >= 0x03080000):
        folder = pathlib.Path(interpreter.version)
        started = time.monotonic()
        if interpreter.hex < 0x03080000:
            row, bad = check_old(interpreter, folder)
        elif chosen or started - begin + longest < TIME_S:
            row, bad = check(interpreter, folder)
            longest = max(longest, time.monotonic() - started)
        else:
            row, bad = f"{interpreter.version:<9} no time left: VRAMTRACE_PYTHONS={interpreter.path} tries it", []
        print(row, flush=True)
        wrong += bad
    for line in wrong[:40]:
        print("FAIL:", line)
    if len(wrong) > 40:
        print(f"and {len(wrong) - 40} more")
    return bool(wrong) or not longest


sys.exit(main())

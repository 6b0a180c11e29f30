#!/usr/bin/env python3
"""
The order of merged stacks, exact: C that calls Python that calls C, several times over, in threads, and with a library that
degrades: stripped, without unwind information, deleted or replaced after the recording. VRAMTRACE_PYTHONS as in python_frames.py.
"""
import bisect
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import python_case as case  # noqa: E402

TIME_S = 10
GAP = 4  # VT_STACK_NATIVE_GAP
NO_UNWIND = ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fomit-frame-pointer")


def build(output, *flags):
    complaint = case.build(case.SOURCES / "chain.c", output, "-shared", "-pthread", "-Wl,--build-id",
                           f"-L{case.BUILD}/sim", *flags, "-lcuda")
    assert not complaint, complaint


def functions_of(path):
    """Start addresses of the functions in the symbol table of a file, in order, and their names."""
    lines = subprocess.run(["nm", "--defined-only", path], capture_output=True, text=True, check=True).stdout.splitlines()
    symbols = sorted((int(line.split()[0], 16), line.split()[2]) for line in lines if line.split()[1] in "tT")
    return [s[0] for s in symbols], [s[1] for s in symbols]


def shown(stack, library, functions=None):
    """The frames of Python and of the library; with functions, those of the library by their offset."""
    result = []
    for frame in stack or []:
        if frame["kind"] == "python":
            result.append((frame["file"], frame["function"], frame["line"]))
        elif frame["module"] == library and functions:
            result.append((functions[1][bisect.bisect_right(functions[0], frame["offset"]) - 1],))
        elif frame["module"] == library:
            result.append((frame["function"],))
    return result


def is_part(part, whole):
    """True when part is whole with some items left out."""
    rest = iter(whole)
    return all(item in rest for item in part)


def record(interpreter, folder, library):
    """One run with a library. Returns its trace and what is true."""
    folder.mkdir()
    shutil.copy(library, folder / "libchain.so")
    done = subprocess.run([interpreter.path, "-B", str(case.SOURCES / "chain.py"), str(folder / "libchain.so")], cwd=folder,
                          env=case.environment("chain.vt"), capture_output=True, text=True)
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr[-1500:]}"
    truth = json.loads(next(folder.glob("truth.*.json")).read_text())
    assert len(truth) > 60, len(truth)
    return folder / "chain.vt", [(size, name, [tuple(f) for f in stack]) for size, name, stack in truth]


def compare(path, truth, look, right):
    """One line for each stack that is not right."""
    stacks = case.Trace(path).stacks()
    for size, construct, want in truth:
        got = look(stacks[size][1]) if size in stacks else None
        if got is None or not right(got, want):
            yield f"{construct}: {size} bytes:\n    got  {got}\n    want {want}"


def equal(got, want):
    return got == want


def check_exact(interpreter, folder, build_folder):
    """The library with everything, and stripped: the functions that it does not export have no name, but a place."""
    path, truth = record(interpreter, folder / "exact", build_folder / "full.so")
    library = str(folder / "exact/libchain.so")
    yield "exact", len(truth), list(compare(path, truth, lambda s: shown(s, library), equal))
    # No other frame is taken for one of ours, and lines are those of the source.
    lines = {i: text for i, text in enumerate((case.SOURCES / "chain.c").read_text().splitlines(), 1)}
    calls = {"b_hidden": "cuMemAlloc_v2(", "chain_b": "b_hidden(", "a_hidden": "function(", "chain_a": "a_hidden(",
             "run_job": "chain_"}
    frames = [f for e in case.Trace(path).report["leaks"] for f in e["stack"] if f["module"] == library]
    yield "lines", len(frames), [f"{f}" for f in frames if calls[f["function"]] not in lines.get(f["line"], "")]

    path, truth = record(interpreter, folder / "stripped", build_folder / "stripped.so")
    library = str(folder / "stripped/libchain.so")
    functions = functions_of(build_folder / "full.so")
    wrong = list(compare(path, truth, lambda s: shown(s, library, functions), equal))
    frames = [f for e in case.Trace(path).report["leaks"] for f in e["stack"] if f["module"] == library]
    wrong += [f"{f}" for f in frames if f["function"] not in (None, "chain_a", "chain_b", "chain_thread") or f["line"]]
    yield "stripped", len(truth), wrong


def check_changed(interpreter, folder, build_folder):
    """After the recording the file is another one, or gone: offsets as they were, and no names at all."""
    path, truth = record(interpreter, folder / "changed", build_folder / "full.so")
    library = folder / "changed/libchain.so"
    functions = functions_of(build_folder / "full.so")
    for name, label in ("replaced", "changed"), ("deleted", "missing"):
        library.unlink()
        if name == "replaced":
            shutil.copy(build_folder / "other.so", library)
        wrong = list(compare(path, truth, lambda s: shown(s, str(library), functions), equal))
        report = case.Trace(path).report
        if str(library) not in report["symbols"][label]:
            wrong.append(f"not among the {label} files: {report['symbols']}")
        frames = [f for e in report["leaks"] for f in e["stack"] if f["module"] == str(library)]
        wrong += [f"a guess: {f}" for f in frames if f["function"] or f["file"]]
        if "libchain.so+0x" not in case.ask("leaks", "--limit", "0", path):
            wrong.append("the text does not show the offset in the library")
        yield name, len(truth), wrong


def check_no_unwind(interpreter, folder, build_folder):
    """Native frames may be missing, which the stack then says. Python's are all there, and what is there is in order."""
    path, truth = record(interpreter, folder / "nounwind", build_folder / "nounwind.so")
    library = str(folder / "nounwind/libchain.so")

    def right(got, want):
        return [f for f in got if len(f) > 1] == [f for f in want if len(f) > 1] and is_part(got, want)

    wrong = list(compare(path, truth, lambda s: shown(s, library), right))
    trace = case.Trace(path)
    if trace.outcomes.get(4, 0):
        wrong.append(f"invalid outcomes: {trace.outcomes}")
    if platform.machine() == "x86_64":
        stacks, n_short = trace.stacks(), 0
        for size, construct, want in truth:
            stack_id, stack = stacks[size]
            n_short += shown(stack, library) != want
            if shown(stack, library) != want and not trace.flags[stack_id] & GAP:
                wrong.append(f"{construct}: {size} bytes: frames are missing, and it does not say so: {stack}")
        if not n_short:
            wrong.append("no stack is short of a frame: so this shows nothing")
    yield "no unwind", len(truth), wrong


def main():
    if case.MODE == "tsan":
        case.skip("needs native stacks, and libunwind does not get on with TSan")
    build_folder = pathlib.Path("build").resolve()
    build_folder.mkdir()
    build(build_folder / "full.so")
    build(build_folder / "stripped.so", "-s")
    build(build_folder / "other.so", "-O3", "-DOTHER=1", "-Wl,--build-id=0x1234")
    build(build_folder / "nounwind.so", *NO_UNWIND)
    wrong, longest, begin = [], 0, time.monotonic()
    for interpreter in case.interpreters():
        started = time.monotonic()
        if interpreter.hex < 0x03080000:
            continue
        if not os.environ.get("VRAMTRACE_PYTHONS") and started - begin + longest > TIME_S:
            print(f"{interpreter.version:<9} no time left: VRAMTRACE_PYTHONS={interpreter.path} tries it")
            continue
        folder = pathlib.Path(interpreter.version).resolve()
        folder.mkdir()
        row = []
        for part in check_exact, check_changed, check_no_unwind:
            for name, n, bad in part(interpreter, folder, build_folder):
                row.append(f"{name} {n - len(bad)}/{n}")
                wrong += [f"{interpreter.version} {name}: {line}" for line in bad]
        longest = max(longest, time.monotonic() - started)
        print(f"{interpreter.version:<9}", *row, interpreter.path, sep="  ", flush=True)
    for line in wrong[:20]:
        print("FAIL:", line)
    return bool(wrong) or not longest


sys.exit(main())

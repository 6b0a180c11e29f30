#!/usr/bin/env python3
"""
Stacks taken at every malloc and free of the interpreter, from its start to its end (free-threaded: its own), with threads and garbage collection:
nothing crashes, nothing is invalid, and every name and line is one of a source file. VRAMTRACE_PYTHONS as in python_frames.py.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import python_case as case  # noqa: E402

TIME_S = 10
N_EVENTS = int(os.environ.get("TORTURE_EVENTS", "20000"))


def implausible(interpreter, folder, trace):
    """Code objects of the trace, and lines in its stacks, that are in no source file."""
    items = [[c["file"], c["function"], c["first_line"], None] for c in trace.by_kind["python_code"]]
    seen = {(f["file"], f["function"], f["line"]) for e in trace.report["leaks"] for f in e["stack"] or []
            if f["kind"] == "python"}
    items += [[file, function, None, line] for file, function, line in sorted(seen, key=str)]
    (folder / "names.json").write_text(json.dumps(items))
    done = subprocess.run([interpreter.path, "-B", case.SOURCES / "names.py", folder / "names.json"], capture_output=True,
                          text=True, check=True)
    return len(items), json.loads(done.stdout)


def check(interpreter, folder, mode, library):
    """One run. Returns its row of the table and what is wrong."""
    folder.mkdir(parents=True)
    env = case.environment("torture.vt", VRAMTRACE_STACK=mode, TORTURE_EVENTS=str(N_EVENTS // 2))
    if not interpreter.free_threaded:
        env["PYTHONMALLOC"] = "malloc"
    env["LD_PRELOAD"] += f" {library}"
    done = subprocess.run([interpreter.path, "-B", case.SOURCES / "torture.py", str(N_EVENTS)], env=env, cwd=folder,
                          capture_output=True, text=True)
    if done.returncode:
        return f"exit status {done.returncode}", [f"exit status {done.returncode}: {done.stderr[-1000:]}"]
    n_done = json.loads(done.stdout)
    trace = case.Trace(folder / "torture.vt")
    outcomes = trace.outcomes
    n_items, bad = implausible(interpreter, folder, trace)
    n_frames = sum(len(s["python"]) for s in trace.by_kind["stack"])
    wrong = [f"in no source file: {item}" for item in bad]
    if n_done < N_EVENTS:
        wrong.append(f"{n_done} events")
    if outcomes.get(4, 0):
        wrong.append(f"{outcomes[4]} invalid captures")
    if outcomes.get(0, 0) < N_EVENTS or not n_frames:
        wrong.append(f"few stacks: {outcomes}")
    if trace.report["traces"][0]["lost_events"] or any(trace.report["traces"][0]["damage"].values()):
        wrong.append(f"lost or damaged: {trace.report['traces'][0]}")
    return f"{n_done} events, {n_frames} frames in {len(trace.by_kind['stack'])} stacks, {n_items} names and lines", wrong


def main():
    if case.MODE in ("asan", "tsan"):
        case.skip("the sanitizers have a malloc of their own")
    library = pathlib.Path("torture.so").resolve()
    complaint = case.build(case.SOURCES / "torture.c", library, "-shared", "-fno-builtin", f"-L{case.BUILD}/sim", "-lcuda")
    assert not complaint, complaint
    wrong, longest, begin = [], 0, time.monotonic()
    for interpreter in case.interpreters():
        started = time.monotonic()
        if interpreter.hex < 0x03080000:
            continue
        if not os.environ.get("VRAMTRACE_PYTHONS") and started - begin + longest > TIME_S:
            print(f"{interpreter.version:<9} no time left: VRAMTRACE_PYTHONS={interpreter.path} tries it")
            continue
        for mode in case.stack_modes():
            row, bad = check(interpreter, pathlib.Path(interpreter.version, mode).resolve(), mode, library)
            print(f"{interpreter.version:<9} {mode:<7} {len(bad)} wrong, {row}", flush=True)
            wrong += [f"{interpreter.version} {mode}: {line}" for line in bad]
        longest = max(longest, time.monotonic() - started)
    for line in wrong[:30]:
        print("FAIL:", line)
    return bool(wrong) or not longest


sys.exit(main())

#!/usr/bin/env python3
"""
Python in a library that was opened with RTLD_LOCAL, started and ended twice: its symbols are not among the program's, and its
frames are found all the same. VRAMTRACE_PYTHONS as in python_frames.py.
"""
import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import python_case as case  # noqa: E402

ASK = """
import os, sys, sysconfig
print(os.path.join(sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")))
print(sys.base_prefix)
"""


def check(interpreter, program, library, prefix):
    """Returns the number of comparisons, and what is wrong."""
    folder = pathlib.Path(interpreter.version)
    folder.mkdir()
    env = case.environment("embed.vt", PYTHONHOME=prefix, PYTHONDONTWRITEBYTECODE="1", VRAMTRACE_STACK=case.stack_modes()[0])
    done = subprocess.run([program, library, case.SOURCES / "embedded.py"], env=env, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        return 0, [f"exit status {done.returncode}: {done.stderr[-600:]}"]
    truth = json.loads(next(folder.glob("truth.*.json")).read_text())
    trace, wrong = case.Trace(folder / "embed.vt"), []
    stacks = trace.stacks()
    for size, construct, frames in truth:
        want = [tuple(frame) for frame in frames]
        got = case.python_part(stacks[size][1]) if size in stacks else None
        if got != want:
            wrong.append(f"{size} bytes:\n    got  {got}\n    want {want}")
    if len(truth) < 150:
        wrong.append(f"only {len(truth)} comparisons")
    if trace.outcomes.get(4, 0):
        wrong.append(f"invalid: {trace.outcomes}")
    return len(truth), wrong


def main():
    program = pathlib.Path("embed").resolve()
    sanitizer = {"asan": ["-fsanitize=address,undefined"], "tsan": ["-fsanitize=thread"]}.get(case.MODE, [])
    complaint = case.build(case.SOURCES / "embed.c", program, *sanitizer, f"-L{case.BUILD}/sim", "-lcuda", "-ldl")
    assert not complaint, complaint
    wrong, n_tried = [], 0
    for interpreter in case.interpreters():
        if interpreter.hex < 0x03080000:
            continue
        library, prefix = subprocess.run([interpreter.path, "-c", ASK], capture_output=True, text=True).stdout.splitlines()
        if ".so" not in library or not os.path.exists(library):
            continue
        n, bad = check(interpreter, program, library, prefix)
        n_tried += 1
        print(f"{interpreter.version:<9} {n - len(bad)} of {n} right  {library}", flush=True)
        wrong += [f"{interpreter.version}: {line}" for line in bad]
    for line in wrong[:20]:
        print("FAIL:", line)
    if not n_tried:
        case.skip("there is no shared libpython here")
    return bool(wrong)


sys.exit(main())

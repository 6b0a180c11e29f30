#!/usr/bin/env python3
"""
Interpreters that end while threads of theirs allocate: 50 runs, none of which ends otherwise than without the recorder.
VRAMTRACE_PYTHONS as in python_frames.py.
"""
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import python_case as case  # noqa: E402

TIME_S = 10
N_RUNS = 15 if case.MODE == "asan" else 50


def run(interpreter, seed, mode):
    env = case.environment("exit.vt", VRAMTRACE_STACK=mode, VRAMTRACE_QUIET="1")
    done = subprocess.run([interpreter.path, "-B", case.SOURCES / "exiting.py", str(seed)], env=env, capture_output=True,
                          text=True)
    said = done.stdout + done.stderr
    if done.returncode or said:
        return {}, f"run {seed}, {mode}: exit status {done.returncode}: {said[-600:]}"
    outcomes = case.outcomes(case.records("exit.vt", "python_stacks"))
    shown = json.loads(case.ask("info", "--json", "exit.vt"))["traces"][0]
    os.remove("exit.vt")
    if shown["end"] != "exit" or shown["damaged"] or outcomes.get(4, 0):
        return outcomes, f"run {seed}, {mode}: {outcomes} {shown}"
    return outcomes, None


def check(interpreter):
    """Returns what is wrong in the runs of one interpreter."""
    wrong, totals, modes = [], {}, case.stack_modes()
    for seed in range(N_RUNS):
        outcomes, line = run(interpreter, seed, modes[seed % len(modes)])
        if line:
            wrong.append(f"{interpreter.version} {line}")
        for outcome, n in outcomes.items():
            totals[outcome] = totals.get(outcome, 0) + n
    if not totals.get(0, 0):
        wrong.append(f"{interpreter.version}: no stacks: {totals}")
    print(f"{interpreter.version:<9} {N_RUNS} runs, {len(wrong)} wrong, captures by outcome: {totals}", flush=True)
    return wrong


def main():
    if case.MODE == "tsan":
        case.skip("an interpreter that ends frees what belongs to threads that are in a call: TSan is right, and it is not ours")
    wrong, longest, begin = [], 0, time.monotonic()
    for interpreter in case.interpreters():
        started = time.monotonic()
        if interpreter.hex < 0x03080000:
            continue
        if not os.environ.get("VRAMTRACE_PYTHONS") and started - begin + longest > TIME_S:
            print(f"{interpreter.version:<9} no time left: VRAMTRACE_PYTHONS={interpreter.path} tries it")
            continue
        wrong += check(interpreter)
        longest = max(longest, time.monotonic() - started)
    for line in wrong[:20]:
        print("FAIL:", line)
    return bool(wrong) or not longest


sys.exit(main())

#!/usr/bin/env python3
"""Every Python found on this machine under the recorder: the stacks in the trace against what the program itself says.

The program calls the driver from a few constructs and prints the file, function and line of each frame. Versions that
the recorder does not know must be left alone, with one line about it.
"""
import glob
import json
import os
import re
import subprocess
import sys

BUILD = os.environ["BUILD_DIR"]
MODE = os.environ["MODE"]
ENTRY = 0x80000000

PROGRAM = r'''
from __future__ import print_function
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuMemAlloc_v2.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
child = os.fork()  # CUDA cannot be used on both sides of a fork
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
n = 0 if child else 1000000
said = open("%d.said" % os.getpid(), "w")


def alloc():
    global n
    n += 512
    address = ctypes.c_uint64()
    frame, stack = sys._getframe(), []
    while frame:
        code = frame.f_code
        line = LINE if frame.f_code.co_name == "alloc" else frame.f_lineno
        stack.append("%s|%s|%d" % (code.co_filename, getattr(code, "co_qualname", code.co_name), line))
        frame = frame.f_back
    said.write("%d %s\n" % (n, "@".join(stack)))
    assert cuda.cuMemAlloc_v2(ctypes.addressof(address), n) == 0  # HERE
    return 0


class Thing(object):
    def method(self, x=None):
        return [alloc() for _ in range(2)]

    def __getattr__(self, name):
        return alloc()


def generate():
    for _ in range(2):
        yield alloc()


def play():
    thing = Thing()
    thing.method()
    thing.other
    list(generate())
    sorted([2, 1], key=lambda x: (
        alloc()))
    callback = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: alloc())
    callback()
    for i in range(3):
        # The same names at the same places, and other lines: addresses are used again.
        exec(compile("\n" * i + "def made():\n alloc()\nmade()", "made.py", "exec"), globals())


play()
said.close()
sys.exit(child and os.waitpid(child, 0)[1] != 0)
'''


def interpreters():
    """Version -> path, the oldest build of each version that is found first."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    patterns = [f"{root}/versions/*/bin/python[23]", "/usr/bin/python[23]", "/usr/bin/python3.*",
                "/usr/local/bin/python3.*", "/opt/*/bin/python3"]
    found = {}
    for path in sorted(path for pattern in patterns for path in glob.glob(pattern)):
        if not re.search(r"python[23](\.\d+t?)?$", path):
            continue
        ask = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
        done = subprocess.run([path, "-c", ask], capture_output=True, text=True)
        if done.returncode == 0:
            found.setdefault(os.path.realpath(path), (done.stdout.strip(), path))
    # With a sanitizer only this one, or the time goes into the same again.
    mine = os.path.realpath(sys.executable)
    if MODE in ("asan", "tsan") and mine in found:
        found = {mine: found[mine]}
    return sorted(found.values(), key=lambda item: [int(part) for part in re.findall(r"\d+", item[0])])


def run(path, how):
    """What the recorder said on stderr; (frames by bytes, records) of the process and of its child."""
    preload = " ".join(filter(None, [os.environ.get("SANITIZER"), f"{BUILD}/libvramtrace.so"]))
    environ = dict(os.environ, LD_PRELOAD=preload, VRAMTRACE_STACK=how, VRAMTRACE_OUTPUT="%p.vt")
    for name in glob.glob("*.vt") + glob.glob("*.said"):
        os.remove(name)
    done = subprocess.run([path, "program.py"], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, f"{path} {how}: {done.returncode} {done.stderr}"
    runs = [(said_in(name.replace(".vt", ".said")), dump(name)) for name in glob.glob("*.vt")]
    assert len(runs) == 2, runs
    return done.stderr, sorted(runs, key=lambda run: max(run[0]))


def said_in(name):
    with open(name) as lines:
        return {int(n): frames for n, frames in (line.rstrip("\n").split(" ", 1) for line in lines)}


def dump(name):
    done = subprocess.run([f"{BUILD}/vramtrace", "dump", "--json", name], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def varint(table, at):
    value, shift = 0, 0
    while True:
        value |= (table[at] & 63) << shift
        shift += 6
        at += 1
        if not table[at - 1] & 64:
            return value, at


def locations(table, line):
    """(end of the range in bytes, line) for each range of a table of 3.11 and later."""
    at = end = 0
    while at < len(table):
        code, end = table[at] >> 3 & 15, end + 2 * ((table[at] & 7) + 1)
        at += 1
        if code in (13, 14):
            value, at = varint(table, at)
            line += -(value >> 1) if value & 1 else value >> 1
            for _ in range(3 if code == 14 else 0):
                at = varint(table, at)[1]
        elif code < 13:
            line += max(code - 10, 0)
            at += 1 + (code >= 10)
        yield end, None if code == 15 else line


def signed(byte):
    return byte - 256 if byte > 127 else byte


def line_of(code, offset):
    table, line, end = bytes.fromhex(code["lines"]), code["first_line"], 0
    if code["line_table"] == 3:
        return next((line for end, line in locations(table, line) if end > offset), None)
    for address, step in zip(table[::2], table[1::2]):
        if code["line_table"] == 1:
            end += address
            if end > offset:
                return line
            line += signed(step)
        else:
            end += address
            here = None if step == 128 else signed(step)
            line += here or 0
            if end > offset:
                return None if here is None else line
    return line if code["line_table"] == 1 else None


def frames_of(records):
    """Bytes of an allocation -> its Python frames as the program writes them."""
    codes = {r["code_id"]: r for r in records if r["record"] == "python_code"}
    stacks = {r["stack_id"]: r for r in records if r["record"] == "stack"}
    out = {}
    for record in records:
        if record["record"] != "alloc":
            continue
        words = [int(word, 16) for word in stacks[record["stack_id"]]["python"]]
        out[record["bytes"]] = "@".join("{file}|{function}|{line}".format(
            line=line_of(codes[word >> 32], word & (ENTRY - 1)), **codes[word >> 32]) for word in words)
    return out


def outcomes(records):
    last = {}
    for record in records:
        if record["record"] == "python_stacks":
            last[record["outcome"]] = record["count"]
    return last


def check_frames(version, how, records, said):
    got = frames_of(records)
    assert got == said, f"{version} {how}: {[(got.get(n), said.get(n)) for n in got | said if got.get(n) != said.get(n)][:2]}"
    python = [r for r in records if r["record"] == "python"]
    assert len(python) == 1 and python[0]["captured"] == 1 and not python[0]["reason"], python
    counts = outcomes(records)
    assert counts.get(0, 0) >= len(got) and not {3, 4, 5} & set(counts), (version, how, counts)


def check_ranges(records):
    """As many native frames in the evaluation loop as there were calls of it."""
    ranges = [(int(r["start"], 16), int(r["end"], 16)) for r in records if r["record"] == "eval_range"]
    n = 0
    for stack in (r for r in records if r["record"] == "stack" and r["python"]):
        native = [int(word, 16) - 1 for word in stack["frames"]]
        n_eval = sum(any(start <= address < end for start, end in ranges) for address in native)
        n_entries = sum(bool(int(word, 16) & ENTRY) for word in stack["python"])
        assert n_eval == n_entries, (n_eval, stack)
        n += n_entries
    assert 1 <= len(ranges) <= 4 and n > 10, (ranges, n)


def check_known(version, path):
    n = 0
    for how in ("both", "python") if MODE != "tsan" else ("python",):
        for said, records in run(path, how)[1]:
            assert len(said) >= 10, said
            check_frames(version, how, records, said)
            n += len(said)
            native = [r for r in records if r["record"] == "stack" and r["frames"]]
            if how == "both":
                check_ranges(records)
            else:
                assert not native and not [r for r in records if r["record"] == "eval_range"], native
    records = run(path, "native")[1][0][1]
    assert not [r for r in records if r["record"].startswith("python") or r["record"] == "eval_range"]
    assert not [r for r in records if r["record"] == "stack" and r["python"]]
    return n


def check_unknown(version, path):
    for how in ("both", "native") if MODE != "tsan" else ("python",):
        stderr, runs = run(path, how)
        lines = [line for line in stderr.splitlines() if "Python" in line]
        records = runs[0][1]
        python = [r for r in records if r["record"] == "python"]
        assert not [r for r in records if r["record"] in ("python_code", "python_stacks", "eval_range")]
        if how == "native":
            assert not lines and not python, (lines, python)
            continue
        major_minor = ".".join(version.split(".")[:2])
        # One for the process, one for its child.
        assert len(lines) == 2 and all(f"Python {major_minor}" in line for line in lines), lines
        assert len(python) == 1 and not python[0]["captured"] and major_minor in python[0]["reason"], python
        if how == "both":
            assert [r for r in records if r["record"] == "stack" and r["frames"]]


def main():
    here = PROGRAM.splitlines().index(next(line for line in PROGRAM.splitlines() if "# HERE" in line)) + 1
    with open("program.py", "w") as out:
        out.write(PROGRAM.replace("LINE", str(here)))
    known = []
    for version, path in interpreters():
        major, minor = (int(part) for part in version.split(".")[:2])
        if major == 3 and 8 <= minor <= 15:
            known.append(f"{version} ({check_known(version, path)})")
        else:
            check_unknown(version, path)
    if not known:
        print("no Python 3.8 to 3.15 here that this test knows to find")
        return 77
    print("stacks equal to the program's own:", ", ".join(known))
    return 0


sys.exit(main())

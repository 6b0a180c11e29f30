#!/usr/bin/env python3
"""Recording that is paused and resumed from outside: what is live stays exact, stacks and copies are back afterwards, and the report
says what is missing. And whom vramtrace pause cannot find."""
import json
import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(os.environ["BUILD_DIR"])
MIB = 1 << 20
STACKS = os.environ["MODE"] != "tsan"


class Program:
    def __init__(self, trace, **variables):
        self.trace = trace
        env = dict(os.environ, LD_PRELOAD=str(BUILD / "libvramtrace.so"), VRAMTRACE_OUTPUT=trace, VRAMTRACE_QUIET="1", **variables)
        if not STACKS:
            env["VRAMTRACE_STACK"] = "none"
        self.process = subprocess.Popen([BUILD / "cases/paused"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)

    def tell(self, letters):
        for letter in letters:
            self.process.stdin.write(letter + "\n")
            self.process.stdin.flush()
            assert self.process.stdout.readline() == "done\n", letter

    def end(self):
        self.process.stdin.close()
        assert self.process.wait() == 0


def vramtrace(*arguments, status=0):
    done = subprocess.run([BUILD / "vramtrace", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done.stdout + done.stderr


def report(trace):
    return json.loads(vramtrace("report", "--json", trace))


def records(trace):
    return [json.loads(line) for line in vramtrace("dump", "--json", trace).splitlines()]


def check_counts(seen, live, copies, failures):
    assert seen["devices"][0]["end"]["by_kind"]["linear"] == live * MIB, seen["devices"][0]["end"]
    assert sum(leak["count"] for leak in seen["leaks"]) == live
    assert sum(row["copies"] for row in seen["transfers"]) == copies, seen["transfers"]
    assert sum(row["count"] for row in seen["failures"]) == failures
    assert seen["unknown_frees"] == seen["missed_frees"] == 0


def check_pause():
    program = Program("pause.vt")
    pid = program.process.pid
    said = vramtrace("pause", pid, status=3)
    assert "writes no trace" in said, said
    program.tell("aaacc")
    said = vramtrace("pause", pid)
    assert "pause.vt: paused" in said, said
    program.tell("aacccfo")
    now = report("pause.vt")
    check_counts(now, 4, 2, 1)
    assert now["coverage"]["paused"]["count"] == 1 and now["coverage"]["paused"]["now"], now["coverage"]["paused"]
    assert vramtrace("pause", "-q", pid) == ""
    program.tell("a")
    assert "in full again" in vramtrace("resume", "pause.vt")
    program.tell("ac")
    program.end()
    seen = report("pause.vt")
    check_counts(seen, 6, 3, 1)
    paused = seen["coverage"]["paused"]
    assert paused["count"] == 1 and paused["duration_ns"] > 0 and not paused["now"], paused
    events = [r for r in records("pause.vt") if r["record"] in ("alloc", "free", "pause", "failure")]
    kinds = [r["record"] for r in events]
    assert kinds == ["alloc"] * 3 + ["pause"] + ["alloc"] * 2 + ["free", "failure", "alloc", "pause", "alloc"], kinds
    has_stack = [r["stack_id"] != 0 for r in events if r["record"] != "pause"]
    if STACKS:
        assert has_stack == [True] * 3 + [False] * 3 + [True, False, True], has_stack
    text = vramtrace("report", "--ascii", "pause.vt")
    assert "recording was paused 1 time, for " in text and "has no stack" in text, text


def check_begin_paused():
    """VRAMTRACE_ENABLED=0: paused from the start, until somebody resumes it."""
    program = Program("begin.vt", VRAMTRACE_ENABLED="0")
    program.tell("aac")
    seen = report("begin.vt")
    check_counts(seen, 2, 0, 0)
    assert seen["coverage"]["paused"]["now"] and not seen["host_samples"]
    assert not any(r["record"] in ("stack", "memory") for r in records("begin.vt"))
    vramtrace("resume", program.process.pid)
    program.tell("acf")
    program.end()
    seen = report("begin.vt")
    check_counts(seen, 2, 1, 0)
    assert seen["coverage"]["paused"]["count"] == 1 and seen["host_samples"]


def check_toggled():
    """Threads at work while recording is resumed and paused all the time: each allocation and free is there, as the driver says."""
    calls = "20000" if os.environ["MODE"] == "release" else "3000"
    env = dict(os.environ, LD_PRELOAD=str(BUILD / "libvramtrace.so"), VRAMTRACE_OUTPUT="toggled.vt", VRAMTRACE_QUIET="1",
               VRAMTRACE_ENABLED="0", CUSIM_DEVICES="2", CUSIM_LEDGER="toggled.json")
    if not STACKS:
        env["VRAMTRACE_STACK"] = "none"
    command = [BUILD / "cases/random_calls-driver", "--calls", calls, "--threads", "4", "--devices", "2", "--seed", "7"]
    with open("toggled.out", "w") as out:
        process = subprocess.Popen(command, stdout=out, env=env)
        while process.poll() is None:
            for word in "resume", "pause":
                subprocess.run([BUILD / "vramtrace", word, "-q", str(process.pid)], stderr=subprocess.DEVNULL)
    assert process.returncode == 0
    truth, seen = json.loads(pathlib.Path("toggled.json").read_text()), report("toggled.vt")
    assert seen["traces"][0]["lost_events"] == 0
    for device, true in zip(seen["devices"], truth["devices"], strict=True):
        for kind in "linear", "pool", "vmm", "managed":
            got, want = device["kinds"].get(kind, {}), true[kind]
            for key, name in ("live_bytes", "live_bytes"), ("live", "live_count"), ("allocations", "allocations"), ("frees", "frees"):
                assert got.get(key, 0) == want[name], (device["ordinal"], kind, key, got, want)
    for kind in "pinned", "registered":
        assert seen["host_memory"][kind + "_bytes"] == sum(d[kind]["live_bytes"] for d in truth["devices"]), kind
    assert seen["unknown_frees"] == seen["missed_frees"] == 0
    times = [r["time_ns"] for r in records("toggled.vt") if "time_ns" in r]
    assert times == sorted(times)


def parts(trace):
    return sorted(int(path.name.rpartition(".part")[2]) for path in pathlib.Path().glob(trace + ".part*"))


def check_bounded():
    """The same word is heeded when the parts of a bounded trace have rotated; what was paused or begun in parts that are gone is
    still known, and so is the host's memory."""
    many = 100000
    program = Program("bounded.vt", VRAMTRACE_MAX_SIZE="1M")
    pid = program.process.pid
    program.tell("aakp")
    assert "bounded.vt: paused" in vramtrace("pause", pid)
    program.tell("am")
    assert parts("bounded.vt")[0] > 1
    now = report("bounded.vt")
    check_counts(now, 3, 0, 0)
    assert now["coverage"]["paused"]["now"] and now["coverage"]["paused"]["count"] == 1, now["coverage"]["paused"]
    assert [(p["name"], p["count"], p["open"]) for p in now["phases"]] == [("request", 1, 1)], now["phases"]
    assert [m["name"] for m in now["marks"]] == ["here"], now["marks"]
    assert "in full again" in vramtrace("resume", pid)
    before = parts("bounded.vt")[-1]
    program.tell("amc")
    assert parts("bounded.vt")[0] > before
    now = report("bounded.vt")
    check_counts(now, 4, 1, 0)
    paused = now["coverage"]["paused"]
    assert not paused["now"] and paused["count"] == 1 and paused["duration_ns"] > 0, paused
    stacks = [r["stack_id"] != 0 for r in records("bounded.vt") if r["record"] == "alloc" and r["bytes"] == MIB]
    assert stacks == [STACKS, STACKS, False, STACKS], stacks
    assert "cannot be told" in vramtrace("pause", f"bounded.vt.part{parts('bounded.vt')[-1]}", status=3)
    program.tell("q")
    program.end()
    seen = report("bounded.vt")
    check_counts(seen, 4, 1, 0)
    assert seen["traces"][0]["complete"] and seen["traces"][0]["kept_from_ns"]
    assert [(p["name"], p["count"], p["open"]) for p in seen["phases"]] == [("request", 1, 0)], seen["phases"]
    assert seen["phases"][0]["time_ns"] > seen["traces"][0]["kept_from_ns"] / 2, seen["phases"]
    kinds = seen["devices"][0]["kinds"]["linear"]
    assert kinds["allocations"] == many + 4 and kinds["frees"] == many, kinds
    # The first sample of the host's memory is from before the trace's first part went.
    samples = [r["time_ns"] for r in records("bounded.vt") if r["record"] == "host_memory"]
    assert samples == sorted(set(samples)) and samples[0] < seen["traces"][0]["kept_from_ns"] < samples[-1], samples
    host = json.loads(vramtrace("timeline", "--json", "--points", "20", "bounded.vt"))["host"]
    assert all(column["resident_bytes"] for column in host), host


def check_strangers():
    pathlib.Path("text").write_text("no trace" * 2000)
    assert "not a vramtrace trace" in vramtrace("pause", "text", status=3)
    assert "No such file" in vramtrace("resume", "missing.vt", status=3)
    assert "no such process" in vramtrace("pause", 4000000000, status=3)
    assert "no process is given" in vramtrace("pause", status=2)
    # A trace whose recorder does not look at the word: of an earlier version.
    old = bytearray(pathlib.Path("pause.vt").read_bytes())
    old[68:72] = bytes(4)
    pathlib.Path("old.vt").write_bytes(old)
    assert "cannot be told" in vramtrace("pause", "old.vt", status=3)
    assert bytes(old) == pathlib.Path("old.vt").read_bytes()


check_pause()
check_begin_paused()
check_toggled()
check_bounded()
check_strangers()

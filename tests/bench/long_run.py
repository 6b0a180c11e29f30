#!/usr/bin/env python3
"""
A service that allocates and frees without end, in a bounded trace. Fails unless, at the end, what lives and all sums are what the
simulator's ledger says; and unless meanwhile the trace kept to its size, the recorder's memory was flat, and the program could be
looked at.

  --seconds N   how long (default 1800)
  --rate N      CUDA calls a second (default 200000); each is an event
  --size N      the trace's, in MiB (default 64)
  --every N     seconds between two looks (default 10)

BUILD_DIR names the build, default build/release. Memory is in MiB. "Own" memory is the process's anonymous memory beyond that of
the same program without the recorder; "mapped" is what it has mapped of files, which the kernel may take back at any time.
"""
import argparse
import glob
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("BUILD_DIR", "build/release")).resolve()
FOLDER = tempfile.TemporaryDirectory(prefix="vramtrace-long-run-")
TRACE = f"{FOLDER.name}/long.vt"
MIB = 1 << 20
FORK_EVERY = 100000
ENVIRON = dict(os.environ, LD_LIBRARY_PATH=os.pathsep.join((str(BUILD / "sim"), os.environ.get("LD_LIBRARY_PATH", ""))))


def start(n_calls, rate, **more):
    command = [BUILD / "cases/steady", str(n_calls), str(FORK_EVERY), str(rate)]
    return subprocess.Popen(command, env=dict(ENVIRON, **more), stdout=subprocess.DEVNULL)


def vramtrace(*arguments):
    begin = time.monotonic()
    done = subprocess.run([BUILD / "vramtrace", *map(str, arguments)], capture_output=True, text=True, env=ENVIRON)
    assert done.returncode == 0, (arguments, done.returncode, done.stderr)
    return done.stdout, time.monotonic() - begin


def memory(process):
    """Anonymous and mapped, in MiB; None: the process has ended."""
    fields = dict(line.split(":", 1) for line in open(f"/proc/{process.pid}/status"))
    if "RssAnon" not in fields:
        return None
    return tuple(int(fields[name].split()[0]) / 1024 for name in ("RssAnon", "RssFile"))


def bytes_on_disk():
    total = 0
    for name in glob.glob(glob.escape(TRACE) + "*"):
        try:
            total += os.stat(name).st_size
        except FileNotFoundError:  # a part that has just gone
            pass
    return total


def without_recorder(options):
    process = start(0, options.rate)
    time.sleep(min(options.seconds / 4, 10))
    anonymous, mapped = memory(process)
    process.kill()
    process.wait()
    return anonymous, mapped


def look(process, bare):
    text, seconds = vramtrace("top", "--once", process.pid)
    assert f"pid {process.pid}" in text and "allocations/s" in text, text
    now, on_disk = memory(process), bytes_on_disk()
    if now is None:
        return None
    return {"own": now[0] - bare[0], "mapped": now[1] - bare[1], "disk": on_disk / MIB, "top": seconds}


def watch(process, options, bare):
    """A look now and then until the program ends."""
    looks = []
    next_look = time.monotonic() + min(options.every, options.seconds / 4)
    while True:
        try:
            process.wait(max(0, next_look - time.monotonic()))
            return looks
        except subprocess.TimeoutExpired:
            pass
        next_look = time.monotonic() + options.every
        try:
            seen = look(process, bare)
        except AssertionError:
            if process.poll() is None:
                raise
            return looks
        looks += [seen] if seen else []


def check_end(ledger, report):
    trace = report["traces"][0]
    assert trace["complete"] and not trace["lost_events"] and not any(trace["damage"].values()), trace
    assert trace["kept_from_ns"], "no part went"
    assert not report["unknown_frees"] and not report["missed_frees"]
    for kind in "linear", "pool", "vmm":
        seen, true = report["devices"][0]["kinds"][kind], ledger[kind]
        for key, name in ("live_bytes", "live_bytes"), ("live", "live_count"), ("allocations", "allocations"), (
                "frees", "frees"), ("peak_live_bytes", "peak_live_bytes"):
            assert seen[key] == true[name], (kind, key, seen[key], true[name])
    assert report["host_memory"]["pinned_bytes"] == ledger["pinned"]["live_bytes"], report["host_memory"]


def describe(looks):
    """The first quarter of the looks has the rise to the full number of what lives."""
    late = looks[len(looks) // 4:]
    for name in "own", "mapped", "disk", "top":
        values = [seen[name] for seen in late]
        print(f"{name:8} first {values[0]:8.2f}  median {statistics.median(values):8.2f}  most {max(values):8.2f}"
              f"  last {values[-1]:8.2f}")
    first, last = late[:len(late) // 4 + 1], late[-(len(late) // 4 + 1):]
    return statistics.median(s["own"] for s in first), statistics.median(s["own"] for s in last)


def main():
    parser = argparse.ArgumentParser()
    for name, value in ("seconds", 1800), ("rate", 200000), ("size", 64), ("every", 10):
        parser.add_argument(f"--{name}", type=float, default=value)
    options = parser.parse_args()
    options.rate, options.size = int(options.rate), int(options.size)
    bare = without_recorder(options)
    begin = time.monotonic()
    process = start(int(options.rate * options.seconds), options.rate, LD_PRELOAD=str(BUILD / "libvramtrace.so"), VRAMTRACE_QUIET="1",
                    VRAMTRACE_OUTPUT=TRACE, VRAMTRACE_MAX_SIZE=f"{options.size}M", CUSIM_LEDGER=f"{FOLDER.name}/ledger.json")
    looks = watch(process, options, bare)
    seconds = time.monotonic() - begin
    assert process.returncode == 0, process.returncode
    text, took = vramtrace("report", "--json", TRACE)
    report = json.loads(text)
    n_events = report["traces"][0]["events"]
    print(f"{n_events} events in {seconds:.0f} s, {n_events / seconds:.0f} a second; a report takes {took:.1f} s; "
          f"{len(looks)} looks; without the recorder {bare[0]:.1f} MiB")
    before, after = describe(looks)
    check_end(json.load(open(f"{FOLDER.name}/ledger.json"))["devices"][0], report)
    assert max(seen["disk"] for seen in looks) <= options.size, "the trace is too large"
    # What lives differs by some thousand things, about 400 bytes each. A sanitizer has memory of its own.
    assert after <= before + 2 or os.environ.get("MODE") == "asan", f"the recorder's memory grows: {before:.2f} to {after:.2f} MiB"


sys.exit(main())

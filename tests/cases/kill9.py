#!/usr/bin/env python3
"""50 kills (20 with a sanitizer) at random moments of a running program: each leaves a trace that can be read up to the last
whole record.

Some of the kills come so early that there is no trace yet, or only an empty file; those must be few.
"""
import json
import os
import random
import signal
import subprocess
import sys
import time

BUILD = os.environ["BUILD_DIR"]
PROGRAM = f"{BUILD}/cases/random_calls-driver"
VRAMTRACE = f"{BUILD}/vramtrace"
N_KILLS = 20 if os.environ["MODE"] in ("asan", "tsan") else 50
N_THREADS = 4
random.seed(20240229)
if os.environ["MODE"] == "tsan":
    os.environ["VRAMTRACE_STACK"] = "none"  # see lib/case.sh


def has_begun(path):
    """The first byte is written when the rest of the header is."""
    try:
        with open(path, "rb") as file:
            return file.read(1) not in (b"", b"\0")
    except FileNotFoundError:
        return False


def wait_for(path, process):
    end = time.monotonic() + 20
    while not has_begun(path) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.0005)


def run_and_kill(path, early):
    environ = dict(os.environ, LD_PRELOAD=f"{BUILD}/libvramtrace.so", VRAMTRACE_OUTPUT=path, CUSIM_DEVICES="2")
    command = [PROGRAM, "--calls", "100000000", "--threads", str(N_THREADS), "--devices", "2"]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if early:
        time.sleep(random.uniform(0, 0.02))
    else:
        wait_for(path, process)
        time.sleep(random.choice((0.001, 0.01, 0.1)) * random.random())
    process.send_signal(signal.SIGKILL)
    out, err = process.communicate()
    assert process.returncode == -signal.SIGKILL, f"ended by itself: {process.returncode} {err}"
    assert not err, err


def ask(*command):
    done = subprocess.run([VRAMTRACE, *command], capture_output=True)
    assert done.returncode in (0, 3), f"{command}: exit status {done.returncode} {done.stderr}"
    return done.returncode, done.stdout, done.stderr


def check_report(report, path):
    trace = report["traces"][0]
    assert trace["complete"] or trace["end"] != "exit", trace
    assert trace["end"] in ("killed", "signal", "unknown", None), trace["end"]
    assert not any(trace["damage"].values()), trace["damage"]
    assert trace["lost_events"] == 0, trace
    assert report["unknown_frees"] == 0, report["unknown_frees"]
    # A thread may be killed between a free and its record, when another thread already has the address.
    assert report["missed_frees"] <= N_THREADS, report["missed_frees"]
    for device in (report["devices"] or []):
        for name, kind in device["kinds"].items():
            assert 0 <= kind["live_bytes"] <= kind["peak_live_bytes"], (name, kind)
            assert kind["live"] == kind["allocations"] - kind["frees"] - kind["freed_at_teardown"], (name, kind)
            assert kind["live_bytes"] == kind["bytes_allocated"] - kind["bytes_freed"], (name, kind)
    return trace["events"]


def check_order(dump):
    last = 0
    for line in dump.splitlines():
        now = json.loads(line).get("time_ns", last)
        assert now >= last, f"time {now} after {last}"
        last = now


def check_trace(path):
    """True when there was something to read."""
    status, out, err = ask("report", "--json", path)
    if status == 3:
        assert b"is empty" in err, err
        return False
    n_events = check_report(json.loads(out), path)
    assert not err, err
    for command in ("report", "info"):
        status, out, err = ask(command, path)
        assert status == 0 and out and not err, (command, status, err)
    check_order(ask("dump", "--json", path)[1])
    return n_events


def main():
    n_without = n_events = 0
    i = 0
    # On a machine that has much else to do, a program may not get far before it is killed: then some more.
    while i < N_KILLS or n_events < 40 * N_KILLS and i < 4 * N_KILLS:
        path = f"{i}.vt"
        run_and_kill(path, early=i % 7 == 6)
        n = check_trace(path) if os.path.exists(path) else False
        n_without += n is False
        n_events += n
        if os.path.exists(path):
            os.remove(path)
        i += 1
    print(f"{i - n_without} traces with {n_events} events; {n_without} kills came before there was one")
    return n_without >= i // 5 or n_events < 40 * N_KILLS


sys.exit(main())

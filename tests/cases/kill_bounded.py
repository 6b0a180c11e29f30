#!/usr/bin/env python3
"""Kills of a program whose trace is bounded: at random, at every step of a rotation, and around a fork, of the parent or the child.

One thread makes the same calls each time, so that after any number of events it is known what must be live: a whole trace
of the same calls says it. Each killed trace must say the same after as many events as it has.

KILLS: how many, default 5 (3 with a sanitizer). SEED: of what is random.
"""
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

BUILD = os.environ["BUILD_DIR"]
PROGRAM = f"{BUILD}/cases/steady"
VRAMTRACE = f"{BUILD}/vramtrace"
SLOW = os.environ["MODE"] in ("asan", "cov")
N_KILLS = int(os.environ.get("KILLS", 3 if SLOW else 5))
N_CALLS, FORK_EVERY = 40000, 5000
HOST = ("pinned", "registered")
random.seed(int(os.environ.get("SEED", 1)))
if os.environ["MODE"] == "tsan":
    print("the program that is killed has one thread")
    sys.exit(77)


def command(n_calls):
    return [PROGRAM, str(n_calls), str(FORK_EVERY)]


def environ(path, **more):
    return dict(
        os.environ, LD_PRELOAD=f"{BUILD}/libvramtrace.so {os.getcwd()}/killer.so", VRAMTRACE_OUTPUT=path, VRAMTRACE_MEMINFO="0",
        VRAMTRACE_QUIET="1", CHILD_CUDA="1", **more)


def ask(*arguments):
    done = subprocess.run([VRAMTRACE, *arguments], capture_output=True)
    assert not done.stderr, (arguments, done.stderr)
    assert done.returncode == 0, arguments
    return done.stdout


class Ledger:
    """What is live, by kind, after each event of a whole trace."""

    def __init__(self):
        self.live, self.handles, self.maps = {}, {}, {}
        self.totals = {}
        self.after = [{}]

    def add(self, kind, bytes_, sign):
        total = self.totals.setdefault(kind, [0, 0])
        total[0] += sign
        total[1] += sign * bytes_

    def settle(self, memory):
        if not memory["refs"] and not memory["maps"]:
            self.add("vmm", memory["bytes"], -1)

    def apply(self, r):
        name = r["record"]
        if r.get("result"):
            return
        if name == "alloc":
            self.live[r["address"]] = (r["kind_name"], r["bytes"])
            self.add(r["kind_name"], r["bytes"], 1)
        elif name == "free" and r["address"] in self.live:
            self.add(*self.live.pop(r["address"]), -1)
        elif name == "handle_create":
            self.handles[r["handle"]] = {"bytes": r["bytes"], "refs": 1, "maps": 0}
            self.add("vmm", r["bytes"], 1)
        elif name == "handle_release":
            memory = self.handles[r["handle"]]
            memory["refs"] -= 1
            self.settle(memory)
        elif name == "map":
            memory = self.maps[r["address"]] = self.handles[r["handle"]]
            memory["maps"] += 1
        elif name == "unmap":
            memory = self.maps.pop(r["address"])
            memory["maps"] -= 1
            self.settle(memory)

    def read(self, path):
        previous = None
        for line in ask("dump", "--json", path).splitlines():
            record = json.loads(line)
            if "time_ns" not in record or record["record"] in ("stack", "module", "end", "python"):
                continue
            self.apply(record)
            now = {kind: tuple(total) for kind, total in self.totals.items() if total[0]}
            previous = previous if previous == now else now
            self.after.append(previous)


def live_in(report):
    live = {}
    for device in report["devices"] or []:
        for kind, totals in device["kinds"].items():
            if totals["live"]:
                live[kind] = (totals["live"], totals["live_bytes"])
    return live


def parts_of(path):
    return {name for name in os.listdir(".") if name.startswith(path + ".part")}


def kill(path, how):
    """Starts the program and kills it: at random, at one of the steps by which the recorder changes its files, after a fork."""
    more = {"VRAMTRACE_MAX_SIZE": "1M"}
    sign = random.choice((-1, 1))
    if how == "change":
        more["KILL_AT"] = str(sign * random.randint(8, 30))
    elif how == "fork":
        more["KILL_FORK"] = str(sign * random.randint(1, N_CALLS // FORK_EVERY - 1))
    process = subprocess.Popen(command(N_CALLS), env=environ(path, **more), stdout=subprocess.DEVNULL)
    if how == "random":
        time.sleep(0.05 + 0.5 * random.random())
        process.send_signal(signal.SIGKILL)
    assert process.wait() in (0, -signal.SIGKILL), process.returncode
    return process.returncode == -signal.SIGKILL


def check(path, ledger):
    report = json.loads(ask("report", "--json", path))
    trace = report["traces"][0]
    n = trace["events"]
    assert trace["lost_events"] == 0 and not any(trace["damage"].values()), trace
    assert report["unknown_frees"] == 0 and report["missed_frees"] == 0, report["unknown_frees"]
    assert n < len(ledger.after), f"{n} events of {len(ledger.after)}"
    expected = {kind: total for kind, total in ledger.after[n].items() if kind not in HOST}
    assert live_in(report) == expected, f"{path}: after {n} events {live_in(report)}, not {expected}"
    host = report["host_memory"]
    for kind in HOST if host else ():
        assert host[f"{kind}_bytes"] == ledger.after[n].get(kind, (0, 0))[1], (path, kind)
    ask("report", path), ask("info", path), ask("peak", path)
    return n, trace["kept_from_ns"] is not None


def check_children(path):
    """Of those that became a program of their own; the parent's has no number."""
    children = [name for name in os.listdir(".") if re.fullmatch(re.escape(path[:-3]) + r"\.[0-9]+\.vt", name)]
    for child in children:
        done = subprocess.run([VRAMTRACE, "report", "--json", child], capture_output=True)
        assert done.returncode == 0 or b"is empty" in done.stderr or b"has no parts" in done.stderr, (child, done.stderr)
    return len(children)


def build_killer():
    source = os.path.join(os.environ["SOURCE_DIR"], "tests/cases/lib/killer.c")
    subprocess.run([os.environ["CC"], "-shared", "-fPIC", "-o", "killer.so", source, "-ldl"], check=True)


def main():
    build_killer()
    subprocess.run(command(N_CALLS), env=environ("whole.vt"), check=True, stdout=subprocess.DEVNULL)
    ledger = Ledger()
    ledger.read("whole.vt")
    n_begun = n_bounded = n_unready = n_children = n_killed = 0
    for i in range(N_KILLS):
        path = f"{i}.vt"
        n_killed += kill(path, ("change", "fork", "random")[i % 3])
        if not os.path.exists(path) or not parts_of(path):
            continue
        newest = max(parts_of(path), key=lambda name: int(name.rpartition(".part")[2]))
        with open(newest, "rb") as file:
            n_unready += file.read(128)[120:124] == b"\0\0\0\0"
        assert sum(os.path.getsize(name) for name in parts_of(path) | {path}) <= 1 << 20, path
        n, is_bounded = check(path, ledger)
        n_begun += n > 0
        n_bounded += is_bounded
        n_children += check_children(path)
        for name in os.listdir("."):
            if name.startswith(f"{i}."):
                os.remove(name)
    print(f"{N_KILLS} runs, of which {n_killed} were killed, others a child of theirs: {n_begun} traces, {n_bounded} without their "
          f"beginning, {n_unready} killed inside of a rotation; {n_children} traces of children")
    return n_begun < N_KILLS / 2 or not n_bounded


sys.exit(main())

#!/usr/bin/env python3
"""A process is looked at while it runs: snapshot, top (as text, and on a terminal), metrics."""
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl

BUILD = os.environ["BUILD_DIR"]
VRAMTRACE = f"{BUILD}/vramtrace"
if os.environ["MODE"] == "tsan":
    print("only the command runs here, which has one thread")
    sys.exit(77)


def run(*arguments, status=0):
    done = subprocess.run([VRAMTRACE, *arguments], capture_output=True, text=True)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done.stdout if not status else done.stderr


def start(path, **more):
    environ = dict(
        os.environ, LD_PRELOAD=f"{BUILD}/libvramtrace.so", VRAMTRACE_OUTPUT=path, VRAMTRACE_QUIET="1", **more)
    process = subprocess.Popen([f"{BUILD}/cases/steady", "0"], env=environ)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done = subprocess.run([VRAMTRACE, "snapshot", "--json", str(process.pid)], capture_output=True)
        if done.returncode == 0 and json.loads(done.stdout)["traces"][0]["events"] > 3000:
            return process
        time.sleep(0.05)
    raise AssertionError(done.stderr)


# The rules of OpenMetrics 1.0 that matter here.
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})\{{({LABEL}(?:,{LABEL})*)\}} (-?[0-9]+(?:\.[0-9]+)?)$")


def check_metrics(text):
    """Families, each once and in one piece, with their samples; the samples are returned."""
    assert text.endswith("# EOF\n"), text[-20:]
    samples, families, types, helps, family = {}, [], {}, {}, None
    for line in text.splitlines()[:-1]:
        words = line.split(" ", 3)
        if words[0] == "#":
            if words[2] != family:
                assert words[2] not in families, f"{words[2]} comes twice"
                family = words[2]
                families.append(family)
            kept = {"TYPE": types, "HELP": helps}[words[1]]
            assert family not in kept, line
            kept[family] = words[3]
            continue
        match = SAMPLE.match(line)
        assert match, line
        name, labels, value = match.groups()
        assert name == family and name in helps, f"{name} stands in {family}"
        assert types.get(name, "gauge") == "gauge" and (name in types) != name.endswith("_total"), name
        assert re.fullmatch(r"vramtrace_[a-z_]+", name), name
        names = re.findall(r'([a-z_]+)="', labels)
        assert len(names) == len(set(names)) and not {"address", "stack", "stack_id"} & set(names), names
        assert (name, labels) not in samples, line
        samples[name, labels] = float(value)
    return samples


def value(samples, name, *parts):
    found = [v for (n, labels), v in samples.items() if n == name and all(part in labels for part in parts)]
    assert len(found) == 1, (name, parts, found)
    return found[0]


def check_once(process):
    text = run("top", "--once", str(process.pid))
    assert f"pid {process.pid}" in text and "running" in text, text
    assert re.search(r"GPU 0  .* held, peak .*; .* in use by all", text), text
    assert "allocations/s" in text and "out of memory: 0" in text and "by growth" in text, text
    assert re.search(r"[0-9.]+ [KM]iB .* steady .*steady\.c:[0-9]+", text), text


def read_screen(fd, until, seconds=30):
    seen = b""
    end = time.monotonic() + seconds
    while time.monotonic() < end and until not in seen:
        if select.select([fd], [], [], 0.1)[0]:
            seen += os.read(fd, 65536)
    assert until in seen, (until, seen[-2000:])
    return seen


def check_terminal(process):
    pid, fd = pty.fork()
    if not pid:
        os.environ["TERM"] = "xterm"
        os.execv(VRAMTRACE, [VRAMTRACE, "top", str(process.pid)])
    ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
    read_screen(fd, b"q quit")
    os.write(fd, b"s")
    read_screen(fd, b"growth")
    os.write(fd, b" ")
    read_screen(fd, b"FROZEN")
    os.write(fd, b"fvmm\n")
    read_screen(fd, b"with")
    os.write(fd, b"\n")
    read_screen(fd, b"live in")
    os.write(fd, b"q")
    end = time.monotonic() + 30
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, status
            break
        try:
            if select.select([fd], [], [], 0.05)[0]:
                os.read(fd, 65536)
        except OSError:  # it has let go of the terminal
            time.sleep(0.05)
    else:
        os.kill(pid, signal.SIGKILL)
        raise AssertionError("top does not end")
    os.close(fd)


def main():
    for path, more in ("whole.vt", {}), ("bounded.vt", {"VRAMTRACE_MAX_SIZE": "2M"}):
        process = start(path, **more)
        report = json.loads(run("snapshot", "--json", str(process.pid)))
        trace = report["traces"][0]
        assert trace["end"] == "running" and os.path.samefile(trace["file"], path), trace
        process.send_signal(signal.SIGSTOP)
        samples = check_metrics(run("metrics", str(process.pid)))
        assert value(samples, "vramtrace_running") == 1
        assert value(samples, "vramtrace_live_bytes", 'kind="linear"', 'device="0"') > 0
        assert value(samples, "vramtrace_owner_live_bytes", 'owner="steady"') > 0
        assert value(samples, "vramtrace_allocations_total", 'kind="linear"') > 0
        assert value(samples, "vramtrace_out_of_memory_total") == 0
        check_once(process)
        check_terminal(process)
        process.kill()
        process.wait()
    assert "there is no such process" in run("snapshot", "4194305", status=3)
    assert "writes no trace" in run("top", "--once", str(os.getpid()), status=3)


sys.exit(main())

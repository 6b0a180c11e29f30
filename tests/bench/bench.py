#!/usr/bin/env python3
"""
What recording and reading cost, as ratios to what else there is, measured in one run and in rotation; medians. Times are of the
processor, so that other programs on the machine matter little; those of the command are by the clock, too.

  BUILD_DIR   a build, default build/release
  ROUNDS      default 5
  CALLS       of one run, default 200000
  MOST_LIVE   the largest live set, default 100000 (10000000 takes 3 GB and some minutes)
  MOST_EVENTS of the traces for the command, default 10000000 (100000000 takes 1 GB of disk)
  SAVE        1: write curves.svg, and the table into results.md, both beside this file; what stands around the table stays
"""
import glob
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", "build/release")).resolve()
ROUNDS = int(os.environ.get("ROUNDS", "5"))
CALLS = int(os.environ.get("CALLS", "200000"))
MOST_LIVE = int(os.environ.get("MOST_LIVE", "100000"))
MOST_EVENTS = int(os.environ.get("MOST_EVENTS", "10000000"))
FRAMES, STACKS = 40, 50
LINES = []

os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(
    [str(BUILD / "sim"), str(BUILD / "sim/torch/lib"), os.environ.get("LD_LIBRARY_PATH", "")])
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="vramtrace-bench-"))
HEAPTRACK = [file for at in ("lib", "lib64", "lib/*") for file in glob.glob(f"/usr/{at}/heaptrack/libheaptrack_preload.so")]

WAYS = {
    "bare": {},
    "none": {"VRAMTRACE_STACK": "none"},
    "native": {"VRAMTRACE_STACK": "native"},
    "libunwind": {"VRAMTRACE_STACK": "native", "VRAMTRACE_UNWINDER": "libunwind"},
    "timed": {"VRAMTRACE_STACK": "native", "VRAMTRACE_COPY_TIMING": "1"},
}


def say(line=""):
    print(line, flush=True)
    LINES.append(line)


def row(*cells):
    say("| " + " | ".join(str(cell) for cell in cells) + " |")


def head(*cells):
    row(*cells)
    row(*("---" for _ in cells))


def run_one(way, program, *arguments):
    """Nanoseconds of one run, and the bytes of its trace (None without the recorder)."""
    trace = FOLDER / "trace.vt"
    trace.unlink(missing_ok=True)
    environment = dict(os.environ)
    if way == "heaptrack":
        environment.update(LD_PRELOAD=HEAPTRACK[0], DUMP_HEAPTRACK_OUTPUT=str(FOLDER / "heaptrack"))
    elif way != "bare":
        environment.update(WAYS[way], LD_PRELOAD=str(BUILD / "libvramtrace.so"), VRAMTRACE_OUTPUT=str(trace), VRAMTRACE_QUIET="1")
    done = subprocess.run([BUILD / "bench" / program, *map(str, arguments)], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{program} {arguments} ({way}): exit status {done.returncode}: {done.stderr[-500:]}")
    return float(done.stdout.split()[-1]), trace.stat().st_size if trace.exists() else None


def measure(ways, program, *arguments, rounds=ROUNDS):
    """The median of each way, and the size of the last trace with stacks."""
    times, size = {way: [] for way in ways}, None
    for _ in range(rounds):
        for way in ways:
            ns, trace = run_one(way, program, *arguments)
            times[way].append(ns)
            size = trace if way == "native" else size
    return {way: statistics.median(of) for way, of in times.items()}, size


def hot(what, threads=1, live=0, calls=CALLS):
    return "hot_path", calls, FRAMES, STACKS, what, threads, live


def calls_table():
    say(f"### One call, {FRAMES} native frames, {STACKS} stacks in turn")
    say()
    head("call", "bare ns", "recorded, no stacks", "recorded, stacks", "ratio", "added ns", "added with libunwind", "by")
    backtrace = measure(["bare"], *hot("backtrace", calls=CALLS // 20))[0]["bare"]
    threads = [1, 8, 64]
    rows = [(f"{what}, {n} thread{'s'[:n > 1]}", *hot(what, n, calls=max(CALLS, 5000 * n))) for what in ("set", "copy", "pair", "async") for n in threads]
    rows.append(("PyTorch block, pair", "block_path", CALLS, FRAMES, STACKS))
    by_threads = []
    for title, *command in rows:
        ns, _ = measure(["bare", "none", "native", "libunwind"], *command)
        added, peer = ns["native"] - ns["bare"], ns["libunwind"] - ns["bare"]
        if title.startswith("pair"):
            by_threads.append((int(title.split()[1]), added))
        row(title, f"{ns['bare']:.0f}", f"{ns['none']:.0f}", f"{ns['native']:.0f}", f"{ns['native'] / ns['bare']:.2f}",
            f"{added:.0f}", f"{peer:.0f}", f"{peer / added:.1f}")
    ns, _ = measure(["bare", "native", "timed"], *hot("copy"))
    say()
    say(f"glibc's `backtrace` of such a stack alone: {backtrace:.0f} ns. Copies timed on the device: {ns['timed']:.0f} ns a copy,"
        f" {ns['native']:.0f} untimed, {ns['bare']:.0f} bare.")
    say()
    return {"added to a pair, by threads": by_threads}


def heaptrack_table():
    if not HEAPTRACK:
        say("heaptrack is not installed: no comparison with it.")
        say()
        return
    say("A pair of malloc and free under heaptrack, which takes one stack for it, and of cuMemAlloc and cuMemFree, with two stacks:")
    say()
    head("", "bare ns", "recorded ns", "added ns", "stacks", "added ns a stack", "by")
    for threads in (1, 8):
        theirs, _ = measure(["bare", "heaptrack"], *hot("malloc", threads, calls=CALLS // 2))
        ours, _ = measure(["bare", "native"], *hot("pair", threads, calls=CALLS // 2))
        added = theirs["heaptrack"] - theirs["bare"], ours["native"] - ours["bare"]
        row(f"heaptrack, {threads} thread{'s'[:threads > 1]}", f"{theirs['bare']:.0f}", f"{theirs['heaptrack']:.0f}", f"{added[0]:.0f}", 1, f"{added[0]:.0f}", "")
        row(f"vramtrace, {threads} thread{'s'[:threads > 1]}", f"{ours['bare']:.0f}", f"{ours['native']:.0f}", f"{added[1]:.0f}",
            2, f"{added[1] / 2:.0f}", f"{2 * added[0] / added[1]:.1f}")
    say()


def growth():
    """Added nanoseconds of a pair by the size of the live set, and by the length of the run."""
    lives = [n for n in (10, 1000, 100000, 1000000, 10000000) if n <= MOST_LIVE]
    lengths = [n for n in (10000, 100000, 1000000, 4000000) if n <= 20 * CALLS]
    by_live, by_length = [], []
    for live in lives:
        ns, _ = measure(["bare", "native"], *hot("pair", live=live), rounds=min(ROUNDS, 3))
        by_live.append((live, ns["native"] - ns["bare"]))
    for length in lengths:
        ns, _ = measure(["bare", "native"], *hot("pair", calls=length), rounds=min(ROUNDS, 3))
        by_length.append((length, ns["native"] - ns["bare"]))
    say("### Growth")
    say()
    head("", *(f"{n:,}" for n in lives))
    row("added ns of a pair, live allocations", *(f"{y:.0f}" for _, y in by_live))
    say()
    head("", *(f"{n:,}" for n in lengths))
    row("added ns of a pair, length of the run in pairs", *(f"{y:.0f}" for _, y in by_length))
    say()
    return {"added to a pair, by live allocations": by_live, "added to a pair, by pairs so far": by_length}


def trace_sizes():
    say("### Bytes of the trace")
    say()
    head("event", "bytes")
    for title, events, *command in (("set", 1, *hot("set")), ("copy", 1, *hot("copy")), ("cuMemAlloc, cuMemFree", 2, *hot("pair")),
                                    ("PyTorch block", 2, "block_path", CALLS, FRAMES, STACKS)):
        _, size = measure(["native"], *command, rounds=1)
        row(title, f"{size / (events * CALLS):.1f}")
    say()


def timed_report(trace, *options):
    """Wall seconds, processor seconds and MiB of the largest resident set."""
    begin = time.monotonic()
    process = subprocess.Popen([BUILD / "vramtrace", *options, trace], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        sys.exit(f"vramtrace {options} {trace}: status {status}")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def command_table():
    say("### The command, on traces as a PyTorch training leaves them")
    say()
    head("events", "bytes an event", "packed", "`report` s", "processor s", "million events a second", "MiB")
    points, events = [], 1000000
    while events <= MOST_EVENTS:
        trace = FOLDER / "training.vt"
        subprocess.run([BUILD / "bench/make_trace", trace, str(events)], check=True)
        packed = ""
        if events <= 10000000:
            subprocess.run([BUILD / "vramtrace", "pack", "-q", trace, "-o", FOLDER / "training.vt.zst"], check=True)
            packed = f"{(FOLDER / 'training.vt.zst').stat().st_size / events:.1f}"
            (FOLDER / "training.vt.zst").unlink()
        wall, cpu, mib = min(timed_report(trace, "report") for _ in range(3 if events <= 10000000 else 1))
        row(f"{events:,}", f"{trace.stat().st_size / events:.1f}", packed, f"{wall:.2f}", f"{cpu:.2f}", f"{events / wall / 1e6:.1f}",
            f"{mib:.0f}")
        points.append((events, wall * 1e9 / events))
        trace.unlink()
        events *= 10
    say()
    return points


def svg(curves):
    """Each curve in a plot of its own: how often against nanoseconds, the former on a logarithmic scale."""
    width, height, pad = 300, 180, 40
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * len(curves)}" height="{height + pad}" font-family="sans-serif" '
           'font-size="10">']
    for i, (title, points) in enumerate(curves.items()):
        logs = [len(str(int(x))) - 1 + (int(str(int(x))[0]) - 1) / 9 for x, _ in points]
        low, high, top = min(logs), max(logs), max(y for _, y in points) * 1.2
        place = [(width * i + pad + (x - low) / ((high - low) or 1) * (width - 2 * pad), height - max(y, 0) / top * (height - pad))
                 for x, (_, y) in zip(logs, points)]
        out.append(f'<path d="M{width * i + pad} {pad}V{height}H{width * (i + 1) - pad}" fill="none" stroke="#888"/>')
        out.append('<polyline fill="none" stroke="#06c" points="' + " ".join(f"{x:.0f},{y:.0f}" for x, y in place) + '"/>')
        for (x, y), (n, ns) in zip(place, points):
            out.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="2" fill="#06c"/>')
            out.append(f'<text x="{x:.0f}" y="{y - 6:.0f}" text-anchor="middle">{ns:.0f} ns</text>')
            out.append(f'<text x="{x:.0f}" y="{height + 12}" text-anchor="middle">{n:,}</text>')
        out.append(f'<text x="{width * i + width / 2:.0f}" y="{height + 28}" text-anchor="middle">{title}</text>')
    return "\n".join(out + ["</svg>", ""])


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    return f"{time.strftime('%Y-%m-%d')}, {model}, {os.cpu_count()} processors, Linux {platform.release()}, load {os.getloadavg()[0]:.1f}"


def save(curves):
    """Between its marks, which are made where there are none."""
    path, marks = HERE / "results.md", ("<!-- make bench SAVE=1 -->", "<!-- end of it -->")
    text = path.read_text()
    if marks[0] not in text:
        text = text.rstrip() + f"\n\n{marks[0]}\n{marks[1]}\n"
    before, rest = text.split(marks[0], 1)
    path.write_text("\n".join([before + marks[0], *LINES, marks[1] + rest.split(marks[1], 1)[1]]))
    (HERE / "curves.svg").write_text(svg(curves))


def main():
    say("## What it costs")
    say()
    say(f"Written by `make bench SAVE=1`: {machine()}. Simulated CUDA; medians of {ROUNDS} runs in rotation; processor time.")
    say()
    curves = calls_table()
    heaptrack_table()
    trace_sizes()
    curves.update(growth())
    curves["an event of report, by events"] = command_table()
    say("![growth](curves.svg)")
    if os.environ.get("SAVE") == "1":
        save(curves)


try:
    main()
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)

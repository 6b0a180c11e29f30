#!/usr/bin/env python3
"""
A PyTorch service on a real GPU that leaks one tensor in a hundred requests among its caches: looked at while it runs, as one looks at
a process that never ends. When is the leak named, with its line; is anything else. Then models that are loaded and unloaded, and a
service that says where it is. Environment as main_job.py, and
  TRAFFIC_S   seconds of traffic (default 120)
  REQUESTS_S  requests a second (default 80)
Parts by name as arguments: traffic, cycles, tells (default: all). Exit 77 without a GPU or PyTorch.
"""
import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import main_job as job  # noqa: E402

SERVICE, CYCLES = job.WORK / "torch_service.py", job.WORK / "torch_cycles.py"
TRAFFIC_S, REQUESTS_S = float(os.environ.get("TRAFFIC_S", "120")), float(os.environ.get("REQUESTS_S", "80"))
POLL_S = 10
TOLERANCE = 0.1  # of rates


def leak_line(source):
    return next(n for n, line in enumerate(source.read_text().splitlines(), 1) if "# the leak" in line)


def is_at(item, source):
    """Whether its stack has the line that leaks."""
    return any(f["kind"] == "python" and pathlib.Path(f["file"] or "").name == source.name and f["line"] == leak_line(source)
               for f in item["stack"] or [])


def label(item):
    frames = [f for f in item["stack"] or [] if f["kind"] == "python"]
    return " < ".join(f"{f['function']} {pathlib.Path(f['file'] or '?').name}:{f['line']}" for f in frames[:3]) or item["level"]


def growing(result):
    return [leak for leak in result["leaks"] if leak["rate_bytes_per_s"] is not None and not leak["suppressed_by"]]


def others(result, source):
    """What else is said to grow, in words."""
    return ([f"{leak['verdict']} {leak['bytes']:,} B {label(leak)}" for leak in growing(result) if not is_at(leak, source)] +
            [f"untracked {item['growth_bytes']:,} B" for item in result["untracked_growth"]])


class Service:
    """One that runs under `vramtrace run`, and who asks it things."""
    def __init__(self, name, *ways):
        self.name, self.trace, self.log = name, job.OUT / f"service-{name}.vt", job.OUT / f"service-{name}.log"
        self.process = subprocess.Popen(
            [str(job.CLI), "run", "-q", "-o", str(self.trace), "--", sys.executable, "-u", str(SERVICE), *ways],
            stdout=subprocess.PIPE, stderr=self.log.open("w"), env=job.environment(), text=True)
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise RuntimeError(f"{name} does not start: {self.log.read_text()[-800:]}")
        self.port, self.pid = (json.loads(line)[key] for key in ("port", "pid"))
        self.random, self.n_sessions = random.Random(name), 1
        self.lock = threading.Lock()

    def ask(self, method, body=None):
        with self.lock:  # it answers one at a time: a snapshot between two requests is of a quiet service
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            connection.request(method, "/stats", body)
            answer = connection.getresponse()
            if answer.status != 200:
                raise RuntimeError(f"{self.name}: {answer.status}: {self.log.read_text()[-800:]}")
            return json.loads(answer.read())

    def request(self):
        if self.random.random() < 0.25:
            self.n_sessions += 1
        oldest = max(0, self.n_sessions - 200)
        self.ask("POST", json.dumps({
            "length": self.random.randint(16, 448), "height": 8 * self.random.randint(8, 32),
            "width": 8 * self.random.randint(8, 32), "prefix": self.random.randrange(160),
            "session": self.random.randrange(oldest, self.n_sessions)}))

    def drive(self, n, seconds=float("inf")):
        """So many requests, or so long; at the pace, or as fast as it can."""
        began = time.monotonic()
        for i in range(n):
            time.sleep(max(0, began + i / REQUESTS_S - time.monotonic()))
            if time.monotonic() - began > seconds:
                break
            self.request()

    def stats(self):
        return self.ask("GET")

    def cli(self, command, *arguments):
        done = job.run([job.CLI, command, *arguments, str(self.pid)])
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stderr[-500:]}")
        return done.stdout

    def snapshot(self):
        return json.loads(self.cli("snapshot", "--json"))

    def both(self):
        """What it says of itself and what its trace says, while nobody asks anything else."""
        return self.stats(), self.snapshot()

    def end(self):
        """As services end."""
        try:
            os.kill(self.pid, signal.SIGKILL)
            self.process.wait(60)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()


def block_bytes(result):
    return sum(leak["bytes"] for leak in result["leaks"] if leak["allocator"] == "torch" and leak["level"] == "block")


def allocated(stats):
    return stats["memory"]["allocated_bytes.all.current"]


class Watch:
    """A service under traffic, looked at every ten seconds."""
    def __init__(self, service):
        self.service, self.began = service, time.monotonic()
        self.named, self.ranks, self.looks, self.flagged, self.took = None, [], [], [], []

    def look(self):
        now = time.monotonic() - self.began
        result, top = self.service.snapshot(), self.service.cli("top", "--once")
        self.took.append(time.monotonic() - self.began - now)
        here = f"{SERVICE.name}:{leak_line(SERVICE)}"
        found, also = [leak for leak in growing(result) if is_at(leak, SERVICE)], others(result, SERVICE)
        if found and not self.named:
            self.named = now, also
            (job.OUT / f"named-{self.service.name}.txt").write_text(self.service.cli("snapshot"))
        by_growth = top.split("by growth")[-1].strip().splitlines()
        self.ranks.append(next((rank for rank, row in enumerate(by_growth, 1) if here in row), None))
        self.flagged += [f"{now:.0f} s: {what}" for what in also]
        self.looks.append((now, found[0]["rate_bytes_per_s"] if found else None, len(also)))

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            driven = pool.submit(self.service.drive, int(TRAFFIC_S * REQUESTS_S), TRAFFIC_S)
            while not driven.done():
                concurrent.futures.wait([driven], POLL_S)
                self.look()
            driven.result()
        self.seconds = time.monotonic() - self.began
        self.stats, self.result = self.service.both()

    def show(self):
        name = self.service.name
        print(f"      {name}: {self.stats['requests']} requests in {self.seconds:.0f} s, {self.stats['kept']} tensors kept, "
              f"{allocated(self.stats):,} B allocated, {self.stats['sessions']} sessions, {self.stats['prefixes']} prefixes; "
              f"snapshot and top took {max(self.took):.1f} s at most")
        print("      looks, s: rate, others:", ", ".join(f"{t:.0f}: {rate}, {n}" for t, rate, n in self.looks))
        for what in self.flagged:
            print(f"      also said to grow at {what}")
        kinds = {}
        for leak in self.result["leaks"]:
            n, n_bytes = kinds.get((leak["verdict"], leak["leak"]), (0, 0))
            kinds[leak["verdict"], leak["leak"]] = n + 1, n_bytes + leak["bytes"]
        print("      verdicts at the end:", ", ".join(f"{verdict}{' (leak)' if leak else ''} {n}, {n_bytes:,} B"
                                                     for (verdict, leak), (n, n_bytes) in kinds.items()))


def check_rate(name, row, rate):
    got = row["rate_bytes_per_s"] or 0
    job.check(f"{name}: bytes a second", got, f"{rate:.0f} +- 10 %", abs(got / rate - 1) <= TOLERANCE)


def check_leaking(watch):
    at, also = watch.named or (None, ["not named"])
    job.check("leaking: named by its line after, s of traffic", at and round(at), "<= 120", at is not None and at <= 120)
    job.check("leaking: anything else said to grow at that time", also or "nothing", "nothing")
    job.check("leaking: its place in top's list by growth, each time", watch.ranks, "<= 3 at the end", (watch.ranks[-1] or 9) <= 3)
    check_at_end("leaking", watch.stats, watch.result)
    found = [leak for leak in watch.result["leaks"] if is_at(leak, SERVICE)]
    if len(found) != 1:
        job.check("leaking: rows of the line", [label(leak) for leak in found], 1, False)
        return
    row, = found
    job.check("leaking: verdict, first in the list", (row["verdict"], row is watch.result["leaks"][0]), ("growing", True))
    job.check("leaking: bytes and tensors = the program's count", (row["bytes"], row["count"]),
              (watch.stats["kept_bytes"], watch.stats["kept"]))
    times_ns = watch.stats["kept_ns"]
    check_rate("leaking", row, watch.stats["bytes_each"] * (len(times_ns) - 1) * 1e9 / (times_ns[-1] - times_ns[0]))


def check_at_end(name, stats, result):
    job.check(f"{name}: anything else said to grow at the end", others(result, SERVICE) or "nothing", "nothing")
    job.check(f"{name}: blocks = PyTorch's allocated bytes", block_bytes(result), allocated(stats))
    job.check(f"{name}: reserved", result["torch"]["devices"][0]["reserved_bytes"], stats["memory"]["reserved_bytes.all.current"])


def check_killed(watch):
    done = job.report(watch.service.trace)
    rows = [(leak["verdict"], leak["bytes"]) for leak in done["leaks"] if is_at(leak, SERVICE)]
    job.check("leaking: the same once it is killed", rows, [("growing", watch.stats["kept_bytes"])])


def check_traffic():
    services = [Service("leaking", "leaks"), Service("clean")]
    watches = [Watch(service) for service in services]
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(watch.run) for watch in watches]:
                done.result()
        for watch in watches:
            watch.show()
        check_leaking(watches[0])
        check_at_end("clean", watches[1].stats, watches[1].result)
        job.check("clean: anything said to grow after the caches are full",
                  [what for what in watches[1].flagged if float(what.split()[0]) > TRAFFIC_S / 3] or "nothing", "nothing")
    finally:
        for service in services:
            service.end()
    check_killed(watches[0])
    print((job.OUT / "named-leaking.txt").read_text() if watches[0].named else "")


def run_cycles(*ways):
    name = "-".join(("cycles",) + ways)
    trace, out = job.OUT / f"{name}.vt", job.OUT / f"{name}-truth.json"
    done = job.run([sys.executable, CYCLES, out, *ways], trace, timeout=120)
    result = job.report(trace)
    if done.returncode or not result or not out.exists():
        raise RuntimeError(f"{name}: exit status {done.returncode}: {done.stderr[-800:]}")
    return name, json.loads(out.read_text()), result


def check_cycles():
    """One after the other: what one leaves would be the growth of other processes to the next."""
    name, truth, result = run_cycles()
    floors = truth["floors"]
    job.check(f"{name}: floor after each cycle, from the second on", sorted(set(floors[1:])), [floors[-1]])
    job.check(f"{name}: said to grow", others(result, CYCLES) + [label(x) for x in growing(result) if is_at(x, CYCLES)] or "nothing",
              "nothing")
    job.check(f"{name}: blocks = the floor", block_bytes(result), floors[-1])
    verdicts = {leak["verdict"] for leak in result["leaks"] if leak["level"] == "block"}
    job.check(f"{name}: what the floor is", verdicts, "one_time", verdicts <= {"one_time"})
    for ways in (("leaks",), ("leaks", "marks")):
        name, truth, result = run_cycles(*ways)
        rows = [leak for leak in result["leaks"] if is_at(leak, CYCLES)]
        job.check(f"{name}: verdict and bytes of the layers that stay", [(leak["verdict"], leak["bytes"]) for leak in rows],
                  [("growing", truth["kept"] * truth["bytes_each"])])
        job.check(f"{name}: said to grow beside it", others(result, CYCLES) or "nothing", "nothing")
        job.check(f"{name}: blocks = the floor", block_bytes(result), truth["floors"][-1])
        if rows:
            times_ns = truth["times_ns"]
            cycle_ns = statistics.median(b - a for a, b in zip(times_ns[4:], times_ns[5:]))
            check_rate(name, rows[0], truth["bytes_each"] * 1e9 / cycle_ns)
        if rows and "marks" in ways:
            job.check(f"{name}: bytes for each", (rows[0]["bytes_per_mark"], rows[0]["mark"]), (truth["bytes_each"], "cycle *"))


def check_tells():
    """Ranges of NVTX and marks; then paused, and resumed."""
    service = Service("telling", "leaks", "tells")
    try:
        service.drive(2400)
        stats, result = service.both()
        phases = {p["name"]: p["count"] for p in result["phases"]}
        job.check("telling: ranges of NVTX", phases, stats["ranges"])
        job.check("telling: marks", {m["name"]: m["count"] for m in result["marks"]}, {"hundred *": stats["marks"]})
        row = next((leak for leak in result["leaks"] if is_at(leak, SERVICE)), {})
        job.check("telling: the leak, for each hundred requests", (row.get("verdict"), row.get("bytes_per_mark"), row.get("mark")),
                  ("growing", stats["bytes_each"], "hundred *"))
        job.check("telling: anything else said to grow", others(result, SERVICE) or "nothing", "nothing")
        service.cli("pause")
        service.drive(200)
        stats, result = service.both()
        paused = result["coverage"]["paused"]
        job.check("paused: says so, blocks = PyTorch's", (paused["now"], block_bytes(result)), (True, allocated(stats)))
        service.cli("resume")
        service.drive(200)
        stats, result = service.both()
        paused = result["coverage"]["paused"]
        job.check("resumed: says so, blocks = PyTorch's", (paused["now"], paused["count"], block_bytes(result)),
                  (False, 1, allocated(stats)))
        row = next((leak for leak in result["leaks"] if is_at(leak, SERVICE)), {})
        job.check("resumed: the leak without what came meanwhile", row.get("count"), f"{stats['kept']} - 2",
                  row.get("count") == stats["kept"] - 2)
    finally:
        service.end()


if __name__ == "__main__":
    if job.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"]).returncode:
        print("no GPU or no PyTorch here")
        sys.exit(77)
    parts = {"traffic": check_traffic, "cycles": check_cycles, "tells": check_tells}
    sys.exit(job.main([parts[name] for name in sys.argv[1:] or parts]))

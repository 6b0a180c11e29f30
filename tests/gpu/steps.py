#!/usr/bin/env python3
"""
What recording adds to a step of training, of three models, with confidence intervals. For each model the same training runs in
several processes, without and with the recorder, at the same time; but only one of them has a turn, of a few steps, and the turns
go round in an order that is drawn anew, then reversed. So each round compares all ways within a second or so. Two processes each
for what matters, so that a process that had luck with its memory shows: `none` against its twin is how much that is. `paused` is
the recorder in the same process, told to pause for a turn. PyTorch's own history is there to compare with.

Prints medians, the ratio to `none` in the same round (median of all rounds), and its 95 % confidence interval (bootstrap over
rounds). Exit status 1 when the recorder adds more than 1 % for certain; 77 without a GPU or PyTorch.

  BUILD_DIR    a build (libvramtrace.so), default build/release
  SECONDS      of turns for each model, default 55 (starting takes 10 to 20 more)
  MODELS       default "transformer resnet50 gpt2"
"""
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = pathlib.Path(os.environ.get("BUILD_DIR", "build/release")).resolve() / "libvramtrace.so"
SECONDS = float(os.environ.get("SECONDS", "55"))
MODELS = os.environ.get("MODELS", "transformer resnet50 gpt2").split()
LIMIT = 1.01
TURN_S = 0.06
CONTROL_AT, PAUSED = 68, 2  # struct vt_file_header

# Way, PyTorch's history, variables of the recorder (None: without it), processes.
WAYS = (
    ("none", "none", None, 2),
    ("recorder", "none", {}, 2),
    ("recorder, no copies", "none", {"VRAMTRACE_COPIES": "none"}, 2),
    ("PyTorch's history, python", "python", None, 1),
    ("PyTorch's history, all", "all", None, 1),
)


class Worker:
    def __init__(self, model, way, history, variables, number, folder):
        self.way, self.number, self.trace = way, number, None
        env = dict(os.environ)
        if variables is not None:
            self.trace = folder / f"{model}-{way}-{number}.vt".replace(" ", "")
            env.update(variables, LD_PRELOAD=str(LIBRARY), VRAMTRACE_OUTPUT=str(self.trace), VRAMTRACE_QUIET="1")
        self.process = subprocess.Popen([sys.executable, "-B", HERE / "workloads/torch_steps.py", model, history], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.way}: exit status {self.process.wait()}")
        return line

    def steps(self, n):
        """Median time of n steps, after two that wake it up."""
        self.process.stdin.write(f"{n + 2}\n")
        self.process.stdin.flush()
        return statistics.median(json.loads(self.answer())[2:])

    def pause(self, on):
        with open(self.trace, "r+b", buffering=0) as file:
            word = int.from_bytes(os.pread(file.fileno(), 4, CONTROL_AT), sys.byteorder)
            word = word | PAUSED if on else word & ~PAUSED
            os.pwrite(file.fileno(), word.to_bytes(4, sys.byteorder), CONTROL_AT)

    def turn(self, n, paused):
        if not paused:
            return self.steps(n)
        self.pause(True)
        median = self.steps(n)
        self.pause(False)
        return median

    def end(self):
        self.process.stdin.close()
        if self.process.wait():
            sys.exit(f"{self.way}: exit status {self.process.returncode} at the end")


def interval(values, n=2000):
    """95 % of the medians of samples drawn from the values."""
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(n))
    return medians[n * 25 // 1000], medians[n * 975 // 1000]


def rounds_of(workers, n_steps):
    """For each turn (way, number of the process), its times, one a round."""
    turns = [(w, w.way, False) for w in workers] + [(w, "paused", True) for w in workers if w.way == "recorder"]
    times = {(way, w.number): [] for w, way, _ in turns}
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        random.shuffle(turns)
        for worker, way, paused in turns + turns[::-1]:
            times[way, worker.number].append(worker.turn(n_steps, paused))
    return times


def ratios(times, way, other="none"):
    """Of one round each: the processes of one way, together, against those of the other."""
    def sums(of):
        return [sum(each) / len(each) for each in zip(*(t for (w, _), t in times.items() if w == of))]

    return [a / b for a, b in zip(sums(way), sums(other))]


def show(model, times):
    """True: the recorder is within the limit, as far as can be said."""
    ok = True
    print(f"\n{model + ', step time':<34}{'median ms':>10}{'ratio':>9}   {'95 % confidence':<20}{len(times['none', 0])} rounds")
    rows = [("none, twin against twin", [b / a for a, b in zip(times["none", 0], times["none", 1])], times["none", 1])]
    for way in dict.fromkeys(way for way, _ in times if way != "none"):
        rows.append((way, ratios(times, way), sum((t for (w, _), t in times.items() if w == way), [])))
    rows.append(("recorder against paused", ratios(times, "recorder", "paused"), times["recorder", 0]))
    print(f"{'none':<34}{statistics.median(times['none', 0] + times['none', 1]) / 1e3:>10.3f}")
    for name, values, own in rows:
        low, high = interval(values)
        verdict = ""
        if name.startswith("recorder"):
            verdict = "within 1 %" if high <= LIMIT else "more than 1 %" if low > LIMIT else "not resolved"
            ok = ok and low <= LIMIT
        print(f"{name:<34}{statistics.median(own) / 1e3:>10.3f}{statistics.median(values):>9.4f}   {low:.4f} to {high:.4f}    {verdict}", flush=True)
    return ok


def measure(model, folder):
    workers = [Worker(model, *way, number, folder) for *way, n in WAYS for number in range(n)]
    for worker in workers:
        worker.answer()
    n_steps = max(2, round(TURN_S * 1e6 / statistics.median(w.steps(6) for w in workers if w.way == "none")))
    times = rounds_of(workers, n_steps)
    for worker in workers:
        worker.end()
    return show(model, times)


def main():
    probe = subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.is_available())"], capture_output=True, text=True)
    if probe.stdout.strip() != "True":
        print("needs PyTorch and a GPU")
        return 77
    with tempfile.TemporaryDirectory(prefix="vramtrace-steps-") as folder:
        return not all([measure(model, pathlib.Path(folder)) for model in MODELS])


if __name__ == "__main__":
    sys.exit(main())

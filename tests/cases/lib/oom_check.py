"""What the cases of memory that runs out share: programs, reports, and what must hold of any of them."""
import json
import os
import subprocess
import sys

BUILD = os.environ["BUILD_DIR"]
VRAMTRACE = f"{BUILD}/vramtrace"
STACKS = os.environ["MODE"] != "tsan"  # see case.sh
MIB = 1 << 20
CONTEXT = 64 * MIB  # of the simulated device
if not STACKS:
    os.environ["VRAMTRACE_STACK"] = "none"


class Skip(Exception):
    pass


def run(program, case, memory, status=0, **environ):
    path = f"{case}.vt"
    if os.path.exists(path):
        os.remove(path)
    # By this variable: a sanitizer opens libraries in the program's place, whose own search path then does not count.
    libraries = f"{BUILD}/sim/torch/lib:{os.environ['LD_LIBRARY_PATH']}"
    environ = dict(os.environ, CUSIM_MEMORY=str(memory), LD_LIBRARY_PATH=libraries,
                   LD_PRELOAD=f"{BUILD}/libvramtrace.so", VRAMTRACE_OUTPUT=path, VRAMTRACE_QUIET="1", **environ)
    done = subprocess.run([f"{BUILD}/cases/{program}", *case.split()], env=environ, capture_output=True, text=True)
    if done.returncode == 77:
        raise Skip
    assert done.returncode == status, f"{case}: exit status {done.returncode}: {done.stderr}"
    return path


def ask(*command, status=0):
    done = subprocess.run([VRAMTRACE, *command], capture_output=True, text=True)
    assert done.returncode == status, f"{command}: exit status {done.returncode}: {done.stderr}"
    return done.stderr if status else done.stdout


def report(path):
    found = json.loads(ask("report", "--json", path))
    for row in found["fragmentation"]:
        check_identities(row)
    return found


def check_identities(row):
    parts = row["live_bytes"] + (row["rounding_bytes"] or 0) + row["pending_bytes"] + row["idle_bytes"]
    assert row["reserved_bytes"] == parts, row
    assert row["idle_bytes"] == row["pinned_bytes"] + row["returnable_bytes"], row
    holes = sum(hole["bytes"] * hole["count"] for hole in row["holes"] or [])
    assert holes <= row["idle_bytes"], row


def functions(item):
    return [frame["function"] for frame in item["stack"] or []]


def has_stack(item, *names):
    """The names are in the stack, from the innermost outwards."""
    at = 0
    found = functions(item)
    for name in names if STACKS else ():
        assert name in found[at:], f"{name} is not in, or not at its place in, {found}"
        at = found.index(name, at) + 1


def suffices(oom):
    return {item["action"]: item["bytes"] for item in oom["would_suffice"]}


def level(found, name, at):
    rows = [row for row in found["fragmentation"] if row["level"] == name and row["at"] == at]
    assert len(rows) == 1, f"{len(rows)} rows of level {name} at {at}"
    return rows[0]


def only(found, klass, **expected):
    """The one episode, of this class and with these values."""
    assert len(found["oom"]) == 1, [oom["class"] for oom in found["oom"]]
    oom = found["oom"][0]
    for key, value in dict(expected, **{"class": klass}).items():
        assert oom[key] == value, f"{key}: {oom[key]}, not {value}: {oom['reason']}"
    assert oom["account"] is None or sum(oom["account"].values()) == oom["total_bytes"], oom["account"]
    return oom


def main(cases):
    failed = 0
    for case in cases:
        try:
            case()
            print(f"ok      {case.__name__}")
        except Skip:
            print(f"skipped {case.__name__}: these CUDA headers do not have what it takes")
        except AssertionError as error:
            failed += 1
            print(f"FAILED  {case.__name__}: {error}")
    sys.exit(failed > 0)

#!/usr/bin/env python3
"""vramtrace whatif on memory snapshots of PyTorch's own form: made here, with nothing but pickle, of traces of the simulated
allocator, so that both say what happened in one run. They lead to the same replays; what no snapshot of a whole run is, and
pickles that are more than plain values, are refused.
"""
import json
import os
import pickle
import subprocess
import sys

MIB = 1 << 20
MODE = os.environ["MODE"]
BUILD = os.environ["BUILD_DIR"]
VRAMTRACE = f"{BUILD}/vramtrace"
EXPANDABLE = "expandable_segments:True"
PLACES = {"here": [{"name": "forward", "filename": "/home/user/model.py", "line": 41}],
          "cache": [{"name": "empty_cache", "filename": "/opt/torch/cuda/memory.py", "line": 222},
                    {"name": "main", "filename": "/home/user/train.py", "line": 7}]}

if MODE == "tsan":
    print("one thread: nothing for ThreadSanitizer to find here")
    sys.exit(77)


def record(name, settings, *arguments, **environ):
    env = dict(os.environ, CUSIM_MEMORY="16G", **environ)
    env["LD_LIBRARY_PATH"] = f"{env['LD_LIBRARY_PATH']}:{BUILD}/sim/torch/lib"
    env.update(LD_PRELOAD=f"{BUILD}/libvramtrace.so", VRAMTRACE_QUIET="1", VRAMTRACE_OUTPUT=f"{name}.vt")
    if settings:
        env["PYTORCH_CUDA_ALLOC_CONF"] = settings
    subprocess.run([f"{BUILD}/cases/torch_random", f"{name}.json", *map(str, arguments)], env=env, check=True)


def whatif(name, *arguments):
    done = subprocess.run([VRAMTRACE, "whatif", "--json", *arguments, name], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


class Snapshot:
    """What PyTorch would have told of the records of a trace."""

    def __init__(self, name, settings):
        self.entries, self.segments, self.regions = [], {}, {}
        self.settings = {"PYTORCH_CUDA_ALLOC_CONF": settings, "max_split_size": -1, "expandable_segments": settings == EXPANDABLE,
                         "garbage_collection_threshold": 0.0}
        if settings.startswith("max_split_size_mb:"):
            self.settings["max_split_size"] = int(settings.partition(":")[2]) * MIB
        dumped = subprocess.run([VRAMTRACE, "dump", "--json", f"{name}.vt"], check=True, capture_output=True, text=True).stdout
        for line in dumped.splitlines():
            record = json.loads(line)
            getattr(self, "on_" + record.get("record", ""), lambda record: None)(record)

    def region(self, address):
        """Memory of one stream: [bytes, stream]."""
        base = max((at for at in self.regions if at <= address), default=None)
        region = self.regions.get(base)
        return region if region and address < base + region[0] else None

    def add(self, action, record, size, place="here"):
        address = int(record["address"], 16)
        region = self.region(address)
        self.entries.append({"action": action, "addr": address, "size": size, "stream": region[1] if region else 0,
                             "time_us": 1_700_000_000_000_000 + record["time_ns"] // 1000, "frames": PLACES[place]})

    def on_block_stream(self, record):
        """Comes behind the first block in new memory."""
        address = int(record["address"], 16)
        self.region(address)[1] = record["stream"]
        next(entry for entry in reversed(self.entries) if entry["addr"] == address)["stream"] = record["stream"]

    def on_reserve(self, record):
        if not record["result"]:
            self.regions[int(record["address"], 16)] = [record["bytes"], 0]

    def on_unreserve(self, record):
        self.regions.pop(int(record["address"], 16), None)

    def on_alloc(self, record):
        if record["kind_name"] == "linear":
            self.segments[int(record["address"], 16)] = record["bytes"]
            self.regions[int(record["address"], 16)] = [record["bytes"], 0]
            self.add("segment_alloc", record, record["bytes"])

    def on_free(self, record):
        size = self.segments.pop(int(record["address"], 16), None)
        if size:
            self.add("segment_free", record, size, "cache")
            del self.regions[int(record["address"], 16)]

    def on_map(self, record):
        if not record.get("result"):
            self.segments[int(record["address"], 16)] = record["bytes"]
            last = self.entries[-1] if self.entries else {"action": "none"}
            if last["action"] == "segment_map" and last["addr"] + last["size"] == int(record["address"], 16):
                last["size"] += record["bytes"]
            else:
                self.add("segment_map", record, record["bytes"])

    def on_unmap(self, record):
        address = int(record["address"], 16)
        for at in [at for at in self.segments if address <= at < address + record["bytes"]]:
            del self.segments[at]
        self.add("segment_unmap", record, record["bytes"], "cache")

    def on_block_alloc(self, record):
        self.add("alloc", record, record["bytes"])

    def on_block_free(self, record):
        self.add("free_requested", record, record["bytes"])
        self.add("free_completed", record, record["bytes"])

    def value(self):
        segments = [{"device": 0, "address": at, "total_size": size, "stream": 0, "segment_pool_id": (0, 0), "blocks": []}
                    for at, size in sorted(self.segments.items())]
        return {"segments": segments, "device_traces": [self.entries, []], "allocator_settings": self.settings}

    def write(self, file, protocol=4, **changed):
        with open(file, "wb") as out:
            pickle.dump({**self.value(), **changed}, out, protocol)


def same_as_trace():
    """The trace under expandable segments has the sizes asked for, as a snapshot has."""
    for settings, ops in ((EXPANDABLE, 700), ("", 700), ("max_split_size_mb:32", 300)):
        name = f"plain-{settings.partition(':')[0]}"
        record(name, settings, "--ops", ops, "--plain")
        snapshot = Snapshot(name, settings)
        options = ["--set=max_split_size_mb=64"] + (["--set=expandable_segments=False"] if settings == EXPANDABLE else [])
        trace = whatif(f"{name}.vt", *options)
        for protocol in (2, 3, 4, 5):
            snapshot.write(f"{name}.pickle", protocol)
            found = whatif(f"{name}.pickle", *options)
            check, own = found["self_check"], trace["self_check"]
            assert check["equal"] and check["addresses"] == check["addresses_equal"] == own["addresses"], (name, check)
            for key in ("peak_reserved_bytes", "device_allocations", "device_frees", "refused"):
                assert check[key] == own[key], (name, key, check, own)
            assert found["recording"]["sizes_known_to_1_mib"] == 0, found["recording"]
            row, other = found["predictions"][1], trace["predictions"][1]
            assert row["class"] != "exact" and "version" in " ".join(row["reasons"]), row
            if settings == EXPANDABLE:
                for key in ("peak_reserved_bytes", "device_allocations", "needed_bytes"):
                    assert row[key] == other[key], (name, key, row, other)
                assert row["first_refused_below"]["where"] == "model.py:41 forward", row


def refused(snapshot, file, reason, **changed):
    snapshot.write(file, **changed)
    found = whatif(file)
    assert reason in (found["no_answer"] or "") and not found["predictions"], (file, reason, found)


def refusals():
    name = "refusals"
    record(name, EXPANDABLE, "--ops", 300, "--plain")
    snapshot = Snapshot(name, EXPANDABLE)
    entries, settings = snapshot.entries, snapshot.settings
    refused(snapshot, "late.pickle", "began when PyTorch had blocks already", device_traces=[entries[40:]])
    refused(snapshot, "cut.pickle", "lost its beginning", device_traces=[entries[:-40]])
    refused(snapshot, "overflow.pickle", "lost its beginning", allocator_settings={**settings, "trace_alloc_overflowed": True})
    refused(snapshot, "none.pickle", "has no history", device_traces=[[], []])
    refused(snapshot, "silent.pickle", "does not tell the settings", allocator_settings=None)
    refused(snapshot, "mixed.pickle", "were changed while the program ran", allocator_settings={**settings, "expandable_segments": False})
    refused(snapshot, "async.pickle", "backend:cudaMallocAsync",
            allocator_settings={**settings, "PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})
    refused(snapshot, "unknown.pickle", "'new_setting' is no setting",
            allocator_settings={**settings, "PYTORCH_CUDA_ALLOC_CONF": "new_setting:1"})
    # A rule that the run did not follow.
    swapped = [dict(entry) for entry in entries]
    at = [i for i, entry in enumerate(swapped) if entry["action"] == "alloc"][50]
    swapped[at]["size"] += 4096
    snapshot.write("wrong.pickle", device_traces=[swapped])
    found = whatif("wrong.pickle")
    assert not found["self_check"]["equal"] and not found["predictions"], found


class Runs:
    def __reduce__(self):
        return os.mkdir, ("made by a pickle",)


def no_code():
    with open("code.pickle", "wb") as out:
        pickle.dump({"segments": [], "device_traces": [Runs()]}, out)
    with open("short.pickle", "wb") as out:
        out.write(open("refusals-whole.pickle", "rb").read()[:-1000])
    for file, reason in (("code.pickle", "more than plain values"), ("short.pickle", "ends in the middle")):
        done = subprocess.run([VRAMTRACE, "whatif", file], capture_output=True, text=True)
        assert done.returncode == 3 and reason in done.stderr and not done.stdout, done
    assert not os.path.exists("made by a pickle")


def retries():
    """What was given back for the sake of a request is not given back in a replay that has the room."""
    frames = PLACES["here"]

    def entry(action, addr, size, place=frames):
        return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": 5, "frames": place}

    entries = [entry("segment_alloc", 1 << 40, 30 * MIB), entry("alloc", 1 << 40, 30 * MIB),
               entry("free_requested", 1 << 40, 30 * MIB), entry("free_completed", 1 << 40, 30 * MIB),
               entry("segment_free", 1 << 40, 30 * MIB), entry("segment_alloc", 1 << 41, 60 * MIB),
               entry("alloc", 1 << 41, 60 * MIB)]
    segments = [{"device": 0, "address": 1 << 41, "total_size": 60 * MIB, "stream": 0, "segment_pool_id": (0, 0), "blocks": []}]
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False}
    for place, retries in ((frames, 1), (PLACES["cache"], 0)):
        entries[4]["frames"] = place
        with open("retry.pickle", "wb") as out:
            pickle.dump({"segments": segments, "device_traces": [entries], "allocator_settings": settings}, out, 2)
        found = whatif("retry.pickle")
        assert found["self_check"]["equal"] and found["self_check"]["retries"] == retries, (retries, found["self_check"])
    # The same, and then more than there is.
    entries[4]["frames"] = frames
    entries.append({"action": "oom", "device_free": 8 * MIB, "size": 40 * MIB, "stream": 0, "time_us": 6, "frames": frames})
    with open("oom.pickle", "wb") as out:
        pickle.dump({"segments": segments, "device_traces": [entries], "allocator_settings": settings}, out, 2)
    found = whatif("oom.pickle", "--set", "expandable_segments=True")
    assert found["self_check"]["equal"] and found["self_check"]["refused"] == 1, found["self_check"]


same_as_trace()
refusals()
Snapshot("refusals", EXPANDABLE).write("refusals-whole.pickle")
no_code()
retries()

"""Readers of the formats that `vramtrace export` writes, written from what the formats' own viewers ask for; each checks the rules
and returns what the document says."""
import collections
import gzip
import json
import pickle
import pickletools
import re


# --- Protocol buffers: the wire format ---

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            assert value < 1 << 64
            return value, at


def fields(data):
    """(number, value) of each field of a message: an integer, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        assert key >> 3 and key & 7 in (0, 2), key
        value, at = varint(data, at)
        if key & 7 == 2:
            assert at + value <= len(data)
            value, at = data[at:at + value], at + value
        yield key >> 3, value


def message(data, **names):
    """A message as a dict: one number each for fields that are there once at most, [number] for those that repeat. Fields that are
    not named are not known here, and wrong."""
    known = {(n[0] if isinstance(n, list) else n): (name, isinstance(n, list)) for name, n in names.items()}
    out = {name: [] for name, n in names.items() if isinstance(n, list)}
    for number, value in fields(data):
        name, repeats = known[number]
        if repeats:
            out[name].append(value)
        else:
            assert name not in out, name
            out[name] = value
    return out


def packed(parts):
    out = []
    for part in parts:
        at = 0
        while at < len(part):
            value, at = varint(part, at)
            out.append(value)
    return out


def clean(text):
    """A name as any viewer may show it."""
    text = text.decode() if isinstance(text, bytes) else text
    assert not re.search("[\x00-\x1f\x7f-\x9f]", text), repr(text)
    return text


# --- pprof ---

Sample = collections.namedtuple("Sample", "stack values labels")  # innermost first: (function, file, line)


def pprof(data):
    """The samples. Rules: indices and ids are there, one value a type, "" is the first string, the last type is the default."""
    top = message(gzip.decompress(data), sample_type=[1], sample=[2], mapping=[3], location=[4], function=[5], strings=[6],
                  time_nanos=9, duration_nanos=10, period_type=11, period=12, comment=[13], default=14)
    texts = [clean(text) for text in top["strings"]]
    assert texts[0] == "" and len(set(texts)) == len(texts)
    types = [message(t, type=1, unit=2) for t in top["sample_type"]]
    assert [(texts[t["type"]], texts[t["unit"]]) for t in types] == [
        ("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
    assert top["default"] == types[-1]["type"] and top["period"] == 1
    period = message(top["period_type"], type=1, unit=2)
    assert (texts[period["type"]], texts[period["unit"]]) == ("space", "bytes")

    def by_id(items, **names):
        found = [message(item, **names) for item in items]
        ids = {item["id"]: item for item in found}
        assert len(ids) == len(found) and 0 not in ids
        return ids

    functions = by_id(top["function"], id=1, name=2, filename=4)
    mappings = by_id(top["mapping"], id=1, filename=5, has_functions=7, has_filenames=8, has_lines=9, has_inline=10)
    locations = by_id(top["location"], id=1, mapping=2, address=3, line=[4])
    assert all(texts[m["filename"]] for m in mappings.values())
    frames = {}
    for location in locations.values():
        line, = (message(item, function=1, line=2) for item in location["line"])
        function = functions[line["function"]]
        assert "mapping" not in location or location["mapping"] in mappings
        assert texts[function["name"]]
        frames[location["id"]] = texts[function["name"]], texts[function["filename"]], line.get("line", 0)
    samples = []
    for item in top["sample"]:
        sample = message(item, location=[1], value=[2], label=[3])
        values, labels = packed(sample["value"]), [message(label, key=1, str=2) for label in sample["label"]]
        stack = [frames[i] for i in packed(sample["location"])]
        assert len(values) == 4 and stack and all(value < 1 << 63 for value in values)
        samples.append(Sample(stack, values, {texts[label["key"]]: texts[label["str"]] for label in labels}))
    return samples, {"comments": [texts[i] for i in packed(top["comment"])], "time_nanos": top.get("time_nanos")}


# --- Collapsed stacks ---

def collapsed(data):
    """(frames, outermost first, and count) of each line."""
    out = []
    for line in data.decode().splitlines(keepends=True):
        stack, count = re.fullmatch(r"(.+) ([1-9][0-9]*)\n", line).groups()
        frames = clean(stack).split(";")
        assert all(frames), line
        out.append((frames, int(count)))
    return out


# --- speedscope ---

def speedscope(data):
    """(name, [(frames, outermost first, weight)]) of each profile: the rules of its schema, of which only these keys are used."""
    top = json.loads(data)
    assert set(top) <= {"$schema", "shared", "profiles", "name", "activeProfileIndex", "exporter"}
    assert top["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = top["shared"]["frames"]
    for frame in frames:
        assert set(frame) <= {"name", "file", "line", "col"} and isinstance(frame["name"], str), frame
        assert clean(frame["name"]) and clean(frame.get("file", "x")) and type(frame.get("line", 1)) is int, frame
    out = []
    for profile in top["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}, set(profile)
        assert profile["type"] == "sampled" and profile["unit"] == "bytes"
        samples, weights = profile["samples"], profile["weights"]
        assert len(samples) == len(weights) and profile["startValue"] == 0 and profile["endValue"] == sum(weights)
        assert all(type(weight) is int and weight > 0 for weight in weights)
        assert all(sample and 0 <= i < len(frames) for sample in samples for i in sample)
        out.append((profile["name"], [([frames[i]["name"] for i in sample], weight) for sample, weight in zip(samples, weights)]))
    return out


# --- Perfetto ---

class Perfetto:
    """What a trace says, by process: counters {track name: [(time, value)]}, instants, heap dumps. Rules: the importer's."""

    def __init__(self, data):
        self.processes = {}  # uuid: (pid, name)
        self.counters = collections.defaultdict(list)  # (pid, track): points
        self.instants = []  # (pid, time, name, annotations, stack)
        self.dumps = collections.defaultdict(dict)  # (pid, heap): {time: {stack: (bytes, count)}}
        self.slices = collections.defaultdict(list)  # track: (time, begin or end, name)
        self.marks = []  # (time, name)
        self.clocks, self.cumulative, self.tracks = {}, {}, {}
        self.interned, self.index = {}, collections.Counter()
        for number, value in fields(data):
            assert number == 1
            self.packet(value)

    def packet(self, data):
        packet = message(data, clocks=6, timestamp=8, sequence=10, event=11, interned=12, flags=13, profile=37, track=60)
        sequence = packet["sequence"]
        if packet["flags"] & 1:
            assert sequence not in self.interned
            self.interned[sequence] = collections.defaultdict(dict)
        assert packet["flags"] & 2
        self.tables = self.interned[sequence]
        if "clocks" in packet:
            clocks = [message(c, id=1, timestamp=2) for c in message(packet["clocks"], clock=[1])["clock"]]
            self.clocks[sequence] = {c["id"]: c["timestamp"] for c in clocks}
            assert set(self.clocks[sequence]) == {1, 3, 4, 6}
        if "interned" in packet:
            self.intern(packet["interned"])
        if "track" in packet:
            self.track(packet["track"])
        if "event" in packet:
            self.event(packet)
        if "profile" in packet:
            self.profile(packet["profile"], sequence)

    def add(self, table, iid, value):
        assert iid and iid not in self.tables[table], (table, iid)
        self.tables[table][iid] = value

    def intern(self, data):
        found = message(data, function=[5], frame=[6], stack=[7], path=[17], source=[18], mapping=[19])
        for table in "function", "path", "source":
            for item in found[table]:
                text = message(item, iid=1, str=2)
                self.add(table, text["iid"], clean(text["str"]))
        for item in found["mapping"]:
            mapping = message(item, iid=1, path=[7])
            self.add("mapping", mapping["iid"], "/".join(self.tables["path"][i] for i in mapping["path"]))
        for item in found["frame"]:
            frame = message(item, iid=1, function=2, mapping=3, pc=4, source=5, line=6, kind=7)
            assert self.tables["mapping"][frame["mapping"]] and frame["kind"] in (1, 3) and "pc" in frame
            source = self.tables["source"][frame["source"]] if "source" in frame else ""
            # The importer takes frames of one name, mapping and place for one.
            self.add("place", (frame["function"], frame["mapping"], frame["pc"]), frame["iid"])
            self.add("frame", frame["iid"], (self.tables["function"][frame["function"]], source, frame.get("line", 0)))
        for item in found["stack"]:
            stack = message(item, iid=1, frame=[2])
            assert stack["frame"]
            self.add("frames", tuple(stack["frame"]), stack["iid"])
            self.add("stack", stack["iid"], tuple(self.tables["frame"][i] for i in stack["frame"]))

    def track(self, data):
        track = message(data, uuid=1, name=2, process=3, parent=5, counter=8)
        assert track["uuid"] not in self.tracks
        if "process" in track:
            process = message(track["process"], pid=1, name=6)
            assert process["pid"] not in [pid for pid, _ in self.processes.values()] and process["pid"] < 1 << 31
            self.processes[track["uuid"]] = process["pid"], clean(process["name"])
        else:
            assert "counter" not in track or message(track["counter"], unit=3) == {"unit": 3}
            self.tracks[track["uuid"]] = self.processes[track["parent"]][0], clean(track["name"]), "counter" in track

    def event(self, packet):
        event = message(packet["event"], note=[4], type=9, track=11, category=[22], name=23, counter=30, stack=56)
        pid, track, counts = self.tracks[event["track"]]
        if event["type"] == 4:
            value = event["counter"] - (event["counter"] >> 63 << 64)
            points = self.counters[pid, track]
            assert counts and (not points or points[-1][0] <= packet["timestamp"]), track
            points.append((packet["timestamp"], value))
        elif event["type"] in (1, 2):
            slices = self.slices[event["track"]]
            slices.append((packet["timestamp"], event["type"], clean(event.get("name", b""))))
        elif event["type"] == 3 and "stack" not in event:
            self.marks.append((packet["timestamp"], clean(event["name"])))
        else:
            notes = [message(note, value=3, name=10) for note in event["note"]]
            assert event["type"] == 3 and not counts
            self.instants.append((pid, packet["timestamp"], clean(event["name"]), {n["name"].decode(): n["value"] for n in notes},
                                  self.tables["stack"][event["stack"]]))

    def profile(self, data, sequence):
        profile = message(data, dump=[5], continued=6, index=7)
        assert profile["index"] == self.index[sequence], "an index is missing"
        self.index[sequence] += 1
        for item in profile["dump"]:
            dump = message(item, pid=1, sample=[2], timestamp=9, heap=11, interval=12, original=13)
            heap = dump["pid"], clean(dump["heap"])
            assert dump["pid"] in [pid for pid, _ in self.processes.values()] and dump["timestamp"] >= self.clocks[sequence][4]
            rows = self.dumps[heap].setdefault(dump["timestamp"], {})
            for entry in dump["sample"]:
                sample = message(entry, stack=1, allocated=2, freed=3, n_allocated=5, n_freed=6)
                stack = sample["stack"]
                assert stack in self.tables["stack"]
                now = tuple(sample.get(k, 0) for k in ("allocated", "freed", "n_allocated", "n_freed"))
                before = self.cumulative.get((heap, stack), (0, 0, 0, 0))
                assert all(b <= n for b, n in zip(before, now)), (heap, stack, before, now)
                self.cumulative[heap, stack] = now
                assert now[0] >= now[1] and now[2] >= now[3]
                rows[stack] = now[0] - now[1], now[2] - now[3]

    def phases(self):
        """(track, begin, end, name) of each slice: on one track they lie in one another or apart."""
        out = []
        for track, events in self.slices.items():
            stack = []
            for time, sort, name in sorted(events, key=lambda e: e[0]):
                if sort == 1:
                    stack.append((time, name))
                else:
                    begin, name = stack.pop()
                    out.append((self.tracks[track][1], begin, time, name))
            assert not stack, track
        return sorted(out)

    def live(self, time):
        """Bytes by heap, as a viewer adds them up."""
        out = {}
        for heap, dumps in self.dumps.items():
            if time in dumps:
                out[heap[1]] = sum(row[0] for row in dumps[time].values())
        return out


# --- PyTorch's snapshot ---

ALLOWED = set("""PROTO STOP MARK EMPTY_DICT EMPTY_LIST SETITEMS APPENDS TUPLE2 NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1
              BINFLOAT BINUNICODE BINPUT LONG_BINPUT BINGET LONG_BINGET""".split())


def check_opcodes(data):
    """What the viewer's own unpickler can read: protocol 2, these opcodes, lists in batches, integers of at most 8 bytes."""
    marks, n = [], 0
    for opcode, argument, _ in pickletools.genops(data):
        assert opcode.name in ALLOWED, opcode.name
        if opcode.name == "PROTO":
            assert argument == 2
        if opcode.name == "LONG1":
            assert -1 << 63 <= argument < 1 << 63
        if opcode.name == "MARK":
            marks.append(n)
            n = 0
        elif opcode.name in ("APPENDS", "SETITEMS"):
            assert opcode.name == "SETITEMS" or n <= 1000, n
            n = marks.pop()
        elif opcode.name == "TUPLE2":
            n -= 1
        elif opcode.name not in ("BINPUT", "LONG_BINPUT", "PROTO", "STOP"):
            n += 1
    assert not marks


def check_frames(frames):
    for frame in frames:
        assert set(frame) == {"name", "filename", "line"} and clean(frame["name"]) and clean(frame["filename"]), frame
        assert type(frame["line"]) is int


def check_segment(segment):
    """Blocks tile it, in order."""
    at = segment["address"]
    for block in segment["blocks"]:
        assert block["address"] == at and block["size"] > 0, (segment["address"], block)
        assert block["state"] in ("active_allocated", "active_pending_free", "inactive")
        check_frames(block.get("frames", []))
        at += block["size"]
    assert at == segment["address"] + segment["total_size"], segment["address"]
    sizes = collections.Counter()
    for block in segment["blocks"]:
        sizes[block["state"]] += block["size"]
    assert segment["allocated_size"] == sizes["active_allocated"]
    assert segment["active_size"] == sizes["active_allocated"] + sizes["active_pending_free"]
    check_frames(segment.get("frames", []))


class Backwards:
    """The viewer's replay: from the segments, event by event, towards the start."""

    def __init__(self, segments):
        self.segments = {s["address"]: [s["total_size"], s["stream"]] for s in segments}
        self.blocks = {b["address"]: [b["size"], b["state"] == "active_pending_free"] for s in segments for b in s["blocks"]
                       if b["state"] != "inactive"}

    def around(self, address, size):
        for start, (total, _) in self.segments.items():
            if start <= address and address + size <= start + total:
                return start
        raise AssertionError(f"no segment around {address:#x}")

    def undo(self, event):
        action, address, size = event["action"], event.get("addr"), event["size"]
        if action == "segment_alloc":
            assert self.segments.pop(address)[0] == size, event
        elif action == "segment_map":
            start = self.around(address, size)
            total, stream = self.segments.pop(start)
            if address > start:
                self.segments[start] = [address - start, stream]
            if address + size < start + total:
                self.segments[address + size] = [start + total - address - size, stream]
        elif action in ("segment_free", "segment_unmap"):
            assert address not in self.segments, event
            self.segments[address] = [size, event["stream"]]
            if action == "segment_unmap":
                self.merge(address)
        elif action == "alloc":
            assert self.blocks.pop(address) == [size, False], event
            self.around(address, size)
        elif action == "free_requested":
            assert self.blocks[address] == [size, True], event
            self.blocks[address][1] = False
        elif action == "free_completed":
            assert address not in self.blocks, event
            self.blocks[address] = [size, True]
            self.around(address, size)
        else:
            assert action == "oom" and "device_free" in event, event

    def merge(self, address):
        """With neighbours of the same stream."""
        size, stream = self.segments[address]
        after = self.segments.get(address + size)
        if after and after[1] == stream:
            del self.segments[address + size]
            self.segments[address][0] += after[0]
        before = next((start for start, (total, _) in self.segments.items() if start + total == address), None)
        if before is not None and self.segments[before][1] == stream:
            self.segments[before][0] += self.segments.pop(address)[0]


def torch_snapshot(data):
    """The snapshot. Rules: blocks tile segments, events replay backwards to nothing."""
    check_opcodes(data)
    snapshot = pickle.loads(data)
    assert set(snapshot) == {"segments", "device_traces", "allocator_settings"}, set(snapshot)
    assert not snapshot["segments"] or len(snapshot["device_traces"]) > max(s["device"] for s in snapshot["segments"])
    for segment in snapshot["segments"]:
        check_segment(segment)
    for device, events in enumerate(snapshot["device_traces"]):
        state, last_us = Backwards([s for s in snapshot["segments"] if s["device"] == device]), None
        for event in reversed(events):
            assert last_us is None or event["time_us"] <= last_us
            last_us = event["time_us"]
            check_frames(event.get("frames", []))
            clean(event.get("user_metadata", ""))
            state.undo(event)
        assert not state.segments and not state.blocks, (device, state.segments, state.blocks)
    return snapshot

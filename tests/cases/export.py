#!/usr/bin/env python3
"""vramtrace export, read by independent readers (lib/export_check.py): recordings of PyTorch on a real GPU against what PyTorch
and the report say of them, several processes at once, moments, hostile names.
"""
import collections
import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import xml.dom.minidom

sys.dont_write_bytecode = True
CASES = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(CASES / "lib"))
import export_check as check  # noqa: E402
import trace_writer  # noqa: E402

VRAMTRACE = f"{os.environ['BUILD_DIR']}/vramtrace"
DATA = CASES.parent / "data/format-1"
FORMATS = {"pprof": check.pprof, "perfetto": check.Perfetto, "speedscope": check.speedscope, "collapsed": check.collapsed,
           "torch-snapshot": check.torch_snapshot}
TOLD = {"begin": 1, "end": 2, "range": 3}  # VT_PHASE_*, VT_TOLD_NVTX_RANGE
STATES = {"active_allocated": "active", "active_pending_free": "pending", "inactive": "inactive"}

if os.environ["MODE"] == "tsan":
    print("one thread: nothing for ThreadSanitizer to find here")
    sys.exit(77)


def export(form, *traces, status=0, options=()):
    done = subprocess.run([VRAMTRACE, "export", f"--format={form}", *options, *map(str, traces)], capture_output=True)
    assert done.returncode == status, (form, traces, done.returncode, done.stderr)
    return done.stderr.decode() if status else done.stdout


def read(form, *traces, options=()):
    return FORMATS[form](export(form, *traces, options=options))


def report(trace, command="report", *options):
    return json.loads(subprocess.run([VRAMTRACE, command, "--json", *options, trace], check=True, capture_output=True).stdout)


def golden(name):
    truth = json.loads((DATA / f"{name}.truth.json").read_text())
    return DATA / f"{name}.vt", truth.get("truth", truth)


def inuse(samples, **labels):
    return sum(s.values[3] for s in samples if all(s.labels[k] == v for k, v in labels.items()))


def pprof_against_torch():
    """PyTorch's own counts of blocks, at the end; at the peak, every byte that the report has, by kind and owner."""
    for name in "torch-expandable", "torch-streams", "torch-graph":
        trace, truth = golden(name)
        stats = truth["stats"]
        samples, about = read("pprof", trace, options=["--at=end"])
        assert inuse(samples, layer="torch") == stats["allocated_bytes.all.current"], name
        assert inuse(samples, layer="torch") + inuse(samples, layer="torch, kept") == stats["reserved_bytes.all.current"], name
        blocks = [s.values for s in samples if s.labels["layer"] == "torch"]
        assert sum(v[0] for v in blocks) == stats["allocation.all.allocated"], name
        assert sum(v[0] - v[2] for v in blocks) == stats["allocation.all.freed"], name
        assert about["comments"][0].endswith(": end") and about["time_nanos"], about
        samples, about = read("pprof", trace)
        rows = report(trace, "peak")["peak_sites"]
        for key in "kind", "owner":
            ours, theirs = collections.Counter(), collections.Counter()
            for sample in samples:
                ours[sample.labels[key]] += sample.values[3]
            for row in rows:
                theirs[row[key] or "unknown"] += row["bytes"]
            assert +ours == theirs, (name, key, ours, theirs)
        assert " peak of GPU 0, at 0:" in about["comments"][0], about
    stacks = {tuple(s.stack) for s in read("pprof", golden("torch-lines")[0])[0]}
    assert any(frame[0] == "<module>" and frame[1].endswith("torch_lines.py") and frame[2] for s in stacks for frame in s[-1:])


def stacks_agree():
    """The formats that show stacks show the same ones, each in its order."""
    trace, _ = golden("torch-lines")
    pprof, _ = read("pprof", trace, options=["--at=end"])
    scope = read("speedscope", trace, options=["--at=end"])
    lines = read("collapsed", trace, options=["--at=end"])
    ours = collections.Counter()
    for sample in pprof:
        ours[sample.labels["device"], tuple(f[0] for f in sample.stack[::-1])] += sample.values[3]
    theirs = collections.Counter()
    for name, samples in scope:
        device, metric, *_ = name.split(", ")
        for stack, weight in samples if metric == "live" else ():
            theirs[device, tuple(stack)] += weight
    assert +ours == theirs and len(theirs) > 10
    flat = collections.Counter()
    for frames, count in lines:
        flat[frames[0], len(frames) - 1, frames[1].split(" (")[0]] += count
    folded = collections.Counter()
    for (device, stack), weight in theirs.items():
        folded[device, len(stack), stack[0].replace(";", ":")] += weight
    assert flat == folded
    allocated = sum(w for name, samples in scope for _, w in samples if ", allocated" in name)
    assert allocated == sum(s.values[1] for s in pprof)


def perfetto():
    """Counters end and peak where the report says, dumps hold what was live then, refusals are marked."""
    for name in "torch-expandable", "torch-streams", "oom-carved", "known-static":
        trace, truth = golden(name)
        found, said = read("perfetto", trace), report(trace)
        (pid, process), = found.processes.values()
        device, = said["devices"]
        points = found.counters[pid, "GPU 0 tracked"]
        assert max(v for _, v in points) == device["peak"]["tracked_bytes"], name
        assert points[-1][1] == device["end"]["tracked_bytes"], name
        start = min(found.clocks[1].values())
        peak_time, value = next((t, v) for t, v in points if v == device["peak"]["tracked_bytes"])
        assert process == f"{pathlib.Path(said['traces'][0]['exe']).name} {pid}" and start <= peak_time
        if "stats" in truth:
            stats = truth["stats"]
            for track, key in ("GPU 0 in blocks of allocators", "allocated"), ("GPU 0 reserved by allocators", "reserved"):
                values = [v for _, v in found.counters[pid, track]]
                assert values[-1] == stats[f"{key}_bytes.all.current"], (name, track)
                assert max(values) == stats[f"{key}_bytes.all.peak"], (name, track)
        samples, about = read("pprof", trace)
        heaps = found.live(about["time_nanos"])
        ours = collections.Counter()
        for sample in samples:
            ours[f"{sample.labels['device']}, {sample.labels['kind']}, {sample.labels['layer']}"] += sample.values[3]
        assert +ours == +collections.Counter(heaps), (name, ours, heaps)
        end = max(t for dumps in found.dumps.values() for t in dumps)
        rows = [r for r in said["leaks"] if r["verdict"] != "freed_at_teardown" and r["kind"] != "shared"]
        assert sum(found.live(end).values()) == sum(r["bytes"] for r in rows), name
        owners = {t.split(": ")[1]: p[-1][1] for (_, t), p in found.counters.items() if "by owner" in t}
        assert owners == {o["owner"]: o["live_bytes"] for o in device["owners"]}, owners
        assert len(found.instants) == len(said["oom"]), name
        for instant, oom in zip(found.instants, said["oom"]):
            assert instant[1] - start == oom["time_ns"] and instant[3]["requested_bytes"] == oom["requested_bytes"], (instant, oom)


def layout(snapshot, addresses, device=0):
    return {s["address"]: (s["total_size"], s["is_expandable"], [(b["address"], b["size"], b["state"]) for b in s["blocks"]])
            for s in snapshot["segments"] if s["address"] in addresses and s["device"] == device}


def torch_snapshots():
    """Every segment and block as PyTorch's own snapshot has it; memory that is not PyTorch's beside them."""
    for name in "torch-expandable", "torch-streams", "torch-graph":
        trace, truth = golden(name)
        snapshot = read("torch-snapshot", trace)
        theirs = {int(s["address"]): (s["size"], s["expandable"], [tuple(b) for b in s["blocks"]]) for s in truth["snapshot"]}
        ours = layout(snapshot, theirs)
        assert set(ours) == set(theirs), (name, set(ours) ^ set(theirs))
        for address in theirs:
            told = theirs[address]
            assert ours[address][:2] == told[:2], (name, hex(address), ours[address][:2], told[:2])
            mine = [(s, st) for _, s, st in ours[address][2]]
            assert mine == [(b[-2], b[-1]) for b in told[2]], (name, hex(address), mine[:5], told[2][:5])
        streams = collections.defaultdict(set)
        for segment in truth["snapshot"]:
            stream, = {s["stream"] for s in snapshot["segments"] if s["address"] == segment["address"]}
            streams[segment["stream"]].add(stream)
        assert all(len(s) == 1 for s in streams.values()) and len(set().union(*streams.values())) == len(streams), streams
        events = collections.Counter(e["action"] for e in snapshot["device_traces"][0])
        own = [e for e in snapshot["device_traces"][0] if e["action"] == "alloc" and "user_metadata" not in e]
        assert len(own) == truth["stats"]["allocation.all.allocated"], (name, events)


def torch_moments():
    """As of the refusal and of the peak: what was live then, and nothing later."""
    trace, _ = golden("oom-carved")
    whole, said = read("torch-snapshot", trace), report(trace)
    row = next(r for r in said["fragmentation"] if r["level"] == "torch" and r["at"] == "oom:1")
    oom = read("torch-snapshot", trace, options=["--at=oom:1"])
    own = [s for s in oom["segments"] if not any("user_metadata" in e and e["addr"] == s["address"] for e in oom["device_traces"][0])]
    assert sum(s["allocated_size"] for s in own) == row["live_bytes"], row
    assert sum(s["total_size"] for s in own) == row["reserved_bytes"], row
    entry, = (e for e in whole["device_traces"][0] if e["action"] == "oom")
    assert entry["size"] == said["oom"][0]["requested_bytes"] and len(oom["device_traces"][0]) <= len(whole["device_traces"][0])
    early = read("torch-snapshot", trace, options=["--at=0"])
    assert not early["segments"] and early["device_traces"] == [[]], early
    peak = read("torch-snapshot", trace, options=["--at=peak"])
    assert sum(s["total_size"] for s in peak["segments"]) == max(
        v for (_, t), p in read("perfetto", trace).counters.items() if t == "GPU 0 tracked" for _, v in p)


def tables():
    """The events, as CSV and as JSON: what comes and goes adds up to what is live."""
    trace, truth = golden("torch-streams")
    rows = list(csv.DictReader(io.StringIO(export("csv", trace).decode())))
    lines = [json.loads(line) for line in export("jsonl", trace).splitlines()]
    events = [line for line in lines if line["type"] == "event"]
    assert lines[0]["type"] == "trace" and lines[0]["schema"] == "vramtrace.events" and len(rows) == len(events)
    stacks = set()
    for line in lines:
        if line["type"] == "stack":
            stacks.add(line["stack_id"])
        elif line["type"] == "event":
            assert line["stack_id"] is None or line["stack_id"] in stacks
    for row, event in zip(rows, events):
        assert row["event"] == event["event"] and int(row["bytes"]) == event["bytes"] and row["address"] == (event["address"] or "")
        assert int(row["time_ns"]) == event["time_ns"] and row["layer"] == event["layer"]
    sums = collections.Counter()
    for event in events:
        sums[event["layer"], event["event"]] += event["bytes"]
    assert sums["torch", "block_alloc"] - sums["torch", "block_free"] == truth["stats"]["allocated_bytes.all.current"]
    tracked = [e for e in events if e["layer"] == "driver" and e["kind"] == "linear"]
    live = sum(e["bytes"] * {"alloc": 1, "free": -1, "teardown": -1}[e["event"]] for e in tracked)
    assert live == report(trace)["devices"][0]["kinds"]["linear"]["live_bytes"]
    assert export("json", trace) == export("jsonl", trace)


def several():
    """Ranks together: no process, heap or counter is lost in another one."""
    traces = [golden(name)[0] for name in ("torch-streams", "oom-carved", "torch-streams")]
    found = read("perfetto", *traces)
    assert len(found.processes) == 3
    assert len([1 for _, track in found.counters if track == "GPU 0 tracked"]) == 3
    one, _ = read("pprof", traces[0])
    all_, about = read("pprof", *traces)
    two, _ = read("pprof", traces[1])
    assert inuse(all_) == 2 * inuse(one) + inuse(two) and len(about["comments"]) == 3
    assert len({s.labels["process"] for s in all_}) == 2
    assert len(read("speedscope", *traces)) == sum(len(read("speedscope", t)) for t in traces)
    assert sum(n for _, n in read("collapsed", *traces)) == inuse(all_)
    assert "one trace" in export("torch-snapshot", *traces, status=2)


def wrong_use():
    trace, _ = golden("torch-streams")
    assert "there are: pprof" in export("nothing", trace, status=2)
    done = subprocess.run([VRAMTRACE, "export", trace], capture_output=True, text=True)
    assert done.returncode == 2 and "--format" in done.stderr
    assert "nothing was refused" in export("pprof", trace, status=2, options=["--at=oom"])
    assert "takes no --at" in export("csv", trace, status=2, options=["--at=end"])
    assert "no GPU 7" in export("pprof", trace, status=2, options=["--device=7"])


def hostile_trace(path):
    """What a name can be, everywhere that one can stand."""
    names = [b'"quoted"; \\back\\slash', b"new\nline\r\n", b"\x00\x01\x1b[31mred\x07", b"\xff\xfe not UTF-8 \xc3", b"\xc2\x9b C1 \xed\xa0\x80",
             b"</script><script>alert(1)</script>&amp;", b"=cmd|' /C calc'!A0", b"a;b;c 12", b"\xe2\x80\xae \xf0\x9f\x92\xa5", b"",
             b"n" * 9000, b";", b" "]
    trace = trace_writer.Trace(golden("torch-streams")[0])
    trace.put("process", pid=4242, host=b'ho"st\n', exe=b"/bin/ev\x1b]0;il;\"\n\xff", cmdline=b"x\0")
    trace.put("environment", name=b"PYTORCH_CUDA_ALLOC_CONF", value=b"evil:\"\n\xff")
    trace.put("device", ordinal=0, total_bytes=1 << 36, page_bytes=1 << 21, name=b"GPU\n\"\xff")
    trace.put("api", api_id=1, name=b"cuMem\n\"Alloc,\xff")
    trace.put("module", time_ns=1, start=0x10000, end=0x20000, bias=0x10000, path=b'/lib/li"b;\n\xff.so')
    trace.put("allocator", time_ns=1, allocator_id=7, device=0, name=b'al"lo;c\n\xff,', version=b"1")
    for i, name in enumerate(names, 1):
        file = names[-i]
        trace.put("python_code", code_id=i, first_line=i, line_table=0, file=file, function=name)
        trace.put("stack", time_ns=1, stack_id=i, frames=[0x10010 + i, 0x999999], python=[i << 32 | 1 << 31])
        trace.put("alloc", time_ns=10 * i, api_id=1, kind=1, device=0, context_id=1, address=i << 24, bytes=1 << 20, stack_id=i)
        trace.put("block_alloc", time_ns=10 * i + 1, allocator_id=7, address=i << 24, bytes=1 << (9 + i % 8), stack_id=i)
        trace.put("alloc", time_ns=10 * i + 2, api_id=1, kind=1, device=0, context_id=1, address=(i << 24) + (1 << 22), bytes=4096,
                  stack_id=i)
        if i % 3 == 0:
            trace.put("block_free", time_ns=10 * i + 3, allocator_id=7, address=i << 24, bytes=0)
            trace.put("free", time_ns=10 * i + 4, api_id=1, kind=1, address=i << 24, stack_id=i)
    trace.put("block_failure", time_ns=999, allocator_id=7, bytes=1 << 40, stack_id=2)
    trace.put("failure", time_ns=1000, api_id=1, kind=1, device=0, bytes=1 << 40, stack_id=1, result=2)
    # Freed and handed out again without a free, and the process's numbers at their limits.
    trace.put("alloc", time_ns=1001, api_id=1, kind=1, device=0, address=1 << 24, bytes=1 << 19, stack_id=1)
    trace.put("alloc", time_ns=1002, api_id=1, kind=1, device=0, address=(1 << 64) - 4096, bytes=1 << 12, stack_id=1)
    trace.put("alloc", time_ns=1003, api_id=1, kind=1, device=0, address=(1 << 24) + 4096, bytes=1 << 30, stack_id=1)
    trace.put("alloc", time_ns=1004, api_id=1, kind=8, device=-1, address=5, bytes=64, stack_id=3)
    trace.write(path)
    return len(names)


def hostile_names():
    n = hostile_trace("hostile.vt")
    samples, _ = read("pprof", "hostile.vt", options=["--at=end"])
    assert len({s.stack[0][0] for s in samples}) >= n - 1, {s.stack[0] for s in samples}
    for form in FORMATS:
        for options in [], ["--hide-paths"], ["--all-frames"]:
            read(form, "hostile.vt", options=options)
    rows = list(csv.reader(io.StringIO(export("csv", "hostile.vt").decode(), newline="")))
    assert {len(row) for row in rows} == {len(rows[0])} and len(rows) > 3 * n
    assert all(check.clean(cell) == cell for row in rows for cell in row)
    assert all(json.loads(line)["type"] for line in export("jsonl", "hostile.vt").splitlines())
    hidden = b"".join(export(form, "hostile.vt", options=["--hide-paths"]) for form in ("speedscope", "collapsed", "jsonl", "csv"))
    assert b"/lib/" not in hidden and b"ho\\\"st" not in hidden


def any_trace():
    """Other recordings, and one that ends in the middle of a chunk."""
    whole = golden("torch-streams")[0].read_bytes()
    pathlib.Path("cut.vt").write_bytes(whole[:len(whole) * 2 // 3])
    for trace in DATA / "oom-too-late.vt", DATA / "packed-demo.vt.zst", DATA / "pages-2-mib.vt", pathlib.Path("cut.vt"):
        for form in "pprof", "perfetto", "torch-snapshot":
            try:
                read(form, trace)
            except AssertionError as error:
                raise AssertionError(f"{trace.name} as {form}") from error


def random_allocator():
    """A program that makes the simulated allocator do all that it can: its own ledger against the snapshot."""
    build = os.environ["BUILD_DIR"]
    for name, settings in ("plain", ""), ("expandable", "expandable_segments:True"):
        env = dict(os.environ, CUSIM_MEMORY="1G", LD_PRELOAD=f"{build}/libvramtrace.so", VRAMTRACE_QUIET="1",
                   VRAMTRACE_OUTPUT=f"{name}.vt", VRAMTRACE_STACK="none",
                   LD_LIBRARY_PATH=f"{os.environ['LD_LIBRARY_PATH']}:{build}/sim/torch/lib")
        if settings:
            env["PYTORCH_CUDA_ALLOC_CONF"] = settings
        subprocess.run([f"{build}/cases/torch_random", f"{name}.json", "--ops", "1500", "--noise", "--seed", "3"], env=env, check=True)
        snapshot = read("torch-snapshot", f"{name}.vt")
        n_blocks = 0
        for device in json.loads(pathlib.Path(f"{name}.json").read_text())["devices"]:
            theirs = {s["address"]: (s["size"], s["expandable"], [tuple(b) for b in s["blocks"]]) for s in device["segments"]}
            ours = layout(snapshot, theirs, device["ordinal"])
            # The ledger names blocks that are free as the report does.
            ours = {k: (size, grows, [(a, n, STATES[state]) for a, n, state in blocks]) for k, (size, grows, blocks) in ours.items()}
            assert ours == theirs, (name, device["ordinal"], [(ours.get(k), theirs[k]) for k in theirs if ours.get(k) != theirs[k]][:2])
            events = collections.Counter(e["action"] for e in snapshot["device_traces"][device["ordinal"]])
            assert events["oom"] == device["ooms"], (name, events, device["ooms"])
            n_blocks += sum(len(s["blocks"]) for s in device["segments"])
            assert not settings or not device["segments"] or events["segment_map"] > 1, events
        assert n_blocks > 20, n_blocks


def phases():
    """Slices in one another, one after the other, across one another and still open; marks."""
    trace = trace_writer.Trace("plain.vt")  # whose recorder knows of phases
    trace.put("device", ordinal=0, total_bytes=1 << 36)
    ranges = {"outer": (10, 100), "inner": (10, 50), "next": (50, 100), "across": (60, 150), "open": (200, None)}
    edges = [(begin, 0, i, name) for i, (name, (begin, _)) in enumerate(ranges.items(), 1)]
    edges += [(end, -1, -i, name) for i, (name, (_, end)) in enumerate(ranges.items(), 1) if end]
    for time, sort, i, name in sorted(edges):
        trace.put("phase", time_ns=time, action=TOLD["end" if sort else "begin"], told=TOLD["range"], thread_id=7, range_id=abs(i),
                  name=b"" if sort else f"{name}\n".encode(), domain=b"")
    trace.put("mark", time_ns=250, told=TOLD["range"], name=b"mark\xff")
    trace.put("alloc", time_ns=300, api_id=1, kind=1, device=0, address=1 << 24, bytes=1 << 20)
    trace.write("phases.vt")
    found = read("perfetto", "phases.vt")
    start = found.clocks[1][1]
    said = sorted((name[:-1], begin - start, end - start) for track, begin, end, name in found.phases())
    assert said == sorted((name, begin, end or 300) for name, (begin, end) in ranges.items()), said
    assert {track for track, *_ in found.phases()} == {"phases of thread 7"} and len(found.slices) == 2
    assert found.marks == [(start + 250, "mark\ufffd")], found.marks


def timelines():
    """Bands that add up, marks where memory was refused, pictures that are XML whatever the names."""
    trace, _ = golden("oom-carved")
    rows = list(csv.DictReader(io.StringIO(subprocess.run([VRAMTRACE, "timeline", "--csv", "--points=50", trace], check=True,
                                                          capture_output=True, text=True).stdout)))
    said = report(trace)
    assert len(rows) == 50 and sum(int(row["refused"]) for row in rows) == len(said["oom"])
    assert int(rows[-1]["owner torch bytes"]) == int(rows[-1]["live_bytes"]) == said["torch"]["devices"][0]["allocated_bytes"]
    assert all(int(row["live_bytes"]) <= int(row["tracked_bytes"]) for row in rows)
    for name in trace, "hostile.vt":
        subprocess.run([VRAMTRACE, "timeline", "--svg", "timeline.svg", name], check=True)
        picture = xml.dom.minidom.parse("timeline.svg")
        marks = [p for p in picture.getElementsByTagName("path") if p.getAttribute("class") == "refused"]
        assert picture.documentElement.tagName == "svg" and bool(marks) and not picture.getElementsByTagName("script")
    for options in [], ["--ascii"]:
        text = subprocess.run([VRAMTRACE, "timeline", *options, trace], check=True, capture_output=True, text=True).stdout
        mark, = (line for line in text.splitlines() if line.startswith("   refused "))
        assert mark.strip()[-1] == ("^" if options else "\u25b2") and "torch" in text and "reserved, not in use" in text, text
        assert not options or text.isascii()


for test in (pprof_against_torch, stacks_agree, perfetto, torch_snapshots, torch_moments, random_allocator, phases, tables, several, wrong_use,
             hostile_names, timelines, *([any_trace] if os.environ["MODE"] == "release" else [])):
    test()
    print(f"ok      {test.__name__}")

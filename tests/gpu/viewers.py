#!/usr/bin/env python3
"""
What other viewers show of recordings from a real GPU. PyTorch's own torch.cuda._memory_viz reads and draws the exported snapshot,
and its totals, blocks and counts of events are those of PyTorch's snapshot of the same run. A JAX program is recorded too.
Leaves packed traces in OUT. Environment as main_job.py. Exit 77 without a GPU or PyTorch.
"""
import base64
import collections
import json
import pathlib
import pickle
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import main_job as job  # noqa: E402

ACTIVE = "active_allocated"


def exported(trace, form, *options):
    out = job.OUT / f"{trace.stem}.{form}"
    done = job.run([job.CLI, "export", f"--format={form}", "-o", out, *options, trace])
    job.check(f"{trace.stem}: export as {form}, MiB", (done.returncode, round(out.stat().st_size / (1 << 20), 1)) if out.exists()
              else done.stderr[-200:], "exit 0", done.returncode == 0)
    return out


def totals(snapshot):
    segments = snapshot["segments"]
    return {
        "segments": len(segments),
        "reserved": sum(s["total_size"] for s in segments),
        "active": sum(b["size"] for s in segments for b in s["blocks"] if b["state"] == ACTIVE),
        "blocks": collections.Counter((s["address"], b["size"], b["state"]) for s in segments for b in s["blocks"]),
        "events": collections.Counter(e["action"] for t in snapshot["device_traces"] for e in t),
    }


def drawn(html):
    """The snapshot that a page of _memory_viz carries."""
    found = max(re.findall(r'"([A-Za-z0-9+/=]{200,})"', html), key=len, default="")
    return pickle.loads(base64.b64decode(found)) if found else None


def check_pages(name, snapshot, own):
    from torch.cuda import _memory_viz as viz

    for what, draw in (("trace_plot", viz.trace_plot), ("segment_plot", viz.segment_plot)):
        page, theirs = draw(snapshot), draw(own)
        (job.OUT / f"{name}-{what}.html").write_text(page)
        seen, want = drawn(page), drawn(theirs)
        job.check(f"{name}: {what} draws", type(seen).__name__, type(want).__name__, seen is not None)
    for what in "segsum", "trace":  # the others want to fetch a program
        words = getattr(viz, what)(snapshot)
        job.check(f"{name}: _memory_viz.{what}, lines", len(words.splitlines()), "> 0", len(words.splitlines()) > 0)


def shared(snapshot, own):
    """Its segments that PyTorch has too, and how many others it shows: memory that is not PyTorch's."""
    theirs = {s["address"] for s in own["segments"]}
    kept = [s for s in snapshot["segments"] if s["address"] in theirs]
    return dict(snapshot, segments=kept), len(snapshot["segments"]) - len(kept)


def check_torch():
    trace, out = job.OUT / "train-oom.vt", job.OUT / "train-oom.truth.json"
    done = job.run([sys.executable, job.WORK / "torch_viewed.py", out], trace)
    job.check("training: exit status", done.returncode, 0)
    if done.returncode:
        print(done.stderr[-2000:])
        return
    truth, own = json.loads(out.read_text()), pickle.loads(pathlib.Path(f"{out}.pickle").read_bytes())
    job.check("training: memory was refused at batch", truth["refused_batch"], "> 0", truth["refused_batch"] > 0)
    ours = pickle.loads(exported(trace, "torch-snapshot").read_bytes())
    kept, n_others = shared(ours, own)
    print(f"      segments of others: {n_others}")
    a, b = totals(kept), totals(own)
    for key in "segments", "reserved", "active":
        job.check(f"training: {key} as in PyTorch's snapshot", a[key], b[key])
    job.check("training: blocks that differ", sum(((a["blocks"] - b["blocks"]) + (b["blocks"] - a["blocks"])).values()), 0)
    for action in "alloc", "free_completed", "segment_alloc", "segment_free", "oom":
        more = n_others if action in ("alloc", "segment_alloc") else 0
        job.check(f"training: events {action}, of PyTorch's segments", a["events"][action] - more, b["events"][action])
    print("      all events:", dict(a["events"]), dict(b["events"]))
    check_pages("training", ours, own)
    for form in "pprof", "perfetto", "speedscope", "collapsed", "csv", "jsonl":
        exported(trace, form)
    pack(trace)


def check_jax():
    trace = job.OUT / "jax-train.vt"
    done = job.run([sys.executable, job.WORK / "jax_train.py"], trace)
    if done.returncode:
        print(f"      jax: does not run here: {done.stderr[-300:]}")
        return
    result = job.report(trace)
    owners = {o["owner"]: o["peak_bytes"] for o in result["devices"][0]["owners"]}
    job.check("jax: owners", owners, "jax or xla", any("jax" in o or "xla" in o for o in owners))
    for form in "pprof", "perfetto", "torch-snapshot":
        exported(trace, form)
    pack(trace)


def pack(trace):
    done = job.run([job.CLI, "pack", trace])
    packed = trace.with_suffix(".vt.zst")
    job.check(f"{trace.stem}: packed, KiB", packed.stat().st_size >> 10 if packed.exists() else done.stderr, "exit 0",
              done.returncode == 0)


def main(parts):
    try:
        import torch
    except ImportError:
        torch = None
    if not torch or not torch.cuda.is_available():
        print("no GPU, or no PyTorch")
        return 77
    for part in parts or ("torch", "jax"):
        globals()[f"check_{part}"]()
    failed = job.results.count(False)
    print(f"{job.results.count(True)} passed, {failed} failed; in {job.OUT}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

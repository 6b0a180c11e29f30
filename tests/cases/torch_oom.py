#!/usr/bin/env python3
"""Memory that runs out, or is wasted, inside PyTorch's allocator (the simulated one): for each way the right class, the
right stack, the right bytes, and what would have sufficed; and rows that equal the allocator's own ledger.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.environ["SOURCE_DIR"], "tests/cases/lib"))
import oom_check  # noqa: E402
from oom_check import CONTEXT, MIB, STACKS, ask, has_stack, level, main, only, report, suffices  # noqa: E402

ALL = 512 * MIB
ROOM = ALL - CONTEXT
EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}


def run(case, memory=ALL, **environ):
    return oom_check.run("torch_oom", case, memory, **environ)


def check_carved(found, at):
    """252 MiB in 21 pieces of 12, of which three stay, with 6, 6, 6 and three pieces between."""
    row = level(found, "torch", at)
    assert (row["verdict"], row["reserved_bytes"], row["live_bytes"], row["pinned_bytes"], row["returnable_bytes"]) == \
        ("pinned", 252 * MIB, 36 * MIB, 216 * MIB, 0), row
    assert row["largest_hole_bytes"] == 72 * MIB, row
    assert sorted((hole["bytes"] // MIB, hole["count"]) for hole in row["holes"]) == [(36, 2), (72, 2)], row["holes"]
    assert sum(pinner["pins_bytes"] + (pinner["shared_bytes"] if not pinner["pins_bytes"] else 0)
               for pinner in row["pinners"][:1]) == 216 * MIB, row["pinners"]
    has_stack(row["pinners"][0], "keep", "carve")
    segment, = row["segments"]
    assert (segment["size"], segment["live_bytes"], segment["idle_bytes"]) == (252 * MIB, 36 * MIB, 216 * MIB), segment
    assert len(segment["smallest"]) == 3 and segment["smallest"][0]["size"] == 12 * MIB, segment
    assert "expandable_segments" in row["advice"], row["advice"]
    assert row["advice_bytes"] == 216 * MIB, row


def carved():
    found = report(run("carved"))
    oom = only(found, "fragmentation", requested_bytes=200 * MIB, reported_by_allocator=True, free_bytes=ROOM - 252 * MIB,
               free_measured=True, recovered=False)
    has_stack(oom, "forward", "carved")
    assert suffices(oom)["move_pinning_blocks"] == 216 * MIB, suffices(oom)
    check_carved(found, "oom:1")
    # As carved_expandable shows.
    hint = oom["whatif"]
    assert (hint["served"], hint["class"], hint["recorded_peak_bytes"]) == (True, "lower_bound", 252 * MIB), hint
    assert hint["text"] == level(found, "torch", "oom:1")["advice"], hint
    assert "would have passed the point of failure" in hint["text"], hint


def carved_limit():
    """The cap is what the allocator stops at, and without the pieces it would not have."""
    found = report(run("carved_limit"))
    oom = only(found, "fragmentation", requested_bytes=200 * MIB, refused_calls=0, reported_by_allocator=True)
    has_stack(oom, "forward", "carved")
    check_carved(found, "oom:1")
    # The cap is not known well enough to say that it would have been too low.
    assert oom["whatif"] is None, oom["whatif"]
    assert "max_split_size_mb" in level(found, "torch", "oom:1")["advice"], found["fragmentation"]


def carved_expandable():
    found = report(run("carved_expandable", **EXPANDABLE))
    assert not found["oom"], found["oom"]
    row = level(found, "torch", "end")
    assert row["live_bytes"] == 236 * MIB and row["pinned_bytes"] == 0, row
    assert "expandable" not in (row["advice"] or ""), row["advice"]


def drift():
    found = report(run("drift", 8 << 30))
    row = level(found, "torch", "end")
    assert row["verdict"] == "size_drift" and row["requests"]["drifting_sites"] == 1, row
    assert row["live_bytes"] == 0 and row["reserved_bytes"] > 4 << 30, row
    assert "expandable_segments" in row["advice"], row["advice"]
    assert "would have served every request of this recording, peak" in row["advice"], row["advice"]
    less = level(report(run("drift", 8 << 30, **EXPANDABLE)), "torch", "end")
    assert less["reserved_bytes"] < row["reserved_bytes"] // 4, less
    assert less["advice"] is None or "expandable" not in less["advice"], less


def too_late():
    oom = only(report(run("too_late")), "pending_free", requested_bytes=96 * MIB)
    has_stack(oom, "forward", "too_late")
    assert suffices(oom)["retry"] == 96 * MIB, suffices(oom)


def own_cache():
    oom = only(report(run("own_cache")), "fragmentation", requested_bytes=200 * MIB, recovered=True, refused_calls=1,
               reported_by_allocator=False, free_bytes=ROOM - 360 * MIB)
    has_stack(oom, "forward", "own_cache")


def other_stream():
    found = report(run("other_stream"))
    oom = only(found, "fragmentation", requested_bytes=220 * MIB)
    assert "another stream" in oom["reason"], oom["reason"]
    assert level(found, "torch", "oom:1")["largest_hole_bytes"] == 240 * MIB


def too_large():
    assert not only(report(run("too_large")), "impossible_request", requested_bytes=600 * MIB)["would_suffice"]


def fraction():
    trace = run("fraction")
    oom = only(report(trace), "limit", requested_bytes=40 * MIB, refused_calls=0, free_bytes=ROOM - 40 * MIB)
    assert "asked 40.0 MiB under a limit of its own, the driver had about " in ask("report", trace)
    has_stack(oom, "forward", "fraction")
    assert suffices(oom) == {"raise_limit": 40 * MIB}, suffices(oom)


def cache():
    found = report(run("cache"))
    oom = only(found, "other_allocator", requested_bytes=128 * MIB, reported_by_allocator=False,
               driver_api="cuMemAlloc_v2")
    has_stack(oom, "library_create", "cache")
    assert suffices(oom) == {"release_cache": 380 * MIB}, suffices(oom)
    row = level(found, "torch", "end")
    assert (row["verdict"], row["advice_bytes"]) == ("cached", 380 * MIB) and "empty_cache" in row["advice"], row


def full():
    oom = only(report(run("full")), "exhausted", requested_bytes=100 * MIB)
    has_stack(oom, "forward", "full")
    has_stack(oom["holders"][0], "keep", "full")
    assert sum(holder["bytes"] for holder in oom["holders"] if holder["level"] == "block") == 400 * MIB, oom["holders"]
    assert suffices(oom) == {"free_live_blocks": 100 * MIB}, suffices(oom)
    text = ask("oom", "full.vt")
    assert not STACKS or "most of it 400.0 MiB from full > keep" in text, text


def ledger():
    """Segments in all states: what is said of them equals what the allocator knows."""
    for name, environ in (("plain", {}), ("expandable", EXPANDABLE)):
        path = f"{name}.json"
        trace = oom_check.run("torch_random", f"{path} --ops 6000 --capture", 8 << 30, **environ)
        device = json.load(open(path))["devices"][0]
        row = level(report(trace), "torch", "end")
        for field, key in (("reserved_bytes", "reserved_bytes"), ("live_bytes", "allocated_bytes")):
            assert row[field] == device[key]["current"], f"{name} {field}: {row[field]}, not {device[key]}"
        assert row["pending_bytes"] == device["pending_bytes"], f"{name}: {row['pending_bytes']}"
        if not environ:
            assert sum(segment["idle_bytes"] for segment in row["segments"]
                       if segment["live_bytes"]) <= device["inactive_split_bytes"]["current"], name


main((carved, carved_limit, carved_expandable, drift, too_late, own_cache, other_stream, too_large, fraction, cache, full,
      ledger))

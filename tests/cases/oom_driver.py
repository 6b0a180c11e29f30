#!/usr/bin/env python3
"""Ways to run out of memory, one after the other, on the simulated CUDA: for each the right class, the right stack, the
right bytes, what would have sufficed, and nobody blamed who has nothing to do with it.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["SOURCE_DIR"], "tests/cases/lib"))
import oom_check  # noqa: E402
from oom_check import CONTEXT, MIB, STACKS, ask, functions, has_stack, level, main, only, report, suffices  # noqa: E402

if os.environ["MODE"] == "tsan":
    print("one thread: nothing for ThreadSanitizer to find here")
    sys.exit(77)

ALL = 256 * MIB
ROOM = ALL - CONTEXT  # what a program can have on an empty device


def run(case, status=0, **environ):
    return oom_check.run("oom_driver", case, ALL, status, **environ)


def pinned_pages():
    """Cases 'A3' of the driver: half of the memory is free, in halves of pages."""
    found = report(run("pinned_pages"))
    oom = only(found, "fragmentation", requested_bytes=64 * MIB, free_bytes=0, free_measured=True,
               total_bytes=ALL, api="cudaMalloc", driver_api="cuMemAlloc_v2", device=0, recovered=False)
    has_stack(oom, "ask_for_output", "pinned_pages", "main")
    assert suffices(oom) == {"move_pinning_blocks": ROOM // 2}, suffices(oom)
    row = level(found, "driver", "oom:1")
    assert (row["verdict"], row["pinned_bytes"], row["pinned_pages"]) == ("pinned", ROOM // 2, ROOM // 2 // MIB), row
    assert row["pinners"][0]["pins_bytes"] == ROOM // 2 and row["pinners"][0]["count"] == ROOM // 2 // MIB, row
    has_stack(row["pinners"][0], "load_weights", "fill_and_thin", "pinned_pages")
    assert row["advice"], row


def free_pages():
    found = report(run("free_pages"))
    assert not found["oom"], found["oom"]
    assert not any(row["pinned_bytes"] or row["verdict"] for row in found["fragmentation"]), found["fragmentation"]


def retry():
    oom = only(report(run("retry")), "pending_free", requested_bytes=96 * MIB, free_bytes=64 * MIB,
               recovered=True, refused_calls=1)
    has_stack(oom, "pool_take", "retry", "main")
    assert suffices(oom) == {"wait_for_streams": 128 * MIB}, suffices(oom)


def two_streams():
    found = report(run("two_streams"))
    oom = only(found, "pending_free", requested_bytes=64 * MIB, free_bytes=ROOM - 64 * MIB)
    has_stack(oom, "pool_take", "two_streams")
    row = level(found, "pool", "oom:1")
    assert (row["pending_bytes"], row["live_bytes"], row["most_bytes"]) == (64 * MIB, 0, 96 * MIB), row
    assert [item["bytes"] for item in row["pending"]] == [64 * MIB], row["pending"]


def pool_limit():
    oom = only(report(run("pool_limit")), "limit", requested_bytes=64 * MIB, free_bytes=ROOM - 64 * MIB)
    has_stack(oom, "pool_take", "pool_limit")
    assert suffices(oom) == {"raise_limit": 64 * MIB}, suffices(oom)


def growing_cache():
    oom = only(report(run("growing_cache")), "exhausted")
    has_stack(oom, "scratch_get", "growing_cache")
    has_stack(oom["holders"][0], "scratch_get", "growing_cache")
    # Without stacks all blocks are of one site, and it grows just the same.
    assert oom["holders"][0]["growing_sizes"], oom["holders"]


def doubling_arena():
    found = report(run("doubling_arena"))
    oom = only(found, "exhausted", requested_bytes=128 * MIB, free_bytes=ROOM - 112 * MIB)
    has_stack(oom["holders"][0], "arena_extend", "doubling_arena")
    assert (oom["holders"][0]["bytes"], oom["holders"][0]["count"]) == (112 * MIB, 3), oom["holders"]
    assert not oom["holders"][0]["growing_sizes"], oom["holders"]


def too_large():
    oom = only(report(run("too_large")), "impossible_request", requested_bytes=300 * MIB, free_bytes=ROOM)
    has_stack(oom, "ask_for_output", "too_large")
    assert not oom["would_suffice"], oom["would_suffice"]
    # Also where a neighbour holds something: it is not the neighbour's fault.
    only(report(run("too_large", CUSIM_OTHER=str(128 * MIB))), "impossible_request")


def neighbour():
    found = report(run("neighbour", CUSIM_OTHER=str(96 * MIB)))
    oom = only(found, "other_process", requested_bytes=96 * MIB, free_bytes=ROOM - 128 * MIB)
    has_stack(oom, "ask_for_output", "neighbour")
    others = oom["other_processes"]
    assert others == {"bytes": 96 * MIB, "measured": True, "count": 1, "largest_pid": 1,
                      "largest_bytes": 96 * MIB}, others
    assert suffices(oom)["end_other_processes"] == 96 * MIB, suffices(oom)


def no_reason():
    found = report(run("no_reason", CUSIM_FAIL="cuMemAlloc_v2:2:2"))
    oom = only(found, "unexplained", requested_bytes=8 * MIB, free_bytes=ROOM - 16 * MIB)
    has_stack(oom, "ask_for_output", "no_reason")
    assert not oom["would_suffice"], oom["would_suffice"]


def hidden_failure():
    oom = only(report(run("hidden_failure")), "other_allocator", requested_bytes=48 * MIB,
               free_bytes=ROOM - 160 * MIB, api="cudaMalloc")
    has_stack(oom, "library_create", "hidden_failure")
    assert suffices(oom) == {"trim_pool": 160 * MIB}, suffices(oom)


def hidden_code():
    oom = only(report(run("hidden_code")), "other_allocator", requested_bytes=None, free_bytes=0,
               driver_api="cuModuleLoadData", kind=None)
    has_stack(oom, "library_load", "hidden_code")
    assert suffices(oom) == {"trim_pool": ROOM}, suffices(oom)


def address_space():
    found = report(run("address_space"))
    oom = only(found, "address_space", free_bytes=ROOM, tracked_bytes=0, mapped_bytes=0)
    has_stack(oom, "import_segment", "address_space")
    assert oom["reserved_address_bytes"] > ALL and oom["reserved_address_bytes"] % (16 << 30) == 0, oom
    assert oom["holders"][0]["bytes"] == oom["reserved_address_bytes"], oom["holders"]
    has_stack(oom["holders"][0], "import_segment")
    assert found["devices"][0]["peak"]["tracked_bytes"] == 0, found["devices"]


def checkpoint():
    found = report(run("checkpoint"))
    assert not found["oom"], found["oom"]
    assert found["devices"][0]["peak"]["tracked_bytes"] == 128 * MIB, found["devices"]
    sites = {tuple(functions(site)[-5:-2]) or site["kind"]: site["bytes"] for site in found["peak_sites"]}
    if STACKS:
        assert any("load_checkpoint" in functions(site) and site["bytes"] == 64 * MIB
                   for site in found["peak_sites"]), sites
    copies = [copy for copy in found["transfers"] if copy["direction"] == "d2d"]
    assert [copy["bytes"] for copy in copies] == [64 * MIB], copies


def optimizer():
    """The peak is in the step, beside weights that are as large."""
    found = report(run("optimizer"))
    assert found["devices"][0]["peak"]["tracked_bytes"] == 64 * MIB, found["devices"]
    for name in ("optimizer_step", "load_weights") if STACKS else ():
        assert [site["bytes"] for site in found["peak_sites"] if name in functions(site)] == [32 * MIB], name


def accumulate():
    found = report(run("accumulate"))
    oom = only(found, "exhausted")
    has_stack(oom, "concatenate", "accumulate")
    has_stack(oom["holders"][0], "concatenate")
    assert oom["holders"][0]["growing_sizes"] and oom["holders"][0]["count"] == 1, oom["holders"]
    kept = oom["holders"][0]["bytes"]
    assert oom["requested_bytes"] == kept + MIB, oom
    n = kept // MIB
    assert sum(copy["bytes"] for copy in found["transfers"]) == n * (n - 1) // 2 * MIB, found["transfers"]


def full(case="full", status=0, device=0, **environ):
    found = report(run(case, status, **environ))
    oom = only(found, "exhausted", requested_bytes=64 * MIB, free_bytes=32 * MIB, device=device,
               free_measured=True)
    has_stack(oom, "ask_for_output", "full")
    assert (oom["holders"][0]["bytes"], len(oom["holders"])) == (160 * MIB, 1), oom["holders"]
    has_stack(oom["holders"][0], "load_weights", "full")
    assert suffices(oom) == {"free_live_blocks": 160 * MIB}, suffices(oom)
    assert any("cuMemAlloc_v2" in event for event in oom["events"]), oom["events"]
    return found


def aborted():
    """Nothing of the episode is lost when the program is gone at once."""
    found = full("aborted", -6)
    assert found["traces"][0]["end"] == "killed", found["traces"][0]["end"]


def second_device():
    found = full("second_device", device=1, CUSIM_DEVICES="2")
    assert found["devices"][0]["end"]["tracked_bytes"] == 8 * MIB, found["devices"][0]


def pages():
    """Two runs of pages, both refused: one request; and a success later is another one's."""
    oom = only(report(run("pages")), "exhausted", requested_bytes=2 * MIB, refused_calls=2)
    has_stack(oom, "map_pages", "pages")


def texts():
    """What people read."""
    text = ask("report", "pinned_pages.vt")
    for words in ("OUT OF MEMORY  1 episode", "asked 64.0 MiB, the driver had 0 B: fragmentation",
                  "would have sufficed: 96.0 MiB", "FRAGMENTATION", "next: vramtrace oom pinned_pages.vt"):
        assert words in text, f"'{words}' is not in {text}"
    assert "OUT OF MEMORY" not in ask("report", "free_pages.vt")
    assert "1 of them overcome by a retry" in ask("report", "retry.vt")
    assert "Nothing was refused for lack of memory." in ask("oom", "free_pages.vt")
    text = ask("oom", "full.vt", "aborted.vt")
    assert text.count("what is live leaves too little room, most of it 160.0 MiB from") == 2, text
    assert "What came before" in text and "cudaMalloc" in text, text
    assert "of 2.0 MiB that small allocations share" in ask("fragmentation", "--at", "end", "pinned_pages.vt")
    assert "nothing of note" in ask("fragmentation", "--at", "peak", "free_pages.vt")
    if STACKS:
        assert "load_weights" in ask("peak", "--at", "oom", "full.vt")
    for command in (("oom", "--at", "peak", "full.vt"), ("oom", "--at", "oom:2", "full.vt"),
                    ("fragmentation", "--at", "oom", "free_pages.vt"), ("oom", "--at", "oom:x", "full.vt")):
        assert len(ask(*command, status=2).splitlines()) == 1, command


main((pinned_pages, free_pages, retry, two_streams, pool_limit, growing_cache, doubling_arena, too_large, neighbour,
      no_reason, hidden_failure, hidden_code, address_space, checkpoint, optimizer, accumulate, full, aborted,
      second_device, pages, texts))

"""PyTorch's blocks in a report against its own statistics and its snapshot of the allocator."""

STATES = {"active_allocated": "active", "active_pending_free": "pending", "inactive": "inactive"}


def compare_sums(device, stats):
    """What differs, line by line; empty when all is equal."""
    wrong = []
    for key in ("allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes"):
        for seen, when in ((device[key], "current"), (device["peak_" + key], "peak")):
            truth = stats[f"{key}.all.{when}"]
            if seen != truth:
                wrong.append(f"{key} {when}: {seen} is {truth}")
    for seen, key in (("allocations", "allocation.all.allocated"), ("frees", "allocation.all.freed"), ("refused", "num_ooms")):
        if device[seen] != stats[key]:
            wrong.append(f"{seen}: {device[seen]} is {stats[key]}")
    check = device["self_check"]
    if not check or check["allocated_differ"] or check["reserved_differ"]:
        wrong.append(f"self-check {check}")
    for key in ("outside_bytes", "unknown_frees", "missed_frees", "lost_blocks"):
        if device[key]:
            wrong.append(f"{key} {device[key]}")
    return wrong


def compare_layout(device, snapshot):
    true = sorted((s["address"], s["size"], s["expandable"]) for s in snapshot)
    told = [(int(s["address"], 16), s["size"], s["expandable"]) for s in device["segment_list"]]
    wrong = [f"segment {s}: only the trace" for s in told if s not in true] + [f"segment {s}: only PyTorch" for s in true if s not in told]
    blocks = {s["address"]: [(a, n, STATES.get(state, state)) for a, n, state in s["blocks"]] for s in snapshot}
    for segment in device["segment_list"]:
        address = int(segment["address"], 16)
        told = [(int(b["address"], 16), b["size"], b["state"]) for b in segment["blocks"]]
        differ = set(told) ^ set(blocks.get(address, told))
        if differ:
            wrong.append(f"segment {address:#x}: {sorted(differ)[:4]}")
    # Streams have other names here and there, but one for one.
    streams = {s["address"]: s["stream"] for s in snapshot}
    pairs = {(s["stream"], streams.get(int(s["address"], 16))) for s in device["segment_list"]}
    if len(pairs) != len({p[0] for p in pairs}) or len(pairs) != len({p[1] for p in pairs}) or any(p[0] is None for p in pairs):
        wrong.append(f"streams {pairs}")
    private = {s["address"] for s in snapshot if tuple(s["pool"]) != (0, 0)}
    captured = {int(s["address"], 16) for s in device["segment_list"] if s["captured"]}
    if not any(s["expandable"] for s in snapshot) and private != captured:
        wrong.append(f"captured {len(captured)} segments, {len(private)} in pools of graphs")
    return wrong

"""check_torch.py LEDGER REPORT [sampled]: what the trace says of PyTorch's blocks against the allocator's own ledger.

LEDGER is what c10sim_write_ledger wrote, REPORT is `report --json`. Prints each difference. The addresses, sizes and states of
all segments and blocks are compared, sums and peaks to the byte, and rows of the report are added up.
"""
import json
import sys

ledger = json.load(open(sys.argv[1]))
report = json.load(open(sys.argv[2]))
n_wrong = 0


def same(what, seen, truth):
    global n_wrong
    if seen != truth:
        n_wrong += 1
        print(f"{what}: the trace says {seen}, the allocator {truth}")


def check_segments(ordinal, seen, truth):
    """Both sorted by address."""
    true = [(s["address"], s["size"], s["stream"], s["expandable"]) for s in truth]
    told = [(int(s["address"], 16), s["size"], s["stream"], s["expandable"]) for s in seen]
    for a, b in zip(told, true):
        same(f"device {ordinal} segment", a, b)
    same(f"device {ordinal} segments", len(told), len(true))
    blocks = {s["address"]: [tuple(b) for b in s["blocks"]] for s in truth}
    for segment in seen:
        address = int(segment["address"], 16)
        told = [(int(b["address"], 16), b["size"], b["state"]) for b in segment["blocks"]]
        # PyTorch keeps free neighbours apart only at the borders of pages that are not mapped, which end a segment.
        same(f"device {ordinal} blocks of segment {address:#x}", told, blocks.get(address))
    captured = sum(s["captured"] for s in seen if not s["expandable"])
    same(f"device {ordinal} segments of captures", captured, sum(s["private"] != 0 and not s["expandable"] for s in truth))


def check_device(seen, truth):
    ordinal = truth["ordinal"]
    for key, name in (
        ("allocated_bytes", "allocated_bytes"),
        ("reserved_bytes", "reserved_bytes"),
        ("active_bytes", "active_bytes"),
        ("inactive_split_bytes", "inactive_split_bytes"),
    ):
        same(f"device {ordinal} {key}", seen[key], truth[name]["current"])
        same(f"device {ordinal} peak {key}", seen["peak_" + key], truth[name]["peak"])
    for key, name in (
        ("pending_bytes", "pending_bytes"),
        ("allocations", "allocations"),
        ("frees", "frees"),
        ("refused", "ooms"),
    ):
        same(f"device {ordinal} {key}", seen[key], truth[name])
    same(f"device {ordinal} blocks", seen["blocks"], truth["allocations"] - truth["frees"])
    for key in "outside_bytes", "unknown_frees", "missed_frees", "lost_blocks":
        same(f"device {ordinal} {key}", seen[key], 0)
    same(f"device {ordinal} reports compared", seen["self_check"]["reports"], truth["allocations"] + truth["frees"])
    same(f"device {ordinal} allocated differs", seen["self_check"]["allocated_differ"], 0)
    same(f"device {ordinal} reserved differs", seen["self_check"]["reserved_differ"], 0)
    check_segments(ordinal, seen["segment_list"], truth["segments"])


def check_rows(key, ordinal, truth):
    """No byte is in two rows: those of a device add up to what it has from the driver."""
    rows = [r for r in report[key] if r["device"] == ordinal and r["kind"] in ("linear", "vmm")]
    blocks = sum(r["bytes"] for r in rows if r["level"] == "block")
    idle = sum(r["bytes"] for r in rows if r["level"] == "idle")
    if key == "leaks":
        same(f"device {ordinal} bytes of blocks", blocks, truth["allocated_bytes"]["current"])
        same(f"device {ordinal} bytes of blocks and idle", blocks + idle, truth["reserved_bytes"]["current"])
        device = next(d for d in report["devices"] if d["ordinal"] == ordinal)
        live = sum(k["live_bytes"] for name, k in device["kinds"].items() if name in ("linear", "vmm"))
    else:
        live = next(d for d in report["devices"] if d["ordinal"] == ordinal)["peak"]["tracked_bytes"]
    same(f"device {ordinal} bytes of all rows of {key}", sum(r["bytes"] for r in rows), live)


reports = ledger["reports"]
same("reports that libc10 got", (reports["allocations"], reports["frees"], reports["refusals"]), tuple(
    sum(d[k] for d in ledger["devices"]) for k in ("allocations", "frees", "ooms")))
devices = {d["ordinal"]: d for d in report["torch"]["devices"]}
for truth in ledger["devices"]:
    if truth["ordinal"] not in devices:
        same(f"device {truth['ordinal']} allocations", 0, truth["allocations"])
        continue
    check_device(devices[truth["ordinal"]], truth)
    check_rows("leaks", truth["ordinal"], truth)
    check_rows("peak_sites", truth["ordinal"], truth)
same("lost events", report["traces"][0]["lost_events"], 0)
same("version", report["traces"][0]["torch"], "2.11.0+sim")
same("blocks are covered", report["coverage"]["torch"]["blocks"], True)
print(f"{sys.argv[1]}: {reports['allocations']} blocks, {n_wrong} differences")
sys.exit(n_wrong > 0)

"""check_ledger.py LEDGER REPORT DUMP [OUTPUT]: what the recorder saw against what the simulated CUDA did. Prints each difference.

LEDGER is what CUSIM_LEDGER names, REPORT is `report --json`, DUMP is `dump --json`. The recorder gives host memory no
device, so pinned and registered memory is compared over all devices; its counts are taken from the dump. OUTPUT is what
the program printed: with it, copies are compared by call site, too.
"""
import collections
import json
import sys

sys.dont_write_bytecode = True
import check_copies  # noqa: E402

ledger = json.load(open(sys.argv[1]))
report = json.load(open(sys.argv[2]))
n_wrong = 0


def same(what, seen, truth):
    global n_wrong
    if seen != truth:
        n_wrong += 1
        print(f"{what}: the trace says {seen}, the driver {truth}")


def total(entries, key, **where):
    return sum(e[key] for e in entries if all(e[name] == value for name, value in where.items()))


def check_device(device, truth):
    ordinal = device["ordinal"]
    for kind in "linear", "pool", "vmm", "managed":
        seen = device["kinds"].get(kind, collections.Counter())
        true = truth[kind]
        for key, name in (
            ("live_bytes", "live_bytes"),
            ("live", "live_count"),
            ("peak_live_bytes", "peak_live_bytes"),
            ("allocations", "allocations"),
            ("frees", "frees"),
            ("freed_at_teardown", "implicit_frees"),
        ):
            same(f"device {ordinal} {kind} {name}", seen[key], true[name])
        failed = total(report["failures"], "count", call="alloc", device=ordinal, kind=kind)
        same(f"device {ordinal} {kind} failed", failed, true["failed"])
    same(f"device {ordinal} sets", device["sets"], truth["sets"]["calls"])
    same(f"device {ordinal} bytes set", device["bytes_set"], truth["sets"]["bytes"])


def check_host(kind, n):
    def true(name):
        return sum(device[kind][name] for device in ledger["devices"])

    host = report["host_memory"]
    same(f"{kind} live_bytes", host[f"{kind}_bytes"], true("live_bytes"))
    same(f"{kind} peak_live_bytes", host[f"peak_{kind}_bytes"], true("peak_live_bytes"))
    same(f"{kind} allocations", n["alloc", kind], true("allocations"))
    same(f"{kind} frees", n["free", kind], true("frees"))
    failed = total(report["failures"], "count", call="alloc", kind=kind)
    same(f"{kind} failed", failed, true("failed"))


def count_dump(path):
    """Host allocations and frees by kind; the order of the records on the way."""
    n = collections.Counter()
    last = 0
    for line in open(path):
        record = json.loads(line)
        n[record["record"]] += 1
        if record["record"] == "alloc" or record["record"] == "free" and not record["result"]:
            n[record["record"], record["kind_name"]] += 1
        time = record.get("time_ns", last)
        if time < last:
            same("time of a record", time, f"{last} before it")
        last = time
    return n


def check_directions():
    for direction, truth in ledger["copies"].items():
        calls = total(report["transfers"], "calls", direction=direction)
        same(f"{direction} copies", calls, truth["calls"])
        same(f"{direction} bytes", total(report["transfers"], "bytes", direction=direction), truth["bytes"])


same("devices", len(report["devices"]), len(ledger["devices"]))
for device in report["devices"]:
    check_device(device, ledger["devices"][device["ordinal"]])
counts = count_dump(sys.argv[3])
check_host("pinned", counts)
check_host("registered", counts)
check_directions()
lines = open(sys.argv[4]).read().splitlines() if len(sys.argv) > 4 else []
check_copies.check(same, ledger, report, [line for line in lines if line.startswith("copy_site_")] if lines else None)
same("failed frees", total(report["failed_frees"], "count"), ledger["failed_frees"])
same("failed copies", total(report["failures"], "count", call="copy"), ledger["failed_copies"])
same("failed sets", total(report["failures"], "count", call="set"), ledger["failed_sets"])
same("unknown frees", report["unknown_frees"], 0)
same("missed frees", report["missed_frees"], 0)
trace = report["traces"][0]
same("lost events", trace["lost_events"], 0)
same("complete", trace["complete"], True)
same("pid", trace["pid"], ledger["pid"])
print(f"{sys.argv[1]}: {trace['events']} events, {counts['alloc']} allocations, {n_wrong} differences")
sys.exit(n_wrong > 0)

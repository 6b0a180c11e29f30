"""The stacks of a trace, allocation by allocation, for comparison with what a program knows of its own."""
import collections
import json
import subprocess


def ask(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def leaks(cli, trace):
    return json.loads(ask(cli, "leaks", "--json", trace))["leaks"]


class Stacks:
    """The allocations or blocks of a trace, those that are live at its end with their stacks, and how stacks were recorded."""

    def __init__(self, cli, trace, level="driver"):
        self.leaks, self.allocs, self.modules, self.outcomes = leaks(cli, trace), [], [], {}
        alloc_record, free_record = ("block_alloc", "block_free") if level == "block" else ("alloc", "free")
        n_freed = collections.Counter()
        for line in ask(cli, "dump", "--json", trace).splitlines():
            record = json.loads(line)
            if record["record"] == alloc_record:
                self.allocs.append(record)
            elif record["record"] == free_record and not record.get("result"):
                n_freed[record["address"]] += 1
            elif record["record"] == "module":
                self.modules.append(record["path"])
            elif record["record"] == "python_stacks":
                self.outcomes[record["outcome"]] = record["count"]
        self.allocs.sort(key=lambda a: a["time_ns"])
        sites = collections.defaultdict(list)
        for alloc in self.allocs:
            # Of several allocations at one address the last is the one that was not freed.
            alloc["live"] = n_freed[alloc["address"]] == 0
            n_freed[alloc["address"]] -= not alloc["live"]
            sites[alloc["stack_id"], alloc.get("kind_name")].append(alloc)
        entries = {(e["bytes"], e["count"], e["first_ns"]): e["stack"] for e in self.leaks if e["level"] == level}
        for allocs in sites.values():
            live = [a for a in allocs if a["live"]]
            key = sum(a["bytes"] for a in live), len(live), allocs[0]["time_ns"]
            for alloc in live:
                alloc["stack"] = entries.get(key)


def python_part(stack):
    return [(f["file"], f["function"], f["line"]) for f in stack or [] if f["kind"] == "python"]


def lines(cli, trace, records):
    """Against torch_lines.py's own records: how many there are, how many are in the trace, and [ours, truth] where they differ."""
    truth, seen, different = dict(records), 0, []
    for alloc in Stacks(cli, trace).allocs:
        if alloc["bytes"] not in truth or not alloc["live"] or alloc["stack"] is None:
            continue
        seen += 1
        got, want = python_part(alloc["stack"]), [tuple(f) for f in truth[alloc["bytes"]]]
        if got != want:
            different.append((got, want))
    return len(truth), seen, different

"""What tests/gpu/transfers.c says must be found, against `vramtrace transfers --json`."""


def functions(entry):
    return [frame["function"] or "" for frame in entry["stack"] or []]


def of_site(report, function):
    """The findings whose stack has the function, beside those of other sorts."""
    return [f for f in report["transfer_findings"] if function in functions(f)]


def differences(truth, report):
    """One line for each finding that is missing, or has other numbers."""
    lines = []
    for want in truth:
        found = [f for f in of_site(report, want["function"]) if f["finding"] == want["finding"]]
        if len(found) != 1:
            there = [(f["finding"], functions(f)[:3]) for f in report["transfer_findings"]]
            lines.append(f"{want['finding']} of {want['function']}: {len(found)} times among {there}")
            continue
        # Whether memory is asked for again within a millisecond is up to the machine, too.
        least = 0.9 if want["finding"] == "alloc_churn" else 1
        for key in "count", "bytes":
            if not want[key] * least <= found[0][key] <= want[key]:
                lines.append(f"{want['finding']} of {want['function']}: {key} {found[0][key]}, not {want[key]}")
    return lines


def rates(truth, report):
    """(row, rate by the program's events, rate of the report, ratio of device times) for each row of the table."""
    sizes = {(t["direction"], t["host_kind"], s["from_bytes"]): s for t in report["transfer_totals"] for s in t["sizes"]}
    rows = []
    for row in truth:
        seen = sizes.get((row["direction"], row["host_kind"], row["bytes"]))
        rate = row["bytes"] * row["count"] * 1e9 / row["event_ns"] if row["event_ns"] else 0
        timed = seen and seen["gpu_time_ns"] and seen["gpu_time_ns"] / seen["timed_calls"] / (row["event_ns"] / row["count"])
        rows.append((row, rate, seen and seen["bytes_per_s"], timed))
    return rows

#!/usr/bin/env python3
"""Memory that stays, on the simulated CUDA: for each way the right verdict, the right stack and the right rate, and what
is no leak is not called one. Then what the commands make of it: suppressions, limits, differences, other shapes.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys

BUILD = os.environ["BUILD_DIR"]
VRAMTRACE = f"{BUILD}/vramtrace"
KIB, MIB = 1 << 10, 1 << 20
CASES = ("plain marked one_time unload unload_all saturating bursts graphs_kept graphs modules threads few_threads failures "
         "teardown high_water leak_in_pool shared other_stream loading failed_captures communicators communicators_kept").split()

if os.environ["MODE"] == "tsan":
    print("nothing but what other cases do is done with threads")
    sys.exit(77)


def make_nccl():
    """A library that goes by its name."""
    subprocess.run([*os.environ.get("CC", "cc").split(), "-g", "-O1", "-fPIC", "-shared", *os.environ["CUDA_FLAGS"].split(),
                    f"{os.environ['SOURCE_DIR']}/tests/cases/lib/nccl.c", "-o", "libnccl.so.2", f"{BUILD}/sim/libcudart_static.a",
                    f"-L{BUILD}/sim", "-lcuda", "-ldl", "-lpthread"], check=True)


def run_all():
    """They mostly wait, so many at once."""
    environ = dict(os.environ, CUSIM_IPC_SELF="1", LD_LIBRARY_PATH=f"{os.environ['LD_LIBRARY_PATH']}:{BUILD}/sim/torch/lib",
                   LD_PRELOAD=f"{BUILD}/libvramtrace.so", VRAMTRACE_QUIET="1")
    def run(case):
        done = subprocess.run([f"{BUILD}/cases/leaks", case], text=True, stdout=subprocess.PIPE,
                              env=dict(environ, VRAMTRACE_OUTPUT=f"{case}.vt"))
        assert done.returncode == 0, f"{case}: exit status {done.returncode}"
        return json.loads(done.stdout)

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        return dict(zip(CASES, pool.map(run, CASES)))


def ask(*command, status=0, **environ):
    done = subprocess.run([VRAMTRACE, *command], capture_output=True, text=True, env=dict(os.environ, **environ))
    assert done.returncode == status, f"{command}: exit status {done.returncode}: {done.stdout}{done.stderr}"
    return done.stderr if status > 1 else done.stdout


def functions(item):
    return [frame["function"] for frame in item["stack"] or []]


class Case:
    def __init__(self, name):
        def of_this(key):
            return [item for item in REPORT[key] if item["trace"] == CASES.index(name)]

        self.did = DID[name]
        self.leaks, self.untracked = of_this("leaks"), of_this("untracked_growth")
        self.seconds = self.did["ns"] / 1e9

    def of(self, function):
        found = [leak for leak in self.leaks if function in functions(leak)]
        assert len(found) == 1, f"{len(found)} of {function}: {[functions(leak) for leak in self.leaks]}"
        return found[0]

    def is_leak(self, function, verdict, n_bytes):
        """It is one, first of all, and grows about as fast as it did: the pace is the machine's, see test_leaks.c."""
        leak = self.of(function)
        assert leak is self.leaks[0], f"{function} is not the first"
        assert (leak["verdict"], leak["leak"]) == (verdict, True), (leak["verdict"], leak["leak"])
        expected = n_bytes * self.did["kept"] / self.seconds
        assert expected / 2 <= leak["rate_bytes_per_s"] <= expected * 2, (leak["rate_bytes_per_s"], expected)
        assert leak["bytes"] == n_bytes * self.did["kept"], leak["bytes"]

    def is_none(self, function, verdict):
        leak = self.of(function)
        assert (leak["verdict"], leak["leak"]) == (verdict, False), (leak["verdict"], leak["leak"])
        assert leak["rate_bytes_per_s"] is None, leak["rate_bytes_per_s"]
        self.nothing_else()

    def nothing_else(self, *functions_of_leaks):
        for leak in self.leaks:
            assert not leak["leak"] or any(name in functions(leak) for name in functions_of_leaks), leak
        assert not self.untracked, self.untracked


def plain():
    case = Case("plain")
    case.is_leak("init_chunk", "growing", 256 * KIB)
    case.nothing_else("init_chunk")
    text = ask("report", "plain.vt")
    assert re.search(r"^LEAKS +! growing .*/min: .* init_chunk", text, re.M), text
    assert "LEAKS" not in ask("report", "one_time.vt")


def marked():
    case = Case("marked")
    case.is_leak("init_chunk", "growing", 256 * KIB)
    assert (case.leaks[0]["bytes_per_mark"], case.leaks[0]["mark"]) == (256 * KIB, "step *"), case.leaks[0]


def one_time():
    for name in "one_time", "unload_all":
        Case(name).is_none("first_use", "one_time")


def unload():
    case = Case("unload")
    case.is_leak("load_model", "growing", MIB)
    case.nothing_else("load_model")


def saturating():
    Case("saturating").is_none("init_chunk", "saturating")


def bursts():
    case = Case("bursts")
    assert {(leak["verdict"], leak["bursts"], leak["burst_count"]) for leak in case.leaks} == {
        ("bursts", 6, 11)}, [(leak["verdict"], leak["bursts"], leak["burst_count"]) for leak in case.leaks]
    case.nothing_else()


def untracked():
    case = Case("graphs_kept")
    (found,) = case.untracked
    expected = 40 * 64 * KIB * case.did["steps"] / case.seconds
    assert expected / 2 <= found["rate_bytes_per_s"] <= expected * 2, (found["rate_bytes_per_s"], expected)
    assert found["by_cause"]["graph_exec"] >= 0.9 * found["growth_bytes"], found
    assert found["graph_execs"] == {"created": 40 * case.did["steps"], "destroyed": 0}, found
    assert found["made_by"][0]["cause"] == "graph_exec" and "capture_graph" in functions(found["made_by"][0]), found
    counts = {item["object"]: item for item in found["objects"]}
    assert [name for name, item in counts.items() if item["grows"]] == ["graph_exec"], counts
    assert counts["graph_exec"]["growth"] > 20 * case.did["steps"], counts
    for name in "stream", "event":
        assert case.did["steps"] / 2 <= counts[name]["destroyed"] <= counts[name]["created"] <= case.did["steps"], counts
    assert not case.leaks, case.leaks
    text = ask("leaks", "graphs_kept.vt")
    assert "nobody allocated grows" in text and "capture_graph" in text, text
    assert "with it grows the number of graph executables, by " in text and "of events" not in text, text
    case = Case("modules")
    (found,) = case.untracked
    assert found["by_cause"]["modules"] >= 0.9 * found["growth_bytes"], found
    assert found["modules"] == {"loaded": case.did["steps"], "unloaded": 0}, found
    assert [item["object"] for item in found["objects"] if item["grows"]] == ["module"], found
    assert "compile_kernel" in functions(found["made_by"][0]), found
    Case("graphs").nothing_else()


def threads():
    case = Case("threads")
    case.is_leak("library_thread", "per_thread", 512 * KIB)
    assert case.of("library_thread")["ended_threads"] >= case.did["kept"] - 1
    Case("few_threads").is_none("library_thread", "per_thread")


def failures():
    case = Case("failures")
    leak = case.of("serve")
    assert (leak["verdict"], leak["leak"], leak["count"]) == ("retained_by_failure", True, case.did["kept"]), leak
    assert "serve" in ask("report", "failures.vt").split("LEAKS")[1].split("\n")[0]


def others():
    Case("teardown").is_none("first_use", "freed_at_teardown")
    Case("other_stream").nothing_else()
    case = Case("high_water")
    case.nothing_else()
    assert [(leak["level"], leak["verdict"]) for leak in case.leaks] == [("idle", "cache")], case.leaks
    case = Case("shared")
    case.nothing_else("keep")
    assert case.of("open_handle")["kind"] == "shared"
    # Loading looks like it, and is over when the work begins.
    leak = Case("loading").of("init_chunk")
    assert leak["verdict"] is None and leak["rate_bytes_per_s"] is None, leak


def failed_captures():
    case = Case("failed_captures")
    found = [(leak["level"], leak["verdict"], leak["bytes"], leak["leak"]) for leak in case.leaks if leak["level"] == "idle"]
    found = [row for row in found if row[1] != "cache"]
    assert found == [("idle", "retained_by_failure", 24 * MIB * case.did["kept"], True)], found
    assert "left by failures" in ask("leaks", "failed_captures.vt")


def communicators():
    case = Case("communicators")
    for function, kind, n_bytes in ("nccl_buffer", "vmm", 4 * 10 * MIB), ("nccl_proxy", "pinned", 9 * MIB):
        leak = case.of(function)
        assert (leak["kind"], leak["owner"], leak["verdict"], leak["leak"]) == (kind, "nccl", "one_time", False), leak
        assert leak["bytes"] == n_bytes, leak
    case.nothing_else()
    case = Case("communicators_kept")
    case.is_leak("nccl_buffer", "growing", 4 * 10 * MIB)
    leak = case.of("nccl_proxy")
    assert (leak["verdict"], leak["owner"], leak["bytes"]) == ("growing", "nccl", 9 * MIB * case.did["kept"]), leak
    case.nothing_else("nccl_buffer", "nccl_proxy")
    text = ask("leaks", "communicators_kept.vt")
    for where in "nccl on GPU 0, in 320 blocks at 1 site", "nccl, host, in 80 blocks at 1 site":
        assert re.search(rf"iB  {where}: growing .*/min: ", text), text
    assert re.search(r"iB  nccl on GPU 0, in 4 blocks at 1 site: one-time$", ask("leaks", "communicators.vt"), re.M)


def owners():
    """Each owner's sums are those of its sites, and its verdict that of what grows, or of most of it."""
    groups = {}
    for leak in REPORT["leaks"]:
        if leak["verdict"] != "freed_at_teardown":
            groups.setdefault((leak["trace"], leak["device"], leak["owner"]), []).append(leak)
    assert sorted(groups, key=str) == sorted(((o["trace"], o["device"], o["owner"]) for o in REPORT["leak_owners"]), key=str)
    for owner in REPORT["leak_owners"]:
        leaks = groups[owner["trace"], owner["device"], owner["owner"]]
        for key in "bytes", "count":
            assert owner[key] == sum(leak[key] for leak in leaks), owner
        growing = [leak for leak in leaks if leak["rate_bytes_per_s"] is not None]
        for key in "rate_bytes_per_s", "growth_bytes":
            assert owner[key] == (sum(leak[key] for leak in growing) if growing else None), owner
        most = {}
        for leak in growing or leaks:
            most[leak["verdict"]] = most.get(leak["verdict"], 0) + leak["bytes"]
        assert owner["verdict"] == (growing[0]["verdict"] if growing else max(most, key=most.get)), (owner, most)
        assert (owner["sites"], owner["leak"]) == (len(leaks), any(leak["leak"] for leak in leaks)), owner
    assert {owner["verdict"] for owner in REPORT["leak_owners"]} >= {"growing", "one_time", "per_thread", "cache"}
    (owner,) = json.loads(ask("leaks", "--json", "--limit", "1", "--device", "0", "communicators_kept.vt"))["leak_owners"]
    assert owner["owner"] == "nccl" and owner["device"] == 0, owner


def blocks():
    case = Case("leak_in_pool")
    case.is_leak("remember", "growing", 64 * KIB)
    case.nothing_else("remember")


def suppressions():
    with open("suppressions.txt", "w") as file:
        file.write("# ours\nleak:^init_ch*\n")
    for arguments, environ in ((("--suppressions", "suppressions.txt"), {}),
                               ((), {"VRAMTRACE_SUPPRESSIONS": "suppressions.txt"})):
        report = json.loads(ask("leaks", "--json", *arguments, "plain.vt", **environ))
        assert report["leaks"][0]["suppressed_by"] == "^init_ch*" and not report["leaks"][0]["leak"]
        assert [item["sites"] for item in report["suppressions"]] == [1], report["suppressions"]
        text = ask("leaks", *arguments, "plain.vt", **environ)
        assert "1 site suppressed by leak:^init_ch*" in text and "no leak" in text, text
    ask("check", "--max-leak", "0", "--max-growth", "0/min", "--suppressions", "suppressions.txt", "plain.vt")
    with open("wrong.txt", "w") as file:
        file.write("\ninit_chunk\n")
    assert "wrong.txt:2:" in ask("leaks", "--suppressions", "wrong.txt", "plain.vt", status=2)
    assert "none.txt" in ask("leaks", "--suppressions", "none.txt", "plain.vt", status=2)


def limits():
    lines = ask("check", "--max-leak", "1M", "--max-growth", "1M/min", "--max-peak", "1M", "--no-oom", "--max-live", "1K",
                "plain.vt", "one_time.vt", status=1).splitlines()
    assert [line.split()[-1] if "most of it" not in line else "leak" for line in lines] == [
        "(--max-peak)", "leak", "(--max-live)", "leak", "(--max-peak)", "(--max-live)"], lines
    assert "init_chunk" in lines[1] and "(--max-leak)" in lines[1] and "(--max-growth)" in lines[3], lines
    assert not ask("check", "--max-leak", "1G", "--max-growth", "1G/s", "--max-peak", "1G", "--max-live", "1G", "plain.vt")
    assert not ask("check", "--max-leak", "0", "--max-growth", "0/s", "one_time.vt", "unload_all.vt", "few_threads.vt",
                   "teardown.vt", "high_water.vt", "saturating.vt", "graphs.vt", "other_stream.vt")
    lines = ask("check", "--max-growth", "1M/s", "--no-oom", "graphs_kept.vt", "failures.vt", status=1).splitlines()
    assert "--max-growth" in lines[0] and "refused 10 times" in lines[-1], lines
    (line,) = ask("check", "--max-leak", "0", "loading.vt", status=1).splitlines()
    assert re.search(r": (\S+ MiB) leaked \(\1 of it without a verdict: too little was seen\), more than 0 B", line), line
    assert "no limit" in ask("check", "plain.vt", status=2)
    ask("check", "--max-growth", "1M", "plain.vt", status=2)
    ask("check", "--no-oom", "none.vt", status=3)


def differences():
    did = DID["plain"]
    found = json.loads(ask("diff", "--json", "--from", "0", "plain.vt"))
    assert found["from"]["time_ns"] == 0 and found["to"]["at"] == "end", found
    site = found["sites"][0]
    assert (site["growth_bytes"], site["from_bytes"]) == (256 * KIB * did["kept"], 0), site
    assert "init_chunk" in functions(site) and found["owners"][0]["growth_bytes"] == site["growth_bytes"], found
    leak = Case("plain").of("init_chunk")
    middle = json.loads(ask("diff", "--json", "--from", f"{(leak['first_ns'] + leak['last_ns']) // 2}ns", "--to", "end", "plain.vt"))
    (site,) = [site for site in middle["sites"] if "init_chunk" in functions(site)]
    assert 0 < site["growth_bytes"] < 256 * KIB * did["kept"], site
    # Of two programs the same stack is one row, though neither its number nor its addresses are the same.
    found = json.loads(ask("diff", "--json", "plain.vt", "saturating.vt"))
    rows = [(functions(site)[3:5], site["growth_bytes"]) for site in found["sites"]]
    assert sorted(growth for _, growth in rows) == sorted(
        [-256 * KIB * did["kept"], 256 * KIB * DID["saturating"]["kept"]]), rows
    text = ask("diff", "--from", "0", "plain.vt")
    for words in "BY OWNER", "BY CALL STACK", "init_chunk":
        assert words in text, text
    assert "no --from" in ask("diff", "plain.vt", status=2)
    assert "two traces" in ask("diff", "plain.vt", "one_time.vt", "unload.vt", status=2)


def as_sanitizer():
    text = ask("leaks", "--style=sanitizer", "plain.vt")
    kept = DID["plain"]["kept"]
    for line in (r"^========= COMPUTE-SANITIZER$",
                 rf"^========= Leaked {256 * KIB * kept:,} bytes at 0x[0-9a-f]+$",
                 r"^=========     Host Frame: init_chunk in leaks\.c:[0-9]+ \[0x[0-9a-f]+\] in leaks$",
                 rf"^========= LEAK SUMMARY: {256 * KIB * kept:,} bytes leaked in {kept} allocations$",
                 r"^========= ERROR SUMMARY: 1 error$"):
        assert re.search(line, text, re.M), f"{line}: {text}"
    text = ask("leaks", "--style=sanitizer", "graphs.vt", "teardown.vt")
    assert re.findall("ERROR SUMMARY: .*", text) == ["ERROR SUMMARY: 0 errors", "ERROR SUMMARY: 1 error"], text
    ask("leaks", "--style=other", "plain.vt", status=2)
    ask("leaks", "--style=sanitizer", "--json", "plain.vt", status=2)


def main():
    failed = 0
    for case in (plain, marked, one_time, unload, saturating, bursts, untracked, threads, failures, others, blocks,
                 failed_captures, communicators, owners, suppressions, limits, differences, as_sanitizer):
        try:
            case()
            print(f"ok      {case.__name__}")
        except AssertionError as error:
            failed += 1
            print(f"FAILED  {case.__name__}: {error}")
    sys.exit(failed > 0)


make_nccl()
DID = run_all()
REPORT = json.loads(ask("leaks", "--json", *(f"{case}.vt" for case in CASES)))
main()

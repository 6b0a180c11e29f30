#!/usr/bin/env python3
"""vramtrace html, read without a browser: the page is one whole, fetches nothing, says what the report says, and no name in a trace
is taken for more than text.
"""
import base64
import hashlib
import html.parser
import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
CASES = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(CASES / "lib"))
import html_traces  # noqa: E402

BUILD = os.environ["BUILD_DIR"]
VRAMTRACE = f"{BUILD}/vramtrace"
DATA = CASES.parent / "data/format-1"

if os.environ["MODE"] == "tsan":
    print("one thread: nothing for ThreadSanitizer to find here")
    sys.exit(77)


class Page(html.parser.HTMLParser):
    """The elements of a page, and the texts of its scripts and style."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts, self.within, self.policy, self.ids = [], {}, None, None, set()
        self.feed(pathlib.Path(path).read_text(encoding="utf-8"))
        self.close()
        self.data, self.report = json.loads(self.texts["page-data"]), json.loads(self.texts["report-data"])
        self.unfold(self.report, self.report.pop("frames"), self.report.pop("stacks"))

    def unfold(self, value, frames, stacks):
        """Frames in the place of numbers of stacks, as in the report."""
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            self.unfold(item, frames, stacks)
        if isinstance(value, dict) and isinstance(value.get("stack"), int):
            value["stack"] = [frames[number] for number in stacks[value["stack"]]]

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        assert not {"src", "href", "srcset", "action", "style"} & set(attributes) or attributes.get("href") == "#main", (tag, attributes)
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert attributes.get("id") not in self.ids, attributes
        self.ids |= {attributes.get("id")} - {None}
        self.tags.append(tag)
        if tag in ("script", "style"):
            self.within = attributes.get("id", tag)
            self.texts[self.within] = ""
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.within = None

    def handle_data(self, data):
        if self.within:
            self.texts[self.within] += data


def run(*arguments, status=0):
    done = subprocess.run([VRAMTRACE, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done


def make(*traces, options=()):
    run("html", "-q", "--force", "-o", "page.html", *options, *traces)
    return Page("page.html")


def told(trace):
    return json.loads(run("report", "--json", trace).stdout)


def compare(page, report, where="report"):
    """Equal, but that long lists of the page may end early."""
    if isinstance(report, dict):
        assert list(page) == list(report), (where, list(page), list(report))
        for key in report:
            compare(page[key], report[key], f"{where}.{key}")
    elif isinstance(report, list):
        assert len(page) == len(report) or 5 <= len(page) < len(report), (where, len(page), len(report))
        for i, (a, b) in enumerate(zip(page, report)):
            compare(a, b, f"{where}[{i}]")
    else:
        assert page == report, (where, page, report)


def sums(values):
    total, out = 0, []
    for value in values:
        total += value
        out.append(total)
    return out


def check_levels(trace, devices):
    """Each level has the peak, and parts that are no more than the whole."""
    for level in trace["levels"]:
        for i, device in enumerate(trace["devices"]):
            of = level["devices"][i]
            most, live, kept = sums(of["most"]), sums(of["live"]), sums(of["kept"])
            if device["is_host"]:
                continue
            assert max(most) == device["peak_bytes"]
            assert all(least <= whole for least, whole in zip(sums(of["least"]), most))
            assert all(a + b <= whole for a, b, whole in zip(live, kept, most))
            for parts in of["owners"], of["curves"]:
                for values in zip(live, *map(sums, parts)):
                    assert values[0] >= sum(values[1:])
    peaks = {device["ordinal"]: device["peak"]["tracked_bytes"] for device in devices}
    assert {d["ordinal"]: d["peak_bytes"] for d in trace["devices"] if not d["is_host"]} == {k: v for k, v in peaks.items() if v}


def scene_bytes(trace, scene):
    """By device, what is memory of the device."""
    found = {}
    for row, size in zip(scene["rows"][::3], scene["rows"][1::3]):
        device, *_, tracked, _ = trace["rows"][row]
        if tracked:
            found[device] = found.get(device, 0) + size
    return found


def check_scenes(trace, report):
    for scene in trace["scenes"]:
        if scene["at"] != "peak":
            continue
        ordinal = trace["devices"][scene["device"]]["ordinal"]
        want = sum(site["bytes"] for site in report["peak_sites"] if site["device"] == ordinal)
        assert scene_bytes(trace, scene).get(scene["device"], 0) == want, scene["at"]
    for scene in trace["scenes"]:
        for place in (scene["map"] or {"places": []})["places"]:
            ranges = place[11]
            assert sum(ranges[::6]) == place[3] and sum(ranges[2::6]) == place[8], place


def check_live(trace):
    """What the entries add up to in the end is what is live at the end."""
    live, rows = trace["live"], {}
    for row, size, count in zip(live["row"], live["bytes"], live["count"]):
        rows[row] = (size, count)
    end, = (scene for scene in trace["scenes"] if scene["at"] == "end")
    flat = end["rows"]
    assert {k: v for k, v in rows.items() if any(v)} == dict(zip(flat[::3], zip(flat[1::3], flat[2::3])))


def golden():
    names = ["packed-demo.vt.zst", "oom-carved.vt"]
    if os.environ["MODE"] == "release":
        names += ["known-static.vt", "pages-2-mib.vt", "torch-expandable.vt", "torch-graph.vt", "torch-streams.vt"]
    for trace in (DATA / name for name in names):
        page, report = make(trace), told(trace)
        compare(page.report, report)
        one, = page.data["traces"]
        check_levels(one, report["devices"])
        check_scenes(one, report)
        check_live(one)
        assert len(one["labels"]["leaks"]) == len(one["leaks"]) == len(page.report["leaks"])
        assert len(one["labels"]["transfers"]) == len(page.report["transfers"])
        assert len(one["labels"]["transfer_findings"]) == len(page.report["transfer_findings"])
        assert list(map(len, one["labels"]["holders"])) == [len(oom["holders"]) for oom in page.report["oom"]]


def recorded():
    """A trace with all that the current recorder knows of, for those made by hand."""
    subprocess.run([f"{BUILD}/examples/hello-shared"], check=True, stdout=subprocess.DEVNULL, env=dict(
        os.environ, LD_PRELOAD=f"{BUILD}/libvramtrace.so", VRAMTRACE_OUTPUT="hello.vt", VRAMTRACE_QUIET="1"))
    return "hello.vt"


def whole():
    """The policy lets only the page's own script and style be, and nothing be fetched."""
    page = make("hello.vt")
    for name in "script", "style":
        digest = base64.b64encode(hashlib.sha256(page.texts[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in page.policy, page.policy
    assert "default-src 'none'" in page.policy and "unsafe" not in page.policy
    assert "http" not in page.texts["script"].replace("http://www.w3.org/2000/svg", ""), "something could be fetched"
    assert page.tags.count("script") == 3


def service():
    truth = html_traces.service("hello.vt", "service.vt")
    page, report = make("service.vt"), told("service.vt")
    compare(page.report, report)
    one, = page.data["traces"]
    check_levels(one, report["devices"])
    check_scenes(one, report)
    check_live(one)
    assert [scene["at"] for scene in one["scenes"]].count("oom") == len(report["oom"]) == 1
    texts = page.data["texts"]
    assert [texts[i] for i in one["phases"][::4]] == ["load", "serve"] and len(one["marks"]) == 120
    leaking, = (row for row, leak in zip(one["leaks"], report["leaks"]) if leak["verdict"] == "growing")
    assert truth["leak"] in texts[one["rows"][leaking][5]]
    # A level of a bin for each change, and coarser ones.
    assert one["changes"] == len(one["levels"][0]["from"]) and len(one["levels"]) > 1


def hostile():
    html_traces.hostile("hello.vt", "hostile.vt")
    plain = make("hello.vt")
    for options in [], ["--hide-paths"], ["--all-frames"]:
        page = make("hostile.vt", options=options)
        assert page.tags == plain.tags and page.texts["script"] == plain.texts["script"]
        for name in "page-data", "report-data":
            assert not set("<>&\u2028\u2029") & set(page.texts[name])
    page = make("hostile.vt")
    compare(page.report, told("hostile.vt"))
    names = {page.data["texts"][frame[0]] for frame in page.data["frames"]}
    assert {"</script><script>window.evil = 1; alert(1)</script>", "__proto__"} <= names, names


def hidden():
    """A page that leaves the house has neither folders nor the host's name."""
    for options, is_there in ([], True), (["--hide-paths"], False):
        make("service.vt", options=options)
        text = pathlib.Path("page.html").read_text()
        assert all((word in text) == is_there for word in ("/srv/", "/usr/lib/python3", "gpu01")), options


def several():
    page = make("service.vt", "hello.vt")
    assert [trace["name"] for trace in page.data["traces"]][0].startswith("python3 4242") and len(page.data["traces"]) == 2
    assert len(page.report["traces"]) == 2 and {leak["trace"] for leak in page.report["leaks"]} >= {0}


def names():
    """Beside the trace, and nothing is overwritten unasked."""
    os.mkdir("folder")
    os.rename("hello.vt", "folder/hello.vt")
    assert "folder/hello.html: written" in run("html", "folder/hello.vt").stderr
    assert "not overwritten without --force" in run("html", "folder/hello.vt", status=2).stderr
    assert not run("html", "-q", "--force", "folder/hello.vt").stderr
    run("html", "folder")
    assert Page("folder/vramtrace.html").data["traces"]
    assert "is a trace" in run("html", "--force", "-o", "folder/hello.vt", "folder/hello.vt", status=2).stderr
    run("html", "-o", "nowhere/page.html", "folder/hello.vt", status=2)
    run("html", "no-such.vt", status=3)
    out = run("html", "-q", "-o", "/dev/stdout", "folder/hello.vt").stdout
    assert out.startswith("<!DOCTYPE html>") and out.endswith("</html>\n")


recorded()
for test in golden, whole, service, hostile, hidden, several, names:
    test()
    print(f"ok      {test.__name__}")

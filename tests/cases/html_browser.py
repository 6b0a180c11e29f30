#!/usr/bin/env python3
"""vramtrace html in a browser: zooming, what was live at the peak, the stack that leaks, finding in the flame graph, the theme, keys
alone, hostile names; no error, no request. Pictures are left in the case's folder.
"""
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
CASES = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(CASES / "lib"))
import browser  # noqa: E402
import html_traces  # noqa: E402

BUILD = os.environ["BUILD_DIR"]

if os.environ["MODE"] != "release":
    print("the page is the same however the command was built")
    sys.exit(77)
if not browser.find():
    print("no chromium here (make deps DEPS=ci)")
    sys.exit(77)


def make(page, *traces):
    subprocess.run([f"{BUILD}/vramtrace", "html", "-q", "-o", page, *traces], check=True)
    return pathlib.Path(page).resolve().as_uri()


def text(page, selector):
    return page.js(f"document.querySelector('{selector}').textContent")


def focused(page):
    return page.js("document.activeElement.id || document.activeElement.tagName")


def tab_to(page, wanted, most=40):
    for _ in range(most):
        if focused(page) == wanted:
            return
        page.key("Tab")
    raise AssertionError(f"Tab does not get to {wanted}, but to {focused(page)}")


def over_time(page, truth):
    assert "Peak of GPU 0" in text(page, "#live-title") and truth["peak"] in text(page, "#live-table td")
    before = page.js("view.to - view.from")
    x, y, width, height = page.box("#time-plot")
    page.drag(x + width * .3, y + height / 2, x + width * .5, y + height / 2)
    assert page.js("view.to - view.from") < before / 3
    page.press("#zoom-out")
    assert page.js("view.to - view.from") == before
    # The peak is where the plot is highest: clicked there, and not beside it, it is the largest request that is live.
    at = page.js("xOfTime(currentDevice().peak_ns)")
    page.click(x + at - 150, y + height / 2)
    assert truth["peak"] not in text(page, "#live-table td"), text(page, "#live-table td")
    page.click(x + at, y + height / 2)
    assert truth["peak"] in text(page, "#live-table td"), text(page, "#live-table td")
    # What the plot draws adds up to what the list has.
    assert page.js("""(() => { const level = currentTrace().levels[0], bin = floorIndex(series(level, "from"), view.at);
        return stackedValues(level, 0, bin).reduce((a, b) => a + b) === series(level.devices[0], "most")[bin]; })()""")
    page.press("#live-table td button")
    assert truth["peak"] in text(page, "#live-stack")
    page.js("document.querySelector('input[value=curves]').click()")
    assert truth["peak"] in text(page, "#time-legend")
    page.js("document.querySelector('input[value=owners]').click(); document.querySelector('#time-data').open = true")
    page.wait("document.querySelectorAll('#time-data tbody tr').length > 50")
    page.js("document.querySelector('#time-data').open = false")


def leaks(page, truth):
    page.press("#tab-leaks")
    row = "document.querySelector('#leaks-table tbody tr')"
    assert page.js(f"{row}.children[0].textContent") == "growing" and truth["leak"] in page.js(f"{row}.children[1].textContent")
    assert page.js(f"{row}.querySelector('path.spark').getAttribute('d').length") > 60
    page.press("#leaks-table td button")
    assert truth["leak"] in text(page, "#leaks-table ol.stack li")
    page.js("document.querySelector('#leaks-table th:nth-child(4) button').click()")
    assert page.js("document.querySelectorAll('#leaks-table th')[3].getAttribute('aria-sort')") == "descending"


def flame(page, truth):
    page.press("#tab-flame")
    page.js("byId('flame-of').value = 'leaks'; byId('flame-of').dispatchEvent(new Event('change'))")
    assert page.js("flame.root.bytes") >= truth["leak_bytes"]
    page.press("#flame-find")
    page.type(truth["leak"].split(".")[0].lower())
    page.wait("document.querySelectorAll('#flame .hit').length === 1")
    assert "GiB" in text(page, "#flame-found") or "MiB" in text(page, "#flame-found")
    page.press("#flame .hit")
    assert page.js("flame.zoom.name") == truth["leak"] and page.js("flame.zoom.bytes") == truth["leak_bytes"]
    page.press("#flame-reset")
    assert page.js("flame.zoom === flame.root")
    page.js("byId('flame-find').value = ''; byId('flame-find').dispatchEvent(new Event('input'))")
    page.press("#flame-invert")
    assert page.js("[...flame.root.children.values()].some(n => n.name === '" + truth["leak"] + "')")
    page.press("#flame-invert")


def address_map(page):
    page.press("#tab-map")
    n = page.js("map.places.length")
    assert n > 5 and "segments of torch" in page.js("groupTitle(map.groups[0])")
    box = page.js("[map.boxes[0].x, map.boxes[0].y]")
    x, y, *_ = page.box("#map-plot")
    page.click(x + box[0] + 5, y + box[1] + 5)
    assert "segment 0x7f" in text(page, "#map-detail h2")
    page.js("byId('map-plot').focus()")
    page.key("ArrowRight")
    assert page.js("map.chosen") == 1
    # Segments, pages and allocations are as large as what was tracked.
    assert page.js("map.places.reduce((sum, p) => sum + p[PLACE_BYTES], 0)") == page.js("currentDevice().peak_bytes")


def ooms(page):
    page.press("#tab-oom")
    assert "1.2 GiB" in text(page, "#oom-list h3") and page.js("document.querySelectorAll('.story').length") == 1
    page.press("#oom-list button")
    assert page.js("state.tab") == "map" and "Out of memory 1" in page.js("byId('map-of').selectedOptions[0].textContent")


def compare(page):
    page.press("#tab-compare")
    a, b = page.js("[byId('compare-a').selectedOptions[0].textContent, byId('compare-b').selectedOptions[0].textContent]")
    assert a.startswith("Peak") and b.startswith("The end")
    before = page.js("byId('compare-sum').textContent")
    assert "-" in before.split("From A to B")[1]
    page.press("#compare-swap")
    assert "+" in page.js("byId('compare-sum').textContent").split("From A to B")[1]
    assert page.js("document.querySelectorAll('#compare-table tbody tr').length") > 3


def theme(page):
    page.js("openTab('time')")
    light = page.js("getComputedStyle(document.querySelector('main')).backgroundColor")
    page.press("#theme")
    assert page.js("document.documentElement.dataset.theme") == "dark"
    assert page.js("getComputedStyle(document.querySelector('main')).backgroundColor") != light
    page.press("#theme")
    assert page.js("document.documentElement.dataset.theme") == "light"
    # What the system prefers, when that changes.
    for scheme in "dark", "light":
        page.prefer(scheme)
        page.wait(f"document.documentElement.dataset.theme === '{scheme}'")


def keys_alone(page, uri, truth):
    """From the top of the page: to the plot, to the peak, zoom, to the flame graph, and to the leaks."""
    page.open(uri)
    tab_to(page, "tab-time")
    tab_to(page, "time-plot")
    page.key("End")
    assert "The end" in text(page, "#live-title"), text(page, "#live-title")
    page.key("p")
    assert truth["peak"] in text(page, "#live-table td") and focused(page) == "time-plot"
    assert "tracked" in page.js("byId('time-plot').getAttribute('aria-valuetext')")
    whole = page.js("view.to - view.from")
    page.key("+")
    assert page.js("view.to - view.from") == whole / 2
    for _ in range(5):
        page.key("ArrowRight", shift=True)
    page.key("Enter")
    assert page.js("view.to - view.from") < whole / 4
    page.key("0")
    assert page.js("view.to - view.from") == whole
    page.js("byId('tab-time').focus()")
    page.key("ArrowRight")
    assert page.js("state.tab") == "flame" and focused(page) == "tab-flame"
    for _ in range(12):
        page.key("Tab")
        if page.js("document.activeElement.getAttribute('role')") == "treeitem":
            break
    page.key("ArrowDown")
    page.key("ArrowDown")
    page.key("Enter")
    assert page.js("flame.zoom.depth") == 2 and page.js("document.activeElement.getAttribute('role')") == "treeitem"
    page.key("Escape")
    assert page.js("flame.zoom.depth") == 0
    page.js("byId('tab-flame').focus()")
    for _ in range(2):
        page.key("ArrowRight")
    assert page.js("state.tab") == "leaks"
    for _ in range(30):
        page.key("Tab")
        if page.js("document.activeElement.closest('td') !== null"):
            break
    page.key("Enter")
    assert truth["leak"] in text(page, "#leaks-table tr.more")
    assert page.js("document.activeElement.getAttribute('aria-expanded')") == "true"


def names(page):
    """Everything a reader of the screen would be told has a name."""
    unnamed = page.js("""[...document.querySelectorAll('button, select, input, canvas, [role=tree], [role=tabpanel]')]
        .filter(e => !e.closest('[hidden]') && e.getAttribute('aria-hidden') !== 'true')
        .filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.labels && e.labels.length))
        .map(e => e.outerHTML.slice(0, 80))""")
    assert not unnamed, unnamed


def pictures(page):
    for scheme, width in ("light", 1280), ("dark", 700):
        page.prefer(scheme)
        page.wait(f"document.documentElement.dataset.theme === '{scheme}'")
        page.size(width, 1000)
        for view in page.js("VIEWS.map(([id]) => id)"):
            page.js(f"openTab('{view}')")
            if view == "map":
                page.js("choosePlace(3)")
            wide = page.js("document.documentElement.scrollWidth - window.innerWidth")
            assert wide <= 0, (view, width, wide)
            names(page)
            page.picture(f"{view}-{scheme}-{width}.png")
    page.prefer("light")
    page.size(1280, 900)


def hostile(page):
    """Nothing of a name runs or becomes an element, and what would turn text around is shown as what it is."""
    page.open(make("hostile.html", "hostile.vt"))
    elements = page.js("document.querySelectorAll('img, b b, script').length")
    for view in page.js("VIEWS.map(([id]) => id)"):
        page.js(f"openTab('{view}')")
        page.js("[...document.querySelectorAll('td.where button')].slice(0, 20).forEach(button => button.click())")
        body = page.js("document.querySelector('main').textContent")
        assert not set("\u202e\u2066\u0007\u001b\u009b") & set(body), view
    assert page.js("document.querySelectorAll('img, b b, script').length") == elements == 3
    assert page.js("window.evil === undefined") and "<script>" in page.js("byId('facts').textContent")
    assert "\u27e8202E\u27e9" in page.js("data.texts.map(shown).join()")


def several(page):
    page.open(make("several.html", "service.vt", "hello.vt"))
    assert text(page, "#what").startswith("python3 4242") and text(page, "#tab-leaks") == "Leaks 1"
    page.js("byId('trace-choice').value = '1'; byId('trace-choice').dispatchEvent(new Event('change'))")
    assert text(page, "#what").startswith("hello"), text(page, "#what")
    for view in page.js("VIEWS.map(([id]) => id)"):
        page.js(f"openTab('{view}')")
    assert "hello.c" in text(page, "#compare-table") + text(page, "#leaks-table")


def main():
    subprocess.run([f"{BUILD}/examples/hello-shared"], check=True, stdout=subprocess.DEVNULL, env=dict(
        os.environ, LD_PRELOAD=f"{BUILD}/libvramtrace.so", VRAMTRACE_OUTPUT="hello.vt", VRAMTRACE_QUIET="1"))
    truth = html_traces.service("hello.vt", "service.vt")
    html_traces.hostile("hello.vt", "hostile.vt")
    uri = make("service.html", "service.vt")
    with browser.Browser(os.getcwd()) as page:
        page.prefer("light")
        page.open(uri)
        over_time(page, truth)
        leaks(page, truth)
        flame(page, truth)
        address_map(page)
        ooms(page)
        compare(page)
        theme(page)
        keys_alone(page, uri, truth)
        pictures(page)
        hostile(page)
        several(page)
        troubles = page.troubles()
    assert not troubles, troubles


main()
print("ok      zoom, peak, leak, flame graph, map, refusal, comparison, theme, keys, hostile names")

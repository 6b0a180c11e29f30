"""Chromium without a window, driven over a pipe by its debugging protocol: all that a page does and says can be seen."""
import base64
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, ""), "ArrowLeft": (37, ""), "ArrowUp": (38, ""),
        "ArrowRight": (39, ""), "ArrowDown": (40, ""), "Home": (36, ""), "End": (35, ""), " ": (32, " ")}


def find():
    """The browser's path, None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    def __init__(self, folder, width=1280, height=900, timeout=60):
        self.timeout = timeout
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()
        arguments = [find(), "--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run",
                     "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-extensions", "--disable-background-networking",
                     "--disable-component-update", "--disable-sync", "--mute-audio", "--disable-breakpad",
                     f"--user-data-dir={folder}/profile", f"--window-size={width},{height}", "about:blank"]
        # Its sandbox does not work for root, nor in most containers.
        arguments.insert(1, "--no-sandbox")

        # The browser reads commands from 3 and writes to 4.
        def place():
            os.dup2(os.dup(to_read), 100)
            os.dup2(os.dup(to_write), 101)
            os.dup2(100, 3)
            os.dup2(101, 4)

        environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "DBUS_SESSION_BUS_ADDRESS")}
        environment["HOME"] = str(folder)
        with open(f"{folder}/chromium.log", "wb") as log:
            self.process = subprocess.Popen(arguments, preexec_fn=place, pass_fds=(3, 4, to_read, to_write), stdout=log,
                                            stderr=log, env=environment)
        os.close(to_read)
        os.close(to_write)
        self.next_id, self.rest, self.events, self.session = 1, b"", [], None
        target = self.call("Target.getTargets")["targetInfos"]
        page = next(t for t in target if t["type"] == "page")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(width, height)

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, TimeoutError):
            pass
        os.close(self.to)
        os.close(self.back)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def message(self, until):
        while b"\0" not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.back, 1 << 16)
            if not part:
                raise OSError("the browser has gone")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        command = {"id": self.next_id, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        self.next_id += 1
        text = json.dumps(command).encode() + b"\0"
        while text:
            text = text[os.write(self.to, text):]
        until = time.monotonic() + self.timeout
        while True:
            answer = self.message(until)
            if answer.get("id") == command["id"]:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def open(self, url):
        """Goes to the page; returns how many seconds it took until it said that it is ready."""
        began = time.monotonic()
        self.call("Page.navigate", url=url)
        self.wait("document.documentElement && document.documentElement.dataset.ready === 'yes'")
        return time.monotonic() - began

    def js(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression):
        until = time.monotonic() + self.timeout
        while not self.js(expression):
            if time.monotonic() > until:
                raise TimeoutError(expression)
            time.sleep(0.02)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def mouse(self, kind, x, y, buttons=0, clicks=0):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left" if buttons or clicks else "none", buttons=buttons,
                  clickCount=clicks)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, 1, 1)
        self.mouse("mouseReleased", x, y, 0, 1)

    def drag(self, x1, y1, x2, y2):
        self.mouse("mouseMoved", x1, y1)
        self.mouse("mousePressed", x1, y1, 1, 1)
        for i in range(1, 6):
            self.mouse("mouseMoved", x1 + (x2 - x1) * i / 5, y1 + (y2 - y1) * i / 5, 1)
        self.mouse("mouseReleased", x2, y2, 0, 1)

    def box(self, selector):
        """x, y, width and height of an element, which is scrolled to."""
        return self.js(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'nearest'}});"
                       "const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()")

    def press(self, selector):
        x, y, width, height = self.box(selector)
        self.click(x + width / 2, y + height / 2)

    def key(self, key, shift=False):
        code, text = KEYS[key] if key in KEYS else (ord(key.upper()), key)
        parameters = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        if text:
            parameters["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", **parameters)
        parameters.pop("text", None)
        self.call("Input.dispatchKeyEvent", type="keyUp", **parameters)

    def type(self, text):
        for c in text:
            self.key(c)

    def picture(self, path, whole=False):
        png = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(png))

    def troubles(self):
        """What the page complained of, and what it wanted from a network."""
        self.js("0")
        found = []
        for event in self.events:
            parameters = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(parameters["exceptionDetails"].get("exception", parameters))[:400])
            elif event["method"] == "Runtime.consoleAPICalled":
                found.append("console: " + str(parameters["args"])[:400])
            elif event["method"] == "Log.entryAdded":
                found.append("log: " + parameters["entry"]["text"][:400])
            elif event["method"] == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if not url.startswith(("file:", "data:", "about:")):
                    found.append("request: " + url)
            elif event["method"] == "Page.javascriptDialogOpening":
                found.append("dialog: " + parameters["message"])
        return found

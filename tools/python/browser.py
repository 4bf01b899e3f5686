"""A browser without a window, driven over the DevTools protocol through a pair of pipes.

    with Browser(chromium) as browser:
        page = browser.open("file:///…/report.html", width=1440, height=900)
        page.evaluate("document.title")

The standard library is all it needs. What a page says on its console and what it asks the network for is kept in
`page.complaints` and `page.requests`.
"""

import base64
import json
import os
import select
import subprocess
import tempfile
import time

PATIENCE = 30.0  # seconds for any answer


class BrowserError(Exception):
    pass


class Browser:
    def __init__(self, executable):
        self.profile = tempfile.TemporaryDirectory(prefix="selvedge-browser-")
        to_browser, self.commands = os.pipe()
        self.answers, from_browser = os.pipe()
        # The protocol's pipes are descriptors 3 and 4; a shell puts them there.
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        options = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
            "--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-sync",
            "--disable-component-update", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}",
            # Whatever asks for a name gets none; this machine has an address.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        ]
        self.process = subprocess.Popen(
            ["sh", "-c", script, "sh", executable, *options, "about:blank"],
            pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.number = 0
        self.buffer = b""
        self.pages = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        self.profile.cleanup()

    def message(self, deadline):
        """The next message of the browser."""
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                raise BrowserError("the browser does not answer")
            chunk = os.read(self.answers, 1 << 16)
            if not chunk:
                raise BrowserError("the browser has exited")
            self.buffer += chunk
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if session:
            request["sessionId"] = session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data):]
        deadline = time.monotonic() + PATIENCE
        while True:
            message = self.message(deadline)
            if message.get("id") == self.number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error']['message']}")
                return message["result"]
            page = self.pages.get(message.get("sessionId"))
            if page:
                page.note(message["method"], message["params"])

    def open(self, address, width, height, phone=False, dark=False, script=True):
        """Opens a page and waits until it is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        self.pages[session] = page
        for domain in ["Page", "Runtime", "Log", "Network"]:
            page.call(f"{domain}.enable")
        page.resize(width, height, phone)
        page.colours(dark)
        page.call("Emulation.setScriptExecutionDisabled", value=not script)
        page.call("Page.navigate", url=address)
        deadline = time.monotonic() + PATIENCE
        while not page.loaded:
            if time.monotonic() > deadline:
                raise BrowserError(f"{address} does not load")
            page.evaluate("0")
        return page


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        self.complaints, self.requests, self.loaded = [], [], False

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def note(self, method, parameters):
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(" ".join(str(a.get("value")) for a in parameters["args"]))
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"{expression}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result["result"].get("value")

    def wait_for(self, expression):
        """Waits until an expression is true."""
        deadline = time.monotonic() + PATIENCE
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise BrowserError(f"never true: {expression}")

    def resize(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone)
        self.call("Emulation.setTouchEmulationEnabled", enabled=phone)

    def colours(self, dark):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def centre(self, selector, across=0.5):
        """Scrolls the first visible element there, and says where it is."""
        place = self.evaluate(
            f"(() => {{ const e = [...document.querySelectorAll({json.dumps(selector)})].find((e) => e.getClientRects().length);"
            " if (!e) return null; e.scrollIntoView({ block: 'center' }); const b = e.getBoundingClientRect();"
            f" return [b.left + b.width * {across}, b.top + b.height / 2]; }})()"
        )
        if place is None:
            raise BrowserError(f"{selector} is not visible")
        # A page is told that it was scrolled with its next picture; one without script too, so a picture is taken.
        self.call("Page.captureScreenshot", format="png", clip={"x": 0, "y": 0, "width": 1, "height": 1, "scale": 1})
        return place

    def hover(self, selector, across=0.5):
        x, y = self.centre(selector, across)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector):
        x, y = self.centre(selector)
        for kind in ["mousePressed", "mouseReleased"]:
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def touch(self, selector, across=0.5):
        x, y = self.centre(selector, across)
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def press(self, key):
        for kind in ["keyDown", "keyUp"]:
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def press_key(self, key, number):
        """Presses a key that does something by itself, like Tab (9) or Enter (13)."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ["keyDown", "keyUp"]:
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=number, **(text if kind == "keyDown" else {}))

    def screenshot(self, path, whole=True):
        """A picture of the whole page, or of what is in the window."""
        options = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
            options = {"captureBeyondViewport": True, "clip": clip}
        data = self.call("Page.captureScreenshot", format="png", **options)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pdf(self, path):
        data = base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])
        with open(path, "wb") as file:
            file.write(data)
        return data

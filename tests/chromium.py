"""A headless Chromium, driven by its DevTools protocol: what a page asks for, says, measures and looks like."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from websockets.sync.client import connect

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SECONDS = 200
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run", "--disable-background-networking")


def find_axe():
    """The source of axe-core, which a package of PyPI carries; None where it is not installed."""
    found = find_spec("axe_core_python")
    return None if found is None else (Path(found.origin).parent / "axe.min.js").read_text()


@dataclass
class Tab:
    """A page that is open."""

    socket: object
    requests: list = field(default_factory=list)  # URLs
    messages: list = field(default_factory=list)  # of the console, of the log, and uncaught errors
    loaded: bool = False
    _last: int = 0

    def _take(self, message):
        method, given = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.messages.append(given)
        elif method == "Page.loadEventFired":
            self.loaded = True

    def call(self, method, **given):
        """Ask for something, and wait for the answer."""
        self._last += 1
        self.socket.send(json.dumps({"id": self._last, "method": method, "params": given}))
        while True:
            message = json.loads(self.socket.recv(timeout=SECONDS))
            if message.get("id") == self._last:
                assert "error" not in message, message
                return message["result"]
            self._take(message)

    def evaluate(self, expression):
        """What an expression of JavaScript, or its promise, gives."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def resize(self, width, height=900, dark=False, media=""):
        """Another screen, or another system's colours."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        wanted = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}, {"name": "prefers-reduced-motion", "value": "reduce"}]
        self.call("Emulation.setEmulatedMedia", media=media, features=wanted)

    def open(self, path):
        """Open a file, and wait until all of it is there."""
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.loaded = False
        self.call("Page.navigate", url=Path(path).absolute().as_uri())
        until = time.monotonic() + SECONDS
        while not self.loaded and time.monotonic() < until:
            self.evaluate("1")
            time.sleep(0.02)
        assert self.loaded

    def screenshot(self, path):
        """A picture of the whole page."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16000), "scale": 1}
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        Path(path).write_bytes(base64.b64decode(data))


@contextlib.contextmanager
def open_tab():
    """A new browser, with one tab, and a profile of its own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [BROWSER, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": profile},
        )
        try:
            named = Path(profile) / "DevToolsActivePort"
            until = time.monotonic() + SECONDS
            while not (named.exists() and named.read_text().count("\n")) and time.monotonic() < until:
                assert process.poll() is None, "the browser ended"
                time.sleep(0.05)
            port, path = named.read_text().split()
            with connect(f"ws://127.0.0.1:{port}{path}", max_size=None, proxy=None) as browser:
                tab = Tab(browser)
                target = tab.call("Target.createTarget", url="about:blank")["targetId"]
            with connect(f"ws://127.0.0.1:{port}/devtools/page/{target}", max_size=None, proxy=None) as socket:
                yield Tab(socket)
        finally:
            process.terminate()
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

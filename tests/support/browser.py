"""A real browser: Chromium without a window, driven over a pipe by the DevTools protocol.

It opens pages, runs JavaScript in them, takes pictures, and keeps what a page complained of. It is a program of the
machine, as Chromium is no Python package; where it is missing a test fails with the sentence that says how to get it.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "no Chromium is installed, which tests of the page need: run `make tools`, or install the package chromium"
PATIENCE = 120.0  # seconds that one answer may take where other tests have the machine
ARGUMENTS = (
    "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb", "--password-store=basic",
)  # fmt: skip


class BrowserError(AssertionError):
    """The browser, or a script in a page, said that something is wrong."""


def program() -> str:
    """The browser's path."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        raise BrowserError(MISSING)
    return found


class Browser:
    """One process of Chromium; tabs share it."""

    def __init__(self, folder: Path) -> None:
        to_read, to_write = os.pipe(), os.pipe()  # 3: it reads, 4: it writes

        def connect() -> None:
            for number, given in ((3, to_read[0]), (4, to_write[1])):
                os.dup2(given, number, inheritable=True)

        high = [os.dup(fd) for fd in (to_read[0], to_write[1])]  # so that 3 and 4 are not taken by what they replace
        to_read, to_write = (high[0], to_read[1]), (to_write[0], high[1])
        arguments = [program(), *ARGUMENTS, f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=connect, close_fds=False,
        )  # fmt: skip
        os.close(to_read[0])
        os.close(to_write[1])
        self._write, self._read = to_read[1], to_write[0]
        self._rest, self._number = b"", 0
        self._answers: dict[int, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        """Ask the browser for something, and wait for its answer."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while number not in self._answers:
            if time.monotonic() > until:
                raise BrowserError(f"the browser does not answer {method}")
            self.listen(1.0)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def listen(self, seconds: float) -> None:
        """Take in what the browser says, for a moment at most."""
        if not select.select([self._read], [], [], seconds)[0]:
            if self._process.poll() is not None:
                raise BrowserError(f"the browser ended with {self._process.returncode}")
            return
        *messages, self._rest = (self._rest + os.read(self._read, 1 << 20)).split(b"\0")
        for raw in messages:
            message = json.loads(raw)
            if "id" in message:
                self._answers[message["id"]] = message
            else:
                self.events.append(message)

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)

    @contextmanager
    def tab(self, width: int = 1280, height: int = 900, **media: str) -> Iterator["Tab"]:
        """A new tab with storage of its own; `media` are features such as prefers-color-scheme."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.call("Page.bringToFront")  # what is in the background draws nothing
        tab.call("Emulation.setFocusEmulationEnabled", enabled=True)
        tab.size(width, height)
        if media:
            tab.media("", media)
        try:
            yield tab
        finally:
            self.call("Target.disposeBrowserContext", browserContextId=context)


class Tab:
    """One page."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def call(self, method: str, **parameters: Any) -> Any:
        return self._browser.call(method, self._session, **parameters)

    def size(self, width: int, height: int) -> None:
        phone = width < 500
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )  # fmt: skip

    def media(self, kind: str, features: Mapping[str, str]) -> None:
        """Have the page drawn for `print`, or for people who prefer something."""
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", media=kind, features=named)

    def open(self, url: str) -> Self:
        """Go there, and wait until the page has run its scripts."""
        answer = self.call("Page.navigate", url=url)
        if answer.get("errorText"):
            raise BrowserError(f"{url}: {answer['errorText']}")
        self.until("document.readyState === 'complete'")
        return self

    def run(self, script: str) -> Any:
        """The value of an expression, or of the promise that it is."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def until(self, script: str, seconds: float = PATIENCE) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.run(f"!!({script})"):
            if time.monotonic() > end:
                raise BrowserError(f"never true: {script}\n{self.complaints()}")
            self._browser.listen(0.05)

    def key(self, *names: str) -> None:
        """Press keys, one after the other."""
        for name in names:
            for kind in ("rawKeyDown", "keyUp"):
                text = {"Enter": "\r", " ": " "}.get(name)
                code = {"Enter": 13, "Tab": 9, "Home": 36, "End": 35, "ArrowLeft": 37, "ArrowRight": 39}.get(name, 0)
                more = {"text": text} if text and kind == "rawKeyDown" else {}
                kind = "keyDown" if more else kind
                self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **more)

    def press(self, selector: str) -> None:
        """Click on an element."""
        self.run(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        where = self.run(
            f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=where[0], y=where[1], button="left", clickCount=1)

    def text(self, selector: str = "body") -> str:
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def picture(self, path: Path, *, whole: bool = True) -> Path:
        """Write what it looks like, all of its length or what is on screen."""
        self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))
        return path

    def pdf(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def complaints(self) -> list[str]:
        """Errors that the page has logged, thrown, or met in loading."""
        self._browser.listen(0.05)
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            what, said = event["method"], event["params"]
            if what == "Runtime.exceptionThrown":
                details = said["exceptionDetails"]
                found.append(details.get("exception", {}).get("description") or details["text"])
            elif what == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
                found.append(f"{said['entry']['text']} {said['entry'].get('url', '')}")
            elif what == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning"):
                found.append(str([argument.get("value") for argument in said["args"]]))
        return found

    def requests(self) -> list[str]:
        """The addresses that the page asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self._browser.events
            if event.get("sessionId") == self._session and event["method"] == "Network.requestWillBeSent"
        ]


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A browser that ends with the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(Path(folder))
        try:
            yield browser
        finally:
            browser.close()

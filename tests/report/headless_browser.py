"""A headless Chromium, driven over the pipe of its DevTools protocol: one page, its errors, its keys."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

#: Seconds to wait for the browser.
PATIENCE = 30

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)

#: The browser reads commands from descriptor 3 and answers on 4.
_LAUNCH = """
import fcntl, os, sys
there, back = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(there, 3)
os.dup2(back, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""

_KEYS = {"Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13}

#: What scrolls in a frame of its own, is drawn, or is hidden, is left out; lines of code break anywhere.
_BAD_BOXES = """
[...document.querySelectorAll('body *')].flatMap((box) => {
  const inline = ['inline', 'contents', 'none'].includes(getComputedStyle(box).display);
  if (inline || box.closest('svg, pre, .wide, .frame, .md-typeset__scrollwrap, .skip, .md-skip, script, style, math'))
    return [];
  const texts = [...box.childNodes].filter((node) => node.nodeType === 3 && node.data.trim());
  const place = box.getBoundingClientRect(), style = getComputedStyle(box);
  if (!texts.length || !place.height || !box.checkVisibility({visibilityProperty: true, opacityProperty: true}))
    return [];
  const parent = box.parentElement, around = getComputedStyle(parent), outer = parent.getBoundingClientRect();
  const room = outer.width - ['paddingLeft', 'paddingRight', 'borderLeftWidth', 'borderRightWidth']
    .reduce((sum, side) => sum + parseFloat(around[side]) + (parseFloat(style[side]) || 0), 0);
  const free = Math.min(room, parseFloat(style.maxWidth) || Infinity), found = [];
  const rects = (from, to, node) => {
    const range = document.createRange(); range.setStart(node, from); range.setEnd(node, to);
    return [...range.getClientRects()];
  };
  const width = (parts) => parts.reduce((sum, part) => sum + part.width, 0);
  const whole = document.createRange(); whole.selectNodeContents(box);
  const lines = new Set([...whole.getClientRects()].map((part) => Math.round(part.bottom / 4))).size;
  const plain = texts.length === box.childNodes.length && !/[\\n]/.test(box.textContent.trim());
  if (plain && lines > 1 && around.display === 'block' && width([...whole.getClientRects()]) <= free)
    found.push('line');
  for (const node of texts)
    for (const word of node.data.matchAll(/\\S{2,20}/g)) {
      const parts = rects(word.index, word.index + word[0].length, node);
      if (parts.length > 1 && !/[-/]/.test(word[0]) && width(parts) <= free) found.push('word');
    }
  if (around.overflowX === 'visible' && (place.right > outer.right + 1 || place.left < outer.left - 1)
      && style.position === 'static' && parseFloat(style.marginLeft) >= 0 && parseFloat(style.marginRight) >= 0)
    found.push('wide');
  return found.map((why) => `${why}: ${box.tagName} ${box.textContent.slice(0, 60)}`);
})
"""


def browser_path():
    """Path of a browser, or ``None``."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """A browser with one page.

    Attributes
    ----------
    complaints
        What the page's console said, exceptions and refused loads included.
    requests
        Addresses that the page asked for.
    """

    def __init__(self, folder):
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        command = [sys.executable, "-c", _LAUNCH, str(to_browser), str(from_browser), browser_path()]
        self._process = subprocess.Popen(
            [*command, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._number, self._session = b"", 0, None
        self.complaints, self.requests, self._events = [], [], []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self):
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(deadline - time.monotonic(), 0))
            part = os.read(self._in, 1 << 16) if ready else b""
            if not part:
                raise TimeoutError("the browser does not answer")
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method, params):
        self._events.append(method)
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(params)
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, path, *, scripts=True, width=1200, height=900, **features):
        """Open a file, or an address; ``features`` are those of media queries, with ``_`` for ``-``."""
        self.complaints, self.requests, self._events = [], [], []
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", features=wanted)
        self._load("about:blank")  # else a fragment of the same address would not load anew
        self._load(path if isinstance(path, str) else path.as_uri())

    def _load(self, url):
        self._events = []
        self.call("Page.navigate", url=url)
        while "Page.loadEventFired" not in self._events:
            self._next()

    def evaluate(self, expression):
        """Value of a JavaScript expression; works where the page's own scripts are off."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def accessibility_violations(self):
        """What axe-core finds wrong with the page: rule, and the first element that breaks it."""
        script = Path(pytest.importorskip("axe_core_python").__file__).parent / "axe.min.js"
        self.evaluate(f"{script.read_text(encoding='utf-8')};1")
        answer = self.call(
            "Runtime.evaluate",
            expression="axe.run().then(r => r.violations.map(v => [v.id, v.help, v.nodes[0].html]))",
            awaitPromise=True,
            returnByValue=True,
        )
        return answer["result"]["value"]

    def bad_boxes(self):
        """Boxes of text that break a line, or a word, that fits, or reach beyond their parent: why, and the text."""
        return self.evaluate(_BAD_BOXES)

    def press(self, key):
        code = _KEYS.get(key, ord(key) if len(key) == 1 else 0)
        names = {"key": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **names)
        self.call("Input.dispatchKeyEvent", type="keyUp", **names)

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def middle(self, selector):
        """Middle of an element in the window, scrolled into view."""
        return self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'}); const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def picture(self, path, *, whole=True):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def printed(self):
        """The page as a PDF file."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])

    def close(self):
        os.close(self._out)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)

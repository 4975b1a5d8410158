"""A page in a headless Chromium, through the browser's own protocol over two pipes (--remote-debugging-pipe).

https://chromedevtools.github.io/devtools-protocol/ names the methods and events.
"""

import base64
import json
import os
import subprocess
import tempfile

TIMEOUT = 120  # seconds for the whole of a browser's life


class Browser:
    """One browser with one page. What the page's console says is kept in `said`."""

    def __init__(self, chromium):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.to_browser = os.pipe()
        self.from_browser, from_browser = os.pipe()
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        command += ["--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "about:blank"]
        # The browser reads from descriptor 3 and writes to 4.
        shell = ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "bash", "timeout", str(TIMEOUT), *command]
        self.process = subprocess.Popen(shell, pass_fds=(to_browser, from_browser), stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.read, self.number, self.events, self.said, self.session = b"", 0, [], [], None
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def message(self):
        while b"\0" not in self.read:
            more = os.read(self.from_browser, 1 << 20)
            if not more:
                raise RuntimeError(f"the browser has ended (after at most {TIMEOUT} s)")
            self.read += more
        first, self.read = self.read.split(b"\0", 1)
        return json.loads(first)

    def note(self, event):
        """What a console would show of an event."""
        details = event["params"]
        if event["method"] == "Runtime.consoleAPICalled":
            self.said.append(" ".join(str(one.get("value")) for one in details["args"]))
        elif event["method"] == "Runtime.exceptionThrown":
            thrown = details["exceptionDetails"]
            self.said.append(thrown.get("exception", {}).get("description", thrown["text"]))
        elif event["method"] == "Log.entryAdded":
            self.said.append(details["entry"]["text"])
        self.events.append(event["method"])

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.note(answer)

    def look(self, path, width=1200, height=900, media="screen", scheme="light"):
        """Load a file as a screen of this size, or a printer, would, with the user's choice of colours, and draw it.
        `media` "": a screen, and a printer for paper()."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        self.call("Emulation.setScrollbarsHidden", hidden=media == "print")
        self.events.clear()
        found = self.call("Page.navigate", url="file://" + os.path.abspath(path))
        if "errorText" in found:
            raise RuntimeError(f"{path}: {found['errorText']}")
        while "Page.loadEventFired" not in self.events:
            self.note(self.message())
        self.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def ask(self, expression):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']['text']}")
        return result["result"].get("value")

    def picture(self):
        """The page's upper part as a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])

    def paper(self):
        """The page as a PDF of A4."""
        return base64.b64decode(self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])

    def close(self):
        os.close(self.to_browser)
        self.process.terminate()
        self.process.wait()
        os.close(self.from_browser)
        self.profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.close()

"""Drives a headless Chromium over its DevTools protocol, with nothing but a WebSocket."""

import asyncio
import base64
import contextlib
import itertools
import json
import os
import re
import shutil
import tempfile

import websockets


class Failed(Exception):
    """What a page was expected to do and did not."""


class Page:
    """A tab. Its size, language and colours are settings; what it loads runs as it would for anybody."""

    def __init__(self, browser, session, target):
        self.browser, self.session, self.target = browser, session, target

    async def send(self, method, **parameters):
        return await self.browser.send(method, parameters, self.session)

    async def set(self, width=1280, height=900, dark=False, language="en", scripts=True):
        await self.send("Page.enable")
        await self.send("Runtime.enable")
        await self.send("DOM.enable")
        await self.send("Network.enable")
        await self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.send("Emulation.setEmulatedMedia", features=[scheme])
        await self.send("Network.setExtraHTTPHeaders", headers={"Accept-Language": language})
        await self.send("Emulation.setScriptExecutionDisabled", value=not scripts)

    async def open(self, url):
        await self.send("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def run(self, expression):
        """The value of a JavaScript expression, awaited where it is a promise."""
        response = await self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=True)
        if "exceptionDetails" in response:
            raise Failed(response["exceptionDetails"].get("exception", {}).get("description", expression))
        return response["result"].get("value")

    async def until(self, expression, seconds=120):
        """Waits until an expression is true."""
        async with asyncio.timeout(seconds):
            while True:
                # A page that is being left has no values.
                with contextlib.suppress(Failed):
                    if await self.run(f"!!({expression})"):
                        return
                await asyncio.sleep(0.02)

    async def expect(self, expression, what):
        try:
            await self.until(expression)
        except TimeoutError:
            text = await self.run("document.body.innerText")
            raise Failed(f"{what}\n  never true: {expression}\n  the page says: {text!r}") from None

    async def choose(self, selector, paths):
        """Puts files into a file input, as its dialog would."""
        document = await self.send("DOM.getDocument")
        node = await self.send("DOM.querySelector", nodeId=document["root"]["nodeId"], selector=selector)
        await self.send("DOM.setFileInputFiles", nodeId=node["nodeId"], files=[os.path.abspath(path) for path in paths])

    async def drop(self, selector, paths):
        """Drags files from outside of the browser onto an element."""
        x, y = await self.middle(selector)
        data = {"items": [], "files": [os.path.abspath(path) for path in paths], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            await self.send("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)

    async def middle(self, selector):
        place = await self.run(
            f"(() => {{ const element = document.querySelector({json.dumps(selector)});"
            "element.scrollIntoView({block: 'center'}); const {x, y, width, height} = element.getBoundingClientRect();"
            "return [x + width / 2, y + height / 2] })()")
        return place

    async def click(self, selector):
        x, y = await self.middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            await self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def press(self, key, code, text=None):
        """Presses a key; `code` is its number on Windows."""
        parameters = {"key": key, "windowsVirtualKeyCode": code}
        await self.send("Input.dispatchKeyEvent", type="keyDown", **parameters, **({"text": text} if text else {}))
        await self.send("Input.dispatchKeyEvent", type="keyUp", **parameters)

    async def write(self, text):
        await self.send("Input.insertText", text=text)

    async def slow_down(self, bytes_per_second):
        await self.send(
            "Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1,
            uploadThroughput=bytes_per_second)

    async def picture(self, path, full=False):
        response = await self.send("Page.captureScreenshot", format="png", captureBeyondViewport=full)
        with open(path, "wb") as file:
            file.write(base64.b64decode(response["data"]))


class Browser:
    def __init__(self, socket):
        self.socket = socket
        self.numbers = itertools.count(1)
        self.waiting = {}
        self.complaints = []

    async def send(self, method, parameters=None, session=None):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters or {}}
        if session:
            message["sessionId"] = session
        self.waiting[number] = asyncio.get_running_loop().create_future()
        await self.socket.send(json.dumps(message))
        return await self.waiting[number]

    async def listen(self):
        async for text in self.socket:
            message = json.loads(text)
            if future := self.waiting.pop(message.get("id"), None):
                if "error" in message:
                    future.set_exception(Failed(message["error"]["message"]))
                else:
                    future.set_result(message["result"])
            else:
                self.hear(message.get("method"), message.get("params", {}))

    def hear(self, method, parameters):
        """Notes what a page complains of by itself: its errors, and what its policy keeps from it."""
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and parameters["entry"]["source"] == "security":
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append(f"a dialog: {parameters['message']}")

    async def page(self, **settings):
        target = await self.send("Target.createTarget", {"url": "about:blank"})
        session = await self.send(
            "Target.attachToTarget", {"targetId": target["targetId"], "flatten": True})
        page = Page(self, session["sessionId"], target["targetId"])
        await page.send("Log.enable")
        await page.set(**settings)
        return page


@contextlib.asynccontextmanager
async def running_browser():
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not program:
        raise Failed("There is no Chromium.")
    profile = tempfile.mkdtemp(prefix="postcard-browser-")
    process = await asyncio.create_subprocess_exec(
        program, "--headless=new", "--remote-debugging-port=0", f"--user-data-dir={profile}", "--no-first-run",
        "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--no-proxy-server",
        *(["--no-sandbox"] if os.geteuid() == 0 else []), "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE)
    try:
        address = None
        while not address:
            line = (await process.stderr.readline()).decode()
            if not line:
                raise Failed("Chromium ended before it listened.")
            if found := re.search(r"DevTools listening on (ws://\S+)", line):
                address = found[1]
        reading = asyncio.create_task(process.stderr.read())
        async with websockets.connect(address, max_size=None, proxy=None) as socket:
            browser = Browser(socket)
            browser.profile = profile
            listening = asyncio.create_task(browser.listen())
            yield browser
            listening.cancel()
        reading.cancel()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        shutil.rmtree(profile, ignore_errors=True)


# The texts that are seen, whose contrast with what is behind them is less than WCAG 2.2 asks for (1.4.3).
FAINT_TEXTS = """(() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const part = (value) => value <= 10 ? value / 3294.6 : ((value / 255 + .055) / 1.055) ** 2.4;
  const luminance = ([red, green, blue]) => .2126 * part(red) + .7152 * part(green) + .0722 * part(blue);
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = numbers(getComputedStyle(each).backgroundColor);
      if (color[3] !== 0) return color;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join("");
    const style = getComputedStyle(element);
    if (!text || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || element.disabled) continue;
    const [one, other] = [luminance(numbers(style.color)), luminance(ground(element))];
    const contrast = (Math.max(one, other) + .05) / (Math.min(one, other) + .05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (contrast < (isLarge ? 3 : 4.5)) faint.push(`${text.slice(0, 30)}: ${contrast.toFixed(2)}`);
  }
  return faint;
})()"""


async def looked_at(page, name):
    """Checks what is on the screen, and keeps it if it is asked for."""
    # What arrives fades in.
    await page.expect("document.getAnimations().every((each) => each.playState !== 'running')", "Nothing moves")
    faint = await page.run(FAINT_TEXTS)
    if faint:
        raise Failed(f"Texts can be read in {name}: {faint}")
    await page.expect("document.documentElement.scrollWidth <= innerWidth", f"Nothing sticks out in {name}")
    if folder := os.environ.get("POSTCARD_SCREENSHOTS"):
        os.makedirs(folder, exist_ok=True)
        await page.picture(os.path.join(folder, f"{name}.png"), full=True)
    await page.run("document.activeElement.blur()")
    seen = 0
    for _ in range(40):
        await page.press("Tab", 9)
        shown = await page.run(
            "(() => { const element = document.activeElement; if (element === document.body) return null;"
            "const shown = element.matches('input[type=file]') ? element.closest('.drop') : element;"
            "const { outlineStyle, outlineWidth } = getComputedStyle(shown);"
            "return [outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2, element.outerHTML.slice(0, 60)]; })()")
        if shown is None:
            break
        seen += 1
        if not shown[0]:
            raise Failed(f"The focus is seen in {name}: {shown[1]}")
    if seen <= 5:
        raise Failed(f"{seen} elements of {name} can have the focus")

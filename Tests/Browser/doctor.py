"""Uses the Doctor's page as people do: doctor.py PAGE PROGRAM [SCENARIO…]

It says what the page did not do and exits with 1. A scenario named `slow` also says what it measured.
"""

import asyncio
import base64
import glob
import importlib.machinery
import importlib.util
import json
import os
import random
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
from browser import Failed, looked_at, running_browser

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.join(here, "..", "..")
AXE = os.path.join(root, ".build/axe/axe_playwright_python/axe.min.js")
WORDS = {language: json.load(open(os.path.join(root, f"Page/Web/texts.{language}.json"))) for language in ("en", "ko")}
BROKEN = ("POST /pets HTTP/1.1\r\nHost: example.com\r\nContent-Type: multipart/form-data; boundary=XX\r\n\r\n"
          "--XX\r\nContent-Disposition: form-data; filename=\"a.txt\"\r\n\r\nabc\r\n--XX--\r\n")


def expect(condition, what):
    if not condition:
        raise Failed(what)


def check_module():
    """Page/check as a module: its inputs, and how its answers are compared."""
    loader = importlib.machinery.SourceFileLoader("page_check", os.path.join(root, "Page/check"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("page_check", loader))
    loader.exec_module(module)
    return module


async def opened(browser, path, fragment="", **settings):
    page = await browser.page(**settings)
    # The page keeps the language that was chosen last.
    query = "" if fragment.startswith("?") else "?lang=en"
    await page.open(f"file://{os.path.abspath(path)}{query}{fragment}")
    await page.expect("document.querySelector('#servers input')", "The Doctor starts")
    return page


async def paste(page, text):
    """Pastes a text as the clipboard has it, into the focused element."""
    return await page.run(
        "(() => { const data = new DataTransfer(); data.setData('text/plain', " + json.dumps(text) + ");"
        "document.getElementById('text').select(); globalThis.pastedAt = performance.now();"
        "document.getElementById('text').dispatchEvent(new ClipboardEvent('paste', "
        "{ clipboardData: data, bubbles: true, cancelable: true })) })()")


async def explained(page, expression, what):
    """Waits until what is shown belongs to the last input, and an expression is true."""
    await page.expect(f"document.getElementById('result').getAttribute('aria-busy') === 'false' && ({expression})", what)


async def close(browser, page):
    await browser.send("Target.closeTarget", {"targetId": page.target})


async def explaining(browser, path, program):
    page = await opened(browser, path)
    await paste(page, BROKEN)
    await explained(page, "document.querySelector('.problem')", "The problem is shown")
    text = await page.run("document.getElementById('result').innerText")
    for words in ("missing-name", "has no name", "form.append(", "a.txt"):
        expect(words in text, f"{words!r} is shown: {text}")
    for name, words in (("JavaScript", "new FormData()"), ("Python", "import requests"), ("curl", "curl http://example.com/pets")):
        await page.click(f"#code-tab-{name}")
        await explained(page, f"document.getElementById('code').innerText.includes({json.dumps(words)})", f"{name} is shown")
    marked = await page.run("document.querySelector('.problem mark').textContent")
    expect(marked, "The byte is marked")
    # The same text with only LF, as a text box has it, and then as it is.
    await paste(page, BROKEN.replace("\r\n", "\n"))
    await explained(page, "document.querySelector('[data-code=missing-name]')", "Line breaks are read as CRLF")
    expect(not await page.run("!!document.querySelector('[data-code=bare-line-break-in-head]')"), "They are no problem")
    await page.click("#line-feeds")
    await explained(page, "document.querySelector('[data-code=bare-line-break-in-head]')", "They can be read as they are")
    # A body alone, which needs its Content-Type.
    await paste(page, BROKEN.split("\r\n\r\n", 1)[1])
    await explained(page, "document.querySelector('#result').innerText.includes('multipart/form-data; boundary=XX')",
                      "It asks for the Content-Type")
    await page.click("#type")
    await page.write("multipart/form-data; boundary=XX")
    await explained(page, "document.querySelector('[data-code=missing-name]')", "A body is explained")
    # What a browser copies.
    await page.run("document.getElementById('type').value = ''")
    await paste(page, "curl 'https://example.com/pets' -H 'Content-Type: multipart/form-data; boundary=XX' "
                      "--data-raw $'--XX\\r\\nContent-Disposition: form-data; name=\"a\"\\r\\n\\r\\n1\\r\\n--XX--\\r\\n'")
    await explained(page, "document.getElementById('state').textContent === 'The form is valid.'", "A copied request is read")
    # Servers are asked without reading again.
    await page.run("location.hash = '#mistake=php'")
    await explained(page, "document.querySelector('[data-code=refused-by-server]')", "PHP is asked")
    await page.click("#servers input[value=php]")
    await explained(page, "!document.querySelector('[data-code=refused-by-server]')", "PHP is not asked any more")


async def gallery(browser, path, program):
    page = await opened(browser, path)
    names = await page.run("[...document.querySelectorAll('#mistakes a')].map((link) => link.getAttribute('href'))")
    expect(len(names) == 12, f"There are twelve mistakes: {names}")
    for name in names:
        await page.click(f"#mistakes a[href='{name}']")
        await explained(page, f"document.querySelector('#mistakes a[aria-current=true]')?.getAttribute('href') === '{name}'"
                          " && document.querySelector('.problem')", f"{name} is explained")
    # A link holds a text.
    await paste(page, BROKEN)
    await explained(page, "document.querySelector('[data-code=missing-name]')", "The problem is shown")
    await page.click("[data-action=link]")
    await explained(page, "location.hash.startsWith('#text=')", "There is a link")
    other = await opened(browser, path, await page.run("location.hash"))
    await explained(other, "document.querySelector('[data-code=missing-name]')", "The link shows the same")
    direct = await opened(browser, path, "#mistake=s3")
    await explained(direct, "document.querySelector('[data-code=refused-by-server]')", "A link chooses servers too")


async def fixing(browser, path, program):
    page = await opened(browser, path)
    folder = tempfile.mkdtemp()
    await browser.send("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": folder})
    text = BROKEN.replace('filename="a.txt"', "name=a").replace("--XX--\r\n", "--XX\r\n")
    with open(os.path.join(folder, "request"), "w", newline="") as file:
        file.write(text)
    module = check_module()
    module.native(program, os.path.join(folder, "request"), None, os.path.join(folder, "expected"))
    await paste(page, text)
    await explained(page, "document.querySelector('[data-action=fix]')", "It can be fixed")
    await page.click("[data-action=fix]")
    await explained(page, "document.getElementById('fixed').textContent.startsWith('Fixed')", "It is fixed")
    async with asyncio.timeout(20):
        while not os.path.exists(os.path.join(folder, "fixed-request.txt")):
            await asyncio.sleep(0.05)
    contents = [open(os.path.join(folder, name), "rb").read() for name in ("fixed-request.txt", "expected")]
    expect(contents[0] == contents[1], f"The file is that of the program: {contents}")
    shutil.rmtree(folder)


async def hostile(browser, path, program):
    """Nothing that is pasted becomes HTML."""
    page = await opened(browser, path)
    evil = "<script>alert(1)</script><svg/onload><b>"
    await paste(page, BROKEN.replace("filename=\"a.txt\"", f"name=\"{evil}\"; filename=\"{evil}\u202e.png\"")
                .replace("abc", evil).replace("/pets", "/\u2028\"+alert(1)+\""))
    await explained(page, "document.querySelector('.parts')", "It is shown")
    for name in ("Swift", "JavaScript", "Python", "curl"):
        await page.click(f"#code-tab-{name}")
        expect("\u202e" not in await page.run("document.body.innerHTML"), "Nothing turns the reading direction")
    expect(not await page.run("!!document.querySelector('main script, main svg, .parts b')"), "Nothing of it is HTML")


async def pictures(browser, path, program):
    page = await opened(browser, path)
    with open(os.path.join(root, "Samples/Pictures/stamp.png"), "rb") as file:
        picture = file.read()
    folder = tempfile.mkdtemp()
    name = os.path.join(folder, "request.http")
    body = (b"--XX\r\nContent-Disposition: form-data; name=\"p\"; filename=\"stamp.png\"\r\nContent-Type: image/png\r\n\r\n"
            + picture + b"\r\n--XX\r\nContent-Disposition: form-data; name=\"t\"\r\nContent-Type: text/plain; charset=euc-kr"
            + b"\r\n\r\n" + "초코".encode("euc-kr") + b"\r\n--XX--\r\n")
    with open(name, "wb") as file:
        file.write(b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Type: multipart/form-data; boundary=XX\r\n"
                   + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await page.choose("#file", [name])
    await explained(page, "document.querySelector('.part-picture')?.naturalWidth > 0", "The picture is shown")
    # With a charset of its own, a picture may come first.
    await explained(page, "document.querySelector('.content[data-part=\"1\"]').textContent === '초코'", "The text is decoded")
    shutil.rmtree(folder)


async def trapped(browser, path, program):
    """After a trap the Doctor starts again, and what was pasted is still there."""
    with open(path, encoding="utf-8") as file:
        content = file.read()
    # Reads beyond the module's memory, once.
    planted = content.replace("read: (content) => pass(content, exports.read),",
                              "read: (content) => { if (!globalThis.isPlanted) { globalThis.isPlanted = true;"
                              "exports.read(0x7ffffff0, 4096); } pass(content, exports.read); },")
    expect(planted != content, "There is a place for the trap")
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file:
        file.write(planted)
        file.flush()
        page = await opened(browser, file.name)
        await paste(page, BROKEN)
        await explained(page, f"document.getElementById('state').textContent === {json.dumps(WORDS['en']['trapped'])}", "It says so")
        expect(await page.run("document.getElementById('text').value.includes('a.txt')"), "The text is still there")
        await page.click("#result button")
        await explained(page, "document.querySelector('[data-code=missing-name]')", "It works again")
    # A browser without WebAssembly.
    page = await browser.page()
    await page.send("Page.addScriptToEvaluateOnNewDocument", source="delete globalThis.WebAssembly")
    await page.open(f"file://{os.path.abspath(path)}")
    await explained(page, f"document.getElementById('state').textContent === {json.dumps(WORDS['en']['noWebAssembly'])}",
                      "Without WebAssembly it says so")


async def keyboard(browser, path, program):
    page = await opened(browser, path)
    for _ in range(30):
        await page.press("Tab", 9)
        if await page.run("document.activeElement.getAttribute('href') === '#mistake=boundary'"):
            break
    await page.press("Enter", 13, "\r")
    await explained(page, "document.querySelector('.problem')", "Enter opens a mistake")
    await page.run("document.querySelector('[role=tab][aria-selected=true]').focus()")
    await page.press("ArrowRight", 39)
    await explained(page, "document.activeElement.textContent === 'JavaScript' "
                      "&& document.activeElement.getAttribute('aria-selected') === 'true'", "The arrow goes to the next tab")
    # The language changes what is shown, and nothing else.
    await page.click(".languages [lang=ko]")
    await explained(page, "document.documentElement.lang === 'ko' && document.querySelector('.problem h4').textContent.includes('boundary')"
                      " && document.getElementById('text').value.includes('PetDiary')", "The language changes in place")


async def whole(browser, path, program):
    """In Chromium the module says what the program says."""
    module = check_module()
    chance = random.Random(7)
    cases = chance.sample(module.corpus([]), 50)
    cases += [(module.changed(content, chance), kind) for content, kind in cases]
    page = await browser.page()
    # Only this test calls the module by itself.
    await page.send("Page.setBypassCSP", enabled=True)
    await page.open(f"file://{os.path.abspath(path)}")
    await page.run("""(async () => {
        const text = document.getElementById("worker").textContent;
        const { instantiate } = (0, eval)(text.slice(0, text.indexOf("const module_worker_mjs")) + "; module_engine_mjs");
        const packed = Uint8Array.from(atob(document.getElementById("module").textContent), (each) => each.charCodeAt(0));
        const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
        globalThis.doctor = await instantiate(await WebAssembly.compile(await new Response(stream).arrayBuffer()), () => {});
    })()""")
    with tempfile.TemporaryDirectory() as folder:
        for number, (content, kind) in enumerate(cases):
            said = json.loads(await page.run(
                f"(() => {{ doctor.begin({json.dumps(kind) if kind is not None else 'undefined'});"
                f"doctor.read(Uint8Array.from(atob('{base64.b64encode(content).decode()}'), (each) => each.charCodeAt(0)));"
                "return doctor.finish(); })()"))
            name = os.path.join(folder, str(number))
            with open(name, "wb") as file:
                file.write(content)
            expect(module.is_same(said, module.native(program, name, kind)), f"The answer is the program's: {content[:300]}")
    print(f"{len(cases)} inputs are the same in Chromium")


def memory(profile):
    """How many bytes of memory the browser's processes have of their own."""
    total = 0
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            with open(f"{folder}/cmdline", "rb") as file:
                if profile.encode() not in file.read():
                    continue
            with open(f"{folder}/smaps_rollup") as file:
                text = file.read()
            total += 1024 * sum(int(re.search(rf"{name}:\s+(\d+)", text)[1]) for name in ("Private_Dirty", "Private_Clean"))
        except (OSError, TypeError):
            continue
    return total


async def slow(browser, path, program):
    page = await opened(browser, path)
    watch = ("globalThis.found = new Promise((resolve) => new MutationObserver((_, observer) => {"
             "if (!document.querySelector('.problem')) return; observer.disconnect(); resolve(performance.now() - pastedAt);"
             "}).observe(document.getElementById('result'), { childList: true, subtree: true })); 0")
    text = BROKEN.replace("abc", "line of the file\r\n" * 58_000)
    best = None
    for _ in range(5):
        await page.run("document.querySelector('#chosen .remove')?.click()")
        await explained(page, "!document.querySelector('.problem')", "It is empty")
        await page.run(watch)
        await paste(page, text)
        took = await page.run("found")
        best = took if best is None else min(best, took)
    print(f"first finding of {len(text):,} bytes after {best:.0f} ms")
    expect(best <= 300, f"The first finding of 1 MB comes within 300 ms: {best}")
    # 1 GB, read in pieces.
    profile = browser.profile
    with tempfile.NamedTemporaryFile(suffix=".http") as file:
        size = 1_000_000_000
        head = BROKEN.split("abc")
        file.write(head[0].encode())
        block = os.urandom(1 << 20)
        for _ in range(size // len(block)):
            file.write(block)
        file.write(head[1].encode())
        file.flush()
        await page.run("globalThis.shares = []; new MutationObserver(() => shares.push(document.getElementById('bar').value))"
                       ".observe(document.getElementById('bar'), { attributes: true }); 0")
        before = memory(profile)
        await page.choose("#file", [file.name])
        # Cancels, and reads again.
        await page.expect("shares.length > 3", "The bar moves")
        await page.click("#cancel")
        await explained(page, f"document.getElementById('state').textContent === {json.dumps(WORDS['en']['stopped'])}", "It is cancelled")
        await page.click("#result button")
        highest = 0
        async with asyncio.timeout(300):
            while not await page.run("!!document.querySelector('.problem')"):
                highest = max(highest, memory(profile) - before)
                await asyncio.sleep(0.1)
        moved = await page.run("new Set(shares).size")
    print(f"1 GB: {highest / 1e6:.0f} MB of memory more, {moved} steps of the bar")
    expect(moved > 20, f"The bar moves: {moved}")
    expect(highest <= 64e6, f"1 GB needs at most 64 MB: {highest}")


async def views(browser, path, program):
    """What the page looks like, in both languages, wide and narrow, light and dark."""
    for language in ("en", "ko"):
        for width, height in ((1280, 900), (390, 844)):
            for dark in (False, True):
                name = f"doctor-{language}-{width}-{'dark' if dark else 'light'}"
                page = await opened(browser, path, f"?lang={language}", width=width, height=height, dark=dark)
                await looked_at(page, f"{name}-empty")
                await accessible(page, f"{name}-empty")
                await page.run("location.hash = '#mistake=boundary'")
                await explained(page, "document.querySelector('.problem mark')", "The byte is marked")
                inside = await page.run(
                    "[...document.querySelectorAll('.problem mark')].every((mark) => { const box = mark.closest('pre')"
                    ".getBoundingClientRect(); const { left, right } = mark.getBoundingClientRect();"
                    "return left >= box.left && right <= box.right })")
                expect(inside, f"The mark is in its box: {name}")
                await looked_at(page, name)
                await accessible(page, name)
                await close(browser, page)


async def accessible(page, name):
    """What axe-core finds, if it is installed."""
    if not os.path.exists(AXE):
        expect(not os.environ.get("CI"), "axe-core is installed")
        return
    with open(AXE) as file:
        await page.run(file.read() + "; 0")
    found = await page.run("axe.run(document).then(({ violations }) => violations.map(({ id, nodes }) => "
                           "[id, ...nodes.map(({ html }) => html.slice(0, 120))]))")
    expect(not found, f"axe-core finds nothing in {name}: {found}")


scenarios = {each.__name__: each for each in (
    explaining, gallery, fixing, hostile, pictures, trapped, keyboard, whole, slow, views)}


async def main(path, program, *names):
    async with running_browser() as browser:
        requests = []
        hear = browser.hear

        def listen(method, parameters):
            hear(method, parameters)
            if method == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                # The page itself, and what it has made.
                if not url.startswith(("file:", "blob:", "data:", "about:")):
                    requests.append(url)

        browser.hear = listen
        for name in names or scenarios:
            await scenarios[name](browser, path, os.path.abspath(program))
            expect(not browser.complaints, f"The browser complains in {name}: {browser.complaints}")
            expect(not requests, f"No request leaves the page in {name}: {requests}")


try:
    asyncio.run(main(*sys.argv[1:]))
except Failed as failure:
    print(failure, file=sys.stderr)
    sys.exit(1)

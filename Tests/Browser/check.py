"""Uses the receiver's page as people do: check.py SCENARIO ADDRESS PICTURE…

It says what the page did not do and exits with 1, or says nothing.
"""

import asyncio
import base64
import hashlib
import json
import os
import random
import struct
import sys
import urllib.error
import urllib.request

from browser import Failed, looked_at, running_browser


def fetch(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as response:
        return response.read()


def post(url, body, boundary="XX", **headers):
    """Posts a form as it is; gives the status."""
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}", **headers}
    request = urllib.request.Request(url + "/uploads", data=body, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def part(header, content=""):
    return f"--XX\r\nContent-Disposition: form-data; {header}\r\n\r\n{content}\r\n".encode()


def uploads(url):
    return json.loads(fetch(url + "/uploads"))["uploads"]


def all_uploads(url):
    """All records, however many pages of them there are."""
    records, after = [], ""
    while after is not None:
        page = json.loads(fetch(f"{url}/uploads?limit=100" + (f"&after={after}" if after else "")))
        records += page["uploads"]
        after = page["next"]
    return records


async def keys(url, count):
    """The Idempotency-Keys of the requests that posted something, oldest first, once there are so many: a request is
    recorded when its response has ended, which the page may see first."""
    async with asyncio.timeout(120):
        while True:
            requests = reversed(json.loads(fetch(url + "/requests"))["requests"])
            described = [json.loads(fetch(f"{url}/requests/{request['id']}")) for request in requests]
            fields = [{name.lower(): value for name, value in request["headers"]} for request in described]
            found = [each["idempotency-key"] for each in fields if "idempotency-key" in each]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.05)


def expect(condition, what):
    if not condition:
        raise Failed(what)


async def opened(browser, url, before=None, **settings):
    """Opens the page; the script `before` runs before its own."""
    page = await browser.page(**settings)
    if before:
        await page.send("Page.addScriptToEvaluateOnNewDocument", source=before)
    await page.open(url)
    if settings.get("scripts", True):
        await page.expect("document.querySelector('.connection.live')", "The page listens")
    return page


async def sending(browser, url, pictures):
    page, other = await opened(browser, url), await opened(browser, url)
    await page.drop("#drop", pictures)
    await page.expect(f"document.querySelectorAll('.chosen-file').length === {len(pictures)}", "Dropped files are listed")
    await page.click(".field-value")
    await page.write("안녕, \"제주\"; 🍊")
    await page.click("#add-field")
    await page.write("place")
    await page.click(".field.named:last-child .field-value")
    await page.write("서귀포")
    await page.slow_down(100_000)
    await page.run(
        "globalThis.seen = [];"
        "new MutationObserver(() => seen.push([...document.querySelectorAll('.chosen-file progress')]"
        ".map((bar) => bar.value / bar.max))).observe(document.getElementById('compose'),"
        "{ subtree: true, childList: true, characterData: true })")
    await page.click("#send")
    await other.expect("document.querySelectorAll('.card').length === 1", "Another tab shows the form by itself")
    await page.expect("document.querySelector('.outcome.good')", "The page says that the form is delivered")
    await page.expect("document.querySelectorAll('.card').length === 1", "The form is shown once where it was sent")
    seen = await page.run("seen")
    expect(any(0 < share < 1 for shares in seen for share in shares), f"Progress is seen: {seen}")
    expect(any(share[0] == 1 and share[-1] == 0 for share in seen if share), f"File after file: {seen}")
    (record,) = uploads(url)
    texts = [(field["name"], field["value"]) for field in record["fields"]]
    expect(texts == [("message", "안녕, \"제주\"; 🍊"), ("place", "서귀포")], f"The texts arrive: {texts}")
    for path, file in zip(pictures, record["files"], strict=True):
        with open(path, "rb") as picture:
            expect(hashlib.sha256(picture.read()).hexdigest() == file["sha256"], f"{path} arrives")
    await other.expect("[...document.querySelectorAll('.pictures img')].every((image) => image.naturalWidth > 0)",
                       "The pictures are seen")
    link = await page.run("document.querySelector('.outcome.good a').getAttribute('href')")
    expect(link == f"/uploads/{record['id']}", f"It leads to the record: {link}")
    await page.click(".outcome.good a")
    await page.expect(f"document.activeElement.dataset.id === '{record['id']}'", "It leads to the card")


async def cancelling(browser, url, pictures):
    page = await opened(browser, url)
    await page.choose("#files", pictures)
    await page.expect("document.querySelectorAll('.chosen-file').length === 3", "Chosen files are listed")
    await page.slow_down(10_000)
    await page.click("#send")
    await page.expect("document.querySelector('.chosen-file progress').value > 0", "Some of it is sent")
    await page.click("#cancel")
    await page.expect("document.getElementById('outcome').textContent.startsWith('Cancelled')", "It says so")
    expect(uploads(url) == [], "Nothing is kept")
    await page.slow_down(-1)
    await page.click("#send")
    await page.expect("document.querySelectorAll('.card').length === 1", "What was chosen can be sent again")
    sent = await keys(url, 2)
    expect(len(sent) == 2 and sent[0] == sent[1], f"The key stays with the form: {sent}")
    await page.choose("#files", pictures)
    await page.click("#send")
    await page.expect("document.querySelectorAll('.card').length === 2", "Another choice is another form")
    expect((await keys(url, 3))[-1] != sent[0], "Another choice has a key of its own")


# Sends a form, cancels it after this many milliseconds, or as soon as all of it is sent, and sends it again.
SEND_TWICE = """(async (number, milliseconds) => {
  const form = document.getElementById("compose"), outcome = document.getElementById("outcome");
  const until = (condition) => new Promise((resolve) => {
    const look = (observer) => { if (condition()) { observer.disconnect(); resolve(); } };
    const observer = new MutationObserver((_, observer) => look(observer));
    observer.observe(form, { subtree: true, childList: true, characterData: true, attributes: true });
    look(observer);
  });
  const isOver = () => !form.classList.contains("busy");
  const chosen = new DataTransfer();
  chosen.items.add(new File([new Uint8Array(100_000).fill(number)], `${number}.bin`));
  document.getElementById("files").files = chosen.files;
  document.getElementById("files").dispatchEvent(new Event("change"));
  document.querySelector(".field-value").value = number;
  document.getElementById("send").click();
  if (milliseconds < 0) await until(() => isOver() || outcome.textContent.startsWith("All sent"));
  else await new Promise((resolve) => setTimeout(resolve, milliseconds));
  const wasOver = isOver();
  document.getElementById("cancel").click();
  await until(isOver);
  if (!wasOver) document.getElementById("send").click();
  await until(isOver);
  return [wasOver, outcome.className.includes("good"), outcome.textContent];
})"""


async def aborting(browser, url, pictures):
    """Cancels at every moment of an upload; POSTCARD_ABORTS says how often."""
    runs = int(os.environ.get("POSTCARD_ABORTS", 30))
    # As without TLS on another machine.
    page = await opened(browser, url, before="delete Crypto.prototype.randomUUID")
    moments, cancelled, longest = random.Random(1), 0, 20
    for number in range(runs):
        milliseconds = -1 if number % 2 else moments.randrange(longest)
        async with asyncio.timeout(120):
            was_over, is_delivered, outcome = await page.run(f"{SEND_TWICE}({number}, {milliseconds})")
        expect(is_delivered, f"Form {number}, cancelled after {milliseconds} ms, is delivered: {outcome}")
        cancelled += not was_over
        # An upload takes about as long as the moments in it are spread over.
        longest = min(longest * 2, 2000) if not was_over and milliseconds * 4 > longest * 3 else longest
        longest = max(longest * 3 // 4, 5) if was_over and milliseconds >= 0 else longest
    expect(cancelled > 0, f"None of {runs} was cancelled before its response")
    texts = sorted(int(field["value"]) for record in all_uploads(url) for field in record["fields"])
    twice = sorted({text for text in texts if texts.count(text) > 1})
    expect(texts == list(range(runs)), f"{len(texts)} records of {runs} forms; twice: {twice}")


async def reused(browser, url, pictures):
    """Under the key of a cancelled form the receiver has another one: a file changed between the two."""
    page = await opened(browser, url)
    await page.choose("#files", pictures)
    await page.slow_down(10_000)
    await page.click("#send")
    await page.expect("document.querySelector('.chosen-file progress').value > 0", "Some of it is sent")
    await page.click("#cancel")
    await page.expect("document.getElementById('outcome').textContent.startsWith('Cancelled')", "It says so")
    await page.expect("document.querySelectorAll('.requests > li').length === 1", "The request is known")
    sent = await keys(url, 1)
    expect(len(sent) == 1, f"The form is sent under a key: {sent}")
    other = part('name="a"', "first") + b"--XX--\r\n"
    expect(post(url, other, **{"Idempotency-Key": sent[0]}) == 201, "The receiver has another form under it")
    await page.slow_down(-1)
    await page.click("#send")
    await page.expect("document.querySelector('.outcome.good')", "The form is sent under another key")
    expect(len(uploads(url)) == 2, "Both are kept")


async def deleting(browser, url, pictures):
    form = part('name="a"', "caf?").replace(b"?", b"\xe9") + part('name="none"; filename=""')
    expect(post(url, form + b"--XX--\r\n") == 201, "A form is taken")
    page, other = await opened(browser, url), await opened(browser, url)
    for tab in (page, other):
        await tab.expect("document.querySelectorAll('.card').length === 1", "What is there is shown")
        expect(await tab.run("document.querySelectorAll('.card .files li').length") == 0, "No file was chosen")
        link = await tab.run("document.querySelector('.texts a.download').href")
        expect(link.endswith(base64.b64encode(b"caf\xe9").decode()), f"The bytes can be fetched as they were sent: {link}")
    await page.click("[data-action=delete]")
    expect(len(uploads(url)) == 1, "One click does not delete")
    await page.click("[data-action=delete]")
    for tab in (page, other):
        await tab.expect("document.querySelectorAll('.card').length === 0", "It is gone everywhere")
        await tab.expect("document.querySelectorAll('.requests > li').length === 0", "Its request is gone with it")
    expect(uploads(url) == [], "It is deleted")


async def refused(browser, url, pictures):
    page = await opened(browser, url)
    await page.click("#requests-tab")
    broken = part('name="message"', "안녕") + part('filename="a.jpg"', "abc") + b"--XX--\r\n"
    expect(post(url, broken, Authorization="Bearer not-to-be-shown") == 400, "It is refused")
    await page.expect("document.querySelector('.requests > li')?.dataset.code === 'missing-name'", "It comes by itself")
    row = await page.run("document.querySelector('.requests summary').innerText")
    expect("missing-name" not in row and "has no name" in row, f"The row says what is wrong, in words: {row}")
    # Away from this machine, values are hidden.
    hidden = json.loads(fetch(url + "/requests/1"))
    expect(hidden["valuesHidden"] and "안녕" not in json.dumps(hidden, ensure_ascii=False), f"Values are hidden: {hidden}")
    await page.click(".requests summary")
    await page.expect("document.querySelector('.problem .code')?.textContent === 'missing-name'", "The problem is shown")
    await page.expect("document.querySelector('.requests').innerText.includes('안녕')", "On this machine they are shown")
    text = await page.run("document.querySelector('.requests').innerText")
    for words in ("POST /uploads", "byte ", "Write Content-Disposition: form-data; name=", 'name="message"', "안녕"):
        expect(words in text, f"{words!r} is shown: {text}")
    expect("not-to-be-shown" not in text, "A token is not shown")
    marked = await page.run("document.querySelector('.problem .snippet').textContent")
    expect('filename="a.jpg"' in marked, f"The bytes around are shown: {marked}")
    line = await page.run("document.querySelector('.requests .line code').textContent")
    await browser.send("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"], "origin": url})
    await page.click(".requests [data-action=copy]")
    await page.expect("document.querySelector('.requests [data-action=copy]').textContent === 'Copied'", "It can be copied")
    repeated = await asyncio.create_subprocess_exec(
        "sh", "-c", line, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL)
    response = json.loads((await repeated.communicate())[0])
    expect(response["code"] == "missing-name", f"The copied line repeats it: {line} {response}")
    await page.expect("document.querySelectorAll('.requests > li').length === 2", "The repeated one comes too")


async def faults(browser, url, pictures):
    """An empty page has a command to copy. One cause is one entry, with the size of all of the body."""
    page = await opened(browser, url)
    command = await page.run("document.querySelector('#received .empty code').textContent")
    expect(command == f"curl -F files=@cat.jpg {url}/uploads", f"There is a command to copy: {command}")
    expect(post(url, part('name="a"', "x" * 3_000_000) + b"--XX--\r\n") == 413, "A long text is refused")
    await page.click("#requests-tab")
    await page.expect("document.querySelectorAll('.requests > li').length === 1", "It comes by itself")
    row = await page.run("document.querySelector('.requests summary').innerText")
    expect("Field too large" in row, f"The row says what is wrong, in words: {row}")
    expect("of 3 MB read" in row, f"The row has the size of the whole body: {row}")
    await page.click(".requests summary")
    await page.expect("document.querySelector('.problem')", "The problem is shown")
    expect(await page.run("document.querySelectorAll('.problem').length") == 1, "One cause is one entry")
    # Exactly one place more than are listed.
    field = part('name="a"\r\nContent-Transfer-Encoding: binary', "1")
    expect(post(url, field * 8 + b"--XX--\r\n") == 201, "It is taken")
    await page.expect("document.querySelectorAll('.requests > li').length === 2", "It comes by itself")
    await page.click(".requests > li:first-child summary")
    await page.expect("document.querySelector('.requests > li:first-child .problem')", "The problem is shown")
    text = await page.run("document.querySelector('.requests > li:first-child .problem').innerText")
    expect("and 1 more place" in text and "1 more places" not in text, f"One is one: {text}")
    # The other language shows the same request.
    await page.click(".languages a[lang=ko]")
    await page.expect("document.documentElement.lang === 'ko'", "Another language can be chosen")
    await page.expect("document.querySelector('.requests > li:first-child .problem')"
                      " && !document.getElementById('requests').hidden", "The request is still open")
    # A small screen.
    narrow = await opened(browser, url, width=390, height=844)
    long = part('name="a"; filename="' + "long" * 30 + '.txt"; odd:x').replace(b"odd:x", b"odd:\"x\"")
    expect(post(url, long + b"--XX--\r\n") in (201, 400), "It is answered")
    await narrow.click("#requests-tab")
    await narrow.expect("document.querySelectorAll('.requests > li').length === 3", "It comes by itself")
    await narrow.click(".requests > li:first-child summary")
    await narrow.expect("document.querySelector('.problem mark')", "The byte is marked")
    expect(await narrow.run(
        "[...document.querySelectorAll('.problem mark')].every((mark) => { const box = mark.closest('pre')"
        ".getBoundingClientRect(); const { left, right } = mark.getBoundingClientRect();"
        "return left >= box.left && right <= box.right })"), "The mark is in its box")


# Holds back the lists that the page asks for, until they are released.
HOLD_LISTS = """
const { fetch: fetched } = globalThis;
const released = new Promise((resolve) => { globalThis.release = resolve; });
globalThis.lists = 0;
globalThis.fetch = async (path, options) => {
  const response = await fetched(path, options);
  if (path !== "/uploads" && path !== "/requests") return response;
  globalThis.lists += 1;
  await released;
  return response;
};
"""


async def opening(browser, url, pictures):
    """What is opened while the lists are loading stays open."""
    expect(post(url, part('name="a"', "before") + b"--XX--\r\n") == 201, "A form is taken before")
    page = await opened(browser, url, before=HOLD_LISTS)
    await page.expect("lists >= 2", "The page asks for its lists")
    expect(post(url, part('filename="a.jpg"', "abc") + b"--XX--\r\n") == 400, "A form is refused")
    expect(post(url, part('name="a"', "first") + b"--XX--\r\n") == 201, "A form is taken")
    await page.click("#requests-tab")
    await page.expect("document.querySelectorAll('.requests > li').length === 2", "Both come by themselves")
    await page.click(".requests > li:last-child summary")
    await page.expect("document.querySelector('.requests .problem')", "The problem is shown")
    await page.run("globalThis.shown = [...document.querySelectorAll('.card, .requests > li')]")
    await page.run("release()")
    await page.expect("document.querySelectorAll('.card').length === 2", "The older form is shown")
    await page.expect("document.querySelectorAll('.requests > li').length === 3", "So is its request")
    expect(await page.run("document.querySelector('.requests .problem') !== null"), "What is open stays open")
    expect(await page.run("shown.length === 3 && shown.every((each) => each.isConnected)"), "What is shown stays")


async def translated(browser, url, pictures):
    """What is wrong is said in the language of the page, and the receiver's own words stay below it."""
    page = await opened(browser, url, language="ko")
    await page.click("#requests-tab")
    picture = b"--XX\r\nContent-Disposition: form-data; name=\"p\"; filename=\"p.jpg\"\r\n\r\n\xff\xd8\xff\xd9\r\n"
    expect(post(url, picture + part('filename="a.jpg"', "abc") + b"--XX--\r\n") == 400, "It is refused")
    await page.expect("document.querySelectorAll('.requests > li').length === 1", "It comes by itself")
    await page.click(".requests summary")
    await page.expect("document.querySelector('.problem')", "The problem is shown")
    text = await page.run("document.querySelector('.problem').innerText")
    for words in ("missing-name", "파트에 이름이 없습니다", "name=\"…\"를 쓰세요", "서버는 필드를 이름으로 찾으므로", "파트 1"):
        expect(words in text, f"{words!r} is shown: {text}")
    expect(await page.run("document.querySelector('.problem [lang=en]') !== null"), "The message is marked as English")
    await page.run("document.querySelectorAll('.problem details').forEach((each) => { each.open = false })")
    text = await page.run("document.querySelector('.problem').innerText")
    expect("has no name" not in text, f"No sentence stays English: {text}")
    # A refusal where the form is sent.
    await page.run("document.querySelector('.field-value').value = 'x'.repeat(2_000_000)")
    await page.click("#send")
    await page.expect("document.querySelector('.outcome.bad')", "The form is refused")
    text = await page.run("document.getElementById('outcome').innerText")
    expect("텍스트 필드가 허용된 것보다 큽니다" in text and "파일로 보내세요" in text, f"It says why: {text}")


async def folded(browser, url, pictures):
    """The same problem in many parts is one, with how often it is there."""
    page = await opened(browser, url)
    await page.click("#requests-tab")
    field = part('name="a"\r\nContent-Transfer-Encoding: binary', "1")
    expect(post(url, field * 500 + b"--XX--\r\n") == 201, "It is taken")
    await page.expect("document.querySelectorAll('.requests > li').length === 1", "It comes by itself")
    await page.click(".requests summary")
    await page.expect("document.querySelector('.problem')", "The problem is shown")
    expect(await page.run("document.querySelectorAll('.problem').length") == 1, "It is shown once")
    text = await page.run("document.querySelector('.problem').innerText")
    expect("Also at bytes" in text and "and 493 more places" in text, f"It is said how often it is there: {text}")


async def hostile(browser, url, pictures):
    page = await opened(browser, url)
    evil = "<img src=x onerror=alert(1)>"
    form = part(f'name="{evil}"', evil + "</script><script>alert(2)</script>\u202e") + part(
        f'name="f"; filename="{evil}.html"\r\nContent-Type: text/html', "<script>alert(3)</script>")
    form += part('name="t"; filename="a\u202egpj.exe\u2066"', "turned")
    form += part(f'name="p"; filename="{evil}.png"\r\nContent-Type: image/png', "no picture")
    expect(post(url, form + b"--XX--\r\n", **{"X-Evil": evil}) == 201, "It is taken")
    await page.expect("document.querySelectorAll('.card').length === 1", "It is shown")
    text = await page.run("document.querySelector('.card').innerText")
    expect(f"{evil}.html" in text and "</script><script>" in text, f"It is shown as it is: {text}")
    expect("a\\u{202E}gpj.exe\\u{2066}" in text, f"What turns the reading direction is marked: {text}")
    html = await page.run("document.querySelector('.card').outerHTML")
    expect(not any(turning in html for turning in "\u202e\u2066"), "Nothing turns the reading direction")
    await page.expect("document.querySelector('.pictures .kind')", "What is no picture is no picture")
    expect(post(url, part(f'filename="{evil}"') + b"--XX--\r\n", **{"X-Evil": evil}) == 400, "It is refused")
    await page.click("#requests-tab")
    await page.expect("document.querySelectorAll('.requests > li').length === 2", "Both requests are there")
    for number in (1, 2):
        await page.run(f"document.querySelector('.requests > li:nth-child({number}) details').open = true")
        await page.expect(f"document.querySelector('.requests > li:nth-child({number}) .line')", "It is described")
    expect(not await page.run("!!document.querySelector('img[src=x], .seen script')"), "Nothing of it is HTML")
    opened_file = await browser.page()
    await opened_file.send("Page.setDownloadBehavior", behavior="deny")
    response = urllib.request.urlopen(url + uploads(url)[0]["files"][0]["url"])
    expect(response.headers["Content-Disposition"].startswith("attachment"), "It is offered for saving")


async def plain(browser, url, pictures):
    page = await opened(browser, url, scripts=False)
    expect(not await page.run("document.documentElement.classList.contains('has-scripts')"), "No script runs")
    await page.choose("#files", pictures[:1])
    await page.click("#message")
    await page.write("without scripts")
    await page.click("#send")
    await page.expect("document.body.innerText.includes('sha256')", "The response is the record")
    (record,) = uploads(url)
    expect(record["fields"] == [{"name": "message", "value": "without scripts"}], f"The text arrives: {record}")
    expect(len(record["files"]) == 1, f"The picture arrives: {record}")


async def keyboard(browser, url, pictures):
    page = await opened(browser, url)
    visited = []

    async def tab_to(selector):
        for _ in range(30):
            if await page.run(f"document.activeElement.matches({json.dumps(selector)})"):
                return
            await page.press("Tab", 9)
            visited.append(await page.run("document.activeElement.outerHTML.slice(0, 60)"))
        raise Failed(f"Tab reaches {selector}: {visited}")

    await tab_to("#files")
    await tab_to(".field-value")
    await page.write("typed")
    await tab_to("#send")
    await page.press("Enter", 13, "\r")
    await page.expect("document.querySelectorAll('.card').length === 1", "Enter sends")
    await tab_to("#received-tab")
    await page.press("ArrowRight", 39)
    await page.expect("!document.getElementById('requests').hidden", "The arrow goes to the next tab")
    await tab_to(".requests summary")
    await page.press("Enter", 13, "\r")
    await page.expect("document.querySelector('.requests .line')", "Enter opens a request")


async def tokens(browser, url, pictures):
    page = await browser.page()
    await page.open(url)
    await page.expect("document.getElementById('token').open", "It asks for the token for reading")
    await page.write("to-read")
    await page.press("Enter", 13, "\r")
    await page.expect("document.querySelector('.connection.live')", "It listens with the token")
    await page.choose("#files", pictures)
    await page.expect("document.querySelectorAll('.chosen-file').length === 3", "Files are listed")
    await page.click("#send")
    await page.expect("document.getElementById('token').open", "It asks for the token for posting")
    await page.write("to-post")
    await page.press("Enter", 13, "\r")
    await page.expect("document.querySelector('.outcome.good')", "The form is sent with it")
    await page.run("document.querySelector('.pictures').scrollIntoView()")
    await page.expect("[...document.querySelectorAll('.pictures img')].filter((image) => image.naturalWidth > 0)"
                      ".length === 3", "The pictures are fetched with the token")
    expect(not await page.run("document.body.innerText.includes('to-post')"), "A token is not shown")
    # What is opened belongs to the page, so its type is one that can run no code.
    await page.run("""
        window.fetchedTypes = [];
        const makeAddress = URL.createObjectURL.bind(URL);
        URL.createObjectURL = (data) => { window.fetchedTypes.push(data.type); return makeAddress(data); };
        const mixed = new FormData();
        const picture = new Uint8Array([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 0]);
        mixed.append("f", new Blob([picture], { type: "application/pdf" }), "mixed.pdf");
        fetch("/uploads", { method: "POST", headers: { Authorization: "Bearer to-post" }, body: mixed });
        0""")
    link = "[...document.querySelectorAll('.pictures a')].find((link) => link.ariaLabel.includes('mixed.pdf'))"
    await page.expect(link + " !== undefined", "A file that begins as a picture is shown as one")
    await page.run(f"({link}.click = () => {{ window.isFollowed = true; }}, 0)")
    await page.run(link + ".dispatchEvent(new MouseEvent('click', { cancelable: true }))")
    await page.expect("window.isFollowed", "It is fetched when it is opened")
    types = await page.run("window.fetchedTypes.join()")
    expect("image/png" in types and "pdf" not in types, f"It is opened as what it begins as: {types}")


# Holds the events back as a proxy does that buffers them, until they are released. Timers run 20 times as fast.
HOLD_EVENTS = """
const { fetch: fetched, setTimeout: later } = globalThis;
globalThis.setTimeout = (handler, milliseconds, ...rest) => later(handler, milliseconds / 20, ...rest);
globalThis.isHeld = true;
globalThis.attempts = 0;
globalThis.fetch = (path, options) => {
  if (path !== "/events" || !globalThis.isHeld) return fetched(path, options);
  globalThis.attempts += 1;
  return new Promise((_, reject) => options.signal.addEventListener("abort", () => reject(options.signal.reason)));
};
"""


async def buffered(browser, url, pictures):
    """The page polls while a proxy holds back the events, and goes back to them when they arrive."""
    page = await browser.page()
    await page.send("Page.addScriptToEvaluateOnNewDocument", source=HOLD_EVENTS)
    await page.open(url)
    await page.expect("document.querySelector('.connection.polling')", "The page polls")
    broken = part('filename="a.jpg"', "abc") + b"--XX--\r\n"
    expect(post(url, broken) == 400, "A form is refused")
    await page.click("#requests-tab")
    await page.expect("document.querySelectorAll('.requests > li').length === 1", "Its request is shown")
    await page.click(".requests summary")
    await page.expect("document.querySelector('.problem')", "The problem is shown")
    for count in (1, 2):
        expect(post(url, part('name="a"', "first") + b"--XX--\r\n") == 201, "A form is taken")
        await page.expect(f"document.querySelectorAll('.card').length === {count}", "A new form is shown")
        await page.expect(f"document.querySelectorAll('.requests > li').length === {count + 1}", "So is its request")
    expect(await page.run("document.querySelector('.requests > li:last-child .problem') !== null"),
           "What is open stays open")
    (newest, _) = uploads(url)
    request = urllib.request.Request(f"{url}/uploads/{newest['id']}", method="DELETE")
    urllib.request.urlopen(request).close()
    await page.expect("document.querySelectorAll('.card').length === 1", "A deleted form is gone")
    await page.expect("attempts > 2", "The page tries again to get events")
    await page.run("isHeld = false")
    await page.expect("document.querySelector('.connection.live')", "The page is live when events arrive")


async def languages(browser, url, pictures):
    for language, words in (("ko-KR,ko;q=0.9,en;q=0.8", "양식 보내기"), ("de, en;q=0.5", "Send a form")):
        page = await opened(browser, url, language=language)
        title = await page.run("document.getElementById('compose-title').textContent")
        expect(title == words, f"{language} is answered with {title}")
    await page.click(".languages a[lang=ko]")
    await page.expect("document.documentElement.lang === 'ko'", "Another language can be chosen")
    for size in ((390, 844), (1280, 900)):
        page = await opened(browser, url, width=size[0], height=size[1])
        await page.expect("document.documentElement.scrollWidth <= innerWidth", f"Nothing sticks out at {size}")


# A picture that no browser on Linux shows.
HEIC = base64.b64decode(
    "AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAa5tZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAAA5waXRtAAAA"
    "AAACAAAAEGlkYXQAAAAAAEAAMAAAADhpbG9jAQAAAERAAAIAAQAAAAAAAAHSAAEAAAAAAAAAggACAAEAAAAAAAAAAQAAAAAAAAAIAAAAOGlpbmYA"
    "AAAAAAIAAAAVaW5mZQIAAAEAAQAAaHZjMQAAAAAVaW5mZQIAAAAAAgAAZ3JpZAAAAADZaXBycAAAALdpcGNvAAAAd2h2Y0MBA3AAAAAAAAAAAAAe"
    "8AD8/fj4AAAPAyAAAQAYQAEMAf//A3AAAAMAkAAAAwAAAwAeugJAIQABACtCAQEDcAAAAwCQAAADAAADAB6gIIEFlukpKS5uBAQMCAAAAwAIAAAD"
    "AAhAIgABAAZEAcBxgRIAAAAUaXNwZQAAAAAAAABAAAAAQAAAABRpc3BlAAAAAAAAAEAAAAAwAAAAEHBpeGkAAAAAAwgICAAAABppcG1hAAAAAAAA"
    "AAIAAQKBAgACAgOEAAAAGmlyZWYAAAAAAAAADmRpbWcAAgABAAEAAACKbWRhdAAAAH4oAaw7gI9tY+uIH/7+fkPJyekzDw+wc5P7xt7/4RpcxiSW"
    "DxN9LA/zfv/bRat9pFLijv4FBS89Kpl+NonvBkZysbsVTDu9bg7iP60wDLxNfmzeHSifAUu6uNgvkYW6e2A8D595+KfoAO83QDFSmo0W0xmgxkDF"
    "H40gA3b3Fgg=")


def tiff(width, height):
    """A TIFF of one strip, in RGB, without compression."""
    pixels = b"".join(bytes((x * 255 // width, 120, y * 255 // height)) for y in range(height) for x in range(width))
    start = 8 + len(pixels)
    entries = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 3, start), (259, 3, 1, 1), (262, 3, 1, 2),
               (273, 4, 1, 8), (277, 3, 1, 3), (278, 4, 1, height), (279, 4, 1, len(pixels))]
    directory = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *entry) for entry in entries)
    return struct.pack("<2sHI", b"II", 42, start + 6) + pixels + struct.pack("<3H", 8, 8, 8) + directory + bytes(4)


# The receiver has no time for a small picture when it is asked for the first time.
BUSY_AT_FIRST = """
    const ask = fetch, asked = new Set();
    globalThis.fetch = (url, options) => {
        if (!`${url}`.endsWith("/thumbnail") || asked.has(url)) return ask(url, options);
        asked.add(url);
        return Promise.resolve(new Response("{}", { status: 503, headers: { "Retry-After": "1" } }));
    };
"""


async def views(browser, url, pictures):
    """The page in both languages, on screens of two sizes, light and dark: every picture is seen, every text can be read,
    and what has the focus shows it. POSTCARD_SCREENSHOTS names a folder for what it looks like."""
    files = [(os.path.basename(path), "image/jpeg" if path.endswith("jpg") else "image/png", open(path, "rb").read())
             for path in pictures]
    files += [("바다.heic", "image/heic", HEIC), ("scan.tif", "image/tiff", tiff(320, 240))]
    form = part('name="message"', "제주 바다에서, 초코와 함께") + part('name="place"', "서귀포")
    for name, kind, content in files:
        form += f'--XX\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\nContent-Type: {kind}\r\n\r\n'.encode()
        form += content + b"\r\n"
    expect(post(url, form + b"--XX--\r\n") == 201, "A form with pictures is taken")
    expect(post(url, part('filename="a.jpg"', "abc") + b"--XX--\r\n") == 400, "A broken form is refused")
    page = await opened(browser, url, before=BUSY_AT_FIRST)
    await page.expect("document.querySelectorAll('.pictures img').length === %d" % len(files),
                      "Small pictures are asked for again")
    await browser.send("Target.closeTarget", {"targetId": page.target})
    for language in ("en", "ko"):
        for width, height in ((1280, 900), (390, 844)):
            for dark in (False, True):
                page = await opened(browser, url, width=width, height=height, dark=dark, language=language)
                name = f"{language}-{width}-{'dark' if dark else 'light'}"
                await page.expect("document.querySelectorAll('.pictures a').length === %d" % len(files), "There are tiles")
                await page.run("document.querySelectorAll('.pictures a').forEach((tile) => tile.scrollIntoView())")
                await page.expect("[...document.querySelectorAll('.pictures a')].every((tile) =>"
                                  "tile.querySelector('img')?.naturalWidth > 0)", f"Every tile has a picture: {name}")
                await page.run("scrollTo(0, 0)")
                await looked_at(page, f"{name}-received")
                await page.click("#requests-tab")
                await page.click(".requests > li:first-child summary")
                await page.expect("document.querySelector('.requests .line')", "The request is described")
                await page.run("scrollTo(0, 0)")
                await looked_at(page, f"{name}-requests")
                await browser.send("Target.closeTarget", {"targetId": page.target})


async def forms(browser, url, pictures):
    """Posts random forms, and compares what is stored of them with what the browser was given."""
    count, seed = (int(os.environ.get(f"POSTCARD_BROWSER_{name}", default)) for name, default in (
        ("FORMS", 1000), ("SEED", 1)))
    page = await browser.page()
    # The receiver lets no script of its answers run; this one is the test's.
    await page.send("Page.setBypassCSP", enabled=True)
    await page.open(url + "/status")
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "forms.js")) as script:
        async with asyncio.timeout(max(count / 1000, 1) * 500):
            result = await page.run(f"({script.read()})({count}, {seed})")
    expect(not result["wrong"], f"With the seed {seed}: {json.dumps(result['wrong'], ensure_ascii=False, indent=1)}")
    expect(result["posted"] == count, f"{result['posted']} of {count} forms are posted")
    expect(result["backslashes"] > count / 10, f"{result['backslashes']} names end in a backslash")


scenarios = {each.__name__: each for each in (
    sending, cancelling, aborting, reused, deleting, refused, faults, opening, translated, folded, hostile, plain, keyboard,
    languages, tokens, views, buffered, forms)}


async def main(name, url, *pictures):
    async with running_browser() as browser:
        await scenarios[name](browser, url, list(pictures))
        expect(not browser.complaints, f"The browser complains: {browser.complaints}")


try:
    asyncio.run(main(*sys.argv[1:]))
except Failed as failure:
    print(failure, file=sys.stderr)
    sys.exit(1)

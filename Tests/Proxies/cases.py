"""What is sent through a proxy, and what has to come of it. Each case gives the seconds that count, or nothing."""

import time
from threading import Thread

from bench import KILOBYTES
from programs import Failed, expect, later
from relay import Relay
from wire import FORM_TYPE, Events, Lost, form, path_of

# MARK: - Sent by the program


def sent(bench, size, options=()):
    sending, caption = bench.send(size, *options)
    expect(sending.exit_status == 0 and sending.status == 201, str(sending))
    bench.expect_stored(caption, size)
    return sending.seconds


def queued(bench, size):
    report, seconds, caption = bench.queue(size)
    expect(report["state"] == "done" and report["response"]["status"] == 201, str(report))
    bench.expect_stored(caption, size)
    return seconds


def refused(bench, size, status, options=(), file="f"):
    """The receiver's refusal reaches the client as a problem."""
    sending, caption = bench.send(size, *options, file=file)
    expect(sending.exit_status == 1, str(sending))
    expect(sending.status == status and sending.problem, f"not the receiver's {status}: {sending}")
    bench.expect_not_stored(caption)
    return sending.seconds


def refused_in_queue(bench, size, status):
    report, seconds, caption = bench.queue(size)
    expect(report["state"] == "failed" and str(status) in report["error"], f"not the receiver's {status}: {report}")
    bench.expect_not_stored(caption)
    return seconds


def refused_by_proxy(bench, size):
    """The cap of the proxy is an error at once, and no loop."""
    sending, caption = bench.send(size)
    kind = bench.front.kind
    is_refused = sending.exit_status == 1 and sending.status in kind.cap_statuses
    expect(is_refused or (kind.loses_refusals and sending.exit_status == 69), f"not the proxy's 413: {sending}")
    bench.expect_not_stored(caption)
    return sending.seconds


# MARK: - Sent as an app of iOS does


def fields_of(version, is_complete):
    complete = ("Upload-Incomplete", "?0" if is_complete else "?1") if version == 3 else (
        "Upload-Complete", "?1" if is_complete else "?0")
    return [("Upload-Draft-Interop-Version", str(version)), complete]


def post(bench, version, body, **pace):
    return bench.front.wire().request(
        "POST", "/uploads", [("Content-Type", FORM_TYPE), *fields_of(version, True)], body, **pace)


def resumed(bench, version, body, location):
    """What URLSession does after an interruption: it asks for the offset, and appends the rest."""
    wire = bench.front.wire()
    number = [("Upload-Draft-Interop-Version", str(version))]
    for attempt in range(6):
        time.sleep(0.2 * attempt)
        try:
            found = wire.request("HEAD", location, number)
            if found.status in (423, 502, 503, 504):
                continue
            expect(found.status in (200, 204), f"HEAD: {found.status}")
            offset = int(found.fields.get("upload-offset", "-1"))
            expect(0 <= offset <= len(body), f"HEAD: Upload-Offset {found.fields.get('upload-offset')}")
            kind = [("Content-Type", "application/partial-upload")] if version >= 6 else []
            return wire.request(
                "PATCH", location, [*fields_of(version, True), *kind, ("Upload-Offset", str(offset))], body[offset:])
        except Lost:
            continue
    raise Failed("interrupted six times")


def posted(bench, size, version, seconds=0, cut_at=None):
    """A form of an app whose connection may be cut, which it resumes if it was told where, or else posts again."""
    body, caption = bench.raw_form(size)
    start = time.monotonic()
    pace = {"seconds": seconds, "cut_after": int(len(body) * cut_at) if cut_at else None}
    for _ in range(3):
        try:
            response = post(bench, version, body, **pace)
            break
        except Lost as lost:
            locations = [each.fields["location"] for each in lost.interim if "location" in each.fields]
            if locations:
                response = resumed(bench, version, body, path_of(locations[-1]))
                break
        pace = {}
    else:
        raise Failed("interrupted three times")
    expect(response.status in (200, 201), f"{response.status}: {response.body[:200]}")
    duration = time.monotonic() - start
    bench.expect_stored(caption, size)
    return duration


def posted_and_refused(bench, size, status=None, version=8, file="f"):
    """The receiver's refusal, or without a status that of the proxy's cap."""
    body, caption = bench.raw_form(size, file)
    start = time.monotonic()
    try:
        response = post(bench, version, body)
    except Lost as lost:
        if status or not bench.front.kind.loses_refusals:
            raise Failed(f"not a {status or 413}: {lost}") from lost
        return None
    expected = (status,) if status else bench.front.kind.cap_statuses
    expect(response.status in expected, f"not a {status or 413}: {response.status}")
    if status:
        expect(response.json and response.json.get("code"), f"not the receiver's {status}: {response.body[:100]}")
    duration = time.monotonic() - start
    bench.expect_not_stored(caption)
    return duration


def asked(bench, method):
    """HEAD, or GET in its place, at an unfinished upload."""
    wire = bench.front.wire()
    created = wire.request("POST", "/uploads", [("Content-Type", FORM_TYPE), *fields_of(9, False)], b"--b\r\n")
    expect(created.status == 201 and created.location(), f"the creation: {created.status}")
    start = time.monotonic()
    found = wire.request(method, created.location(), [("Upload-Draft-Interop-Version", "9")])
    expect(found.status in (200, 204), f"{method}: {found.status}")
    expect(found.fields.get("upload-offset") == "5", f"{method}: Upload-Offset {found.fields.get('upload-offset')}")
    duration = time.monotonic() - start
    deleted = wire.request("DELETE", created.location(), [("Upload-Draft-Interop-Version", "9")])
    expect(deleted.status in (200, 204), f"DELETE: {deleted.status}")
    return duration


# MARK: - Killed in the middle


def killed(bench, size, victim, options=(), is_queue=False):
    """The proxy or the receiver is killed and started again while the form is sent."""
    process = {"proxy": bench.front, "receiver": bench.receiver}[victim]

    def restart():
        process.kill()
        process.start()

    with Relay(bench.front.port, rate=size / 2) as relay:
        restarting = later(1, restart)
        if is_queue:
            report, _, caption = bench.queue(size, relay=relay, seconds=90)
            restarting.join()
            expect(report["state"] == "done", str(report))
        else:
            sending, caption = bench.send(size, *options, relay=relay, seconds=90)
            restarting.join()
            expect(sending.exit_status == 0, str(sending))
    bench.expect_stored(caption, size)


# MARK: - Live events, and many clients


def listened(bench):
    """An event arrives as soon as a form was received, or else the page asks for the list."""
    if bench.keeps_events:
        found = bench.front.wire().request("GET", "/uploads?limit=1")
        expect(found.status == 200, f"the list of uploads: {found.status}")
        return
    listener = Events(bench.front.wire())
    start = time.monotonic()
    try:
        expect(listener.wait_for(b"listening", 5), f"no event stream within 5 s: {listener.received[:100]}")
        sending, caption = bench.send(KILOBYTES)
        expect(sending.exit_status == 0, str(sending))
        expect(listener.wait_for(caption.encode(), 5), "no event within 5 s after a form was received")
    finally:
        listener.close()
    bench.expect_stored(caption, KILOBYTES)
    return time.monotonic() - start


def named(bench):
    """The proxy says who the client is, whatever the client itself says."""
    address = "127.2.0.99"
    spoofed = [("Forwarded", "for=192.0.2.1"), ("X-Forwarded-For", "192.0.2.2")]
    body, caption = bench.raw_form(KILOBYTES)
    response = bench.front.wire(address).request("POST", "/uploads", [("Content-Type", FORM_TYPE), *spoofed], body)
    expect(response.status == 201, f"{response.status}")
    latest = bench.receiver.get("/requests")["requests"][0]
    lines = bench.receiver.get(f"/requests/{latest['id']}")["headers"]
    fields = [(name.lower(), value) for name, value in lines]
    forwarded = [value for name, value in fields if name == "forwarded" and value]
    expect(not forwarded, f"the client's own Forwarded arrives: {forwarded}")
    last = ",".join(value for name, value in fields if name == "x-forwarded-for").split(",")[-1].strip()
    expect(last == address, f"X-Forwarded-For names {last!r}")
    bench.expect_stored(caption, KILOBYTES)


def thirty(bench):
    """30 clients, each with a page open, post at the same time."""
    addresses = [f"127.2.0.{index + 1}" for index in range(30)]
    listeners = [Events(bench.front.wire(address)) for address in addresses]
    failures = []
    captions = [bench.caption() for _ in addresses]

    def post_from(address, caption):
        try:
            response = bench.front.wire(address).request(
                "POST", "/uploads", [("Content-Type", FORM_TYPE)], form(caption, bench.samples.content(KILOBYTES)))
            if response.status != 201:
                failures.append(f"{response.status}")
        except (Lost, OSError) as error:
            failures.append(str(error))

    try:
        if not bench.keeps_events:
            end = time.monotonic() + 5
            count = sum(each.wait_for(b"listening", end - time.monotonic()) for each in listeners)
            expect(count == 30, f"{count} of 30 pages are live")
        start = time.monotonic()
        threads = [Thread(target=post_from, args=each) for each in zip(addresses, captions)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        duration = time.monotonic() - start
    finally:
        for each in listeners:
            each.close()
    expect(not failures, f"{len(failures)} of 30 forms failed: {failures[:3]}")
    records = bench.receiver.records()
    for caption in captions:
        count = sum({"name": "caption", "value": caption} in each["fields"] for each in records)
        expect(count == 1, f"stored {count} times")
    # 30 programs that send over HTTP/2 take longer than 30 sockets.
    return None if bench.is_secure else duration

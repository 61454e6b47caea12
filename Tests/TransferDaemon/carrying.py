"""A transfer, and one attempt to send it: the request, its redirects, and the faults that a test asks for."""

import http.client
import socket
import urllib.parse

CHUNK_BYTES = 1 << 16
REDIRECTS_ALLOWED = 16
FIRST_RETRY_SECONDS = 0.02
# What the system adds to requests that it can resume: of the draft's sixth interoperable version.
VERSION = ("Upload-Draft-Interop-Version", "6")
RESUMING = [["Upload-Complete", "?1"], list(VERSION)]
# How long a server may take to name the upload resource. More than a busy machine needs.
PATIENCE_FOR_RESOURCE = 100.0
REDIRECTING = {301, 302, 303, 307, 308}
# Dropped together with the body that they describe.
CONTENT_FIELDS = {"content-type", "content-length", "content-encoding", "content-language", "content-location"}


class Transfer:
    def __init__(self, number, session, command, held_file, earliest, is_discretionary=False):
        # The identifier of the session that carries it.
        self.session = session
        # The system waits for good conditions if the app was in the background.
        self.is_discretionary = is_discretionary
        # The response that asks for credentials, and the upload resource, if the server resumes the upload.
        self.response = self.resource = None
        self.number, self.held_file, self.earliest = number, held_file, earliest
        # The app's own file, and whether the transfer resumes what an earlier one has sent.
        self.file, self.is_resuming = command["file"], False
        self.id, self.url, self.method = command["id"], command["url"], command["method"]
        self.fields, self.length, self.networks = command["fields"], command["length"], command["networks"]
        # waiting, active, ended (with events to deliver), or gone.
        self.state = "waiting"
        self.connection = None
        self.first_try = None
        self.retry_delay = FIRST_RETRY_SECONDS
        self.was_connected = False
        self.is_lost = False
        # The process is asked for another request before a delayed transfer begins.
        self.must_ask = (command.get("delay") or 0.0) > 0
        self.is_asking = False
        self.events = []


class Broken(Exception):
    """The connection broke or failed."""

    def __init__(self, reason, connected, response=None):
        super().__init__(reason)
        self.connected = connected
        # The response that says that the upload resource is gone.
        self.response = response

    @property
    def cannot_resume(self):
        return self.response is not None


class Left:
    """What a transfer leaves for another one: the request, the upload resource, and the file as it is."""

    def __init__(self, transfer, state):
        self.fields, self.resource, self.file, self.state = transfer.fields, transfer.resource, transfer.file, state


class Response:
    """The response, and the URL and method of its request."""

    def __init__(self, status, fields, body, url, method):
        self.status, self.fields, self.body, self.url, self.method = status, fields, body, url, method

    def is_challenge(self):
        return self.status == 401 and any(name.lower() == "www-authenticate" for name, _ in self.fields)


class InterimResponse(http.client.HTTPResponse):
    """A response after interim ones, which http.client takes for the last one."""

    def _read_status(self):
        while True:
            version, status, reason = super()._read_status()
            if not 101 < status < 200:
                return version, status, reason
            http.client.parse_headers(self.fp)


class Connection:
    """A connection that another thread can break."""

    def __init__(self):
        self.http = None
        self.is_broken = False

    def open(self, url, timeout):
        if self.http:
            self.http.close()
        self.http = http.client.HTTPConnection(url.hostname, url.port or 80, timeout=timeout)
        self.http.connect()
        if self.is_broken:
            self.break_now()

    def break_now(self):
        self.is_broken = True
        try:
            self.http.sock.shutdown(socket.SHUT_RDWR)
        except (AttributeError, OSError):
            pass  # There is no socket yet, or it is closed.

    def close(self):
        if self.http:
            self.http.close()


def answer_of_portal(kind, transfer):
    """The response of a captive portal to whatever is sent. None if it does not speak TLS as the server does."""
    fields = [("Content-Type", "text/html; charset=utf-8")]
    status = {"511": 511, "html": 200}.get(kind)
    return status and Response(status, fields, b"<html>Sign in</html>", transfer.url, transfer.method)


def carry(transfer, connection, timeout, report_sent, drop_at=None, resumes=False, hold=None):
    """Sends a transfer's file, and follows redirects without asking the app.

    drop_at: the number of bytes of the body after which the connection breaks. If these are all, it breaks before the
    response. resumes: whether the system resumes the upload by itself, if the server does. hold: called in the middle of
    the body. Returns a Response, or raises Broken.
    """
    url, method, fields, sends_body = transfer.url, transfer.method, transfer.fields, True
    connected = False
    try:
        if resumes and transfer.resource:
            connected = True
            response = resume(transfer, connection, timeout, report_sent)
            if response.method == "PATCH":
                return response
            if transfer.is_resuming:
                raise Broken("The upload resource is gone", connected, response)
            transfer.resource = None
        if resumes:
            fields = fields + RESUMING
        for _ in range(REDIRECTS_ALLOWED + 1):
            parts = urllib.parse.urlsplit(url)
            connection.open(parts, timeout)
            connected = True
            response = request(
                connection, parts, method, fields, transfer if sends_body else None, report_sent, drop_at, resumes,
                hold=hold)
            body = response.read()
            location = response.getheader("Location")
            if response.status not in REDIRECTING or location is None:
                return Response(response.status, response.getheaders(), body, url, method)
            target = urllib.parse.urljoin(url, location)
            if response.status < 307 and not (response.status != 303 and method in ("GET", "HEAD")):
                method, sends_body = "GET", False
                fields = [field for field in fields if field[0].lower() not in CONTENT_FIELDS]
            if origin(target) != origin(url):
                fields = [field for field in fields if field[0].lower() != "authorization"]
            url = target
        raise Broken("Too many redirects", connected)
    except (OSError, http.client.HTTPException) as error:
        raise Broken(f"{type(error).__name__}: {error}", connected) from error
    finally:
        connection.close()


def resume(transfer, connection, timeout, report_sent):
    """Sends what the server is missing to the upload resource. Returns the response to HEAD if there is no such resource
    any more."""
    url = transfer.resource
    parts = urllib.parse.urlsplit(url)
    fields = [field for field in transfer.fields if field[0].lower() == "authorization"] + [VERSION]
    connection.open(parts, timeout)
    head = request(connection, parts, "HEAD", fields, None, report_sent, None)
    head.read()
    if head.status // 100 != 2 or head.getheader("Upload-Offset") is None:
        return Response(head.status, head.getheaders(), b"", url, "HEAD")
    offset = int(head.getheader("Upload-Offset"))
    fields = fields + [("Upload-Offset", str(offset)), ("Upload-Complete", "?1"),
                       ("Content-Type", "application/partial-upload")]
    connection.open(parts, timeout)
    response = request(connection, parts, "PATCH", fields, transfer, report_sent, None, offset=offset)
    body = response.read()
    return Response(response.status, response.getheaders(), body, url, "PATCH")


def origin(url):
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or 80


def request(connection, parts, method, fields, transfer, report_sent, drop_at, resumes=False, offset=0, hold=None):
    connection.http.response_class = InterimResponse
    target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
    connection.http.putrequest(method, target, skip_accept_encoding=True)
    for name, value in fields:
        connection.http.putheader(name, value)
    if transfer:
        connection.http.putheader("Content-Length", str(transfer.length - offset))
    connection.http.putheader("Connection", "close")
    connection.http.endheaders()
    if transfer:
        try:
            send_body(connection, transfer, report_sent, drop_at, resumes, offset, hold)
        except OSError:
            # A server may respond and close the connection before it has read the whole body.
            if connection.is_broken:
                raise
    return connection.http.getresponse()


def send_body(connection, transfer, report_sent, drop_at, resumes, offset, hold):
    sent = offset
    if hold:
        drop_at = transfer.length // 2
    with open(transfer.held_file, "rb") as file:
        file.seek(offset)
        while sent < transfer.length:
            end = transfer.length if drop_at is None else min(drop_at, transfer.length)
            chunk = file.read(min(CHUNK_BYTES, end - sent))
            if not chunk:
                break
            connection.http.send(chunk)
            sent += len(chunk)
            report_sent(sent, len(chunk))
    if drop_at is not None:
        if resumes and sent < transfer.length:
            transfer.resource = read_resource(connection.http.sock, transfer.url)
        if hold:
            hold(transfer, connection)
        connection.break_now()
        raise ConnectionResetError("dropped")


def read_resource(connection, url):
    """Waits for the interim response with the upload resource. None if the server announces none."""
    connection.settimeout(PATIENCE_FOR_RESOURCE)
    received = b""
    try:
        while b"\r\n\r\n" not in received:
            chunk = connection.recv(4096)
            if not chunk:
                return None
            received += chunk
    except TimeoutError:
        return None
    lines = received.split(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    is_announced = lines[0].split()[1] == "104" and "location" in fields
    return urllib.parse.urljoin(url, fields["location"]) if is_announced else None

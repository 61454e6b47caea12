"""A transfer, and one attempt to send it: the request, its redirects, and the faults that a test asks for."""

import http.client
import socket
import urllib.parse

CHUNK_BYTES = 1 << 16
REDIRECTS_ALLOWED = 16
FIRST_RETRY_SECONDS = 0.02
REDIRECTING = {301, 302, 303, 307, 308}
# Dropped together with the body that they describe.
CONTENT_FIELDS = {"content-type", "content-length", "content-encoding", "content-language", "content-location"}


class Transfer:
    def __init__(self, number, command, held_file, earliest):
        self.number, self.held_file, self.earliest = number, held_file, earliest
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
        self.events = []


class Broken(Exception):
    """The connection broke or failed."""

    def __init__(self, reason, connected):
        super().__init__(reason)
        self.connected = connected


class Response:
    """The response, and the URL and method of its request."""

    def __init__(self, status, fields, body, url, method):
        self.status, self.fields, self.body, self.url, self.method = status, fields, body, url, method


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


def carry(transfer, connection, timeout, report_sent, drop_at=None):
    """Sends a transfer's file, and follows redirects without asking the app.

    drop_at: the number of bytes of the body after which the connection breaks. If these are all, it breaks before the
    response. Returns a Response, or raises Broken.
    """
    url, method, fields, sends_body = transfer.url, transfer.method, transfer.fields, True
    connected = False
    try:
        for _ in range(REDIRECTS_ALLOWED + 1):
            parts = urllib.parse.urlsplit(url)
            connection.open(parts, timeout)
            connected = True
            response = request(
                connection, parts, method, fields, transfer if sends_body else None, report_sent, drop_at)
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


def origin(url):
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or 80


def request(connection, parts, method, fields, transfer, report_sent, drop_at):
    target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
    connection.http.putrequest(method, target, skip_accept_encoding=True)
    for name, value in fields:
        connection.http.putheader(name, value)
    if transfer:
        connection.http.putheader("Content-Length", str(transfer.length))
    connection.http.putheader("Connection", "close")
    connection.http.endheaders()
    if transfer:
        try:
            send_body(connection, transfer, report_sent, drop_at)
        except OSError:
            # A server may respond and close the connection before it has read the whole body.
            if connection.is_broken:
                raise
    return connection.http.getresponse()


def send_body(connection, transfer, report_sent, drop_at):
    sent = 0
    with open(transfer.held_file, "rb") as file:
        while sent < transfer.length:
            end = transfer.length if drop_at is None else min(drop_at, transfer.length)
            chunk = file.read(min(CHUNK_BYTES, end - sent))
            if not chunk:
                break
            connection.http.send(chunk)
            sent += len(chunk)
            report_sent(sent)
    if drop_at is not None:
        connection.break_now()
        raise ConnectionResetError("dropped")

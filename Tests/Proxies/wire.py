"""HTTP as an app of iOS sends it, byte by byte: paced, cut in the middle, and with its interim responses."""

import json
import os
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time

FORM_TYPE = "multipart/form-data; boundary=b"


def form(caption, content, file="f"):
    """A form with a text and a file."""
    return (
        f'--b\r\nContent-Disposition: form-data; name="caption"\r\n\r\n{caption}\r\n'
        f'--b\r\nContent-Disposition: form-data; name="{file}"; filename="f"\r\n\r\n'.encode()
        + content + b"\r\n--b--\r\n")


class Lost(Exception):
    """A connection that ended before the final response."""

    def __init__(self, interim, sent):
        super().__init__(f"the connection ended before the final response, after {[each.status for each in interim]}")
        self.interim, self.sent = interim, sent


class Response:
    def __init__(self, status, fields, interim=()):
        self.status, self.fields, self.interim = status, fields, list(interim)
        self.body = b""

    @classmethod
    def parse(cls, head, interim=()):
        line, *lines = head.decode("latin-1").split("\r\n")
        fields = {}
        for each in lines:
            name, _, value = each.partition(":")
            fields[name.strip().lower()] = value.strip()
        return cls(int(line.split(" ")[1]), fields, interim)

    @property
    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    def location(self):
        """The address of the upload, from the final or an interim response."""
        found = [each.fields["location"] for each in [*self.interim, self] if "location" in each.fields]
        return path_of(found[-1]) if found else None


def time_for(body):
    return 10 + len(body or b"") / 5_000_000


def path_of(location):
    return "/" + location.split("://", 1)[1].split("/", 1)[1] if "://" in location else location


class PlainWire:
    """HTTP/1.1 over a socket, one connection for each request."""

    def __init__(self, port, address=None):
        self.port, self.address = port, address

    def request(self, method, path, fields=(), body=None, seconds=0, cut_after=None, timeout=None):
        """Sends a request and reads its response.

        - seconds: how long the body takes.
        - cut_after: the number of bytes of the body after which the connection is reset.
        - timeout: how long all of it may take; longer for a large body by default.
        """
        timeout = timeout or time_for(body)
        with self.connect(timeout) as connection:
            head = _head(method, path, [("Connection", "close"), *fields], body)
            return _Exchange(connection, head, body or b"", seconds, cut_after, timeout).run(method == "HEAD")

    def connect(self, timeout):
        connection = socket.socket()
        if self.address:
            connection.bind((self.address, 0))
        # Head and body are sent in two pieces.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(timeout)
        connection.connect(("127.0.0.1", self.port))
        return connection


class KeptWire(PlainWire):
    """HTTP/1.1 over a connection that is kept for the next request."""
    connection = None

    def request(self, method, path, fields=(), body=None, timeout=10):
        # A connection that was closed meanwhile is not used, as in other clients.
        if self.connection and select.select([self.connection], [], [], 0)[0]:
            self.close()
        is_kept = self.connection is not None
        if not is_kept:
            self.connection = self.connect(timeout)
        exchange = _Exchange(self.connection, _head(method, path, fields, body), body or b"", 0, None, timeout)
        try:
            response = exchange.run(method == "HEAD")
        except (Lost, OSError):
            self.close()
            if is_kept and not exchange.received:
                # The proxy closed it just when the request was sent. Clients send such a request on another one.
                return self.request(method, path, fields, body, timeout)
            raise
        if response.fields.get("connection", "").lower() == "close":
            self.close()
        return response

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None


def _head(method, path, fields, body):
    length = [("Content-Length", str(len(body)))] if body is not None else []
    lines = [f"{name}: {value}\r\n" for name, value in [("Host", "localhost"), *fields, *length]]
    return f"{method} {path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode()


class _Exchange:
    PIECES = 50

    def __init__(self, connection, head, body, seconds, cut_after, timeout):
        self.connection, self.head, self.body = connection, head, memoryview(body)
        self.end = len(body) if cut_after is None else cut_after
        self.is_cut = cut_after is not None
        self.pause = seconds / self.PIECES
        self.piece = max(1, len(body) // self.PIECES) if seconds else 1 << 20
        self.deadline = time.monotonic() + timeout
        self.received = b""
        self.interim = []
        self.sent = 0
        self.final = None

    def run(self, without_body):
        try:
            self.connection.sendall(self.head)
            self._send_body()
            if self.is_cut and self.final is None:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                raise Lost(self.interim, self.sent)
            while self.final is None:
                self._receive(self.deadline)
            return self._read_body(without_body)
        except (ConnectionError, BrokenPipeError) as error:
            raise Lost(self.interim, self.sent) from error

    def _send_body(self):
        next_time = time.monotonic()
        while self.sent < self.end and self.final is None:
            piece = self.body[self.sent:min(self.sent + self.piece, self.end)]
            self._send(piece)
            next_time += self.pause
            while self.final is None and (left := next_time - time.monotonic()) > 0:
                if select.select([self.connection], [], [], left)[0]:
                    self._receive(self.deadline)

    def _send(self, piece):
        """Sends, and reads what arrives meanwhile: a server may refuse early."""
        while piece and self.final is None:
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("the body was not read in time")
            readable, writable, _ = select.select([self.connection], [self.connection], [], left)
            if readable:
                self._receive(self.deadline)
            elif writable:
                count = self.connection.send(piece[:1 << 16])
                self.sent += count
                piece = piece[count:]

    def _receive(self, deadline):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no final response in time, after {[each.status for each in self.interim]}")
        self.connection.settimeout(left)
        more = self.connection.recv(1 << 16)
        if not more:
            raise Lost(self.interim, self.sent)
        self.received += more
        while self.final is None and b"\r\n\r\n" in self.received:
            head, self.received = self.received.split(b"\r\n\r\n", 1)
            try:
                response = Response.parse(head, self.interim)
            except (IndexError, ValueError) as error:
                # A proxy that takes a 104 for the final response passes what follows as its body.
                raise Lost(self.interim, self.sent) from error
            if response.status < 200:
                self.interim.append(response)
            else:
                self.final = response

    def _read_body(self, without_body):
        response = self.final
        chunked = response.fields.get("transfer-encoding") == "chunked"
        length = response.fields.get("content-length")
        body = self.received
        if without_body or response.status == 204:
            return response
        while length is None or len(body) < int(length):
            if chunked and body.endswith(b"0\r\n\r\n"):
                break
            self.connection.settimeout(max(0.1, self.deadline - time.monotonic()))
            more = self.connection.recv(1 << 16)
            if not more:
                break
            body += more
        response.body = _without_chunks(body) if chunked else body
        return response


def _without_chunks(body):
    content = b""
    while body:
        line, _, body = body.partition(b"\r\n")
        length = int(line.split(b";")[0] or b"0", 16)
        content += body[:length]
        body = body[length + 2:]
    return content


class CurlWire:
    """HTTP/2 over TLS, by curl, whose requests are paced by its rate limit and cut by ending it."""

    def __init__(self, port, certificate, address=None):
        self.port, self.certificate, self.address = port, certificate, address

    def request(self, method, path, fields=(), body=None, seconds=0, cut_after=None, timeout=None):
        timeout = timeout or time_for(body)
        with tempfile.TemporaryDirectory(prefix="postcard-wire-") as folder:
            head, content, sent = (os.path.join(folder, name) for name in ("head", "content", "sent"))
            command = [
                "curl", "--silent", "--show-error", "--http2", "--cacert", self.certificate, "--max-time", str(timeout),
                "--dump-header", head, "--output", content, "--header", "Expect:", "--header", "Content-Type:",
                *(option for field in fields for option in ("--header", "{}: {}".format(*field)))]
            command += ["--interface", self.address] if self.address else []
            command += ["--head"] if method == "HEAD" else ["--request", method]
            if body is not None:
                with open(sent, "wb") as file:
                    file.write(body)
                command += ["--data-binary", "@" + sent]
                if seconds:
                    command += ["--limit-rate", str(int(len(body) / seconds))]
            process = subprocess.Popen(
                [*command, f"https://localhost:{self.port}{path}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            if cut_after is not None:
                try:
                    process.wait(seconds * cut_after / len(body))
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
            errors = process.communicate()[1].decode()
            return self._response(head, content, cut_after or 0, process.returncode, errors)

    @staticmethod
    def _response(head, content, sent, status, errors):
        text = open(head, "rb").read() if os.path.exists(head) else b""
        responses = [Response.parse(each) for each in text.split(b"\r\n\r\n") if each.startswith(b"HTTP/")]
        interim = [each for each in responses if each.status < 200]
        if status == 28:
            raise TimeoutError(f"no final response in time, after {[each.status for each in interim]}")
        final = [each for each in responses if each.status >= 200]
        if not final:
            lost = Lost(interim, sent)
            lost.args = (f"{lost} (curl: {errors.strip()})",)
            raise lost
        final[-1].interim = interim
        if os.path.exists(content):
            final[-1].body = open(content, "rb").read()
        return final[-1]


class CurlEvents:
    """What a server sends for as long as the connection is open, over HTTP/2."""

    def __init__(self, wire):
        command = ["curl", "--silent", "--no-buffer", "--http2", "--cacert", wire.certificate]
        command += ["--interface", wire.address] if wire.address else []
        self.process = subprocess.Popen(
            [*command, f"https://localhost:{wire.port}/events"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def read(self, seconds):
        if select.select([self.process.stdout], [], [], seconds)[0]:
            return os.read(self.process.stdout.fileno(), 1 << 16)
        return b""

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class SocketEvents:
    """The same over HTTP/1.1."""

    def __init__(self, wire):
        self.connection = wire.connect(10)
        self.connection.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")

    def read(self, seconds):
        self.connection.settimeout(seconds)
        try:
            return self.connection.recv(1 << 16)
        except OSError:
            return b""

    def close(self):
        self.connection.close()


class Events:
    """Reads `GET /events` until something arrives."""

    def __init__(self, wire):
        self.source = CurlEvents(wire) if isinstance(wire, CurlWire) else SocketEvents(wire)
        self.received = b""

    def wait_for(self, content, seconds):
        end = time.monotonic() + seconds
        while content not in self.received and (left := end - time.monotonic()) > 0:
            more = self.source.read(left)
            if not more:
                break
            self.received += more
        return content in self.received

    def close(self):
        self.source.close()

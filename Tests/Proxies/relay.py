"""A connection between a client and a proxy, as a bad link is: slow, cut every so many bytes, or with flipped bytes."""

import re
import socket
import struct
import threading
import time


class Relay:
    """Passes connections on to a port of this machine.

    - rate: the number of bytes per second that clients can send, all together.
    - cut_every: after how many bytes of a client its connection is reset.
    - flip: a function from a client's bytes, and their offset in the connection, to the bytes that are passed on.
    """

    PIECE = 16 << 10

    def __init__(self, port, rate=None, cut_every=None, flip=None):
        self.target, self.rate, self.cut_every, self.flip = port, rate, cut_every, flip
        self.received = 0
        self.cuts = 0
        self.statuses = {}
        self.lock = threading.Lock()
        self.next_time = time.monotonic()
        self.open = set()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Little is in flight when a connection is cut, as on a phone's link.
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        for connection in list(self.open):
            _close(connection)

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client):
        try:
            server = socket.create_connection(("127.0.0.1", self.target), timeout=10)
        except OSError:
            _reset(client)
            return
        server.settimeout(None)
        self.open |= {client, server}
        threading.Thread(target=self._return, args=(server, client), daemon=True).start()
        self._pass(client, server)

    def _pass(self, client, server):
        """From the client to the server."""
        passed = 0
        try:
            while content := client.recv(self._room(passed)):
                with self.lock:
                    self.received += len(content)
                self._wait(len(content))
                server.sendall(self.flip(content, passed) if self.flip else content)
                passed += len(content)
                if self.cut_every and passed >= self.cut_every:
                    with self.lock:
                        self.cuts += 1
                    break
            else:
                server.shutdown(socket.SHUT_WR)
                return
        except OSError:
            pass
        # What was passed on arrives before the end of the connection, as it would if a phone lost its network.
        _close(server)
        _reset(client)

    def _return(self, server, client):
        """From the server to the client."""
        start = b""
        try:
            while content := server.recv(1 << 16):
                # A response's head may arrive in pieces.
                self._count((start + content) if len(start) < 64 else content)
                start = content if len(content) < 64 else b""
                client.sendall(content)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            _reset(client)
            _close(server)

    def _count(self, content):
        for match in re.finditer(rb"HTTP/1\.[01] (\d\d\d)", content):
            with self.lock:
                status = int(match.group(1))
                self.statuses[status] = self.statuses.get(status, 0) + 1

    def _room(self, passed):
        return min(self.PIECE, self.cut_every - passed) if self.cut_every else self.PIECE

    def _wait(self, count):
        if not self.rate:
            return
        with self.lock:
            self.next_time = max(self.next_time, time.monotonic() - 0.05) + count / self.rate
            pause = self.next_time - time.monotonic()
        if pause > 0:
            time.sleep(pause)


def _close(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()


def _reset(connection):
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # A thread that waits for bytes of the connection keeps it open otherwise.
        connection.shutdown(socket.SHUT_RD)
    except OSError:
        pass
    connection.close()

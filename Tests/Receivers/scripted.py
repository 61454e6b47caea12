#!/usr/bin/env python3
"""A server that does what servers rarely do, by the path: scripted.py

/busy   503 to each second request, and 200 to the others
/binary 413 with a body that is no text
/page   413 with a page of HTML
/cut    breaks the connection within the first request of a resumable upload, and takes the rest in the next one
"""

import itertools
import re
import socket
import threading

PAGE = b"<html><head><title>413 Too large</title><style>a{}</style></head><h1>413 Too large</h1><p>Ask <b>me</b>.</html>"
turns = itertools.count()
# How much of the form /cut has.
held = 0


def respond(connection, status, body=b"", *fields):
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *fields]
    connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)


def read(connection, rest, length):
    """Reads a body, or this much of it; gives how much there was."""
    count = len(rest)
    while count < length and (piece := connection.recv(65536)):
        count += len(piece)
    return count


def cut(connection, method, rest, length):
    global held
    version = "Upload-Draft-Interop-Version: 8"
    if method == "OPTIONS":
        respond(connection, "204 No Content", b"", version, "Upload-Limit: max-size=1000000000")
    elif method == "POST" and length == 0:
        respond(connection, "201 Created", b"", version, "Location: /cut", "Upload-Offset: 0", "Upload-Complete: ?0")
    elif method == "HEAD":
        respond(connection, "204 No Content", b"", version, f"Upload-Offset: {held}", "Upload-Complete: ?0",
                "Cache-Control: no-store")
    elif method == "PATCH" and held == 0:
        held = min(read(connection, rest, length // 2), length)
    else:
        read(connection, rest, length)
        respond(connection, "200 OK", b"all of it", version, "Upload-Complete: ?1")


def serve(connection):
    with connection:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return
            data += piece
        head, rest = data.split(b"\r\n\r\n", 1)
        method, path = head.decode().split(" ")[:2]
        length = re.search(rb"(?i)content-length: (\d+)", head)
        length = int(length[1]) if length else 0
        if path == "/cut":
            return cut(connection, method, rest, length)
        if method == "OPTIONS":
            return respond(connection, "404 Not Found")
        read(connection, rest, length)
        if path == "/busy":
            respond(connection, "503 Busy" if next(turns) % 2 == 0 else "200 OK")
        elif path == "/binary":
            respond(connection, "413 Content Too Large", b"\xff\x00", "Content-Type: application/octet-stream")
        elif path == "/page":
            respond(connection, "413 Content Too Large", PAGE, "Content-Type: text/html")
        else:
            respond(connection, "200 OK", b"ok")


listener = socket.create_server(("127.0.0.1", 0))
print("listening on http://127.0.0.1:%d" % listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

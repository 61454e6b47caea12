"""Answers what the package `multipart`, at its strictest, makes of a posted form.

The response is `{"fields": [{"name", "value"}], "files": [{"name", "filename", "contentType", "size", "sha256"}]}`,
both in the order in which they came, or 400 with the parser's reason. A body needs a Content-Length: this little
server knows no other framing.
"""

import hashlib
import json
import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIServer, make_server

from multipart import MultipartError, MultipartParser, parse_options_header


class ThreadingServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True


def receive(environ, start_response):
    media_type, options = parse_options_header(environ.get("CONTENT_TYPE", ""))
    if environ["REQUEST_METHOD"] == "GET" or media_type != "multipart/form-data":
        return respond(start_response, "415 Unsupported Media Type", {"error": "not a form"})
    if not environ.get("CONTENT_LENGTH"):
        return respond(start_response, "411 Length Required", {"error": "no Content-Length"})
    parser = MultipartParser(
        environ["wsgi.input"], options.get("boundary", ""), int(environ["CONTENT_LENGTH"]), strict=True)
    try:
        parts = parser.parts()
    except MultipartError as error:
        return respond(start_response, "400 Bad Request", {"error": str(error)})
    return respond(start_response, "200 OK", {
        "fields": [{"name": part.name, "value": part.value} for part in parts if part.filename is None],
        "files": [described(part) for part in parts if part.filename is not None],
    })


def described(part):
    digest = hashlib.sha256()
    while piece := part.file.read(1 << 20):
        digest.update(piece)
    return {
        "name": part.name, "filename": part.filename, "contentType": part.content_type, "size": part.size,
        "sha256": digest.hexdigest(),
    }


def respond(start_response, status, value):
    start_response(status, [("Content-Type", "application/json")])
    return [json.dumps(value, ensure_ascii=False).encode()]


make_server("127.0.0.1", int(sys.argv[1]), receive, server_class=ThreadingServer).serve_forever()

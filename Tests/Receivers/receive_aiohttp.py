"""Answers what aiohttp makes of a posted form, in the words of receive.py, with the names in the order of the form.

It reads a form as its documentation shows, with its own limit: more than 1 MiB is refused with 413.
"""

import hashlib
import json
import sys

from aiohttp import web


async def receive(request):
    if request.content_type != "multipart/form-data":
        raise web.HTTPUnsupportedMediaType()
    form = await request.post()
    files = [(name, part) for name, part in form.items() if isinstance(part, web.FileField)]
    return web.json_response({
        "order": " ".join(name for name, _ in form.items()),
        "fields": [
            {"name": name, "value": value} for name, value in form.items() if not isinstance(value, web.FileField)],
        "files": [described(name, part) for name, part in files],
    }, dumps=lambda value: json.dumps(value, ensure_ascii=False))


def described(name, part):
    content = part.file.read()
    return {
        "name": name, "filename": part.filename, "contentType": part.content_type, "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


app = web.Application()
app.router.add_route("*", "/{path:.*}", receive)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)

"""Sends the form in FORM.json with a client of Python's: send.py CLIENT FORM.json URL"""

import asyncio
import json
import sys

client, path, url = sys.argv[1:]
form = json.load(open(path))
files = [(f["name"], (f["filename"], open(f["path"], "rb"), f["type"])) for f in form["files"]]


def with_requests():
    import requests

    # A list of texts without a filename keeps the order, and repeated names.
    parts = [(name, (None, value)) for name, value in form["fields"]] + files
    return requests.post(url, files=parts).text


def with_httpx():
    import httpx

    data = {}
    for name, value in form["fields"]:
        data.setdefault(name, []).append(value)
    return httpx.post(url, data=data, files=files, timeout=60).text


async def with_aiohttp():
    import aiohttp

    data = aiohttp.FormData(quote_fields=False)
    for name, value in form["fields"]:
        data.add_field(name, value)
    for name, (filename, file, kind) in files:
        data.add_field(name, file, filename=filename, content_type=kind)
    async with aiohttp.ClientSession() as session, session.post(url, data=data) as response:
        return await response.text()


if client == "requests":
    print(with_requests())
elif client == "httpx":
    print(with_httpx())
else:
    print(asyncio.run(with_aiohttp()))

"""A form that is hard to send, and the comparison of what was received with it: form.py make FOLDER | form.py check."""

import hashlib
import json
import pathlib
import sys

NAMES = ["이름", "😀 emoji", 'quo"te', "semi;colon", "back\\slash", "line\r\nbreak", "percent%22", "a[b][]", " blank "]
VALUES = ["초코", "😀\u200d👩", 'say "hi"; bye', "a\r\nb\r\n", "", "--boundary--", "a=b&c", "\ttab"]


def fields():
    return [[name, VALUES[index % len(VALUES)]] for index, name in enumerate(NAMES)]


def files(folder):
    contents = [b"", b"x", b"\r\n--", bytes(range(256)) * 5000]
    for index, name in enumerate(NAMES):
        path = folder / f"{index}.bin"
        path.write_bytes(contents[index % len(contents)])
        yield {"name": name, "filename": f"{name}.png", "type": "image/png", "path": str(path)}


def many(folder):
    path = folder / "many.bin"
    path.write_bytes(b"many")
    for index in range(100):
        yield {"name": "file", "filename": f"{index}.png", "type": "image/png", "path": str(path)}


def make(folder):
    folder = pathlib.Path(folder)
    texts = fields() + [["many", str(index)] for index in range(82)]
    form = {"fields": texts, "files": list(files(folder)) + list(many(folder))}
    (folder / "form.json").write_text(json.dumps(form))


def shown(name):
    """What a receiver shows of a name: clients write `"`, CR and LF as %22, %0D and %0A, which look the same as
    a name that has those characters."""
    return name.replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")


def accepted_names(filename):
    """A receiver takes a filename for the last of a path's components (RFC 7578 section 4.2). A backslash that its client
    escaped is part of the name, so that both are right."""
    return {filename, filename.replace("\\", "/").rsplit("/", 1)[-1]}


def without_line_breaks(form):
    """The same form for clients that send no line breaks in names."""
    return {
        "fields": [field for field in form["fields"] if "\n" not in field[0]],
        "files": [file for file in form["files"] if "\n" not in file["name"] + file["filename"]],
    }


def differences(form, record, base, fetch):
    sent = [[shown(name), value] for name, value in form["fields"]]
    got = [[field["name"], field["value"]] for field in record["fields"]]
    yield from (f"field {a} became {b}" for a, b in zip(sent, got) if a != b)
    if len(sent) != len(got):
        yield f"of {len(sent)} fields {len(got)} came"
    if len(form["files"]) != len(record["files"]):
        yield f"of {len(form['files'])} files {len(record['files'])} came"
    for a, b in zip(form["files"], record["files"]):
        if shown(a["name"]) != b["name"] or b["filename"] not in accepted_names(shown(a["filename"])):
            yield f"file {[a['name'], a['filename']]} became {[b['name'], b['filename']]}"
        content = pathlib.Path(a["path"]).read_bytes()
        if b["contentType"] != a["type"]:
            yield f"type {a['type']} became {b['contentType']}"
        if hashlib.sha256(content).hexdigest() != b["sha256"] or fetch(base + b["url"]) != content:
            yield f"the bytes of {a['filename']} differ"


if __name__ == "__main__":
    make(sys.argv[2])

"""What Scripts/check-api and Scripts/make-docs read: the public declarations of the libraries, from a debug build."""

import glob
import json
import os
import re
import subprocess
import sys

BUILD = ".build/debug"


def products():
    """The libraries that Package.swift offers."""
    with open("Package.swift") as manifest:
        return re.findall(r'\.library\(name: "(\w+)"', manifest.read())


def clang_options():
    """Where the modules of the C libraries are that the libraries import."""
    options = []
    for path in glob.glob(f"{BUILD}/*.build/module.modulemap"):
        options += ["-Xcc", f"-fmodule-map-file={path}"]
    for pattern in (".build/checkouts/*/Sources/**/module.modulemap", "Sources/**/module.modulemap"):
        for path in glob.glob(pattern, recursive=True):
            options += ["-Xcc", f"-I{os.path.dirname(path)}"]
    return options


def target():
    information = subprocess.run(["swift", "-print-target-info"], check=True, capture_output=True, text=True).stdout
    return json.loads(information)["target"]["unversionedTriple"]


def extract(folder, *options):
    """Writes the graphs of each library into a folder of its name in FOLDER, and yields its name and its graphs by path."""
    if not os.path.isdir(f"{BUILD}/Modules"):
        sys.exit("There is no debug build to read. Run `swift build --build-tests` first.")
    options = ["-target", target(), *clang_options(), *options]
    for module in products():
        output = os.path.join(folder, module)
        os.makedirs(output, exist_ok=True)
        ended = subprocess.run(
            ["swift", "symbolgraph-extract", "-module-name", module, "-I", f"{BUILD}/Modules", "-I", BUILD, *options,
             "-minimum-access-level", "public", "-skip-synthesized-members", "-output-dir", output],
            capture_output=True, text=True)
        if ended.returncode:
            sys.exit(f"The public declarations of {module} cannot be read:\n{ended.stderr}")
        graphs = {}
        for path in sorted(glob.glob(f"{output}/*.symbols.json")):
            with open(path) as file:
                graphs[path] = json.load(file)
        yield module, graphs

"""Where the sources of the modules are, in a folder of their wing, which is a folder of Sources; and what they import."""

import os
import re

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "Sources")


def modules(sources=SOURCES):
    """The folder of each module by its name, in the order of the names."""
    found = {}
    for wing in sorted(os.listdir(sources)):
        for module in sorted(os.listdir(os.path.join(sources, wing))):
            found[module] = os.path.join(sources, wing, module)
    return dict(sorted(found.items()))


def folder(module):
    """The folder of a module's sources, as a path in the repository: Sources/Forms/PostcardForm."""
    return os.path.relpath(modules()[module], os.path.dirname(SOURCES))


def swift_files(place):
    """The paths of the Swift files below a folder, in order; that of a file alone."""
    if os.path.isfile(place):
        return [place]
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names
                  if name.endswith(".swift"))


# The module that a line imports.
IMPORT = re.compile(
    r"^[ \t]*(?:@?\w+[ \t]+)*import[ \t]+(?:(?:class|enum|func|let|protocol|struct|var)[ \t]+)?(\w+)", re.M)

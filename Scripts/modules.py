"""Where the sources of the modules are: in a folder of their wing, which is a folder of Sources."""

import os

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

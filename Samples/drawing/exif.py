"""Writes the Exif segment of a JPEG: what a camera would say about its picture. No place is told, so no GPS."""

import struct

ASCII, SHORT = 2, 3
TIFF_HEADER = b"MM\x00\x2a\x00\x00\x00\x08"  # big-endian; the only directory follows at once

ROTATE_RIGHT = 6  # Orientation: turn by 90° clockwise to see the picture upright


def segment(orientation, description, taken):
    """The payload of an APP1 marker; `taken` is a date as Exif writes it, `YYYY:MM:DD HH:MM:SS`."""
    entries = [
        (0x010E, ASCII, _text(description)),  # ImageDescription
        (0x010F, ASCII, _text("Postcard")),  # Make
        (0x0112, SHORT, struct.pack(">H", orientation)),  # Orientation
        (0x0132, ASCII, _text(taken)),  # DateTime
    ]
    heads, values = b"", b""
    values_at = len(TIFF_HEADER) + 2 + 12 * len(entries) + 4
    for tag, kind, value in entries:
        heads += struct.pack(">HHI", tag, kind, len(value) // (2 if kind == SHORT else 1))
        if len(value) <= 4:
            heads += value.ljust(4, b"\x00")
        else:
            heads += struct.pack(">I", values_at + len(values))
            values += value + bytes(len(value) % 2)
    directory = struct.pack(">H", len(entries)) + heads + bytes(4)  # the four bytes: no further directory
    return b"Exif\x00\x00" + TIFF_HEADER + directory + values


def _text(value):
    return value.encode("ascii") + b"\x00"

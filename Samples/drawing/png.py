"""Writes PNG files: eight bits a sample, colour with alpha, not interlaced."""

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
PIXEL = 4  # bytes: red, green, blue, alpha
TRUECOLOUR_WITH_ALPHA = 6
UP = b"\x02"  # the filter that leaves of each byte its difference from the byte above


def encode(rgba, width, height):
    """A PNG file of four bytes a pixel, row by row."""
    stride = width * PIXEL
    rows = [rgba[start:start + stride] for start in range(0, len(rgba), stride)]
    filtered = b"".join(
        UP + bytes((value - over) & 255 for value, over in zip(row, above))
        for row, above in zip(rows, [bytes(stride)] + rows))
    return b"".join([
        SIGNATURE,
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, TRUECOLOUR_WITH_ALPHA, 0, 0, 0)),
        _chunk(b"sRGB", b"\x00"),
        _chunk(b"IDAT", zlib.compress(filtered, 9)),
        _chunk(b"IEND", b""),
    ])


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

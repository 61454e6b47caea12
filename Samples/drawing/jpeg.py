"""Writes baseline JPEG files (ITU-T T.81): sequential, Huffman coded, every component at full resolution."""

import struct
from math import cos, pi, sqrt

from . import huffman

JFIF = b"JFIF\x00\x01\x01\x01" + struct.pack(">HH", 72, 72) + b"\x00\x00"
SIDE = 8  # a block's, in pixels

# The order in which a block's 64 coefficients are written: along diagonals, from coarse to fine.
ZIGZAG = sorted(range(64), key=lambda at: (
    at // 8 + at % 8, at // 8 if (at // 8 + at % 8) % 2 else at % 8))

# Annex K.1: the steps that the eye is said to forgive, row by row.
STEPS = [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55,
    14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62,
    18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92,
    49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
]


def encode(rgb, width, height, fineness, application=(0xE0, JFIF)):
    """A JPEG file of three bytes a pixel, row by row; width and height are multiples of 8.

    `fineness` divides the steps of Annex K.1, so that 1 is coarse and 4 fine. `application` is the marker and payload
    of the segment after the start.
    """
    steps = [max(1, round(STEPS[at] / fineness)) for at in ZIGZAG]
    huffman_tables, scan = huffman.encode(_blocks(rgb, width, height, steps))
    components = (1, 2, 3)  # luminance, blue and red chrominance; all share one table of each kind
    frame = b"".join(struct.pack("BBB", component, 0x11, 0) for component in components)
    selectors = b"".join(struct.pack("BB", component, 0x00) for component in components)
    return b"".join([
        b"\xff\xd8",
        _segment(*application),
        _segment(0xDB, b"\x00" + bytes(steps)),
        _segment(0xC0, struct.pack(">BHHB", 8, height, width, len(components)) + frame),
        *(_segment(0xC4, table) for table in huffman_tables),
        _segment(0xDA, bytes([len(components)]) + selectors + b"\x00\x3f\x00"),
        scan,
        b"\xff\xd9",
    ])


def _segment(marker, payload):
    return struct.pack(">BBH", 0xFF, marker, len(payload) + 2) + payload


def _blocks(rgb, width, height, steps):
    """The component's number and the coefficients, in zigzag order, of every block in the scan's order."""
    stride = width * 3
    for top in range(0, height, SIDE):
        rows = [_components(rgb[y * stride:(y + 1) * stride]) for y in range(top, top + SIDE)]
        for left in range(0, width, SIDE):
            for component in range(3):
                across = [_cosines(*row[component][left:left + SIDE]) for row in rows]
                down = [_cosines(*column) for column in zip(*across)]
                yield component, [round(down[at % 8][at // 8] / step) for at, step in zip(ZIGZAG, steps)]


def _components(row):
    """A row's luminance and its two chrominances, as JFIF defines them, around 0."""
    reds, greens, blues = row[0::3], row[1::3], row[2::3]
    light = [0.299 * r + 0.587 * g + 0.114 * b for r, g, b in zip(reds, greens, blues)]
    return (
        [value - 128 for value in light],
        [(b - value) / 1.772 for b, value in zip(blues, light)],
        [(r - value) / 1.402 for r, value in zip(reds, light)],
    )


C1, C2, C3, C4, C5, C6, C7 = (cos(turn * pi / 16) / 2 for turn in range(1, 8))
HALF_ROOT = sqrt(1 / 8)


def _cosines(a, b, c, d, e, f, g, h):
    """The eight-point discrete cosine transform of A.3.3, by its even and odd halves."""
    ah, bg, cf, de = a + h, b + g, c + f, d + e
    a, b, c, d = a - h, b - g, c - f, d - e
    outer, inner = ah + de, bg + cf
    p, q = ah - de, bg - cf
    return (
        (outer + inner) * HALF_ROOT,
        a * C1 + b * C3 + c * C5 + d * C7,
        p * C2 + q * C6,
        a * C3 - b * C7 - c * C1 - d * C5,
        (outer - inner) * C4,
        a * C5 - b * C1 + c * C7 + d * C3,
        p * C6 - q * C2,
        a * C7 - b * C5 + c * C3 - d * C1,
    )

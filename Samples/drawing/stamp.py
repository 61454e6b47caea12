"""A postage stamp with perforated edges and a postmark; everything around it is transparent."""

from math import atan2, hypot, pi, sin

from .noise import Noise
from .picture import covered, gradient, mix, smooth_step

WIDTH, HEIGHT = 600, 720
EDGE = 24  # transparent pixels around the paper
PITCH, HOLE = 24, 7.4  # from hole to hole, and a hole's radius
FRAME = 68  # from the picture's edge to the printed area

PAPER, INK = (252, 247, 234), (44, 42, 74)
TEAL, DEEP_TEAL, PALE = (40, 142, 146), (16, 88, 104), (232, 240, 214)
ORANGE, DEEP_ORANGE, LIGHT_ORANGE = (243, 137, 32), (206, 84, 22), (255, 190, 92)
LEAF, DEEP_LEAF = (74, 148, 70), (34, 96, 58)

FRUIT_X, FRUIT_Y, ACROSS, DOWN = 304, 446, 134, 120
LEAVES = [(-104, -52, 30), (118, -60, 34)]  # the tip, seen from the stalk, and half the width
ARCH = 44  # the radius of a wave's outermost arch
ARCHES = [(0, DEEP_TEAL), (15, DEEP_TEAL), (16, PALE), (19, PALE), (20, TEAL), (28, TEAL), (29, PALE), (32, PALE),
          (33, DEEP_TEAL), (40, DEEP_TEAL), (41, PALE)]

# The word 제주 as lines in squares of 1 by 1, the origin in the first one's upper left corner.
LETTERS = [
    [(0.04, 0.12), (0.54, 0.12)], [(0.30, 0.12), (0.24, 0.44), (0.02, 0.80)], [(0.27, 0.40), (0.54, 0.78)],
    [(0.54, 0.42), (0.72, 0.42)], [(0.72, 0.04), (0.72, 0.94)], [(0.92, 0.0), (0.92, 1.0)],
    [(1.34, 0.06), (2.06, 0.06)], [(1.72, 0.06), (1.62, 0.32), (1.30, 0.52)], [(1.70, 0.26), (2.10, 0.52)],
    [(1.20, 0.66), (2.20, 0.66)], [(1.70, 0.66), (1.70, 1.0)],
]

GRAIN = Noise(5)


def colour(x, y):
    """Red, green, blue and alpha."""
    outside = max(FRAME - x, FRAME - y, x - WIDTH + FRAME, y - HEIGHT + FRAME)
    seen = mix(PAPER, DEEP_TEAL, covered(abs(outside - 9) - 1.3))
    if outside < 0:
        seen = _printed(x, y)
    worn = 0.30 + 0.56 * smooth_step(0.26, 0.50, GRAIN.fractal(x / 17, y / 17))
    return (*mix(seen, INK, worn * _postmark(x, y)), 255 * _paper(x, y))


def _paper(x, y):
    """1 on the paper, 0 around it and in the holes along its edges, which stand in rows through its corners."""
    aside = min(x - EDGE, WIDTH - EDGE - x)
    down = min(y - EDGE, HEIGHT - EDGE - y)
    along_side = hypot(aside, (y - EDGE + PITCH / 2) % PITCH - PITCH / 2)
    along_end = hypot((x - EDGE + PITCH / 2) % PITCH - PITCH / 2, down)
    return covered(max(-aside, -down, HOLE - along_side, HOLE - along_end))


def _printed(x, y):
    seen = mix(PALE, (250, 206, 150), (y - FRAME) / 330)
    ray = (atan2(y - 300, x - WIDTH / 2) / pi * 24) % 2 < 1
    seen = mix(seen, (255, 236, 190), 0.5 * ray)
    for height, width, middle, mountain in ((170, 150, 216, (136, 178, 164)), (120, 110, 448, (92, 150, 148))):
        seen = mix(seen, mountain, covered(430 - height / (1 + ((x - middle) / width) ** 2) - y))
    seen = _waves(seen, x, y)
    seen = _fruit(seen, x, y)
    return mix(seen, DEEP_TEAL, _letters((x - 92) / 58, (y - 92) / 58))


def _waves(seen, x, y):
    """Rows of overlapping arches, as on cloth, each row before the one above it."""
    for row in range(10):
        half = ARCH * 0.86
        across = (x - FRAME + half * (row % 2)) % (2 * half) - half
        distance = hypot(across, y - (456 + ARCH / 2 + row * 24))
        seen = mix(seen, gradient(ARCHES, distance), covered(distance - ARCH))
    return seen


def _fruit(seen, x, y):
    across, down = (x - FRUIT_X) / ACROSS, (y - FRUIT_Y) / DOWN
    inside = (hypot(across, down) - 1) * DOWN
    light = hypot(across + 0.34, down + 0.42)
    peel = mix(LIGHT_ORANGE, ORANGE, light * 1.35)
    peel = mix(peel, DEEP_ORANGE, smooth_step(0.75, 1.5, light))
    peel = mix(peel, DEEP_ORANGE, 0.3 * smooth_step(0.70, 0.84, GRAIN.at(x / 5.2, y / 5.2)))
    seen = mix(mix(seen, PALE, covered(inside - 7)), peel, covered(inside))
    for leaf in LEAVES:
        seen = _leaf(seen, x - FRUIT_X, y - FRUIT_Y + 0.82 * DOWN, *leaf)
    return seen


def _leaf(seen, x, y, across, down, width):
    """A leaf that grows from the origin to a tip, with a lighter half and a vein."""
    length = hypot(across, down)
    along = (x * across + y * down) / length / length
    aside = (y * across - x * down) / length
    if not 0 < along < 1:
        return seen
    edge = abs(aside) - width * sin(pi * along ** 0.8)
    seen = mix(mix(seen, PALE, covered(edge - 5)), LEAF if aside < 0 else DEEP_LEAF, covered(edge))
    vein = abs(abs(aside) / 2 - (along * length + 9) % 18 + 9)
    return mix(seen, PALE, 0.8 * covered(min(abs(aside) - 1.3, max(vein - 0.7, edge + 5))))


def _letters(x, y):
    if not (-0.2 < x < 2.4 and -0.2 < y < 1.2):
        return 0
    lines = [(start, end) for line in LETTERS for start, end in zip(line, line[1:])]
    return covered((min(_distance(x, y, *line) for line in lines) - 0.07) * 58)


def _distance(x, y, start, end):
    """From a place to the nearest on a line between two others."""
    across, down = end[0] - start[0], end[1] - start[1]
    share = ((x - start[0]) * across + (y - start[1]) * down) / (across * across + down * down)
    share = min(1, max(0, share))
    return hypot(x - start[0] - share * across, y - start[1] - share * down)


def _postmark(x, y):
    """Two rings, and five wavy lines that run out of them to the left."""
    distance = hypot(x - 458, y - 214)
    ring = min(abs(distance - 108) - 2.2, abs(distance - 74) - 1.5)
    wave = y - 214 - 8 * sin((x - 40) / 19)
    line = max(abs(wave - 28 * min(2, max(-2, round(wave / 28)))) - 2, 108 - distance, x - 458)
    return covered(min(ring, line))

"""Hills behind hills in the mist of a morning, dark and wooded in front."""

from math import hypot

from .noise import Noise
from .picture import covered, gradient, mix, smooth_step

WIDTH, HEIGHT = 1680, 1256
SUN_X, SUN_Y, SUN_RADIUS = 1130, 330, 62
SKY = [(0, (108, 152, 178)), (330, (190, 206, 196)), (560, (250, 222, 178)), (800, (255, 236, 206))]
FAR, NEAR, MIST = (150, 174, 180), (16, 40, 46), (246, 228, 204)
RANGES = 7

NOISE = Noise(41)


def colour(x, y):
    """The nearest hill at a place, paler where it sinks into the mist before it; else the sky."""
    for number in reversed(range(RANGES)):
        above = y - TOPS[number][x]
        if above > -1:
            behind = _sky(x, y) if number == 0 else _hill(number - 1, x, y)
            return mix(behind, _hill(number, x, y), covered(-above))
    return _sky(x, y)


def _sky(x, y):
    seen = gradient(SKY, y)
    distance = hypot(x - SUN_X, y - SUN_Y)
    seen = mix(seen, (255, 240, 200), 0.75 * (1 - smooth_step(0, 520, distance)))
    veil = NOISE.fractal(x / 340, y / 46, octaves=5)
    seen = mix(seen, (255, 248, 236), 0.55 * smooth_step(0.48, 0.74, veil))
    return mix(seen, (255, 252, 238), covered(distance - SUN_RADIUS))


def _hill(number, x, y):
    nearness = number / (RANGES - 1)
    lit = smooth_step(900, 0, abs(x - SUN_X)) * (1 - nearness)
    slope = mix(mix(FAR, NEAR, nearness ** 0.75), (255, 214, 160), 0.35 * lit)
    wisps = NOISE.fractal(x / 210, y / 60 + 31 * number)
    depth = smooth_step(10, 230, y - SLOPES[number][x])
    return mix(slope, MIST, (0.82 - 0.5 * nearness) * depth * (0.5 + wisps))


def _slope(number, x):
    nearness = number / (RANGES - 1)
    rise = NOISE.fractal(x / (430 - 180 * nearness) + 9 * number, 13 * number, octaves=6)
    return 470 + 690 * nearness ** 1.15 - (330 - 60 * nearness) * (rise - 0.3)


def _trees(number, x):
    """The height of the crowns at a place: pointed, each of its own size, and larger the nearer they are."""
    nearness = number / (RANGES - 1)
    place = x / (5 + 17 * nearness)
    crown = (1 - 2 * abs(place % 1 - 0.5)) ** 0.8 * (0.35 + 0.65 * NOISE.at(int(place) * 7.7, 50 + number))
    return 44 * nearness ** 2 * crown


# The upper edge of every range of hills, without and with its trees.
SLOPES = [[_slope(number, x) for x in range(WIDTH)] for number in range(RANGES)]
TOPS = [[top - _trees(number, x) for x, top in enumerate(slope)] for number, slope in enumerate(SLOPES)]

"""Sunset over the sea, as a phone held upright would take it."""

from math import exp, hypot, pi, sin

from .noise import Noise
from .picture import covered, gradient, mix, smooth_step

WIDTH, HEIGHT = 840, 1120
HORIZON = 640
SUN_X, SUN_Y, SUN_RADIUS = 372, 566, 54
SKY = [
    (0, (42, 48, 104)), (190, (84, 72, 140)), (350, (168, 96, 146)), (470, (236, 128, 116)), (570, (255, 172, 96)),
    (HORIZON, (255, 214, 138)),
]
SUNLIGHT, HAZE, WATER = (255, 226, 150), (255, 186, 128), (38, 38, 82)

CLOUDS, WAVES, COAST = Noise(11), Noise(23), Noise(37)


def colour(x, y):
    rock = max(covered(top[x] - y) for top in ROCKS)
    if rock == 1:
        return _basalt(x, y)
    seen = _above(x, y) if y < HORIZON else _sea(x, y)
    seen = mix(seen, (64, 44, 88), max(_gull(x, y, *gull) for gull in GULLS))
    return mix(seen, _basalt(x, y), rock) if rock > 0 else seen


def _above(x, y):
    """What stands over the horizon, and what the sea reflects."""
    column = min(WIDTH - 1, max(0, round(x)))
    seen = _sky(x, y)
    for top, land, haze in LANDS:
        hazy = mix(land, HAZE, haze * smooth_step(HORIZON - 70, HORIZON + 4, y))
        seen = mix(seen, hazy, covered(top[column] - y))
    return seen


def _sky(x, y):
    distance = hypot(x - SUN_X, (y - SUN_Y) * 1.15)
    seen = mix(gradient(SKY, y), SUNLIGHT, 0.85 * exp(-distance / 120))
    # Clouds lie in long bands, denser low down, and the sun lights them from below.
    density = CLOUDS.fractal(x / 210 + y / 300, y / 44, octaves=5)
    cover = smooth_step(0.50, 0.74, density) * smooth_step(40, 240, y) * (1 - smooth_step(560, 640, y))
    lit = mix((226, 110, 128), (255, 208, 150), exp(-distance / 240) + (density - 0.55))
    shaded = mix(lit, (122, 74, 128), smooth_step(0.60, 0.82, density))
    return mix(mix(seen, shaded, 0.82 * cover), (255, 250, 226), covered(hypot(x - SUN_X, y - SUN_Y) - SUN_RADIUS))


def _sea(x, y):
    """The sky and the land upside down, broken by waves that are fine far away and long near by, and glitter."""
    depth = y - HORIZON
    near = 1100 / (depth + 8)
    slope = WAVES.fractal(x / (9 + depth * 0.17) + near, 6.2 * near, octaves=3) - 0.5
    mirrored = _above(x + slope * (5 + depth * 0.20), HORIZON - 2 - depth * 0.92 - slope * (14 + depth * 0.85))
    seen = mix(WATER, mirrored, 0.94 - 0.54 * smooth_step(HORIZON, HEIGHT, y))
    aside = (x - SUN_X) / (40 + depth * 0.42)
    crest = smooth_step(0.05, 0.20, slope - 0.055 * aside * aside)
    return mix(seen, SUNLIGHT, crest * exp(-aside * aside / 1.6) * (1 - smooth_step(1000, HEIGHT, y)))


def _basalt(x, y):
    """Black rock in front, its upper faces lit by the sky."""
    def relief(x, y):
        return COAST.fractal(x / 44, y / 30, octaves=5)

    facing = (relief(x + 1.5, y + 3) - relief(x - 1.5, y - 3)) * 9
    stone = mix((15, 12, 28), (58, 40, 66), relief(x, y) + 0.2 * facing)
    edge = exp((min(top[x] for top in ROCKS) - y) / 5)
    return mix(stone, (240, 150, 116), 0.5 * edge + 0.4 * max(0.0, facing - 0.15))


def _gull(x, y, middle, height, span):
    """Two wings, each an arch that grows thinner towards its tip."""
    out = abs(x - middle) / span
    if out > 1 or abs(y - height) > span:
        return 0
    wing = height - span * 0.4 * sin(pi * out ** 0.7)
    return covered(abs(y - wing) - span / 11 * (1 - out))


def _each_column(height):
    return [height(x) for x in range(WIDTH)]


GULLS = [(196, 328, 30), (262, 292, 21), (148, 270, 15)]

# From far to near, by their upper edge, colour and haze: a shield volcano, a ridge, a tuff cone, a spit of land.
LANDS = [
    (_each_column(lambda x: HORIZON - 74 * exp(-((x - 120) / 130) ** 2) - 22 * exp(-((x - 108) / 34) ** 2)
                  + 5 * COAST.fractal(x / 22)), (196, 112, 128), 0.62),
    (_each_column(lambda x: HORIZON + 2 - 32 * (1 - smooth_step(60, 250, x)) * COAST.fractal(x / 50, 5)),
     (150, 82, 116), 0.62),
    (_each_column(lambda x: HORIZON + 2 - smooth_step(508, 606, x) * (1 - 0.3 * smooth_step(716, 840, x))
                  * (116 + 12 * COAST.fractal(x / 13, 9) + 10 * sin((x - 600) / 27))), (74, 46, 88), 0.35),
    (_each_column(lambda x: HORIZON + 3 - 30 * smooth_step(428, 560, x) * (0.7 + 0.4 * COAST.fractal(x / 15, 14))),
     (58, 38, 74), 0),
]


def _rock(middle, reach, height, row):
    def top(x):
        aside = min(1, abs(x - middle) / reach)
        crags = abs(COAST.fractal(x / 58, row, octaves=5) - 0.5) * 170
        return HEIGHT + 14 - height * (1 - aside ** 1.7) - crags * (1 - 0.6 * aside) + 60 * smooth_step(0.85, 1, aside)
    return _each_column(top)


ROCKS = [_rock(605, 275, 66, 3), _rock(800, 260, 150, 8), _rock(15, 255, 92, 21)]

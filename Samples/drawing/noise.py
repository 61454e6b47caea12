"""Smooth random values that are the same at every run: hills, clouds, ripples."""

import random
from math import floor

SIDE = 256
MASK = SIDE - 1


class Noise:
    """Value noise between 0 and 1, smooth in both directions, repeating every 256 units."""

    def __init__(self, seed):
        source = random.Random(seed)
        self.lattice = [[source.random() for _ in range(SIDE)] for _ in range(SIDE)]

    def at(self, x, y=0.0):
        column, row = floor(x), floor(y)
        x -= column
        y -= row
        x = x * x * (3 - 2 * x)
        y = y * y * (3 - 2 * y)
        upper, lower = self.lattice[row & MASK], self.lattice[(row + 1) & MASK]
        left, right = column & MASK, (column + 1) & MASK
        top = upper[left] + (upper[right] - upper[left]) * x
        bottom = lower[left] + (lower[right] - lower[left]) * x
        return top + (bottom - top) * y

    def fractal(self, x, y=0.0, octaves=4):
        """Noise added to itself at half the size and half the strength, `octaves` times; still between 0 and 1."""
        total, strength, sum_of_strengths = 0.0, 1.0, 0.0
        for _ in range(octaves):
            total += self.at(x, y) * strength
            sum_of_strengths += strength
            strength /= 2
            x = x * 2 + 19.7
            y = y * 2 + 7.3
        return total / sum_of_strengths

"""A picture as a function that gives the colour at a place, and what such functions are put together from.

Places are pixels from the top left corner. A colour is red, green and blue from 0 to 255.
"""


def paint(width, height, colour):
    """The picture's bytes, row by row, one for each number that `colour(x, y)` gives."""
    return bytes(
        min(255, max(0, round(value))) for y in range(height) for x in range(width) for value in colour(x, y))


def mix(first, second, share):
    """The colour `share` of the way from the first to the second; outside 0 to 1 it stays at the ends."""
    if share <= 0:
        return first
    if share >= 1:
        return second
    return tuple(a + (b - a) * share for a, b in zip(first, second))


def gradient(stops, position):
    """The colour at a position among stops, a list of (position, colour) in rising order."""
    for (start, colour), (end, following) in zip(stops, stops[1:]):
        if position < end:
            return mix(colour, following, (position - start) / (end - start))
    return stops[-1][1]


def smooth_step(start, end, value):
    """0 before `start`, 1 after `end`, and a smooth rise between."""
    share = min(1.0, max(0.0, (value - start) / (end - start)))
    return share * share * (3 - 2 * share)


def covered(distance):
    """How much of a pixel a shape covers whose edge is so many pixels away, counted negative inside the shape."""
    return min(1.0, max(0.0, 0.5 - distance))

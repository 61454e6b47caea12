"""The entropy coding of a baseline JPEG, with the Huffman tables that suit the picture best (ITU-T T.81, annex F)."""

from collections import Counter

LONGEST = 16  # bits of a code
END_OF_BLOCK, SIXTEEN_ZEROES = 0x00, 0xF0
FIRST, OTHERS = 0x00, 0x10  # the tables for a block's first coefficient (DC) and for all others (AC)


def encode(blocks):
    """The payloads of the two table segments, and the scan's bytes, for (component, coefficients) in scan order."""
    symbols = list(_symbols(blocks))
    segments, codes = [], {}
    for table in (FIRST, OTHERS):
        lengths = _code_lengths(Counter(symbol for kind, symbol, _, _ in symbols if kind == table))
        ordered = sorted(lengths, key=lambda symbol: (lengths[symbol], symbol))
        amounts = bytes(sum(length == bits for length in lengths.values()) for bits in range(1, LONGEST + 1))
        segments.append(bytes([table]) + amounts + bytes(ordered))
        codes[table] = _codes(ordered, lengths)
    return segments, _pack(symbols, codes)


def _symbols(blocks):
    """Each value as (table, symbol, extra bits, how many)."""
    previous = [0, 0, 0]
    for component, block in blocks:
        difference, previous[component] = block[0] - previous[component], block[0]
        size = difference.bit_length()
        yield FIRST, size, _extra(difference, size), size
        zeroes = 0
        for value in block[1:]:
            if value == 0:
                zeroes += 1
                continue
            while zeroes > 15:
                yield OTHERS, SIXTEEN_ZEROES, 0, 0
                zeroes -= 16
            size = value.bit_length()
            yield OTHERS, zeroes << 4 | size, _extra(value, size), size
            zeroes = 0
        if zeroes:
            yield OTHERS, END_OF_BLOCK, 0, 0


def _extra(value, size):
    return value if value >= 0 else value + (1 << size) - 1


def _code_lengths(counts):
    """The length in bits of each symbol's code, by Huffman's algorithm, none longer than 16.

    Too long a code is avoided by making rare symbols count for more until it fits. A symbol that never occurs takes
    part, so that the code of only ones, which JPEG reserves, falls to it.
    """
    reserved, least = 256, 1
    while True:
        groups = [(max(count, least), symbol, [symbol]) for symbol, count in counts.items()]
        groups.append((0, reserved, [reserved]))
        lengths = Counter()
        while len(groups) > 1:
            groups.sort()
            (first, order, some), (second, _, others) = groups[:2]
            lengths.update(some + others)
            groups[:2] = [(first + second, order, some + others)]
        if max(lengths.values()) <= LONGEST:
            del lengths[reserved]
            return lengths
        least *= 2


def _codes(ordered, lengths):
    """Codes in rising order of length, as a decoder derives them from the table segment (annex C)."""
    codes, code, length = {}, 0, 0
    for symbol in ordered:
        code <<= lengths[symbol] - length
        length = lengths[symbol]
        codes[symbol] = code, length
        code += 1
    return codes


def _pack(symbols, codes):
    """The bits of all symbols, filled up with ones; a byte 255 is followed by 0, so that it is no marker."""
    packed = bytearray()
    waiting, count = 0, 0
    for table, symbol, extra, size in symbols:
        code, length = codes[table][symbol]
        waiting = (waiting << length | code) << size | extra
        count += length + size
        while count >= 8:
            count -= 8
            packed.append(waiting >> count)
            waiting &= (1 << count) - 1
    if count:
        packed.append((waiting << 8 - count) | (255 >> count))
    return bytes(packed).replace(b"\xff", b"\xff\x00")

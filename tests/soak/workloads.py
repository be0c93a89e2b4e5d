# SPDX-License-Identifier: Apache-2.0
"""Streams of tuples: whose turn it is, what the keys are, how time passes."""

import numpy as np

__all__ = ["KEYS", "SIDES", "TIMES", "column", "sides", "times"]


def below(random, bits, count):
    """Return numbers of some bits, all alike."""
    return random.integers(0, (1 << bits) - 1, count, dtype=np.uint64, endpoint=True)


def around(random, bits, count, width):
    """Return numbers of a range of some width, anywhere, and at the ends of the field as often."""
    top = (1 << bits) - 1
    width = min(width, top)
    start = [0, top - width, (top >> 1) - min(width // 2, top >> 1)]
    begin = [*start, int(below(random, bits, 1)[0] % np.uint64(top - width + 1))]
    return random.integers(0, width, count, dtype=np.uint64, endpoint=True) + np.uint64(
        begin[int(random.integers(4))]
    )


def near(random, bits, count):
    """A few values side by side."""
    return around(random, bits, count, int(2 ** random.integers(0, 9)))


def full(random, bits, count):
    """All values alike."""
    return below(random, bits, count)


def hot(random, bits, count):
    """One key in a fifth of the tuples or more, a range in the others."""
    keys = around(random, bits, count, int(2 ** random.integers(4, 12)))
    keys[random.random(count) < random.choice([0.2, 0.5, 0.9])] = keys[0]
    return keys


def zipf(random, bits, count):
    """Few frequent and many rare keys, spread over the field."""
    rank = random.zipf(random.choice([1.1, 1.5, 2.0]), count).astype(np.uint64)
    odd = below(random, 64, 1)[0] | np.uint64(1)
    return (rank * odd) & np.uint64((1 << bits) - 1)


def rising(random, bits, count):
    """Numbers that rise, by steps of up to two, and wrap around."""
    steps = random.integers(0, 3, count).astype(np.uint64)
    return (np.cumsum(steps) + below(random, bits, 1)) & np.uint64((1 << bits) - 1)


def extreme(random, bits, count):
    """The ends of the field, its middle, and their neighbours."""
    half = 1 << bits - 1
    values = [v % (2 * half) for v in (0, 1, -1, -2, half, half - 1, half + 1)]
    return np.array(values, np.uint64)[random.integers(0, len(values), count)]


def stride(random, bits, count):
    """Multiples of a power of two, or of one beside it: what a bad hash puts together."""
    by = (1 << int(random.integers(0, bits))) + int(random.choice([0, 0, 1, -1]))
    factor = random.integers(0, int(2 ** random.integers(1, 10)), count).astype(np.uint64)
    return (factor * np.uint64(max(by, 1))) & np.uint64((1 << bits) - 1)


def octets(random, bits, count):
    """Two small numbers in the upper and the lower part of the field."""
    part = np.uint64(bits // 2)
    low, high = (random.integers(0, 6, count).astype(np.uint64) for _ in range(2))
    return ((high << part) | low) & np.uint64((1 << bits) - 1)


def cells(random, bits, count):
    """Values close to the borders of the cells of a grid, far from one another."""
    shift = int(random.integers(0, min(bits, 12)))
    cell = random.integers(0, 5, count).astype(np.uint64) << np.uint64(
        min(shift + int(random.integers(0, 6)), 63)
    )
    beside = random.integers(-1, 2, count).astype(np.int64).astype(np.uint64)
    return (cell + beside) & np.uint64((1 << bits) - 1)


def constant(random, bits, count):
    """One value."""
    return np.full(count, below(random, bits, 1)[0])


def distinct(random, bits, count):
    """No value twice, as far as the field has so many."""
    odd = below(random, 64, 1)[0] | np.uint64(1)
    return (np.arange(count, dtype=np.uint64) * odd + below(random, bits, 1)) & np.uint64(
        (1 << bits) - 1
    )


#: What keys of a field may be. Fields of a program are chosen one by one.
KEYS = {
    function.__name__: function
    for function in (near, full, hot, zipf, rising, extreme, stride, octets, cells, constant,
                     distinct)
}  # fmt: skip


def column(random, name, bits, count):
    """Return the keys of one field, as ``uint64``; their bits count, not their sign."""
    return KEYS[name](random, bits, count) & np.uint64((1 << bits) - 1)


def runs(random, count, longest):
    """Return sides in turn, in stretches of random lengths."""
    lengths = random.integers(1, longest + 1, count)
    enough = np.searchsorted(np.cumsum(lengths), count) + 1
    return np.repeat(np.arange(count)[:enough] % 2, lengths[:enough])[:count]


#: Who comes when.
SIDES = {
    "in turn": lambda random, count: (np.arange(count) + random.integers(2)) % 2,
    "at random": lambda random, count: random.integers(0, 2, count),
    "mostly one": lambda random, count: (random.random(count) < 0.97) ^ random.integers(2),
    "one alone": lambda random, count: np.full(count, random.integers(2)),
    "short runs": lambda random, count: runs(random, count, 8),
    "bursts of 256": lambda random, count: (np.arange(count) // 256 + random.integers(2)) % 2,
    "long runs": lambda random, count: runs(random, count, 700),
}


def sides(random, name, count):
    """Return the side of each tuple."""
    return SIDES[name](random, count).astype(np.int64)


#: How much time passes from a tuple to the next.
TIMES = {
    "stands": lambda random, count: np.zeros(count),
    "in steps": lambda random, count: random.integers(0, 2, count),
    "at random": lambda random, count: random.geometric(0.2, count) - 1,
    "rarely": lambda random, count: (random.random(count) < 0.03) * random.integers(1, 40, count),
    "leaps": lambda random, count: (
        random.integers(0, 2, count) + (random.random(count) < 0.01) * 2.0 ** random.integers(4, 30)
    ),
}


def times(random, name, bits, count):
    """Return timestamps that never fall; they stay at the last one that the bits can tell."""
    top = (1 << bits) - 1
    start = [0, int(below(random, max(bits, 1), 1)[0]) // 2, max(top - count, 0)]
    steps = np.asarray(TIMES[name](random, count), np.float64).astype(np.uint64)
    begin = np.uint64(start[int(random.integers(3))] if random.random() < 0.5 else 0)
    return np.minimum(begin + np.cumsum(steps), np.uint64(top))

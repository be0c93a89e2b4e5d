# SPDX-License-Identifier: Apache-2.0
"""Figure of an index that keeps order, which is not built: its cycles in a model, and the scan's.

The model is of sorted sub-windows. Tuples of a region are sorted in runs, as a merger builds them:
a run of a sub-window, and behind the last of these, runs of halves of it down to :data:`YOUNG`
tuples. A probe searches each run in a cycle, since each level of a search has a memory of its own.
It then reads the rows of sorted keys between the bounds, and compares the youngest tuples.
"""

import numpy as np

from .registry import Result, figure

__all__ = ["ordered_cycles", "runs_of"]

#: Tuples of a side's window, those of a sorted sub-window, and those that are not sorted yet.
WINDOW, SUB_WINDOW, YOUNG = 1 << 14, 1 << 12, 64
#: Keys that a region reads in a cycle, and that the scan reads and shares among its probes: `demo`.
LANES, READ, PROBES = 4, 16, 8
COUNT = 400
#: Bounds of ``r - s`` for values that are uniform in 1 .. 10,000.
ASKED = ((9_900, None), (9_000, None), (-10, 10), (-158, 158), (-1_000, 1_000))


def runs_of(start, end):
    """Return the sorted runs of the tuples of a window, and how many of them are in none."""
    sealed = end // SUB_WINDOW * SUB_WINDOW
    runs = [
        (at, at + SUB_WINDOW) for at in range(start // SUB_WINDOW * SUB_WINDOW, sealed, SUB_WINDOW)
    ]
    size, rest = SUB_WINDOW // 2, end - sealed
    while size >= YOUNG:
        if rest >= size:
            runs.append((end - rest, end - rest + size))
            rest -= size
        size //= 2
    return runs, rest


def ordered_cycles(low, high):
    """Return cycles and results of a probe on average, in one region.

    Parameters
    ----------
    low, high : int or None
        Inclusive bounds of the difference of a stored value and that of the probe.
    """
    generator = np.random.default_rng(1)
    values = generator.integers(1, 10_001, 4 * WINDOW)
    cycles = results = 0
    for number in range(COUNT):
        end = 2 * WINDOW + 7 * number
        probe = values[-1 - number]
        least = -np.inf if low is None else probe + low
        most = np.inf if high is None else probe + high
        runs, rest = runs_of(end - WINDOW, end)
        for begin, behind in runs:
            first, last = np.searchsorted(np.sort(values[begin:behind]), [least, most + 0.5])
            rows = 0 if last <= first else (last - 1) // LANES - first // LANES + 1
            cycles += 1 + int(rows)
        cycles += -(-rest // READ)
        live = values[end - WINDOW : end]
        results += int(((live >= least) & (live <= most)).sum())
    return cycles / COUNT, results / COUNT


@figure("ordered_index.band_wide_cycles", unit="cycles", goal="<= 12.8")
def band_wide_cycles(report):
    """Cycles per tuple of ``r - s >= 9,900`` in the model, with windows of 2^14 tuples.

    The goal is a fifth of those of the scan of preset `demo`. Both regions work at once, and a
    cycle has one result.
    """
    scan, notes, found = WINDOW / READ / PROBES / 2, [], []
    for low, high in ASKED:
        cycles, results = ordered_cycles(low, high)
        found.append(max(cycles / 2, results))
        bounds = f"{'' if low is None else low} .. {'' if high is None else high}"
        notes.append(
            f"{bounds}: reads take {cycles / 2:.1f} cycles and results {results:.1f}; the scan's "
            f"reads {scan:.0f}: {found[-1] / max(scan, results):.2f} of its cycles"
        )
        report(f"figures: {notes[-1]}")
    return Result(found[0], notes=tuple(notes))

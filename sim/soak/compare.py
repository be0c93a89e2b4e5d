# SPDX-License-Identifier: Apache-2.0
"""Results of an accelerator beside those of the model, as far as their order is fixed."""

from collections import Counter

import numpy as np

from .results import MARK, PAIR, describe

__all__ = ["difference"]

#: Results shown on either side of a difference.
SHOWN = 4


def without_void(results, extra, void):
    """Leave out pairs of the probes in ``void``, and what goes with them in ``extra``."""
    if not len(void):
        return results, extra
    void, probes = np.sort(void), results.probes()
    keep = void[np.searchsorted(void[:-1], probes)] != probes
    return results[keep], extra[keep]


def found_of(expected, loose, actual):
    """Leave out pairs that may be missing, and are.

    Without stars, the numbers of probes begin again, so several expected pairs may look alike. Of
    these, those that must not be missing are found first.
    """
    if not loose.any():
        return expected
    pairs, keep = identities(expected), ~loose
    left = Counter(identities(actual))
    left.subtract(pairs[at] for at in np.flatnonzero(keep))
    for at in np.flatnonzero(loose):
        keep[at] = left[pairs[at]] > 0
        left[pairs[at]] -= 1
    return expected[keep]


def identities(results):
    """Return what tells each result from others: its probe and its code."""
    return list(zip(results.probes().tolist(), results.code.tolist(), strict=True))


def arranged(results, free, in_rows):
    """Return results in an order that depends on what is fixed of their own order only.

    Parameters
    ----------
    results : Results
    free : bool array
        For every mark, whether order before it is free; then the sides are taken apart, and pairs
        between two stars are sorted.
    in_rows : bool
        Whether the order inside a group is fixed, as it is by a scan.
    """
    segment = np.minimum(results.marks_before(), len(free) - 1)
    is_free = free[segment]
    if in_rows and not is_free.any():
        return results
    lane = np.where(results.kind == MARK, 2, results.side)
    order = np.lexsort((
        np.where(is_free | (not in_rows), results.code, 0),
        np.where(is_free, results.own_stars_before(), results.stars_before()),
        np.where(is_free, lane, 0),
        segment,
    ))  # fmt: skip
    return results[order]


def by_port(results):
    """Return results with those of R before those of S up to each mark; else they keep their order.

    It is what is fixed of results that leave by two ports.
    """
    port = np.where(results.kind == MARK, 2, results.side)
    return results[np.lexsort((port, results.marks_before()))]


def out_of_turn(results, free):
    """Return where a pair of a group comes before one of an earlier core; None if nowhere."""
    segment = np.minimum(results.marks_before(), len(free) - 1)
    stars, pair = results.stars_before(), results.kind == PAIR
    same = (stars[1:] == stars[:-1]) & pair[1:] & pair[:-1] & ~free[segment][1:]
    wrong = np.flatnonzero(same & (results.core[1:] < results.core[:-1]))
    return int(wrong[0]) + 1 if len(wrong) else None


def shown(results, at):
    """Return the results from ``at`` on as lines."""
    few = results[at : at + SHOWN]
    lines = [describe(int(s), int(c)) for s, c in zip(few.side, few.code, strict=True)]
    return lines or ["(nothing)"]


def difference(answer, actual, engine, *, ports=1):
    """Return a text that tells where ``actual`` results are no answer; None if they are one.

    ``ports`` is the number of ports by which they have left.
    """
    expected, loose = without_void(answer.results, answer.loose, answer.void)
    actual, _ = without_void(actual, actual.code, answer.void)
    expected = found_of(expected, loose, actual)
    if ports == 2:
        expected, actual = by_port(expected), by_port(actual)
    in_rows = engine == "scan"
    if not in_rows and (at := out_of_turn(actual, answer.free)) is not None:
        return "\n".join([f"result {at}: cores out of turn", *shown(actual, at - 1)])
    expected, actual = (arranged(some, answer.free, in_rows) for some in (expected, actual))
    count = min(len(expected), len(actual))
    same = (expected.side[:count] == actual.side[:count]) & (
        expected.code[:count] == actual.code[:count]
    )
    if same.all() and len(expected) == len(actual):
        return None
    at = count if same.all() else int(np.argmin(same))
    lines = [f"result {at} of {len(expected)} expected, {len(actual)} found (arranged):"]
    for name, results in [("expected", expected), ("found", actual)]:
        lines += [f"  {name:8} {line}" for line in shown(results, at)]
    return "\n".join(lines)

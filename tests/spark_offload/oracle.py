# SPDX-License-Identifier: Apache-2.0
"""The join in plain Python: rows in, rows out, every pair looked at."""

__all__ = ["join_rows"]


def join_rows(left, right, predicate, *, time, within=None, rows=None):
    """Return the pairs as tuples (left columns, right columns), in order of arrival.

    Parameters
    ----------
    left, right : list of dict
        The rows, in input order.
    predicate : callable
        ``predicate(l, r)`` tells whether two rows match.
    time : str or (str, str)
        Columns that the rows arrive by.
    within, rows : optional
        The window; exactly one of them.
    """
    columns = (time, time) if isinstance(time, str) else time
    arrivals = [
        (row[column], side, number, row)
        for side, (table, column) in enumerate(zip((left, right), columns, strict=True))
        for number, row in enumerate(table)
    ]
    arrivals.sort(key=lambda arrival: arrival[:3])
    seen = ([], [])
    pairs = []
    for time, side, _, row in arrivals:
        other = seen[1 - side]
        window = other[-rows:] if rows is not None else other
        for then, candidate in window:
            if within is not None and time - then > within:
                continue
            pair = (row, candidate) if side == 0 else (candidate, row)
            if predicate(*pair):
                pairs.append((*pair[0].values(), *pair[1].values()))
        seen[side].append((time, row))
    return pairs

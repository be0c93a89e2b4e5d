# SPDX-License-Identifier: Apache-2.0
"""Joins of tables: accelerators as manifests, and an oracle that goes row by row."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
import json

from hdl.manifest import describe, fingerprint
from hdl.parameters import JoinParameters, KeyField
from host import CountWindow, Manifest, TimeWindow
from host.query.quantities import Duration
from tests.paths.conditions import fulfils

__all__ = [
    "asked_terms",
    "bundle",
    "exact_difference",
    "manifest_of",
    "naive_join",
    "naive_results",
    "shared_windows",
]


def bundle(folder, **changes):
    """Write a bundle without Verilog, for the software device."""
    keys = changes.pop("keys", ("x32",))
    fields = tuple(
        KeyField(name=f"f{index}", bits=int(key[1:]), signed=key[0] == "x")
        for index, key in enumerate(keys)
    )
    parameters = JoinParameters.of(
        **{"cores": 3, "sub_window": 50, "probes": 4, **changes}, keys=fields
    )
    values = describe(parameters, "", verilog_file="") | {"files": {}, "tools": {}}
    values["hash"] = fingerprint(values, "")
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "manifest.json").write_text(json.dumps(values), encoding="utf-8")
    return folder


def manifest_of(folder, **changes):
    """Return the manifest of such a bundle; keys are written x8 (signed) or u8 (unsigned)."""
    return Manifest.load(bundle(folder, **changes))


def asked_terms(query):
    """Return the terms of a query that its condition does not bring along."""
    return query.terms[: len(query.terms) - len(query.where_terms)]


def naive_join(left, right, query):
    """Return (left row, right row) of all results, in order, with Python's own arithmetic."""
    sides = [left.to_pylist(), right.to_pylist()]
    arrivals = sorted(
        (row[query.time[side]], side, index)
        for side, rows in enumerate(sides)
        for index, row in enumerate(rows)
    )
    seen, results = ([], []), []
    for now, side, index in arrivals:
        window = seen[1 - side]
        if isinstance(query.window, CountWindow):
            window = window[-query.window.size :]
        for then, other in window:
            if not isinstance(query.window, CountWindow) and now - then > _width(query.window):
                continue
            pair = (index, other) if side == 0 else (other, index)
            both = sides[0][pair[0]], sides[1][pair[1]]
            if query.where is not None and not fulfils(query.where, *both):
                continue
            if query.advance is not None and not shared_windows(query, now, then):
                continue
            if all(_holds(term, *both) for term in asked_terms(query)):
                results.append(pair)
        seen[side].append((now, index))
    return results


def shared_windows(query, one, other):
    """Return the boundaries of the windows that have both times in them, looked at one by one."""
    size, advance = (
        timedelta(microseconds=span.nanoseconds / 1000) if isinstance(span, Duration) else span
        for span in (query.width, query.advance)
    )
    zero = advance * 0
    if isinstance(one, date):
        zero = (
            datetime(1970, 1, 1, tzinfo=one.tzinfo) if hasattr(one, "tzinfo") else date(1970, 1, 1)
        )
    at = min(one, other)
    first = (at - zero) // advance - size // advance - 1
    starts = (zero + advance * number for number in range(first, first + size // advance + 3))
    return [
        (start, start + size)
        for start in starts
        if all(start <= time < start + size for time in (one, other))
    ]


def naive_results(left, right, query):
    """Return (left row, right row) of all results of any type, in order; None for no row.

    Rows arrive one at a time; each first pushes others out of the window, which come alone then,
    and then completes its pairs.
    """
    kind = query.how.value
    alone = {"left": [0], "right": [1], "full": [0, 1], "left_semi": [0], "left_anti": [0]}
    pairs = naive_join(left, right, query)
    matched = [{pair[side] for pair in pairs} for side in (0, 1)]
    arrivals = sorted(
        (row[query.time[side]], side, index)
        for side, table in enumerate((left, right))
        for index, row in enumerate(table.to_pylist())
    )
    places = {(side, index): place for place, (_, side, index) in enumerate(arrivals)}
    results, window = [], []

    def leave(gone):
        for row in gone:
            window.remove(row)
            _, side, index = row
            wanted = (index in matched[side]) == (kind == "left_semi")
            if side in alone.get(kind, []) and wanted:
                results.append((index, None) if side == 0 else (None, index))

    for place, (now, side, index) in enumerate(arrivals):
        if isinstance(query.window, CountWindow):
            own = [row for row in window if row[1] == side]
            leave(own[: max(0, len(own) + 1 - query.window.size)])
        else:
            leave([row for row in window if now - row[0] > _width(query.window)])
        window.append((now, side, index))
        if not kind.startswith("left_"):
            results += [
                pair for pair in pairs if max(places[0, pair[0]], places[1, pair[1]]) == place
            ]
    leave(list(window))
    return results


def _width(window):
    if isinstance(window, TimeWindow):
        return window.lifespan
    return timedelta(microseconds=window.nanoseconds / 1000)


def _holds(term, left, right):
    r, s = left[term.left], right[term.right]
    if r is None or s is None:
        return False
    if term.is_equality:
        return r == s or (r != r and s != s)  # all NaN are equal, as in SQL
    low, high = (
        bound.nanoseconds if isinstance(bound, Duration) else bound
        for bound in (term.low, term.high)
    )
    if isinstance(r, float):  # as doubles; NaN is above every bound
        difference = r - s
        not_below = low is None or not difference < float(low)
        return not_below and (high is None or difference <= float(high))
    difference = exact_difference(r, s)
    return (low is None or low <= difference) and (high is None or difference <= high)


def exact_difference(one, other):
    """Return a difference without rounding; that of two moments in nanoseconds."""
    if isinstance(one, Decimal | float):
        return Fraction(one) - Fraction(other)
    difference = one - other
    if isinstance(difference, timedelta):
        return difference // timedelta(microseconds=1) * 1000
    return difference

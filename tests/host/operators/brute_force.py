# SPDX-License-Identifier: Apache-2.0
"""The definition of windows, written down once more: every window is looked at by itself.

Nothing of the kit computes here. Python evaluates the texts, and its own functions reduce.
"""

from fractions import Fraction
from functools import reduce
from types import SimpleNamespace

from hypothesis import strategies as st

__all__ = ["arrivals", "joined_pairs", "matched_results", "window_results"]

PYTHON = {"where": lambda c, a, b: a if c else b, "abs": abs, "min": min, "max": max}
REDUCE = {"sum": sum, "count": len, "min": min, "max": max}


def value_of(text, names):
    return int(eval(str(text), {"__builtins__": {}}, PYTHON | names))


def tuples_of(schema):
    fields = {field.name: st.integers(field.range.low, field.range.high) for field in schema}
    return st.fixed_dictionaries(fields)


def arrivals(operator, *, most=15, gap=6, is_sorted=True):
    """Return a strategy of lists of (timestamp, input, fields)."""
    steps = st.integers(0, gap) | st.just(0) | st.integers(0, 4 * operator.size)
    rows = [
        st.tuples(steps, st.just(number), tuples_of(schema))
        for number, schema in enumerate(operator.schemas)
    ]
    lists = st.lists(st.one_of(rows), max_size=most)
    if not is_sorted:
        return lists

    def with_times(rows):
        time, timed = 0, []
        for step, number, fields in rows:
            time += step
            timed.append((time, number, fields))
        return timed

    return lists.map(with_times)


def keys_of(operator, time, fields):
    names = {"timestamp": time, **fields}
    if not operator.keys:
        return {()}
    return {
        tuple(value_of(part, names) for part in key.parts)
        for key in operator.keys
        if key.when is None or value_of(key.when, names)
    }


def window_results(operator, rows):
    """Return (end, key, values) of every window of an aggregate, sorted."""
    if not rows:
        return []
    times = [time for time, _, _ in rows]
    first = (min(times) - operator.size) // operator.advance - 2
    last = max(times) // operator.advance + 2
    results = []
    for start in range(first * operator.advance, last * operator.advance + 1, operator.advance):
        end = start + operator.size
        inside = [row for row in rows if start <= row[0] < end]
        for key in sorted(set().union(*(keys_of(operator, time, f) for time, _, f in inside))):
            mine = [(time, f) for time, _, f in inside if key in keys_of(operator, time, f)]
            names = dict(zip(operator.key_names, key, strict=True), start=start, end=end)
            for one in operator.reductions:
                values = [value_of(one.value, {"timestamp": t, **f}) for t, f in mine]
                if one.function in REDUCE:
                    names[one.name] = REDUCE[one.function](values)
                else:
                    names[one.name] = reduce(
                        lambda a, b, one=one: value_of(one.combine, {"a": a, "b": b}), values
                    )
            if operator.having is not None and not value_of(operator.having, names):
                continue
            results.append((end, key, tuple(output_of(o, names) for o in operator.outputs)))
    return results


def output_of(output, names):
    value = value_of(output.value, names)
    if output.per is None:
        return value
    divisor = value_of(output.per, names)
    return Fraction(value, divisor) if divisor else None


def joined_pairs(operator, rows):
    """Return (end, values) of every pair of a join whose keys all tuples share."""
    found = []
    for place, (now, number, fields) in enumerate(rows):
        start = (now - operator.size) // operator.advance * operator.advance + operator.advance
        for then, other, before in rows[:place]:
            if other == number or then < start:
                continue
            left, right = (before, fields) if number else (fields, before)
            names = {"l": SimpleNamespace(**left), "r": SimpleNamespace(**right)}
            if value_of(operator.match, names):
                tuples = zip((left, right), operator.schemas, strict=True)
                values = tuple(row[field.name] for row, schema in tuples for field in schema)
                found.append((start + operator.size, values))
    return found


def matched_results(operator, rows):
    """Return (end, key, values) of every left tuple of a join whose matches are aggregated."""
    found = []
    for place, (now, number, fields) in enumerate(rows):
        if number == 1:
            continue
        start = (now - operator.size) // operator.advance * operator.advance + operator.advance
        for key in sorted(keys_of(operator, now, fields)):
            pairs = [
                {"l": SimpleNamespace(**fields), "r": SimpleNamespace(**other)}
                for then, side, other in rows[:place]
                if side == 1 and then >= start and key in keys_of(operator, then, other)
            ]
            matches = [pair for pair in pairs if value_of(operator.match, pair)]
            names = dict(zip(operator.key_names, key, strict=True))
            for one in operator.reductions:
                values = [value_of(one.value, pair) for pair in matches]
                empty = 0 if one.function in ("count", "sum") else None
                names[one.name] = REDUCE[one.function](values) if values else empty
            if value_of(operator.having, names):
                left = tuple(fields[field.name] for field in operator.fields)
                outputs = (nulled(output, names) for output in operator.outputs)
                found.append((start + operator.size, key, (*left, *outputs)))
    return found


def nulled(output, names):
    """Return an output, null if it is made of a state of nothing."""
    used = [value for name, value in names.items() if name in str(output.value).split()]
    return None if None in used else output_of(output, names)

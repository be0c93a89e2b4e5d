# SPDX-License-Identifier: Apache-2.0
"""Compare the result of a join or an aggregation with the reference."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
import math
import operator
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import pyarrow as pa

from host.arrays import Bools, Int64s
from host.columns.conditions import BoundCondition, Part
from host.columns.encoding import EncodedSide, encode
from host.columns.kinds import ColumnType, Kind, column_type, contiguous, integer_view
from host.columns.windows import TimeColumn
from host.devices.software import SOFTWARE_MANIFEST
from host.protocol.manifest import Manifest
from host.query.quantities import Duration
from host.query.queries import Aggregate, AggregateQuery, Query
from host.query.tables import without_views
from host.reference.arrivals import Arrivals
from host.reference.join import Matches, reference_join
from host.reference.operator import Arrival, GeneralOperator, WindowInstance, run
from host.reference.predicate import DifferenceBand
from host.reference.types import NO_ROW, reference_rows

__all__ = [
    "Verdict",
    "compare_pairs",
    "compare_with_reference",
    "plain_value",
    "reference_aggregates",
    "reference_pairs",
]

# Compare the result of a join with the reference join.


class Verdict(NamedTuple):
    """Outcome of a comparison.

    Parameters
    ----------
    agrees : bool
        Whether both results are equal.
    text : str
        The outcome in one sentence.
    """

    agrees: bool
    text: str


def reference_pairs(left: pa.Table, right: pa.Table, query: Query) -> tuple[Int64s, Int64s]:
    """Return the row numbers of all results of the reference join, in strict order.

    Columns are encoded for 64-bit fields, whatever fields a device has. If a result has no row of a
    side, its row number is -1.
    """
    left, right = without_views(left), without_views(right)
    encoded = encode(left, right, query, Manifest.load(SOFTWARE_MANIFEST))
    sides = (encoded.left, encoded.right)
    # Without terms there are no key fields; row numbers take their place, and no bound applies to
    # them.
    r_keys, s_keys = (side.keys or {"row": side.row} for side in sides)
    arrivals = Arrivals.merge(r_keys, s_keys, sides[0].timestamp, sides[1].timestamp)
    matches = reference_join(arrivals, DifferenceBand(encoded.plan.bounds), encoded.plan.window)
    r, s = matches.rows(arrivals)
    keep = _valid(sides[0], r) & _valid(sides[1], s)
    rows = sides[0].row[r], sides[1].row[s]
    if query.once:
        times = sides[0].timestamp[r], sides[1].timestamp[s]
        keep &= (times[0] < times[1]) | ((times[0] == times[1]) & (rows[0] < rows[1]))
    for term in encoded.plan.rough_terms:
        recheck = BoundCondition.of_term(term, left.schema, right.schema)
        columns = [
            [contiguous(table.column(place)).take(pa.array(numbers)) for place in places]
            for table, places, numbers in zip((left, right), recheck.places, rows, strict=True)
        ]
        keep &= recheck.holds(*columns)
    if encoded.plan.condition is not None:
        keep &= _fulfilling(encoded.plan.condition, (left, right), rows, keep)
    matches = Matches(matches.probe[keep], matches.stored[keep])
    answer = reference_rows(arrivals, matches, encoded.plan.window, query.how)
    pairs = _rows(sides[0], answer[0]), _rows(sides[1], answer[1])
    if not query.per_window:
        return pairs
    repeats = [
        len(_shared_windows(query, times))
        for times in zip(*map(_times_of, (left, right), query.time, pairs), strict=True)
    ]
    return np.repeat(pairs[0], repeats), np.repeat(pairs[1], repeats)


def _times_of(table: pa.Table, name: str, rows: Int64s) -> list[Any]:
    """Return the times of rows, in nanoseconds or as whole numbers."""
    kind = column_type(table.schema, name, "its")
    return _plain_values(kind, table.column(name).take(pa.array(rows)))


def _shared_windows(query: Query, times: tuple[Fraction, Fraction]) -> list[int]:
    """Return the numbers of the windows that have two times in them, found one by one."""
    assert query.advance is not None
    size, advance = (
        span.nanoseconds if isinstance(span, Duration) else span
        for span in (query.width, query.advance)
    )
    found, number = [], math.floor(min(times) / advance)
    while number * advance + size > max(times):
        found.append(number)
        number -= 1
    return found[::-1]


def _fulfilling(
    bound: BoundCondition,
    tables: tuple[pa.Table, pa.Table],
    rows: tuple[Int64s, Int64s],
    asked: Bools,
) -> Bools:
    """Return which pairs fulfil a condition, of those asked for, in plain Python."""
    values = {
        (side, name): _plain_values(column_type(table.schema, name, "its"), table.column(name))
        for side, (table, names) in enumerate(zip(tables, bound.names, strict=True))
        for name in names
    }
    found = np.zeros(len(asked), np.bool_)
    for pair in np.flatnonzero(asked).tolist():
        numbers = [int(side[pair]) for side in rows]
        row = {key: column[numbers[key[0]]] for key, column in values.items()}
        found[pair] = plain_value(bound.root, row) is True
    return found


def _plain_values(kind: ColumnType, column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; exact ones as fractions, times in nanoseconds."""
    array = contiguous(column)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if kind.kind in (Kind.FLOAT, Kind.DECIMAL, Kind.TEXT, Kind.BINARY):
        values = (array if kind.kind is Kind.FLOAT else kind.whole().comparable(array)).to_pylist()
        if kind.kind is Kind.DECIMAL:
            return [None if value is None else Fraction(value) for value in values]
        return list(values)
    numbers = integer_view(kind.comparable(array)).tolist()
    nulls = array.is_null().to_pylist()
    return [
        None if is_null else Fraction(number * kind.tick)
        for number, is_null in zip(numbers, nulls, strict=True)
    ]


def plain_value(part: Part, row: Mapping[tuple[int, str], Any]) -> Any:
    """Return the value of a part of a condition for one pair of rows; None stands for null.

    Parameters
    ----------
    part : Part
        The part.
    row : mapping
        Values of the columns, by side and name: fractions, floats, text or bytes.
    """
    if part.operation == "constant":
        return part.value * part.unit if part.is_exact else part.value
    if part.column is not None:
        return row[part.column[0], part.column[1].column]
    values = [plain_value(one, row) for one in part.operands]
    if part.operation == "&":
        return False if False in values else None if None in values else True
    if part.operation == "|":
        return True if True in values else None if None in values else False
    if None in values:
        return None
    if part.operation in ("not", "true"):
        return (not values[0]) if part.operation == "not" else values[0] != 0
    if part.operation == "abs":
        return abs(values[0])
    if part.operation in ("min", "max"):
        return (min if part.operation == "min" else max)(values, key=_rank)
    left, right = values
    if part.operation in _COMPUTED:
        return _COMPUTED[part.operation](left, right)
    return _COMPARED[part.operation](_rank(left), _rank(right))


_COMPUTED = {"+": operator.add, "-": operator.sub, "*": operator.mul, "%": operator.mod}
_COMPARED = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip


def _rank(value: Any) -> tuple[bool, Any]:
    """Return what a value is compared by: NaN equals NaN, and is above all numbers."""
    return (True, 0) if _is_nan(value) else (False, value)


def compare_pairs(
    got: tuple[Int64s, Int64s], expected: tuple[Int64s, Int64s], *, ordered: bool
) -> Verdict:
    """Compare the row numbers of results, in order or as multisets."""
    if not ordered:
        got, expected = _sorted(got), _sorted(expected)
    if len(got[0]) == len(expected[0]) and all(
        np.array_equal(mine, theirs) for mine, theirs in zip(got, expected, strict=True)
    ):
        return Verdict(True, f"all {len(got[0])} results agree with the reference join")
    common = min(len(got[0]), len(expected[0]))
    differs = (got[0][:common] != expected[0][:common]) | (got[1][:common] != expected[1][:common])
    place = int(np.argmax(differs)) if differs.any() else common
    return Verdict(
        False,
        f"{len(got[0])} results, but the reference join has {len(expected[0])}; they differ from "
        f"result {place} (the first is 0) on: {_pair(got, place)}, not {_pair(expected, place)}",
    )


def _rows(side: EncodedSide, tuples: Int64s) -> Int64s:
    rows = np.full(len(tuples), NO_ROW, np.int64)
    there = tuples != NO_ROW
    rows[there] = side.row[tuples[there]]
    return rows


def _valid(side: EncodedSide, tuples: Int64s) -> Bools:
    return np.ones(len(tuples), np.bool_) if side.valid is None else side.valid[tuples]


def _sorted(pairs: tuple[Int64s, Int64s]) -> tuple[Int64s, Int64s]:
    order = np.lexsort((pairs[1], pairs[0]))
    return pairs[0][order], pairs[1][order]


def _pair(pairs: tuple[Int64s, Int64s], place: int) -> str:
    if place >= len(pairs[0]):
        return "nothing"
    names = [
        "no " + name if rows[place] == NO_ROW else f"{name} {rows[place]}"
        for rows, name in zip(pairs, ("left row", "right row"), strict=True)
    ]
    return " with ".join(names)


# Compare the result of an aggregation with the reference operator, which takes row by row.

Row: TypeAlias = dict[str, Any]

#: Largest relative difference of floats: sums depend on the order of their terms.
_TOLERANCE = 1e-9


def compare_with_reference(table: pa.Table, query: AggregateQuery, result: pa.Table) -> Verdict:
    """Compare the result of an aggregation with the reference operator's."""
    expected = reference_aggregates(table, query)
    got = {
        _place(row, query): row for batch in result.to_batches() for row in _comparable_rows(batch)
    }
    wrong = _difference(expected, got, result.num_rows)
    agrees = f"all {len(got)} results agree with the reference operator"
    return Verdict(wrong is None, agrees if wrong is None else wrong)


def _difference(
    expected: Mapping[tuple[Any, ...], Row], got: Mapping[tuple[Any, ...], Row], count: int
) -> str | None:
    """Return how results, of which there are so many, differ from those that are expected."""
    missing = [place for place in expected if place not in got]
    if len(got) != count:
        return f"{count - len(got)} results come twice"
    if missing:
        return f"{len(missing)} results are missing, such as the one of {missing[0]}"
    if len(got) > len(expected):
        extra = next(place for place in got if place not in expected)
        return f"{len(got) - len(expected)} results are too many, such as that of {extra}"
    for place, row in expected.items():
        for name, value in row.items():
            if not _same(got[place][name], value):
                return f"{name!r} of {place} is {got[place][name]}, but should be {value}"
    return None


def reference_aggregates(table: pa.Table, query: AggregateQuery) -> dict[tuple[Any, ...], Row]:
    """Return the aggregates of each (left boundary, *keys), by the reference operator.

    Dates and times are numbers of their units.
    """
    time = TimeColumn(table.schema, query.time, query.window, query.advance)
    rows: list[tuple[int, Row]] = []
    first = 0
    for batch in table.to_batches():
        times = time.read(batch, first).tolist()
        rows += zip(times, _comparable_rows(batch), strict=True)
        first += batch.num_rows
    rows.sort(key=lambda row: row[0])
    operator = GeneralOperator(
        size=time.window,
        advance=time.advance,
        keys=lambda arrival: ["all"],
        output=lambda windows: _groups(windows[0], query),
    )
    found = {}
    for result in run(operator, (Arrival(at, row) for at, row in rows)):
        keys, values = result.payload
        found[result.timestamp - time.window, *keys] = values
    return found


def _comparable_rows(batch: pa.RecordBatch) -> list[Row]:
    """Return rows whose dates and times are numbers of their units.

    Python's own end with the year 9999 and have no nanoseconds.
    """
    columns = []
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_temporal(column.type):
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            column = pa.array(integer_view(column), mask=~valid)
        columns.append(column)
    rows: list[Row] = pa.RecordBatch.from_arrays(columns, batch.schema.names).to_pylist()
    return rows


def _groups(window: WindowInstance, query: AggregateQuery) -> list[Any]:
    """Return the keys and the aggregates of the rows of a window.

    The window holds rows of all keys, because keys of rows may be null and then have no order.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for arrival in window.state:
        key = tuple(_canonical(arrival.payload[name]) for name in query.on)
        groups.setdefault(key, []).append(arrival.payload)
    return [
        (key, {name: _value(rows, one) for name, one in query.aggregates.items()})
        for key, rows in groups.items()
    ]


def _value(rows: Sequence[Row], one: Aggregate) -> Any:
    if one.column is None:
        return len(rows)
    values = [row[one.column] for row in rows if row[one.column] is not None]
    if one.function == "count":
        return len(values)
    if not values:
        return None
    if one.function in ("sum", "mean"):
        parts = len(values) if one.function == "mean" else 1
        if isinstance(values[0], float):
            return _sum(values, parts)
        return sum(values) / parts if one.function == "mean" else sum(values)
    numbers = [value for value in values if not _is_nan(value)]
    if one.function == "min":
        return min(numbers, default=math.nan)
    return max(numbers) if len(numbers) == len(values) else math.nan


class _Beyond(float):
    """The exact sum of floats that, added up in another order, are infinite on the way."""

    def __new__(cls, total: Fraction) -> Self:
        try:
            return super().__new__(cls, float(total))
        except OverflowError:
            return super().__new__(cls, math.inf if total > 0 else -math.inf)


def _sum(values: Sequence[float], parts: int) -> float:
    """Return a part of the sum of floats, which is NaN where infinities of both signs meet."""
    try:
        return math.fsum(values) / parts
    except ValueError:  # infinities of both signs
        return math.nan
    except OverflowError:
        return _Beyond(sum(map(Fraction, values)) / Fraction(parts))


def _place(row: Row, query: AggregateQuery) -> tuple[Any, ...]:
    return row["window_start"], *(_canonical(row[name]) for name in query.on)


def _canonical(value: Any) -> Any:
    """Return a value that equals what SQL groups with it."""
    return "NaN" if _is_nan(value) else value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _same(one: Any, other: Any) -> bool:
    if isinstance(other, _Beyond) and not math.isfinite(one):
        return True
    if isinstance(one, float) and isinstance(other, (int, float)):
        both_nan = _is_nan(one) and _is_nan(other)
        return both_nan or math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return bool(one == other)

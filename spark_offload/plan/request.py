# SPDX-License-Identifier: Apache-2.0
"""The arguments of the public functions as queries."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from host import CountWindow, Ordering, TimeWindow, UsageError
from host.query.cores import Controller, controller_of
from host.query.quantities import Duration, as_duration, parse_duration
from host.query.queries import (
    Aggregate,
    AggregateQuery,
    AsofQuery,
    Bound,
    JoinQuery,
    OnFailure,
    Span,
    Term,
    Width,
    one_sided,
)
from host.reference.asof import Direction
from host.reference.types import JoinType

__all__ = [
    "Bands",
    "Equalities",
    "Length",
    "Limit",
    "OnColumns",
    "PARTITIONS",
    "Sortedness",
    "Within",
    "as_length",
    "build_aggregate_query",
    "build_asof_query",
    "build_query",
    "column_pair",
    "equal_columns",
]

# The arguments of :func:`~spark_offload.stream_join` as one ``JoinQuery``.

Equalities: TypeAlias = "str | Sequence[str | tuple[str, str]] | None"
"""Equal columns: one name, or a list of names and of (left, right) pairs."""

Length: TypeAlias = "int | str | timedelta | Duration | None"
"""A number, a duration, or a duration as text (``"180min"``); None leaves a bound open."""

Within: TypeAlias = "Length | tuple[Length, Length]"
"""The width of a window, or the two ends of the difference left - right."""

Limit: TypeAlias = "Bound | str"
"""A bound of a difference: a number or a duration, also as text; None leaves it open."""

Bands: TypeAlias = (
    "Mapping[str | tuple[str, str], tuple[Limit, Limit]]"
    " | Sequence[tuple[str, str, Limit, Limit]] | None"
)
"""Bounds ``low <= left - right <= high``, by column pair or as a list of four-tuples."""

PARTITIONS = "partitions"
"""Declares each partition of an input sorted by itself."""

Sortedness: TypeAlias = 'bool | Literal["partitions"]'
"""What is declared sorted: the inputs, nothing, or each partition of the inputs."""


def build_query(
    *,
    on: Equalities,
    band: Bands,
    order: str | tuple[str, str],
    within: Within,
    rows: int | None,
    sorted: Sortedness,
    suffix: str,
    ordering: Ordering | None = None,
    how: str | JoinType = JoinType.INNER,
    on_failure: str | OnFailure = OnFailure.RAISE,
    elastic: Controller | bool | None = None,
    terms: Sequence[Term] = (),
) -> JoinQuery:
    """Return the query that the arguments ask for, or raise naming the one that is wrong.

    ``terms`` come besides those of ``on`` and ``band``.
    """
    columns = column_pair(order, "order")
    window, ends = _window(within, rows, columns)
    return JoinQuery(
        terms=(
            *(Term(left, right) for left, right in equal_columns(on, "on")),
            *_bands(band),
            *terms,
            *ends,
        ),
        order=columns,
        window=window,
        ordering=Ordering.outer() if ordering is None else ordering,
        sorted=_is_declared(sorted),
        per_partition=sorted == PARTITIONS,
        suffix=suffix,
        how=JoinType.of(how),
        on_failure=OnFailure.of(on_failure),
        elastic=controller_of(elastic),
    )


def _is_declared(sorted: object) -> bool:
    if isinstance(sorted, str) and sorted != PARTITIONS:
        raise UsageError(
            f"sorted is True, False or {PARTITIONS!r}, which declares each partition of an input "
            f"sorted by itself, not {sorted!r}."
        )
    return bool(sorted)


def column_pair(columns: object, argument: str) -> tuple[str, str]:
    """Return a (left, right) pair of columns; one name is that of both.

    Raises
    ------
    UsageError
        If it is neither; the error names the argument.
    """
    if isinstance(columns, str):
        return columns, columns
    if _is_pair(columns):
        return columns[0], columns[1]  # type: ignore[index]
    raise UsageError(
        f"{argument} must be a column or a (left, right) pair of columns, not {columns!r}."
    )


def equal_columns(columns: Any, argument: str) -> list[tuple[str, str]]:
    """Return (left, right) pairs of columns that must be equal.

    Raises
    ------
    UsageError
        If ``columns`` are no :data:`Equalities`; the error names the argument.
    """
    if columns is None:
        return []
    if isinstance(columns, str):
        return [(columns, columns)]
    if not isinstance(columns, Sequence):
        raise UsageError(f"{argument} must be a column or a list of columns, not {columns!r}.")
    if isinstance(columns, tuple) and _is_pair(columns):
        raise UsageError(
            f"{argument}={columns!r} could mean one pair or two columns; write [{columns!r}] or "
            f"{list(columns)!r}."
        )
    pairs = []
    for entry in columns:
        if isinstance(entry, str):
            pairs.append((entry, entry))
        elif _is_pair(entry):
            pairs.append((entry[0], entry[1]))
        else:
            raise UsageError(f"{argument} lists columns and (left, right) pairs, not {entry!r}.")
    return pairs


def _bands(band: Any) -> list[Term]:
    if band is None:
        return []
    if isinstance(band, Mapping):
        rows = []
        for columns, bounds in band.items():
            pair = (columns, columns) if isinstance(columns, str) else columns
            if not _is_pair(pair) or not isinstance(bounds, Sequence) or len(bounds) != 2:
                raise UsageError(
                    f"band maps a column or a (left, right) pair to (low, high), "
                    f"not {columns!r} to {bounds!r}."
                )
            rows.append((*pair, *bounds))
    elif isinstance(band, Sequence) and not isinstance(band, str):
        rows = list(band)
    else:
        raise UsageError(f"band must be a mapping or a list of tuples, not {band!r}.")
    terms = []
    for row in rows:
        if not isinstance(row, Sequence) or len(row) != 4 or not _is_pair(row[:2]):
            raise UsageError(f"band lists (left, right, low, high) tuples, not {row!r}.")
        bounds = [
            _bound(value, f"In band {(row[0], row[1])!r}, the {name} bound")
            for name, value in zip(("low", "high"), row[2:], strict=True)
        ]
        terms.append(Term(row[0], row[1], *bounds))
    return terms


def _bound(value: Any, what: str) -> Bound:
    """Return a bound as the query takes it; text is a duration."""
    return parse_duration(value, what) if isinstance(value, str) else value


def _window(within: Any, rows: Any, order: tuple[str, str]) -> tuple[Width, tuple[Term, ...]]:
    """Return the window, and a term on the order columns if it reaches less far on one side."""
    if (within is None) == (rows is None):
        given = "neither" if rows is None else f"both within={within!r} and rows={rows!r}"
        raise UsageError(
            f"Give exactly one of within (a time-based window) and rows (a count-based one), "
            f"not {given}."
        )
    if rows is not None:
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise UsageError(f"rows must be a whole number of at least 1, not {rows!r}.")
        return CountWindow(rows), ()
    if isinstance(within, (tuple, list)):
        if len(within) != 2:
            raise UsageError(
                f"within is one length, or (low, high) for low <= left - right <= high, not "
                f"{within!r}."
            )
        low, high = (as_length(end, "within", within) for end in within)
        return one_sided(low, high, order)
    width = as_length(within, "within")
    if isinstance(width, Duration):
        return width, ()
    if width < 0:
        raise _no_length("within", within)
    return TimeWindow(width), ()


def as_length(value: Any, argument: str, given: Any = None) -> int | Duration:
    """Return a whole number or a duration that an argument is, or is made of.

    Raises
    ------
    UsageError
        If it is neither; the error shows ``given``, all of the argument.
    """
    given = value if given is None else given
    if isinstance(value, str):
        return parse_duration(value, argument)
    if isinstance(value, timedelta):
        return as_duration(value)
    if isinstance(value, Duration):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise _no_length(argument, given)
    return int(value)


def _no_length(argument: str, given: Any) -> UsageError:
    ends = ", or (low, high) of such that may be negative" if argument == "within" else ""
    return UsageError(
        f"{argument} must be a whole number of at least 0 or a duration{ends}, not {given!r}."
    )


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, (tuple, list))
        and len(value) == 2
        and all(isinstance(name, str) for name in value)
    )


# The arguments of :func:`~spark_offload.asof_join` as one ``AsofQuery``.

OnColumns: TypeAlias = "str | tuple[str, str]"
"""One column name, or a (left, right) pair."""


def build_asof_query(
    *,
    on: OnColumns,
    by: Equalities,
    direction: str | Direction,
    tolerance: Length,
    allow_exact_matches: bool,
    how: str | JoinType,
    sorted: bool,
    suffix: str,
) -> AsofQuery:
    """Return the query that the arguments ask for, or raise naming the one that is wrong."""
    if isinstance(tolerance, str):
        tolerance = parse_duration(tolerance, "tolerance")
    return AsofQuery(
        on=column_pair(on, "on"),
        by=equal_columns(by, "by"),
        direction=Direction.of(direction),
        tolerance=tolerance,
        allow_exact_matches=bool(allow_exact_matches),
        how=JoinType.of(how),
        sorted=bool(sorted),
        suffix=suffix,
    )


# The arguments of :func:`~spark_offload.stream_aggregate` as one ``AggregateQuery``.


def build_aggregate_query(
    *,
    time: str,
    window: Length,
    advance: Length,
    keys: str | Sequence[str],
    aggregates: Mapping[str, Aggregate | str | tuple[str, str]],
) -> AggregateQuery:
    """Return the query that the arguments ask for, or raise naming the one that is wrong."""
    if not isinstance(aggregates, Mapping):
        raise UsageError(
            f"aggregates must map names to aggregates, as in {{'n': 'count'}}, not {aggregates!r}."
        )
    return AggregateQuery(
        time=time,
        window=_span(window, "window"),
        advance=None if advance is None else _span(advance, "advance"),
        keys=(keys,) if isinstance(keys, str) else tuple(keys),
        aggregates={name: Aggregate.of(given) for name, given in aggregates.items()},
    )


def _span(length: Length, name: str) -> Span:
    if length is None:
        raise UsageError(f"The {name} must be given, such as {name}='5min'.")
    return as_length(length, name)

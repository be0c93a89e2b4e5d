# SPDX-License-Identifier: Apache-2.0
"""The description of an aggregation of a table's rows over windows of time."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from host.errors import UsageError
from host.query.durations import Duration, as_duration

__all__ = ["BOUNDARIES", "FUNCTIONS", "Aggregate", "AggregateQuery", "Span"]

#: What an aggregate can be; only ``count`` needs no column.
FUNCTIONS = ("count", "sum", "min", "max", "mean")
#: Names of the columns of a result that hold the boundaries of its window.
BOUNDARIES = ("window_start", "window_end")

#: A length of time: a duration for temporal columns, a whole number for columns of integers.
Span: TypeAlias = int | Duration


@dataclass(frozen=True)
class Aggregate:
    """One value of a window's result, with the meaning of SQL: nulls in the column do not count.

    Parameters
    ----------
    function : str
        One of :data:`FUNCTIONS`.
    column : str, optional
        The column; a count without one counts rows.
    """

    function: str
    column: str | None = None

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            raise UsageError(
                f"An aggregate is one of {', '.join(FUNCTIONS)}, not {self.function!r}."
            )
        if self.column is None and self.function != "count":
            raise UsageError(f"Aggregate {self.function!r} needs a column, as in 'sum:price'.")

    @classmethod
    def of(cls, given: "Aggregate | str | tuple[str, str]") -> "Aggregate":
        """Return the aggregate that ``"count"``, ``"sum:price"`` or ``("sum", "price")`` is."""
        if isinstance(given, Aggregate):
            return given
        function, *column = given.split(":", 1) if isinstance(given, str) else given
        return cls(function, column[0] if column else None)

    def __str__(self) -> str:
        return f"{self.function}({self.column or '*'})"


@dataclass(frozen=True, kw_only=True)
class AggregateQuery:
    """What is computed of the rows of each window and key.

    Windows are ``[n * advance, n * advance + window)`` for each integer n, as for
    :class:`host.windowed.WindowedOperator` and for Spark's ``window``. Rows whose keys are null in
    the same columns have the same key. A null in the column of time is an error.

    Parameters
    ----------
    time : str
        Column of time: integers, dates or timestamps.
    window, advance : int, Duration or timedelta
        Length of a window, and how much later the next one begins; by default as long as a window.
    keys : sequence of str
        Columns that rows are grouped by.
    aggregates : mapping of str to Aggregate, str or (str, str)
        What is computed, by the name of its column in the result.
    sorted : bool
        Whether rows are declared sorted by time; a time that decreases is then an error, and a
        result leaves as soon as its window has ended.
    parts : bool
        Whether results are parts of those of an aggregation of more rows. Sums of integers are then
        decimals of 38 digits, which hold them however large they are.
    """

    time: str
    window: Span
    advance: Span | None = None
    keys: Sequence[str] = ()
    aggregates: Mapping[str, Aggregate]
    sorted: bool = False
    parts: bool = False

    def __post_init__(self) -> None:
        keys = (self.keys,) if isinstance(self.keys, str) else tuple(self.keys)
        object.__setattr__(self, "keys", keys)
        aggregates = {name: Aggregate.of(given) for name, given in self.aggregates.items()}
        object.__setattr__(self, "aggregates", aggregates)
        advance = self.window if self.advance is None else self.advance
        for name, given in (("window", self.window), ("advance", advance)):
            object.__setattr__(self, name, _span(name, given))
        self._check()

    def _check(self) -> None:
        assert self.advance is not None
        if isinstance(self.window, Duration) != isinstance(self.advance, Duration):
            raise UsageError(
                f"Window {self.window} and advance {self.advance} must both be durations, or both "
                f"whole numbers."
            )
        if self.advance > self.window:  # type: ignore[operator]  # both are of one type
            raise UsageError(
                f"Windows of {self.window} must advance by at most that, so that no row falls "
                f"between two of them; not by {self.advance}."
            )
        if not self.aggregates:
            raise UsageError("An aggregation needs at least one aggregate, such as n=count.")
        names = Counter([*BOUNDARIES, *self.keys, *self.aggregates])
        repeated = [name for name, count in names.items() if count > 1]
        if repeated:
            raise UsageError(
                f"The result would have several columns called {repeated[0]!r}; choose another "
                f"name for an aggregate, or name each key once."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are aggregated, each once."""
        given = (one.column for one in self.aggregates.values() if one.column is not None)
        return tuple(dict.fromkeys(given))

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {one}" for name, one in self.aggregates.items())
        by = f" by {', '.join(self.keys)}" if self.keys else ""
        return f"{values}{by} over {self.window} of {self.time}, every {self.advance}"


def _span(name: str, given: object) -> Span:
    """Return a length of time, checked."""
    span = as_duration(given) if isinstance(given, timedelta) else given
    number = span.nanoseconds if isinstance(span, Duration) else span
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise UsageError(
            f"The {name} must be a duration or a whole number of at least 1, not {given}."
        )
    return span if isinstance(span, Duration) else number

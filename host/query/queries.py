# SPDX-License-Identifier: Apache-2.0
"""Queries: joins, as-of joins and aggregations, as frozen descriptions that check themselves."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
import math
from typing import TypeAlias

from host.errors import UsageError
from host.query.cores import Controller, controller_of
from host.query.ordering import Ordering
from host.query.quantities import Duration, as_duration
from host.reference.asof import Direction
from host.reference.types import JoinType
from host.reference.window import CountWindow, TimeWindow

__all__ = [
    "Aggregate",
    "AggregateQuery",
    "AsofQuery",
    "BOUNDARIES",
    "Bound",
    "FUNCTIONS",
    "JoinQuery",
    "OnFailure",
    "Span",
    "Term",
    "Width",
    "one_sided",
]

# What a join does when a core of its accelerator fails.


class OnFailure(Enum):
    """Policy for a core that fails while a join runs; its value is its name for users."""

    #: The join ends with a :class:`~host.errors.CoreFailureError`.
    RAISE = "raise"
    #: The join goes on without the core. The result lacks the pairs with tuples that the core
    #: stored, and the :class:`~host.session.records.FailureRecord` says which tuples these
    #: are.
    REPORT = "report"
    #: The join sends the tuples of the window again to the other cores, and its result is complete.
    REPLAY = "replay"

    @classmethod
    def of(cls, value: "OnFailure | str") -> "OnFailure":
        """Return the policy of this name.

        Raises
        ------
        UsageError
            If there is no such policy.
        """
        try:
            return cls(value)
        except ValueError:
            names = ", ".join(repr(policy.value) for policy in cls)
            raise UsageError(f"Policy on_failure must be one of {names}, not {value!r}.") from None


# The description of a join of two tables: terms, order, window and ordering.

#: Bound of a difference: a number for numeric columns, a duration for temporal ones, or None.
Bound: TypeAlias = int | float | Decimal | Fraction | Duration | timedelta | None

#: Width of the window: a count, or a distance of the order columns. ``TimeWindow`` is for numeric
#: order columns, a duration for temporal ones.
Width: TypeAlias = CountWindow | TimeWindow | Duration | timedelta


@dataclass(frozen=True)
class Term:
    """One comparison: ``low <= left - right <= high``, both inclusive.

    Parameters
    ----------
    left, right : str
        Column of the left table, and column of the right table.
    low, high : int, float, Decimal, Fraction, Duration, timedelta or None
        Bounds of the difference. None leaves that end open. The default, zero for both, is an
        equality. Temporal columns take durations (or zero), all others take numbers.
    """

    left: str
    right: str
    low: Bound = 0
    high: Bound = 0

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = getattr(self, name)
            if isinstance(value, timedelta):
                object.__setattr__(self, name, as_duration(value))
            elif isinstance(value, (float, Decimal)) and math.isfinite(value):
                # Floats are taken as they are written, because they are also compared with
                # decimals.
                object.__setattr__(self, name, Fraction(str(value)))
            elif isinstance(value, bool) or not isinstance(
                value, (int, Fraction, Duration, type(None))
            ):
                raise UsageError(
                    f"The {name} bound of {self.left!r} and {self.right!r} must be a finite "
                    f"number, a duration or None, not {value!r}."
                )

    @property
    def is_equality(self) -> bool:
        """Whether the two values must be equal."""
        return _is_zero(self.low) and _is_zero(self.high)

    def __str__(self) -> str:
        if self.is_equality:
            return f"left.{self.left} = right.{self.right}"
        low = "" if self.low is None else f"{self.low} <= "
        high = "" if self.high is None else f" <= {self.high}"
        return f"{low}left.{self.left} - right.{self.right}{high}"


@dataclass(frozen=True, kw_only=True)
class JoinQuery:
    """The wanted pairs of rows, and the order in which rows arrive.

    Rows arrive in the order of their order columns; on a tie left before right, then in the order
    of input. A row is paired with those rows of the other table that are in that table's window at
    the moment and satisfy all terms. A null in a term's column matches nothing, as in SQL, but the
    row still counts as one of the last rows of a count-based window.

    Parameters
    ----------
    terms : sequence of Term
        Terms that must all hold. Without terms, all pairs within the window match.
    order : tuple of str
        The left and the right column that give the order of arrival.
    window : CountWindow, TimeWindow, Duration or timedelta
        The last rows of each side, or the largest difference of the order columns.
    ordering : Ordering
        Ordering of the results. ``outer()`` and ``inner()`` order them by the arrival of the later
        row of a pair and then by that of the earlier one, which only ``inner()`` promises; it costs
        nothing extra. With ``none()``, ``relaxed(n)`` and ``adaptive(n, hold)``, pairs are handed
        on as soon as they are known; ``docs/ordering.md`` says in which order they may be. A row
        that comes alone comes when it leaves the window, before the pairs of the row that pushes it
        out, or at the end; see :mod:`host.reference.types`.
    sorted : bool
        Whether both tables are declared sorted by their order columns; it is an error if they are
        not. Otherwise they are sorted first.
    per_partition : bool
        Whether ``sorted`` is declared of each partition of an input by itself, which are then
        merged. A table is one partition; the frames of Spark have several.
    suffix : str
        Text appended to the name of a right column if a left column has the same name.
    how : JoinType or str
        Type of the join: whether pairs are wanted, and which rows besides or instead. A row with a
        null in a term's column is unmatched.
    on_failure : OnFailure or str
        What to do when a core of the accelerator fails: ``"raise"``, ``"report"`` or ``"replay"``;
        see :class:`OnFailure`. Only accelerators whose cores have gates
        notice failures.
    elastic : Controller or bool
        What chooses how many cores of the accelerator store tuples while the join runs; True stands
        for :class:`~host.query.cores.ThresholdController`, and with None or False all cores
        store. The answer is the same whichever cores do.
    """

    terms: tuple[Term, ...] = ()
    order: tuple[str, str]
    window: Width
    ordering: Ordering = field(default_factory=Ordering.outer)
    sorted: bool = False
    per_partition: bool = False
    suffix: str = "_right"
    how: JoinType = JoinType.INNER
    on_failure: OnFailure = OnFailure.RAISE
    elastic: Controller | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "how", JoinType.of(self.how))
        object.__setattr__(self, "on_failure", OnFailure.of(self.on_failure))
        object.__setattr__(self, "elastic", controller_of(self.elastic))
        self._check_failures()
        self._check_elastic()
        object.__setattr__(self, "terms", tuple(self.terms))
        object.__setattr__(self, "order", tuple(self.order))
        if len(self.order) != 2:
            raise UsageError(f"Order needs a left and a right column, not {self.order!r}.")
        if isinstance(self.window, timedelta):
            object.__setattr__(self, "window", as_duration(self.window))
        if not isinstance(self.window, (CountWindow, TimeWindow, Duration)):
            raise UsageError(
                f"A window is a CountWindow, a TimeWindow or a duration, not {self.window!r}."
            )
        if isinstance(self.window, Duration) and self.window.nanoseconds < 0:
            raise UsageError(f"A window must not be negative, but is {self.window}.")

    @property
    def is_timed(self) -> bool:
        """Whether the window is time-based."""
        return not isinstance(self.window, CountWindow)

    def _check_failures(self) -> None:
        """Raise unless the query can go on after a failure, if it is to."""
        if self.on_failure is OnFailure.RAISE:
            return
        if self.ordering.hold is not None:
            raise UsageError(
                f"An adaptive ordering does not go with on_failure={self.on_failure.value!r}: a "
                f"join that survives a failure hands pairs on group by group; choose another "
                f"ordering or on_failure='raise'."
            )
        if self.on_failure is OnFailure.REPORT and self.how is not JoinType.INNER:
            raise UsageError(
                f"A {self.how.value} join does not go with on_failure='report': a row whose pairs "
                f"are missing would count as unmatched; choose on_failure='replay' or 'raise'."
            )

    def _check_elastic(self) -> None:
        """Raise unless the cores that store may change under the query."""
        if self.elastic is None:
            return
        if self.ordering.in_hardware:
            raise UsageError(
                f"An elastic join does not go with the ordering {self.ordering}: a change of the "
                f"cores ends the rounds; let the host sort, with Ordering.inner() without "
                f"in_hardware."
            )

    @property
    def least_fields(self) -> int:
        """Number of key fields that the terms need: one per difference, one for all equalities."""
        equalities = sum(term.is_equality for term in self.terms)
        return len(self.terms) - equalities + min(equalities, 1)

    def __str__(self) -> str:
        terms = " and ".join(str(term) for term in self.terms) or "all rows"
        if isinstance(self.window, CountWindow):
            window = f"the last {self.window.size} rows"
        else:
            width = getattr(self.window, "lifespan", self.window)
            window = f"|left.{self.order[0]} - right.{self.order[1]}| <= {width}"
        kind = "" if self.how is JoinType.INNER else f"{self.how} join: "
        return f"{kind}{terms}, within {window}"


def _is_zero(bound: Bound) -> bool:
    return bound is not None and (
        bound.nanoseconds == 0 if isinstance(bound, Duration) else bound == 0
    )


# Windows that reach less far on one side: the partner of a row is only earlier, or only later.
#
# A window of a join is symmetric: rows of either side meet if their times differ by at most its
# width. Two ends ``low <= left - right <= high`` are such a window, as wide as the farther end,
# and a term over the order columns.


def one_sided(
    low: int | Duration, high: int | Duration, order: tuple[str, str]
) -> tuple[Width, tuple[Term, ...]]:
    """Return the window, and the terms that cut it, for ``low <= left - right <= high``.

    Parameters
    ----------
    low, high : int or Duration
        Ends of the difference of the order columns, both inclusive.
    order : (str, str)
        The left and the right order column.

    Raises
    ------
    UsageError
        If one end is a number and the other one a duration, or ``low`` is above ``high``.
    """
    if isinstance(low, Duration) and isinstance(high, Duration):
        width: Width = max(-low, low, -high, high)
        is_empty, is_symmetric = low > high, low == -high
    elif isinstance(low, int) and isinstance(high, int):
        width = TimeWindow(max(abs(low), abs(high)))
        is_empty, is_symmetric = low > high, low == -high
    else:
        raise UsageError(
            f"The ends of a window are two numbers or two durations, not {low} and {high}."
        )
    if is_empty:
        raise UsageError(
            f"The ends of a window are low <= left - right <= high, but low is {low} and high is "
            f"{high}; swap them."
        )
    return width, () if is_symmetric else (Term(*order, low, high),)


# The description of an as-of join of two tables.


@dataclass(frozen=True, kw_only=True)
class AsofQuery:
    """Which right row each left row is joined with; :mod:`host.reference.asof` has the meaning.

    A null in a ``by`` column equals nothing, as in SQL. A null in an ``on`` column is an error,
    because such a row has no place in time.

    Parameters
    ----------
    on : (str, str)
        The left and the right column of time: integers, dates or timestamps.
    by : sequence of (str, str)
        The left and the right columns that must be equal; may be empty.
    direction : Direction or str
        Where the right row lies in time.
    tolerance : int, Duration or timedelta, optional
        Largest distance in time: a duration for temporal columns, a whole number for others.
    allow_exact_matches : bool
        Whether a right row with the same time counts.
    how : JoinType or str
        ``LEFT``: every left row is in the result, with nulls if no right row is found. ``INNER``:
        only the left rows for which one is found.
    sorted : bool
        Whether both tables are declared sorted by time; a time that decreases is then an error.
        Otherwise rows are sorted.
    suffix : str
        Appended to the names of right columns that the left table also has.
    """

    on: tuple[str, str]
    by: Sequence[tuple[str, str]] = ()
    direction: Direction = Direction.BACKWARD
    tolerance: int | Duration | timedelta | None = None
    allow_exact_matches: bool = True
    how: JoinType = JoinType.LEFT
    sorted: bool = False
    suffix: str = "_right"

    def __post_init__(self) -> None:
        object.__setattr__(self, "direction", Direction.of(self.direction))
        object.__setattr__(self, "how", JoinType.of(self.how))
        object.__setattr__(self, "on", tuple(self.on))
        object.__setattr__(self, "by", tuple((left, right) for left, right in self.by))
        if self.how not in (JoinType.LEFT, JoinType.INNER):
            raise UsageError(
                f"An as-of join is 'left' (every left row comes) or 'inner' (only those with a "
                f"right row), not {self.how.value!r}."
            )
        tolerance = self.tolerance
        if isinstance(tolerance, timedelta):
            tolerance = as_duration(tolerance)
            object.__setattr__(self, "tolerance", tolerance)
        number = tolerance.nanoseconds if isinstance(tolerance, Duration) else tolerance
        if number is None:
            return
        if isinstance(number, bool) or not isinstance(number, int):
            raise UsageError(
                f"A tolerance is a whole number, a duration or None, not {self.tolerance!r}."
            )
        if number < 0:
            raise UsageError(f"A tolerance must not be negative, but is {self.tolerance}.")

    @property
    def pairs(self) -> JoinQuery:
        """The join whose pairs are the candidates: equal keys, and a window that is the tolerance.

        Columns of an as-of join are encoded as those of this one. Without a tolerance no time is
        too far away; the window then has no unit, and its size does not matter.
        """
        tolerance = self.tolerance
        return JoinQuery(
            terms=tuple(Term(left, right) for left, right in self.by),
            order=self.on,
            window=(
                CountWindow(1)
                if tolerance is None
                else TimeWindow(tolerance)
                if isinstance(tolerance, int)
                else tolerance
            ),
            sorted=self.sorted,
            suffix=self.suffix,
            how=JoinType.LEFT,
        )

    def __str__(self) -> str:
        found = {
            Direction.BACKWARD: "the last right row with right.{1} {2}= left.{0}",
            Direction.FORWARD: "the first right row with right.{1} {3}= left.{0}",
            Direction.NEAREST: "the right row whose {1} is nearest to left.{0}",
        }[self.direction].format(*self.on, "<", ">")
        if not self.allow_exact_matches:
            found = (
                f"{found}, the same time left out"
                if self.direction is Direction.NEAREST
                else found.replace("= left", " left")
            )
        equal = "".join(f" and left.{left} = right.{right}" for left, right in self.by)
        within = "" if self.tolerance is None else f", at most {self.tolerance} away"
        return f"{self.how} as-of join: {found}{equal}{within}"


# The description of an aggregation of a table's rows over windows of time.

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
    :class:`host.operators.windowed.WindowedOperator` and for Spark's ``window``. Rows whose keys
    are null in the same columns have the same key. A null in the column of time is an error.

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

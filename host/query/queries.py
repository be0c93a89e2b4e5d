# SPDX-License-Identifier: Apache-2.0
"""Queries: joins, as-of joins and aggregations, as frozen descriptions that check themselves."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
import math
from typing import TYPE_CHECKING, Any, Required, TypeAlias, TypedDict, Unpack

from host.errors import UsageError
from host.query.cores import Controller, controller_of
from host.query.ordering import Ordering
from host.query.quantities import Duration, as_duration, parse_duration
from host.query.words import (
    PARTITIONS,
    Bound,
    Columns,
    Equalities,
    Length,
    Limit,
    Sortedness,
    Span,
    Within,
    as_length,
    as_span,
    as_text,
    column_pair,
    equal_columns,
    is_pair,
    listed_columns,
    require_words,
    takes_words,
)
from host.reference.types import Direction, JoinType, named
from host.reference.window import CountWindow, TimeWindow

if TYPE_CHECKING:
    from host.query.conditions import Condition, Where  # loaded by queries that have one

__all__ = [
    "Aggregate",
    "AggregateQuery",
    "Aggregates",
    "AsofQuery",
    "BOUNDARIES",
    "Bands",
    "FUNCTIONS",
    "OnFailure",
    "Query",
    "QueryWords",
    "Term",
    "Width",
    "as_terms",
    "window_in_common",
]

# What a join does when a core of its accelerator fails.


class OnFailure(Enum):
    """Policy for a core that fails while a join runs; its value is its name for users."""

    #: The join ends with a :class:`~host.errors.DeviceError`.
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
        return named(cls, "Policy on_failure", value)


# The description of a join of two tables.

#: Width of the window: a count, or a distance of the time columns. ``TimeWindow`` is for columns of
#: integers, a duration for temporal ones.
Width: TypeAlias = CountWindow | TimeWindow | Duration


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


#: Bounds ``low <= left - right <= high``: by column or pair of columns, or as a list of
#: ``(left, right, low, high)`` and terms.
Bands: TypeAlias = (
    Mapping[str | tuple[str, str], tuple[Limit, Limit]]
    | Sequence[Term | tuple[str, str, Limit, Limit]]
    | None
)


class QueryWords(TypedDict, total=False):
    """The words of a :class:`Query`, as they may be written; all but ``time`` may be left out."""

    time: Required[Columns]
    on: Equalities
    band: Bands
    where: "Where | None"
    within: Within | None
    advance: Length | None
    per_window: bool
    rows: int | None
    pairs: str
    how: str | JoinType
    ordering: Ordering | None
    sorted: Sortedness
    suffix: str
    on_failure: str | OnFailure
    elastic: Controller | bool | None


@dataclass(frozen=True, init=False)
class Query:
    """A sliding-window join: the wanted pairs of rows, and the order in which rows arrive.

    Rows arrive in the order of their time columns; on a tie left before right, then in the order
    of input. A row is paired with those rows of the other table that are in that table's window at
    the moment, are equal to it in all columns of ``on``, differ from it by what ``band`` allows,
    and fulfil ``where``. A null in a compared column matches nothing, as in SQL, but the row still
    counts as one of the last rows of a count-based window.

    Parameters
    ----------
    time : str or (str, str)
        The columns, left and right, that rows arrive by: integers, dates or timestamps.
    on : str or list, optional
        Columns that must be equal: a name, or a list of names and (left, right) pairs.
    band : mapping or list, optional
        Differences: ``{("l", "r"): (low, high)}`` or ``[("l", "r", low, high)]`` for
        ``low <= l - r <= high``, or terms. None is an open bound. Temporal columns take durations,
        also as text such as ``"-30min"``.
    where : str or callable, optional
        Any other condition on a left and a right row: a text such as
        ``"abs(l.x - r.x) <= 3 and l.city != r.city"``, or a function of the two rows that joins
        comparisons with ``&``, ``|`` and ``~``. As in SQL, a pair is wanted where it is true, and
        a comparison with null is not. See :mod:`host.query.conditions`.
    within : int, Duration, timedelta, str or (low, high), optional
        Time-based window: pairs whose times differ by at most this, which is a whole number, a
        duration such as ``"5s"`` or an interval as SQL writes it. Of two ends,
        ``low <= left - right <= high``.
    advance : int, Duration, timedelta or str, optional
        Windows in common, which are those of an aggregation: ``[n * advance, n * advance +
        within)`` for each integer n. A pair is wanted if one of them has both rows in it. They hop,
        or with an advance of ``within`` they tumble.
    per_window : bool
        With ``advance``, whether a pair comes once for each window that has both rows, with the
        columns ``window_start`` and ``window_end`` behind those of the rows. Otherwise it comes
        once.
    rows : int, optional
        Count-based window: the last so many rows of the other side. Exactly one of ``within`` and
        ``rows`` is given.
    pairs : "all" or "once"
        ``"once"`` is for a join of rows with themselves: of two rows that are paired, the left one
        arrives first, so that a pair comes once, and no row is paired with itself.
    how : JoinType or str
        Type of the join: whether pairs are wanted, and which rows besides or instead. A row with a
        null in a compared column is unmatched.
    ordering : Ordering, optional
        Ordering of the results; left out, ``Ordering.outer()``. ``outer()`` and ``inner()`` order
        them by the arrival of the later row of a pair and then by that of the earlier one, which
        only ``inner()`` promises; it costs nothing extra. With ``none()``, ``relaxed(n)`` and
        ``adaptive(n, hold)``, pairs are handed on as soon as they are known; ``docs/ordering.md``
        says in which order they may be. A one-sided row comes when it leaves the window,
        before the pairs of the row that pushes it out, or at the end; see
        :mod:`host.reference.types`.
    sorted : bool or "partitions"
        Declares both inputs sorted by their time columns; it is an error if they are not.
        ``"partitions"`` declares each partition of an input sorted by itself, and they are merged:
        a table is one partition, the frames of Spark have several. Otherwise rows are sorted.
    suffix : str
        Text appended to the name of a right column if a left column has the same name.
    on_failure : OnFailure or str
        What to do when a core of the accelerator fails: ``"raise"``, ``"report"`` or ``"replay"``;
        see :class:`OnFailure`. Only accelerators whose cores have gates notice failures.
    elastic : Controller or bool, optional
        What chooses how many cores of the accelerator store tuples while the join runs; True stands
        for :class:`~host.query.cores.ThresholdController`, and with None or False all cores
        store. The answer is the same whichever cores do.

    Attributes
    ----------
    time : (str, str)
        The left and the right column.
    on : tuple of (str, str)
        The pairs of columns that must be equal.
    band : tuple of Term
        The differences.
    where : Condition or None
        The condition.

    Raises
    ------
    UsageError
        If a word is none of a query, or its value will not do.
    """

    time: tuple[str, str]
    on: tuple[tuple[str, str], ...]
    band: tuple[Term, ...]
    where: "Condition | None"
    within: Span | tuple[Span, Span] | None
    advance: Span | None
    per_window: bool
    rows: int | None
    pairs: str
    how: JoinType
    ordering: Ordering
    sorted: Sortedness
    suffix: str
    on_failure: OnFailure
    elastic: Controller | None

    def __init__(self, **words: Unpack[QueryWords]) -> None:
        known = QueryWords.__annotations__
        require_words(words, known, needs_time=True)
        if unknown := next((word for word in words if word not in known), None):
            raise UsageError(f"A query has no {unknown!r}; its words are {', '.join(known)}.")
        within = _checked_within(words.get("within"), words.get("rows"))
        is_sorted, rows, where = words.get("sorted", False), words.get("rows"), words.get("where")
        if isinstance(is_sorted, str) and is_sorted != PARTITIONS:
            raise UsageError(
                f"sorted is True, False or {PARTITIONS!r}, which declares each partition of an "
                f"input sorted by itself, not {is_sorted!r}."
            )
        _freeze(
            self,
            time=column_pair(words["time"], "time"),
            on=equal_columns(words.get("on"), "on"),
            band=as_terms(words.get("band")),
            where=_condition(where),
            within=within,
            advance=_checked_advance(words.get("advance"), within),
            per_window=bool(words.get("per_window", False)),
            rows=rows,
            pairs=words.get("pairs", "all"),
            how=JoinType.of(words.get("how", JoinType.INNER)),
            ordering=_checked_ordering(words.get("ordering")),
            sorted=is_sorted if isinstance(is_sorted, str) else bool(is_sorted),
            suffix=as_text(words.get("suffix", "_right"), "suffix"),
            on_failure=OnFailure.of(words.get("on_failure", OnFailure.RAISE)),
            elastic=controller_of(words.get("elastic")),
        )
        self._check()

    @property
    def terms(self) -> tuple[Term, ...]:
        """All comparisons: equal columns, bands, and a window that is not symmetric in time.

        The equalities and bands of ``where`` are behind them.
        """
        ends: tuple[Term, ...] = ()
        if isinstance(self.within, tuple) and self.within[0] != -self.within[1]:
            ends = (Term(*self.time, *self.within),)
        on = (Term(left, right) for left, right in self.on)
        return (*on, *self.band, *ends, *self.where_terms)

    @property
    def where_terms(self) -> tuple[Term, ...]:
        """The equalities and bands of ``where``, which find most pairs before it is evaluated."""
        if self.where is None:
            return ()
        return tuple(Term(one.left, one.right, one.low, one.high) for one in self.where.differences)

    @property
    def rest(self) -> "Condition | None":
        """What rows must fulfil beside :attr:`terms` and the width: the rest of ``where``, and
        :attr:`shared`. None if that is nothing."""
        rest = None if self.where is None else self.where.rest
        return self.with_shared(rest)

    @property
    def shared(self) -> "Condition | None":
        """That a window has both rows in it, if windows have an ``advance``.

        The latest window with the earlier row must end behind the later one.
        """
        if self.advance is None:
            return None
        left, right = (f"{row}[{name!r}]" for row, name in zip("lr", self.time, strict=True))
        apart, earlier = f"abs({left} - {right})", f"min({left}, {right})"
        return window_in_common(apart, earlier, self.width, self.advance)

    @property
    def windows_text(self) -> str:
        """What is said of windows with an ``advance``."""
        each = ", a pair once for each" if self.per_window else ""
        return f"one of the windows of {self.width}, every {self.advance}{each}"

    def with_shared(self, condition: "Condition | None") -> "Condition | None":
        """Return a condition and :attr:`shared`; None for neither."""
        shared = self.shared
        if condition is None or shared is None:
            return condition or shared
        return condition & shared

    def columns(self, side: int) -> tuple[str, ...]:
        """Return the columns of one side that the query names, each once, time first."""
        named = [self.time[side], *((term.left, term.right)[side] for term in self.terms)]
        if self.where is not None:
            named += [name for of_side, name in self.where.columns() if of_side == side]
        return tuple(dict.fromkeys(named))

    @property
    def window(self) -> Width:
        """The window of either side."""
        if self.rows is not None:
            return CountWindow(self.rows)
        return TimeWindow(self.width) if isinstance(self.width, int) else self.width

    @property
    def width(self) -> Span:
        """How far apart in time rows may be, in the direction in which they may be farther.

        A count-based window has no width.
        """
        assert self.within is not None
        if not isinstance(self.within, tuple):
            return self.within
        return max(max(-end, end) for end in self.within)

    @property
    def in_software(self) -> "Query":
        """The query where the software engine goes on for an accelerator: it has no cores."""
        return replace(self, on_failure=OnFailure.RAISE, elastic=None)

    @property
    def is_timed(self) -> bool:
        """Whether the window is time-based."""
        return self.rows is None

    @property
    def per_partition(self) -> bool:
        """Whether each partition of an input is declared sorted by itself."""
        return self.sorted == PARTITIONS

    @property
    def once(self) -> bool:
        """Whether a pair comes once, with the row that arrives first on the left."""
        return self.pairs == "once"

    def _check(self) -> None:
        """Raise unless the words go with one another."""
        how, is_sided = self.how.value, self.how is not JoinType.INNER
        if self.per_window and self.advance is None:
            raise UsageError(
                "per_window=True is for windows that are in common; give how far they are apart, "
                "as in within='10s', advance='5s'."
            )
        if self.per_window and is_sided:
            raise UsageError(
                f"per_window=True is for pairs, and a {how} join has rows alone, which are in no "
                f"window with another; leave it out, or choose how='inner'."
            )
        if self.pairs not in ("all", "once"):
            raise UsageError(f"pairs is 'all' or 'once', not {self.pairs!r}.")
        if self.once and is_sided:
            raise UsageError(
                f"pairs='once' leaves out every other pair, so a {how} join could not tell which "
                f"rows have none; leave it out, or choose how='inner'."
            )
        if self.on_failure is not OnFailure.RAISE and self.ordering.hold is not None:
            raise UsageError(
                f"An adaptive ordering does not go with on_failure={self.on_failure.value!r}: a "
                f"join that survives a failure hands pairs on group by group; choose another "
                f"ordering or on_failure='raise'."
            )
        if self.on_failure is OnFailure.REPORT and is_sided:
            raise UsageError(
                f"A {how} join does not go with on_failure='report': a row whose pairs are missing "
                f"would count as unmatched; choose on_failure='replay' or 'raise'."
            )
        if self.elastic is not None and self.ordering.in_hardware:
            raise UsageError(
                f"An elastic join does not go with the ordering {self.ordering}: a change of the "
                f"cores ends the rounds; let the host sort, with Ordering.inner() without "
                f"in_hardware."
            )

    @property
    def least_fields(self) -> int:
        """Number of key fields that a device must have: one per difference, one for equalities.

        The terms of ``where`` take those that are left.
        """
        terms = self.terms[: len(self.terms) - len(self.where_terms)]
        equalities = sum(term.is_equality for term in terms)
        return len(terms) - equalities + min(equalities, 1)

    def __str__(self) -> str:
        parts = [str(term) for term in self.terms]
        rest = None if self.where is None else self.where.rest
        parts += [] if rest is None else [str(rest)]
        terms = " and ".join(parts) or "all rows"
        if self.rows is not None:
            window = f"the last {self.rows} rows"
        else:
            window = f"|left.{self.time[0]} - right.{self.time[1]}| <= {self.width}"
        if self.advance is not None:
            window = self.windows_text
        kind = "" if self.how is JoinType.INNER else f"{self.how} join: "
        once = ", every two rows once" if self.once else ""
        return f"{kind}{terms}, within {window}{once}"


def _is_zero(bound: Bound) -> bool:
    return bound is not None and (
        bound.nanoseconds == 0 if isinstance(bound, Duration) else bound == 0
    )


def _freeze(query: object, **fields: object) -> None:
    for name, value in fields.items():
        object.__setattr__(query, name, value)


def as_terms(band: Any) -> tuple[Term, ...]:
    """Return the terms that ``band`` lists.

    Raises
    ------
    UsageError
        If ``band`` is none of :data:`Bands`.
    """
    if band is None:
        return ()
    if isinstance(band, Mapping):
        listed: list[Any] = []
        for columns, bounds in band.items():
            pair = (columns, columns) if isinstance(columns, str) else columns
            if not is_pair(pair) or not isinstance(bounds, Sequence) or len(bounds) != 2:
                raise UsageError(
                    f"band maps a column or a (left, right) pair to (low, high), "
                    f"not {columns!r} to {bounds!r}."
                )
            listed.append((*pair, *bounds))
    elif isinstance(band, Sequence) and not isinstance(band, str):
        listed = list(band)
    else:
        raise UsageError(f"band must be a mapping or a list of tuples, not {band!r}.")
    return tuple(term if isinstance(term, Term) else _term(term) for term in listed)


def _term(given: Any) -> Term:
    if not isinstance(given, Sequence) or len(given) != 4 or not is_pair(given[:2]):
        raise UsageError(f"band lists (left, right, low, high) tuples, not {given!r}.")
    bounds = (
        parse_duration(value, f"In band {(given[0], given[1])!r}, the {name} bound")
        if isinstance(value, str)
        else value
        for name, value in zip(("low", "high"), given[2:], strict=True)
    )
    return Term(given[0], given[1], *bounds)


# A window of a join is symmetric: rows of either side meet if their times differ by at most its
# width. Two ends ``low <= left - right <= high`` are such a window, as wide as the farther end,
# and a term over the time columns.


def _checked_within(within: Any, rows: Any) -> Span | tuple[Span, Span] | None:
    """Return the width of a time-based window, or its two ends; None if it is count-based."""
    if (within is None) == (rows is None):
        given = "neither" if rows is None else f"both within={within!r} and rows={rows!r}"
        raise UsageError(
            f"Give exactly one of within (a time-based window) and rows (a count-based one), "
            f"not {given}."
        )
    if rows is not None:
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise UsageError(f"rows must be a whole number of at least 1, not {rows!r}.")
        return None
    if not isinstance(within, (tuple, list)):
        return as_span(within, "within")
    if len(within) != 2:
        raise UsageError(
            f"within is one length, or (low, high) for low <= left - right <= high, not {within!r}."
        )
    low, high = (as_length(end, "within", within) for end in within)
    if isinstance(low, Duration) != isinstance(high, Duration):
        raise UsageError(
            f"The ends of a window are two numbers or two durations, not {low} and {high}."
        )
    if low > high:  # type: ignore[operator]  # both are of one type
        raise UsageError(
            f"The ends of a window are low <= left - right <= high, but low is {low} and high is "
            f"{high}; swap them."
        )
    return low, high


def window_in_common(apart: str, earliest: str, size: Span, advance: Span) -> "Condition":
    """Return the condition that one of the windows of a size, every ``advance``, has some rows.

    Parameters
    ----------
    apart, earliest : str
        Expressions of how far apart in time the rows are, and of the time of the earliest one.
    size, advance : int or Duration
        The length of the windows, and how far apart they are.
    """
    from host.query.conditions import Condition

    length, step = (
        f"'{span.nanoseconds}ns'" if isinstance(span, Duration) else f"{span}"
        for span in (size, advance)
    )
    return Condition(f"{apart} + {earliest} % {step} < {length}")


def _condition(where: "Where | None") -> "Condition | None":
    if where is None:
        return None
    from host.query.conditions import Condition

    return Condition.of(where)


def _checked_ordering(ordering: object) -> Ordering:
    """Return the ordering of a join; the outer one if none is asked for."""
    if ordering is None:
        return Ordering.outer()
    if not isinstance(ordering, Ordering):
        raise UsageError(
            f"ordering must be an Ordering, such as Ordering.inner(), not {ordering!r}."
        )
    return ordering


def _checked_advance(advance: Any, within: Span | tuple[Span, Span] | None) -> Span | None:
    """Return how far windows in common are apart; None if each row has one of its own."""
    if advance is None:
        return None
    if within is None or isinstance(within, tuple):
        given = "rows" if within is None else "within=(low, high)"
        raise UsageError(
            f"advance is for windows of one length of time, not for {given}: give within='10s', "
            f"advance='5s' or the like."
        )
    span = as_span(advance, "advance", least=1)
    _require_covering(within, span)
    return span


def _require_covering(window: Span, advance: Span) -> None:
    """Raise unless windows of a length that advance so far leave out no time."""
    if isinstance(window, Duration) != isinstance(advance, Duration):
        raise UsageError(
            f"Window {window} and advance {advance} must both be durations, or both whole numbers."
        )
    if advance > window:  # type: ignore[operator]  # both are of one type
        raise UsageError(
            f"Windows of {window} must advance by at most that, so that no row falls between two "
            f"of them; not by {advance}."
        )


# The description of an as-of join of two tables.


@dataclass(frozen=True, init=False)
class AsofQuery:
    """An as-of join: the right row of each left row; :mod:`host.reference.asof` has the meaning.

    A null in an ``on`` column equals nothing, as in SQL. A null in a ``time`` column is an error,
    because such a row has no place in time.

    Parameters
    ----------
    time : str or (str, str)
        The columns, left and right, of time: integers, dates or timestamps.
    on : str or list, optional
        Columns that must be equal: a name, or a list of names and (left, right) pairs.
    direction : Direction or str
        Where the right row lies in time.
    within : int, Duration, timedelta or str, optional
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

    Attributes
    ----------
    time : (str, str)
        The left and the right column.
    on : tuple of (str, str)
        The pairs of columns that must be equal.

    Raises
    ------
    UsageError
        If a word is none of an as-of join, or its value will not do.
    """

    time: tuple[str, str]
    on: tuple[tuple[str, str], ...]
    direction: Direction
    within: Span | None
    allow_exact_matches: bool
    how: JoinType
    sorted: bool
    suffix: str

    @takes_words
    def __init__(
        self,
        *,
        time: Columns,
        on: Equalities = None,
        direction: str | Direction = Direction.BACKWARD,
        within: Length | None = None,
        allow_exact_matches: bool = True,
        how: str | JoinType = JoinType.LEFT,
        sorted: bool = False,
        suffix: str = "_right",
    ) -> None:
        _freeze(
            self,
            time=column_pair(time, "time"),
            on=equal_columns(on, "on"),
            direction=Direction.of(direction),
            within=None if within is None else as_span(within, "within"),
            allow_exact_matches=bool(allow_exact_matches),
            how=JoinType.of(how),
            sorted=bool(sorted),
            suffix=as_text(suffix, "suffix"),
        )
        if self.how not in (JoinType.LEFT, JoinType.INNER):
            raise UsageError(
                f"An as-of join is 'left' (every left row comes) or 'inner' (only those with a "
                f"right row), not {self.how.value!r}."
            )

    @property
    def pairs(self) -> Query:
        """The join whose pairs are the candidates: equal keys, and a window that is the distance.

        Columns of an as-of join are encoded as those of this one. Without a largest distance the
        window has no unit, and its size does not matter.
        """
        return Query(
            time=self.time,
            on=self.on,
            within=self.within,
            rows=1 if self.within is None else None,
            sorted=self.sorted,
            suffix=self.suffix,
            how=JoinType.LEFT,
        )

    def __str__(self) -> str:
        found = {
            Direction.BACKWARD: "the last right row with right.{1} {2}= left.{0}",
            Direction.FORWARD: "the first right row with right.{1} {3}= left.{0}",
            Direction.NEAREST: "the right row whose {1} is nearest to left.{0}",
        }[self.direction].format(*self.time, "<", ">")
        if not self.allow_exact_matches:
            found = (
                f"{found}, the same time left out"
                if self.direction is Direction.NEAREST
                else found.replace("= left", " left")
            )
        equal = "".join(f" and left.{left} = right.{right}" for left, right in self.on)
        within = "" if self.within is None else f", at most {self.within} away"
        return f"{self.how} as-of join: {found}{equal}{within}"


# The description of an aggregation of a table's rows over windows of time.

#: What an aggregate can be; only ``count`` needs no column.
FUNCTIONS = ("count", "sum", "min", "max", "mean")
#: Names of the columns of a result that hold the boundaries of its window.
BOUNDARIES = ("window_start", "window_end")


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
        if isinstance(given, str):
            function, *column = given.split(":", 1)
            return cls(function, column[0] if column else None)
        if not is_pair(given):
            raise UsageError(
                f"An aggregate is a text such as 'count' or 'sum:price', or a pair such as "
                f"('sum', 'price'), not {given!r}."
            )
        return cls(*given)

    @classmethod
    def named(cls, given: "Aggregates") -> "dict[str, Aggregate]":
        """Return aggregates by the names of their columns in the result.

        Raises
        ------
        UsageError
            If something else is given.
        """
        if not isinstance(given, Mapping):
            raise UsageError(
                f"aggregates must map names to aggregates, as in {{'n': 'count'}}, not {given!r}."
            )
        return {as_text(name, "aggregates"): cls.of(one) for name, one in given.items()}

    def __str__(self) -> str:
        return f"{self.function}({self.column or '*'})"


#: What is computed, by the name of its column in the result.
Aggregates: TypeAlias = Mapping[str, Aggregate | str | tuple[str, str]]


@dataclass(frozen=True, init=False)
class AggregateQuery:
    """A windowed aggregation: what is computed of the rows of each window and key.

    Windows are ``[n * advance, n * advance + window)`` for each integer n, as for
    :class:`host.operators.windowed.WindowedOperator` and for Spark's ``window``. Rows whose keys
    are null in the same columns have the same key. A null in the column of time is an error.

    Parameters
    ----------
    time : str
        Column of time: integers, dates or timestamps.
    window, advance : int, Duration, timedelta or str
        Length of a window, and how much later the next one begins; by default as long as a window.
    on : str or sequence of str
        Columns that are equal in the rows that are aggregated together: the keys.
    aggregates : mapping of str to Aggregate, str or (str, str)
        What is computed, by the name of its column in the result: ``"count"``, ``"sum:price"``,
        ``("max", "price")``.
    sorted : bool
        Whether rows are declared sorted by time; a time that decreases is then an error, and a
        result leaves as soon as its window has ended.
    parts : bool
        Whether results are parts of those of an aggregation of more rows. Sums of integers are then
        decimals of 38 digits, which hold them however large they are.

    Attributes
    ----------
    on : tuple of str
        The columns.

    Raises
    ------
    UsageError
        If a word is none of an aggregation, or its value will not do.
    """

    time: str
    window: Span
    advance: Span
    on: tuple[str, ...]
    aggregates: Mapping[str, Aggregate]
    sorted: bool
    parts: bool

    @takes_words
    def __init__(
        self,
        *,
        time: str,
        window: Length,
        advance: Length | None = None,
        on: str | Sequence[str] | None = None,
        aggregates: Aggregates,
        sorted: bool = False,
        parts: bool = False,
    ) -> None:
        if window is None:
            raise UsageError("window must be given, such as window='5min'.")
        _freeze(
            self,
            time=as_text(time, "time"),
            window=as_span(window, "window", least=1),
            advance=as_span(window if advance is None else advance, "advance", least=1),
            on=tuple(as_text(name, "on") for name in listed_columns(on, "on")),
            aggregates=Aggregate.named(aggregates),
            sorted=bool(sorted),
            parts=parts,
        )
        _require_covering(self.window, self.advance)
        if not self.aggregates:
            raise UsageError("An aggregation needs at least one aggregate, such as n=count.")
        names = Counter([*BOUNDARIES, *self.on, *self.aggregates])
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
        by = f" by {', '.join(self.on)}" if self.on else ""
        return f"{values}{by} over {self.window} of {self.time}, every {self.advance}"

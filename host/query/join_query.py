# SPDX-License-Identifier: Apache-2.0
"""The description of a join of two tables: terms, order, window and ordering."""

from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
import math
from typing import TypeAlias

from host.elastic import Controller, controller_of
from host.errors import UsageError
from host.query.durations import Duration, as_duration
from host.query.on_failure import OnFailure
from host.query.ordering import Ordering
from host.reference.join_type import JoinType
from host.reference.window import CountWindow, TimeWindow

__all__ = ["Bound", "JoinQuery", "Term", "Width"]

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
        see :class:`~host.query.on_failure.OnFailure`. Only accelerators whose cores have gates
        notice failures.
    elastic : Controller or bool
        What chooses how many cores of the accelerator store tuples while the join runs; True stands
        for :class:`~host.elastic.threshold.ThresholdController`, and with None or False all cores
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

# SPDX-License-Identifier: Apache-2.0
"""Into how many partitions the rows of a join go, by what, and why."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from host import UsageError
from host.query.join_query import JoinQuery
from host.reference.side import Side
from host.reference.window import CountWindow
from spark_offload.planning.input_plan import NO_ESTIMATE
from spark_offload.planning.profile import OrderProfile

__all__ = [
    "Facts",
    "PartitionBy",
    "Placement",
    "check_placement",
    "choose_placement",
    "require_partitions",
]

PartitionBy: TypeAlias = Literal["key", "range"] | None
"""What rows are partitioned by: equal columns, ranges of the order column, or left to the kit."""

SMALL_BYTES = 1 << 16
"""An input of fewer bytes, by Spark's estimate, is not worth a look."""

PAYING_ROWS = 250_000
"""Rows of both inputs for which a partition pays: they take longer than cutting ranges does."""

MOST_HALO = 0.5
"""Most rows in the halo of a range, for each row of its own, if it is cut unasked."""


@dataclass(frozen=True)
class Placement:
    """Where rows go.

    Parameters
    ----------
    partitions : int
        Partitions of the answer.
    reason : str
        What the rows are partitioned by, and why.
    keys : tuple of tuple of str
        Columns, left and right, whose equal values meet in a partition.
    starts : tuple of int or None
        First order numbers of all ranges of time but the first; None: there are no ranges.
    profile : OrderProfile or None
        What the order columns hold, if they were read.
    direct : bool
        Whether the task of the only partition reads the inputs itself, without a shuffle.
    """

    partitions: int
    reason: str
    keys: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    starts: tuple[int, ...] | None = None
    profile: OrderProfile | None = None
    direct: bool = False

    @property
    def follows_time(self) -> bool:
        """Whether the partitions, one after another, are in the order of arrival."""
        return self.starts is not None or self.partitions == 1


@dataclass(frozen=True)
class Facts:
    """What a placement is chosen by, besides the query.

    Parameters
    ----------
    cores : int
        Tasks that Spark runs at the same time.
    sizes : callable
        Tells the bytes of either input, by Spark's estimate.
    width : int or None
        Of the window in order numbers; None: the window counts rows, or the order columns have a
        type that cannot be cut.
    order_type : str or None
        That type, if it cannot be cut.
    profile : callable
        Reads the order columns, for so many ranges.
    plain : callable
        Tells whether both inputs are plain reads
        (:func:`~spark_offload.planning.input_plan.is_plain_read`).
    """

    cores: int
    sizes: Callable[[], tuple[int, int]]
    width: int | None
    order_type: str | None
    profile: Callable[[int], OrderProfile]
    plain: Callable[[], bool] = lambda: False


def choose_placement(
    query: JoinQuery, facts: Facts, *, partitions: int | None, partition_by: PartitionBy
) -> Placement:
    """Decide how many partitions there are and what rows are partitioned by.

    Raises
    ------
    UsageError
        If the query cannot be partitioned as asked for.
    """
    check_placement(query, facts, partitions=partitions, partition_by=partition_by)
    placement = _placement(query, facts, partitions, partition_by)
    if placement.partitions > 1 or not facts.plain():
        return placement
    reason = f"{placement.reason}; its task reads the inputs itself"
    return replace(placement, reason=reason, direct=True)


def _placement(
    query: JoinQuery, facts: Facts, partitions: int | None, partition_by: PartitionBy
) -> Placement:
    equalities = [term for term in query.terms if term.is_equality] if query.is_timed else []
    if equalities and partition_by != "range":
        lefts = tuple(term.left for term in equalities)
        keys = lefts, tuple(term.right for term in equalities)
        by = f"by the equal columns {', '.join(lefts)}"
        if partitions is not None:
            return Placement(partitions, f"{by}; the number as asked for", keys)
        return Placement(facts.cores, f"{by}; one for each core that Spark has", keys)
    why = _why_no_keys(query, partition_by)
    if partitions == 1:
        return Placement(1, f"{why}; as asked for")
    if partitions is not None:
        return _as_asked(query, facts, partitions, why)
    return _unasked(query, facts, why)


def require_partitions(partitions: object) -> None:
    """Raise unless ``partitions`` is a number of partitions, or None."""
    if partitions is not None and (
        isinstance(partitions, bool) or not isinstance(partitions, int) or partitions < 1
    ):
        raise UsageError(f"partitions must be a whole number of at least 1, not {partitions!r}.")


def check_placement(
    query: JoinQuery, facts: Facts, *, partitions: int | None, partition_by: PartitionBy
) -> None:
    """Raise unless the query can be partitioned as asked for, by what is known without a row."""
    require_partitions(partitions)
    if partition_by not in ("key", "range", None):
        raise UsageError(f"partition_by must be 'key', 'range' or None, not {partition_by!r}.")
    has_keys = query.is_timed and any(term.is_equality for term in query.terms)
    if partition_by == "key" and not has_keys:
        lack = (
            "there is no equal column in on"
            if query.is_timed
            else "rows=... counts the rows of a side whatever their keys"
        )
        raise UsageError(f"partition_by='key' is not possible: {lack}; take 'range'.")
    ranges = partition_by == "range" or (not has_keys and partitions not in (None, 1))
    if ranges and facts.order_type is not None:
        raise UsageError(
            f"Order columns of type {facts.order_type} cannot be cut into ranges of time; cast "
            f"them to a whole number, or take partitions=1 and no partition_by."
        )


def _why_no_keys(query: JoinQuery, partition_by: PartitionBy) -> str:
    if any(term.is_equality for term in query.terms):
        if query.is_timed:
            return f"partition_by={partition_by!r} was asked for"
        return "the last rows of a side are counted over all its rows, whatever their keys"
    if query.is_timed:
        return "no column must be equal, so any two rows may meet"
    return "no column must be equal, and the last rows of a side are counted over all its rows"


def _as_asked(query: JoinQuery, facts: Facts, partitions: int, why: str) -> Placement:
    profile = facts.profile(partitions)
    starts = profile.starts(partitions)
    reason = f"by ranges of the order columns, as {why}; the number as asked for; " + _halo_text(
        _halo_share(query, facts, profile, starts)
    )
    empty = partitions - len(starts) - 1
    if empty:
        reason += f"; {empty} of them empty, since rows of one time stay together"
    return Placement(partitions, reason, starts=starts, profile=profile)


def _unasked(query: JoinQuery, facts: Facts, why: str) -> Placement:
    profile: OrderProfile | None = None

    def one(because: str) -> Placement:
        return Placement(1, f"{why}; {because}", profile=profile)

    if facts.order_type is not None:
        return one(f"order columns of type {facts.order_type} cannot be cut into ranges of time")
    if facts.cores < 2:
        return one("Spark has one core")
    smaller = min(facts.sizes())
    if smaller < SMALL_BYTES:
        return one(f"an input of {smaller:,} bytes is too small for ranges of time to pay")
    if smaller == NO_ESTIMATE:
        why += "; rows were counted, as Spark tells no sizes here"
    profile = facts.profile(facts.cores)
    count = min(facts.cores, profile.total // PAYING_ROWS)
    if count < 2:
        return one(f"{profile.total:,} rows are too few for ranges of time to pay")
    starts = profile.starts(count)
    share = _halo_share(query, facts, profile, starts)
    while starts and share * (len(starts) + 1) / len(starts) > MOST_HALO:
        count = max(2, count // 2) if count > 2 else 1
        starts = profile.starts(count)
        share = _halo_share(query, facts, profile, starts) if starts else share
    if not starts:
        if profile.least == profile.greatest:
            return one("all rows have one time")
        return one(f"halos would dominate: two ranges of time would add {share:.0%} of the rows")
    number = "one for each core that Spark has" if count == facts.cores else "as many as pay"
    reason = f"by ranges of the order columns, as {why}; {number}; {_halo_text(share)}"
    if len(starts) + 1 < count:
        reason += f"; {len(starts) + 1} instead of {count}, since rows of one time stay together"
    return Placement(len(starts) + 1, reason, starts=starts, profile=profile)


def _halo_share(
    query: JoinQuery, facts: Facts, profile: OrderProfile, starts: tuple[int, ...]
) -> float:
    total = max(1, profile.total)
    if facts.width is not None:
        return sum(
            rows / total * profile.halo_share(starts, facts.width * reach)
            for rows, reach in zip(profile.rows, _reaches(query), strict=True)
        )
    size = query.window.size if isinstance(query.window, CountWindow) else 0
    halo = 0.0
    for rows, others, reach in zip(profile.rows, profile.rows[::-1], _reaches(query), strict=True):
        # While the other side has so many rows, this one has more or fewer.
        met = size * rows / max(1, others) if reach > 1 else 0
        halo += min(size + met, rows)
    return len(starts) * halo / total


def _reaches(query: JoinQuery) -> tuple[int, int]:
    """How many widths of the window the halos of either side reach back."""
    left, right = (2 if query.how.tracks(side.other) else 1 for side in Side)
    return left, right


def _halo_text(share: float) -> str:
    return f"halos add about {share:.1%} of the rows"

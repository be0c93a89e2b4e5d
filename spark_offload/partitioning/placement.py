# SPDX-License-Identifier: Apache-2.0
"""Into how many partitions the rows of a join go, by what, and why."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

from host import UsageError
from host.query.queries import Query
from spark_offload.cluster.query_plans import NO_ESTIMATE
from spark_offload.partitioning.columns import equal_columns
from spark_offload.partitioning.halos import time_halos
from spark_offload.partitioning.ranges import PAYING_ROWS, OrderProfile, RangeRule
from spark_offload.partitioning.stored import MOST_READ, StoredRanges

__all__ = [
    "Facts",
    "PartitionBy",
    "Placement",
    "by_equal_columns",
    "choose_placement",
    "require_partitions",
]

PartitionBy: TypeAlias = Literal["files", "key", "range"] | None
"""What rows are partitioned by: row groups of Parquet files, equal columns, ranges of the order
column, or left to the kit."""

SMALL_BYTES = 1 << 16
"""An input of fewer bytes, by Spark's estimate, is not worth a look."""

FULL_ROWS = 1 << 20
"""Rows of both inputs in a partition, at most, as far as Spark knows how many there are."""


@dataclass(frozen=True)
class Placement:
    """Placement of rows in partitions.

    Parameters
    ----------
    partitions : int
        Partitions of the answer.
    reason : str
        What the rows are partitioned by, and why.
    keys : tuple of tuple of str
        Columns, left and right, whose equal values meet in a partition.
    rule : RangeRule or None
        How the rows are cut into ranges of time when an action runs; None: there are no ranges, or
        they have been cut.
    starts : tuple of int or None
        First order numbers of all ranges of time but the first, if they have been cut.
    profile : OrderProfile or None
        What the order columns hold, if they were read.
    direct : bool
        Whether the task of the only partition reads the inputs itself, without a shuffle.
    stored : StoredRanges or None
        Ranges of time of files that tasks read with Arrow.
    """

    partitions: int
    reason: str
    keys: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    rule: RangeRule | None = None
    starts: tuple[int, ...] | None = None
    profile: OrderProfile | None = None
    direct: bool = False
    stored: StoredRanges | None = None

    @property
    def follows_time(self) -> bool:
        """Whether the partitions, one after another, are in the order of arrival."""
        by_time = self.rule is not None and not self.rule.keyed
        in_files = self.stored is not None
        return by_time or in_files or self.starts is not None or self.partitions == 1

    def ordering(self, by: str) -> str:
        """Say where the answer is in an order: over all partitions, or in each."""
        return f"{by}, over all partitions" if self.follows_time else f"in each partition {by}"


@dataclass(frozen=True)
class Facts:
    """Facts by which a placement is chosen, besides the query.

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
    rows : callable
        Tells about how many rows both inputs have, by Spark's estimate; None if it has none.
    plain : callable
        Tells whether both inputs are plain reads
        (:func:`~spark_offload.cluster.query_plans.is_plain_read`).
    filtered : callable
        Tells whether they are that behind a filter.
    settings : callable
        Tells the bytes that Spark wants in a partition (``advisoryPartitionSizeInBytes``), and the
        most partitions that it wants (``spark.sql.shuffle.partitions``).
    fills : bool
        Whether a task's window must hold few rows, as that of a device must.
    stored : callable
        Tells the files that the inputs are, or why tasks cannot read them by themselves.
    """

    cores: int
    sizes: Callable[[], tuple[int, int]]
    width: int | None
    order_type: str | None
    profile: Callable[[int], OrderProfile]
    rows: Callable[[], int | None] = lambda: None
    plain: Callable[[], bool] = lambda: False
    filtered: Callable[[], bool] = lambda: False
    settings: Callable[[], tuple[int, int]] = lambda: (1 << 26, 200)
    fills: bool = False
    stored: Callable[[], StoredRanges | str] = lambda: "nothing is known of the inputs"

    @cached_property
    def wanted(self) -> tuple[int, str]:
        """How many partitions there are to be, by cores, sizes and settings, and why."""
        least = "one for each core that Spark has"
        size = sum(self.sizes())
        rows = self.rows()
        if rows is None or size >= NO_ESTIMATE:
            return self.cores, least
        advisory, most = self.settings()
        full = max(-(-rows // FULL_ROWS), -(-size // advisory))
        if full <= self.cores:
            return self.cores, least
        return max(self.cores, min(full, most)), "as many as Spark's estimate of the sizes asks for"


def choose_placement(
    query: Query, facts: Facts, *, partitions: int | None, partition_by: PartitionBy
) -> Placement:
    """Decide how many partitions there are and what rows are partitioned by.

    Raises
    ------
    UsageError
        If the query cannot be partitioned as asked for.
    """
    _check_placement(query, facts, partitions=partitions, partition_by=partition_by)
    placement = _placement(query, facts, partitions, partition_by)
    if placement.partitions > 1 or placement.direct or not facts.plain():
        return placement
    return _direct(placement)


def _placement(
    query: Query, facts: Facts, partitions: int | None, partition_by: PartitionBy
) -> Placement:
    equal = equal_columns(query) if query.is_timed else []
    if partition_by in (None, "files"):
        stored = _stored(query, facts, partitions, asked=partition_by is not None)
        if stored is not None:
            return stored
    if equal and partition_by != "range":
        lefts, rights = zip(*equal, strict=True)
        keys = lefts, rights
        by = f"by the equal columns {', '.join(lefts)}"
        if partitions is not None:
            return Placement(partitions, f"{by}; the number as asked for", keys)
        if partition_by is not None:
            return by_equal_columns(facts, by, keys)
        return _by_keys(facts, query, by, keys)
    why = _why_no_keys(query, partition_by)
    if partitions == 1:
        return Placement(1, f"{why}; as asked for")
    if partitions is not None:
        return _ranges(query, facts, partitions, why, asked=True)
    return _unasked(query, facts, why)


def _stored(query: Query, facts: Facts, partitions: int | None, *, asked: bool) -> Placement | None:
    """Return ranges of time that tasks read from files; None where that is impossible or dearer.

    Raises
    ------
    UsageError
        If it was asked for and is impossible.
    """
    if not asked and facts.fills and equal_columns(query):
        return None  # by equal columns, windows hold the fewest rows
    found = _why_not_stored(query, facts) or facts.stored()
    if isinstance(found, str):
        if asked:
            raise UsageError(f"partition_by='files' is not possible: {found}.")
        return None
    assert facts.width is not None
    full = max(facts.cores, -(-found.rows // FULL_ROWS))
    rule = RangeRule(query, facts.width, partitions or full, partitions is not None)
    profile = found.profile(rule.ranges)
    cut = rule.cut(profile)
    ranges = replace(found, halos=time_halos(cut.starts, facts.width, query.how))
    if not asked and not _pays(query, ranges, full):
        return None
    reason = f"by ranges of the order columns, which tasks read from Parquet files; {cut.note}"
    return Placement(ranges.partitions, reason, profile=profile, stored=ranges)


def _why_not_stored(query: Query, facts: Facts) -> str | None:
    """Return why no tasks can read ranges of time from files, by what needs no look at these."""
    if not query.is_timed:
        return "rows=... counts the rows of a side, and ranges of time do not"
    if facts.width is None:
        return f"order columns of type {facts.order_type} cannot be cut into ranges of time"
    if query.per_partition:
        return "each partition of the inputs was declared sorted by itself"
    return None


def _pays(query: Query, found: StoredRanges, wanted: int) -> bool:
    """Whether tasks that read files are quicker than a shuffle, by rows that they read again."""
    if found.read_share() > MOST_READ:
        return False
    # By equal columns, all cores work whatever the window is.
    alone = found.partitions == 1 and found.rows >= 2 * PAYING_ROWS and wanted > 1
    return not (alone and equal_columns(query))


def by_equal_columns(
    facts: Facts, by: str, keys: tuple[tuple[str, ...], tuple[str, ...]]
) -> Placement:
    """Return as many partitions by equal columns as the sizes of the inputs ask for.

    Parameters
    ----------
    facts : Facts
        What is known of the inputs.
    by : str
        The equal columns, in words.
    keys : (tuple of str, tuple of str)
        These columns, left and right.
    """
    few = _too_few(facts)
    if few is None:
        count, number = facts.wanted
        return Placement(count, f"{by}; {number}", keys)
    placement = Placement(1, f"{by}; one, as {few} for more", keys)
    return placement if not facts.plain() else _direct(placement)


def _direct(placement: Placement) -> Placement:
    reason = f"{placement.reason}; its task reads the inputs itself"
    return replace(placement, reason=reason, direct=True)


def _by_keys(
    facts: Facts, query: Query, by: str, keys: tuple[tuple[str, ...], tuple[str, ...]]
) -> Placement:
    """Return what equal columns make of the rows, or ranges of time.

    To know where rows lie, and whether a key has too many of them, Spark reads the columns of time
    and of the keys once more. That pays where the inputs are large and quickly read. By equal
    columns alone, windows hold the fewest rows, which counts where a device must hold them.
    """
    plain = by_equal_columns(facts, by, keys)
    is_cut = facts.width is not None and min(facts.sizes()) < NO_ESTIMATE
    if plain.partitions < 2 or facts.fills or not is_cut or not facts.filtered():
        return plain
    count, number = facts.wanted
    reason = (
        f"by ranges of the order columns where their halos are small, else {by} and, where a key "
        f"has too many rows, by time; {number}; cut when an action runs"
    )
    return Placement(count, reason, keys, RangeRule(query, facts.width, count, False, keyed=True))


def _too_few(facts: Facts) -> str | None:
    """Return why one partition will do for the rows, by what Spark estimates; None if not."""
    smaller = min(facts.sizes())
    if smaller < SMALL_BYTES:
        return f"an input of {smaller:,} bytes is too small"
    rows = facts.rows()
    if rows is not None and rows < 2 * PAYING_ROWS:
        return f"about {rows:,} rows, by Spark's estimate, are too few"
    return None


def require_partitions(partitions: object) -> None:
    """Raise unless ``partitions`` is a number of partitions, or None."""
    if partitions is not None and (
        isinstance(partitions, bool) or not isinstance(partitions, int) or partitions < 1
    ):
        raise UsageError(f"partitions must be a whole number of at least 1, not {partitions!r}.")


def _check_placement(
    query: Query, facts: Facts, *, partitions: int | None, partition_by: PartitionBy
) -> None:
    """Raise unless the query can be partitioned as asked for, by what is known without a row."""
    require_partitions(partitions)
    if partition_by not in ("files", "key", "range", None):
        raise UsageError(
            f"partition_by must be 'files', 'key', 'range' or None, not {partition_by!r}."
        )
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


def _why_no_keys(query: Query, partition_by: PartitionBy) -> str:
    if any(term.is_equality for term in query.terms):
        if query.is_timed:
            return f"partition_by={partition_by!r} was asked for"
        return "the last rows of a side are counted over all its rows, whatever their keys"
    if query.is_timed:
        return "no column must be equal, so any two rows may meet"
    return "no column must be equal, and the last rows of a side are counted over all its rows"


def _ranges(query: Query, facts: Facts, count: int, why: str, *, asked: bool) -> Placement:
    """Return ranges of time: to be cut when an action runs, unless the window counts rows.

    Which rows are the last ones before a range, and how many, nobody knows without counting them.
    """
    rule = RangeRule(query, facts.width, count, asked)
    if facts.width is not None:
        number = "the number as asked for" if asked else f"at most {facts.wanted[1]}"
        reason = f"by ranges of the order columns, as {why}; {number}; cut when an action runs"
        return Placement(count, reason, rule=rule)
    profile = facts.profile(count)
    cut = rule.cut(profile)
    if not asked and not cut.starts:
        return Placement(1, f"{why}; {cut.note}", profile=profile)
    partitions = count if asked else len(cut.starts) + 1
    reason = f"by ranges of the order columns, as {why}; {cut.note}"
    return Placement(partitions, reason, starts=cut.starts, profile=profile)


def _unasked(query: Query, facts: Facts, why: str) -> Placement:
    if facts.order_type is not None:
        because = f"order columns of type {facts.order_type} cannot be cut into ranges of time"
        return Placement(1, f"{why}; {because}")
    if facts.cores < 2:
        return Placement(1, f"{why}; Spark has one core")
    few = _too_few(facts)
    if few is not None:
        return Placement(1, f"{why}; {few} for ranges of time to pay")
    if min(facts.sizes()) == NO_ESTIMATE:
        why += "; Spark tells no sizes here"
    return _ranges(query, facts, facts.wanted[0], why, asked=False)

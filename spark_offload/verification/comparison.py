# SPDX-License-Identifier: Apache-2.0
"""An answer held against Spark's own of the same rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from uuid import uuid4

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType

from host import UsageError
from host.reference.types import JoinType
from spark_offload.errors import kit_errors

__all__ = [
    "Verification",
    "all_of_stream",
    "compare_keyed",
    "compare_rows",
    "differences",
]

# A streaming frame run to its end, for whoever wants all of its rows at once.


@contextmanager
def all_of_stream(frame: DataFrame) -> Iterator[DataFrame]:
    """Run a query over the data that the sources of a frame hold now; yield all results at once.

    Nothing of the query is left when the context ends, neither a checkpoint nor its results, which
    the driver holds until then.
    """
    name = f"splitjoin_{uuid4().hex}"
    query = (
        frame.writeStream.format("memory")
        .queryName(name)
        .outputMode("append")
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
        yield frame.sparkSession.table(name)
    finally:
        query.stop()
        frame.sparkSession.catalog.dropTempView(name)


# An aggregation held against Spark's own of the same rows.

#: Largest relative difference of floats: a sum depends on the order of its terms.
_TOLERANCE = 1e-9


def differences(answer: DataFrame, expected: DataFrame, keys: int) -> tuple[int, int, int]:
    """Return how many results an answer has, how many of Spark's it lacks, and how many are wrong.

    A result with a wrong value is one that is missing, and one that is wrong.

    Parameters
    ----------
    answer, expected : DataFrame
        The answer, and that of Spark.
    keys : int
        So many columns are equal in the same result; floats in the others nearly so.
    """
    names = [f"c{at}" for at in range(len(answer.columns))]
    mine, other = answer.toDF(*names).alias("mine"), expected.toDF(*names).alias("other")
    place = [F.col(f"mine.{name}").eqNullSafe(F.col(f"other.{name}")) for name in names[:keys]]
    both = reduce(Column.__and__, place)
    values = [
        _same(F.col(f"mine.{name}"), F.col(f"other.{name}"), isinstance(kind, _FLOATS))
        for name, kind in zip(
            names[keys:],
            [field.dataType for field in answer.schema.fields[keys:]],
            strict=True,
        )
    ]
    equal = reduce(Column.__and__, [both, *values])
    missing = other.join(mine, equal, "left_anti").count()
    wrong = mine.join(other, equal, "left_anti").count()
    rows, wanted = answer.count(), expected.count()
    # Of equal results, one may be there too often.
    return rows, max(missing, wanted - rows), max(wrong, rows - wanted)


_FLOATS = (DoubleType, FloatType)


def _same(one: Column, other: Column, is_float: bool) -> Column:
    equal = one.eqNullSafe(other)
    if not is_float:
        return equal
    size = F.greatest(F.abs(one), F.abs(other), F.lit(1.0))
    return equal | F.coalesce(F.abs(one - other) <= size * F.lit(_TOLERANCE), F.lit(False))


# An offloaded join held against Spark's own join of the same rows.

_PARTS = 1 << 20
"""Shares of the left rows are counted in so many parts."""


@dataclass(frozen=True)
class Verification:
    """Result of a comparison with Spark's own query.

    Parameters
    ----------
    rows : int
        Rows of the answer that were compared; pairs, of an inner join.
    missing, extra : int
        Rows that only Spark's own join has, and that only the offloaded one has.
    share : float
        Share of the left rows whose results were compared; of the right rows, in a right join.
    against : str
        What of Spark the answer was compared with.
    """

    rows: int
    missing: int
    extra: int
    share: float
    against: str = "Spark's own join"

    @property
    def agrees(self) -> bool:
        """Whether both are alike."""
        return not (self.missing or self.extra)

    def __str__(self) -> str:
        part = "" if self.share == 1 else f" of {self.share:.2%} of the rows of a side"
        if self.agrees:
            return f"All {self.rows:,} results{part} agree with {self.against}."
        return (
            f"Of {self.rows:,} results{part} {self.missing:,} are missing and {self.extra:,} are "
            f"in excess, by {self.against}."
        )


def compare_rows(
    answer: DataFrame,
    own: Callable[[DataFrame, DataFrame], DataFrame],
    inputs: tuple[DataFrame, ...],
    how: JoinType,
    share: float = 1.0,
) -> Verification:
    """Compare a share of the answer to a join, wherever it is read from, with Spark's own.

    Parameters
    ----------
    answer : DataFrame
        The rows of the answer.
    own : callable
        Makes Spark's own answer of the inputs.
    inputs : tuple of DataFrame
        The left and the right rows.
    how : JoinType
        Type of the join.
    share : float
        Share of the left rows, or of the right ones in a right outer join, that is compared.
    """
    left, right = inputs
    if share < 1:
        if how is JoinType.FULL:
            raise UsageError(
                f"share={share} of a full outer join cannot be compared: whether a row of one side "
                f"comes alone depends on all rows of the other; take share=1."
            )
        # Every result has a row of this side.
        if how is JoinType.RIGHT:
            right = _chosen(right, slice(None), share)
            answer = _chosen(answer, slice(len(left.columns), None), share)
        else:
            left = _chosen(left, slice(None), share)
            answer = _chosen(answer, slice(len(left.columns)), share)
    expected = own(left, right)
    with _computed_once(answer) as kept:
        return Verification(
            rows=kept.count(),
            missing=expected.exceptAll(kept).count(),
            extra=kept.exceptAll(expected).count(),
            share=share,
        )


def compare_keyed(answer: DataFrame, own: DataFrame, keys: int, share: float) -> Verification:
    """Compare an aggregation with Spark's own; the first columns are its keys."""
    if share != 1:
        raise UsageError(f"share={share} is for joins; an aggregation is compared as a whole.")
    with _computed_once(answer) as kept, _computed_once(own) as expected:
        rows, missing, extra = differences(kept, expected, keys)
    return Verification(
        rows=rows, missing=missing, extra=extra, share=1.0, against="Spark's own aggregation"
    )


@contextmanager
def _computed_once(answer: DataFrame) -> Iterator[DataFrame]:
    """Yield an answer whose rows Spark keeps meanwhile; its errors become those of this kit."""
    with kit_errors(), all_of_stream(answer) if answer.isStreaming else _cached(answer) as kept:
        yield kept


@contextmanager
def _cached(answer: DataFrame) -> Iterator[DataFrame]:
    kept = answer.cache()
    try:
        yield kept
    finally:
        kept.unpersist()


def _chosen(frame: DataFrame, columns: slice, share: float) -> DataFrame:
    """Return the rows whose values in ``columns`` fall into a share of all hashes."""
    # Positions as names: no name of the user's can clash or need quoting.
    places = [f"c{index}" for index in range(len(frame.columns))]
    part = F.pmod(F.xxhash64(*places[columns]), F.lit(_PARTS))
    return frame.toDF(*places).where(part < int(share * _PARTS)).toDF(*frame.columns)

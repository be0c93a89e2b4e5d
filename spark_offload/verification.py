# SPDX-License-Identifier: Apache-2.0
"""An offloaded join held against Spark's own join of the same rows."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from host import FailureError, UsageError
from spark_offload.own_join import own_join
from spark_offload.plan import plan_of

__all__ = ["Verification", "verify"]

_PARTS = 1 << 20
"""Shares of the left rows are counted in so many parts."""


@dataclass(frozen=True)
class Verification:
    """What a comparison has found.

    Parameters
    ----------
    rows : int
        Pairs that were compared.
    missing, extra : int
        Pairs that only Spark's own join has, and that only the offloaded one has.
    share : float
        Share of the left rows whose pairs were compared.
    """

    rows: int
    missing: int
    extra: int
    share: float

    @property
    def agrees(self) -> bool:
        """Whether both are alike."""
        return not (self.missing or self.extra)

    def __str__(self) -> str:
        part = "" if self.share == 1 else f" of {self.share:.2%} of the left rows"
        if self.agrees:
            return f"All {self.rows:,} pairs{part} agree with Spark's own join."
        return (
            f"Of {self.rows:,} pairs{part} {self.missing:,} are missing and {self.extra:,} are in "
            f"excess, by Spark's own join."
        )


def verify(frame: DataFrame, *, share: float = 1.0, raises: bool = True) -> Verification:
    """Run a join that :func:`~spark_offload.stream_join` returned, and Spark's own, and compare.

    Parameters
    ----------
    frame : DataFrame
        The join, over a time-based window.
    share : float
        Share of the left rows whose pairs are compared: above 0, up to 1. Which rows depends on
        their values only.
    raises : bool
        Whether a difference is an error.

    Returns
    -------
    Verification
        How many pairs were compared, and how many differ.

    Raises
    ------
    UsageError
        If the frame is no such join, or its window is count-based.
    FailureError
        If the answers differ.
    """
    if not 0 < share <= 1:
        raise UsageError(f"share must be above 0 and at most 1, not {share!r}.")
    plan = plan_of(frame)
    names = plan.left.columns
    answer = frame
    left = plan.left
    if share < 1:
        answer = frame.where(_chosen([F.col(f"`{name}`") for name in names], share))
        left = left.where(_chosen([F.col(f"`{name}`") for name in names], share))
    expected = own_join(left, plan.right, plan.query)
    answer = answer.cache()
    try:
        found = Verification(
            rows=answer.count(),
            missing=expected.exceptAll(answer).count(),
            extra=answer.exceptAll(expected).count(),
            share=share,
        )
    finally:
        answer.unpersist()
    if raises and not found.agrees:
        raise FailureError(str(found))
    return found


def _chosen(columns: list[Column], share: float) -> Column:
    return F.pmod(F.xxhash64(*columns), F.lit(_PARTS)) < int(share * _PARTS)

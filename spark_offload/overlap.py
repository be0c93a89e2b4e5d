# SPDX-License-Identifier: Apache-2.0
"""The function that joins intervals that overlap, which a PySpark program calls."""

from typing import Any

from pyspark.sql import DataFrame

from host import UsageError
from host.operators.overlap import overlap_terms
from spark_offload.failures.translation import kit_errors
from spark_offload.join import EqualitiesOrCondition, stream_join
from spark_offload.layout.columns import arrow_schema, check_frame
from spark_offload.planning.intervals import checked_intervals, longest_of
from spark_offload.planning.request import Length, as_length, column_pair
from spark_offload.streaming.checks import is_streaming

__all__ = ["overlap_join"]


def overlap_join(
    left: DataFrame,
    right: DataFrame,
    *,
    left_interval: tuple[str, str],
    right_interval: tuple[str, str] | None = None,
    on: EqualitiesOrCondition = None,
    longest: Length = None,
    touching: bool = True,
    **options: Any,
) -> DataFrame:
    """Join the rows of two frames whose intervals overlap, on an accelerator.

    That is a join by two bounded differences: each interval starts before the other one ends. Rows
    arrive by their starts, so the window is as wide as the longest interval, which bounds what the
    device and, of streams, the state have to hold.

    Parameters
    ----------
    left, right : DataFrame
        Both batch frames or both streaming ones.
    left_interval, right_interval : (str, str)
        Columns with the start and the end, inclusive; the right ones may be called like the left
        ones. An interval that ends before it starts is an error, one without an end overlaps
        nothing.
    on : str, Column or list, optional
        Columns that must be equal, as for :func:`stream_join`.
    longest : int, timedelta or str, optional
        Length of the longest interval; a longer one is an error. Left out, Spark reads both inputs
        for it, once, when this function is called. Streams need it.
    touching : bool
        Whether intervals of which one ends where the other one starts overlap.
    options
        Further arguments of :func:`stream_join`, except ``order``, ``within``, ``rows`` and
        ``band``.

    Returns
    -------
    DataFrame
        The answer of :func:`stream_join`, which the same functions explain, measure and verify.

    Raises
    ------
    UsageError
        If an argument, a column, a type or the device will not do; before anything runs.
    """
    ours = column_pair(left_interval, "left_interval")
    theirs = ours if right_interval is None else column_pair(right_interval, "right_interval")
    taken = sorted({"order", "within", "rows", "band"} & options.keys())
    if taken:
        raise UsageError(f"An overlap join has no {taken[0]}: the intervals say it; leave it out.")
    for frame, side in ((left, "left"), (right, "right")):
        check_frame(frame, side)
    schemas = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
    terms = overlap_terms(schemas, ours, theirs, touching=touching)
    if longest is None and (is_streaming(left) or is_streaming(right)):
        raise UsageError(
            "An overlap join of streams needs longest=…, the length of the longest interval: rows "
            "are kept for so long."
        )
    with kit_errors():
        length = (
            longest_of((left, right), (ours, theirs))
            if longest is None
            else as_length(longest, "longest")
        )
        rows = [
            checked_intervals(frame, names, length, side)
            for frame, names, side in ((left, ours, "left"), (right, theirs, "right"))
        ]
    return stream_join(
        *rows,
        on=on,
        band=[(term.left, term.right, term.low, term.high) for term in terms],
        order=(ours[0], theirs[0]),
        within=length,
        **options,
    )

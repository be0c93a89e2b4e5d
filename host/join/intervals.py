# SPDX-License-Identifier: Apache-2.0
"""What is required of the intervals of a table, and how long the longest one is."""

import numpy as np
import pyarrow as pa

from host.encode.kinds import column_type, read_column, row_at
from host.encode.scale import require_same_kind, scale_of
from host.encode.times import require_temporal
from host.errors import UsageError
from host.query.durations import Duration

__all__ = ["longest_interval"]


def longest_interval(table: pa.Table, interval: tuple[str, str], side: str) -> int | Duration:
    """Return the length of the longest interval of a table; intervals without an end do not count.

    Parameters
    ----------
    table : pa.Table
        The rows.
    interval : (str, str)
        Columns with the start and the end.
    side : str
        What messages call the table, ``"left"`` or ``"right"``.

    Returns
    -------
    int or Duration
        A duration if the columns are temporal.

    Raises
    ------
    UsageError
        If a column is missing, the two columns cannot be compared, or an interval ends before it
        starts.
    """
    start, end = (read_column(table, column_type(table.schema, name, side)) for name in interval)
    require_temporal(start.type)
    require_same_kind(start.type, end.type)
    scale = scale_of((start, end))
    if scale is None:
        raise UsageError(
            f"The values of columns {start.name!r} and {end.name!r} lie 2**64 units or more apart; "
            f"cast both to a coarser unit."
        )
    begins, ends = scale.distances(start, 0), scale.distances(end, 1)
    known = np.ones(len(begins), np.bool_)
    for column in (start, end):
        if column.valid is not None:
            known &= column.valid
    inverted = known & (ends < begins)
    if inverted.any():
        at = int(np.argmax(inverted))
        row = row_at(table.select(list(dict.fromkeys(interval))), at)
        raise UsageError(
            f"The interval in row {at} (the first is 0) of the {side} table ends before it starts: "
            f"{interval[0]}={row[interval[0]]}, {interval[1]}={row[interval[1]]}; swap the two, or "
            f"leave the row out."
        )
    longest = int((ends - begins)[known].max(initial=0))
    return Duration(longest * scale.tick) if start.kind.is_temporal else longest

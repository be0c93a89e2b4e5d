# SPDX-License-Identifier: Apache-2.0
"""Windows that reach less far on one side: the partner of a row is only earlier, or only later.

A window of a join is symmetric: rows of either side meet if their times differ by at most its
width. Two ends ``low <= left - right <= high`` are such a window, as wide as the farther end, and a
term over the order columns.
"""

from host.errors import UsageError
from host.query.durations import Duration
from host.query.join_query import Term, Width
from host.reference.window import TimeWindow

__all__ = ["one_sided"]


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

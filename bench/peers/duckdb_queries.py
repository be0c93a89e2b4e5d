# SPDX-License-Identifier: Apache-2.0
"""The questions as an expert of DuckDB would write them.

DuckDB joins bands of two fields by comparing most pairs, which takes minutes. An expert cuts the
plane into cells: a left row is in one cell, a right row is repeated for the cells that its band
reaches, cells are joined as equal numbers, and the conditions filter the pairs. Where the window is
a small part of all time, the cells are also cut by time, as are the keys of an equality.
"""

from pathlib import Path

import duckdb

from .workload import Workload

__all__ = ["THREADS", "aggregate", "asof", "band", "equality"]

#: Threads of a query.
THREADS = 2
#: Cells are as wide as so many bands; a right row then reaches two of them in a field.
CELLS = 1


def band(workload: Workload, output: Path) -> None:
    """Join by a band of two fields, by a grid."""
    width = round(CELLS * (2 * workload.reach + 1))
    row = 10_000 // width + 3  # cells in a row of the grid, with room at both ends
    reach, within = workload.reach, workload.within
    left, right = _spans(workload)
    _copy(
        workload,
        output,
        f"""
        SELECT t, k, x, y, rt, rk, rx, ry
        FROM (
            SELECT * EXCLUDE (span), (span * {row} + x // {width}) * {row} + y // {width} AS cell
            FROM {left}
        ) AS l
        JOIN (
            SELECT * EXCLUDE (cx), cx * {row} + {_reached("ry", reach, width)} AS cell
            FROM (
                SELECT * EXCLUDE (span), span * {row} + {_reached("rx", reach, width)} AS cx
                FROM {right}
            )
        ) AS r USING (cell)
        WHERE abs(x - rx) <= {reach} AND abs(y - ry) <= {reach} AND abs(t - rt) <= {within}
        """,
    )


def equality(workload: Workload, output: Path) -> None:
    """Join by equal keys."""
    left, right = _spans(workload)
    _copy(
        workload,
        output,
        f"""
        SELECT t, k, x, y, rt, rk, rx, ry
        FROM {left} AS l JOIN {right} AS r ON k = rk AND l.span = r.span
        WHERE abs(t - rt) <= {workload.within}
        """
        if workload.is_long
        else f"SELECT * FROM l JOIN r ON k = rk WHERE abs(t - rt) <= {workload.within}",
    )


def _reached(field: str, reach: int, width: int) -> str:
    """Return the numbers of all cells of a width that a band reaches, one for each row."""
    return f"unnest(range(({field} - {reach}) // {width}, ({field} + {reach}) // {width} + 1))"


def _spans(workload: Workload) -> tuple[str, str]:
    """Return both sides with a column ``span``, the spans of time in which they may meet."""
    if not workload.is_long:
        return tuple(f"(SELECT *, 0 AS span FROM {side})" for side in "lr")
    reached = _reached("rt", workload.within, workload.span)
    return (
        f"(SELECT *, t // {workload.span} AS span FROM l)",
        f"(SELECT *, {reached} AS span FROM r)",
    )


def asof(workload: Workload, output: Path) -> None:
    """Join each left row with the last right row of its key, if there is one near enough."""
    _copy(
        workload,
        output,
        f"SELECT * FROM l ASOF JOIN r ON k = rk AND t >= rt WHERE t - rt <= {workload.within}",
    )


def aggregate(workload: Workload, output: Path) -> None:
    """Count the rows, and add up a field, of each key in each window of time."""
    width = workload.within
    _copy(
        workload,
        output,
        f"""
        SELECT t // {width} * {width} AS window_start, window_start + {width} AS window_end, k,
            count(*) AS n, sum(x)::BIGINT AS total
        FROM l GROUP BY window_start, k
        """,
    )


def _copy(workload, output, query):
    """Write the answer to a query over the views ``l`` and ``r``, ordered by the later row."""
    with duckdb.connect(config={"threads": THREADS}) as connection:
        for name, path in (("l", workload.left), ("r", workload.right)):
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{path}')")
        connection.execute(f"COPY ({query}) TO '{output}' (FORMAT parquet)")

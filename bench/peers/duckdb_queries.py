# SPDX-License-Identifier: Apache-2.0
"""The questions as an expert of DuckDB would write them.

DuckDB joins bands of two fields by comparing most pairs, which takes minutes. An expert cuts the
plane into cells: a left row is in one cell, a right row is repeated for the cells that its band
reaches, cells are joined as equal numbers, and the conditions filter the pairs.
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

    def reached(field: str) -> str:
        return f"unnest(range(({field} - {reach}) // {width}, ({field} + {reach}) // {width} + 1))"

    _copy(
        workload,
        output,
        f"""
        SELECT t, k, x, y, rt, rk, rx, ry
        FROM (SELECT *, (x // {width}) * {row} + y // {width} AS cell FROM l) AS l
        JOIN (
            SELECT * EXCLUDE (cx), cx * {row} + {reached("ry")} AS cell
            FROM (SELECT *, {reached("rx")} AS cx FROM r)
        ) AS r USING (cell)
        WHERE abs(x - rx) <= {reach} AND abs(y - ry) <= {reach} AND abs(t - rt) <= {within}
        """,
    )


def equality(workload: Workload, output: Path) -> None:
    """Join by equal keys."""
    _copy(
        workload,
        output,
        f"SELECT * FROM l JOIN r ON k = rk WHERE abs(t - rt) <= {workload.within}",
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

# SPDX-License-Identifier: Apache-2.0
"""The same question as Spark's own join: where no accelerator can serve, and to verify one."""

from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from host import CountWindow, UsageError
from host.query.queries import JoinQuery, Term
from host.reference.types import JoinType
from spark_offload.layout.columns import arrow_schema, output_schema
from spark_offload.own_join.differences import Difference, difference_of
from spark_offload.own_join.grid import Cells, cells_of, in_cells, repeated_for_cells

__all__ = ["own_join"]

_CELLS = "l_cell", "r_cell"
"""Columns with the keys of the cells, beside the numbered columns of the inputs."""


def own_join(left: DataFrame, right: DataFrame, query: JoinQuery) -> DataFrame:
    """Return the answer to a join over a time-based window, joined by Spark, in no order.

    A pair within a window is a pair whose times differ by no more than its width, whatever came
    first; so conditions on the columns say all of it. Spark joins by equalities. Bounded
    differences become one, of grid cells (:mod:`spark_offload.own_join.grid`), so that Spark does
    not compare every row with every row.

    Of the bounded terms two are cut into cells, or one if there is an equality, by which Spark
    divides the rows already: each further field repeats half of the rows of one side once more.
    Nothing is known of the values, so the terms of the query come first, as they are given: whoever
    writes a band means it to exclude most rows. The window, which is bounded too, comes last.

    A side whose rows come alone is not the one that is repeated. In a full outer join the rows of
    both come alone, so it is a left outer join and, besides, the right rows that are in no pair;
    Spark reads both inputs twice for it.

    Raises
    ------
    UsageError
        If the window is count-based (which rows it holds is no condition on two rows), or the
        columns cannot be compared.
    """
    if isinstance(query.window, CountWindow):
        raise UsageError(
            f"The last {query.window.size} rows of a side are no condition on two rows, so Spark "
            f"cannot join them by itself; give a window by time (within=...)."
        )
    grid = _GridJoin.of(left, right, query)
    if query.how is JoinType.FULL:
        pairs = grid.joined(JoinType.LEFT)
        joined = pairs.unionByName(grid.lone_right_rows(), allowMissingColumns=True)
    else:
        joined = grid.joined(query.how)
    columns = [name for side in grid.sides for name in side.columns if name in joined.columns]
    names = output_schema(left.schema, right.schema, query.suffix, query.how).names
    return joined.select(*columns).toDF(*names)


@dataclass(frozen=True)
class _GridJoin:
    """Both inputs with numbered columns, and what is compared.

    Parameters
    ----------
    sides : (DataFrame, DataFrame)
        The inputs; their columns are called ``l0``, ``l1``, … and ``r0``, ``r1``, …
    differences : sequence of (Difference, (str, str))
        The terms and the window, with the columns that they compare.
    """

    sides: tuple[DataFrame, DataFrame]
    differences: tuple[tuple[Difference, tuple[str, str]], ...]

    @classmethod
    def of(cls, left: DataFrame, right: DataFrame, query: JoinQuery) -> "_GridJoin":
        """Prepare a query."""
        width: Any = getattr(query.window, "lifespan", query.window)
        window = Term(*query.order, -width, width)
        schemas = left.schema, right.schema
        arrow = arrow_schema(left.schema, "left"), arrow_schema(right.schema, "right")
        numbered = [
            [f"{letter}{at}" for at in range(len(schema.names))]
            for letter, schema in zip("lr", schemas, strict=True)
        ]
        differences = []
        for term in (*query.terms, window):
            difference = difference_of(term, schemas, arrow)
            columns = (
                numbered[0][schemas[0].names.index(term.left)],
                numbered[1][schemas[1].names.index(term.right)],
            )
            differences.append((difference, columns))
        return cls((left.toDF(*numbered[0]), right.toDF(*numbered[1])), tuple(differences))

    def joined(self, how: JoinType) -> DataFrame:
        """Return the rows of the answer to a join of a type other than full."""
        # The side that is repeated must not be one whose rows come alone. An inner join repeats the
        # left side, as Spark rather keeps the right one in memory.
        repeated = 0 if how in (JoinType.INNER, JoinType.RIGHT) else 1
        sides = self._in_cells(repeated)
        return sides[0].join(sides[1], self._condition(), how.value)

    def lone_right_rows(self) -> DataFrame:
        """Return the right rows that are in no pair."""
        sides = self._in_cells(0)
        return sides[1].join(sides[0], self._condition(), "left_anti")

    @property
    def _cells(self) -> list[tuple[Cells, tuple[str, str]]]:
        found = [(cells_of(difference), columns) for difference, columns in self.differences]
        cells = [(cell, columns) for cell, columns in found if cell is not None]
        equal = any(difference.is_equality for difference, _ in self.differences)
        return cells[: 1 if equal else 2]

    def _in_cells(self, repeated: int) -> list[DataFrame]:
        """Return both sides with the keys of their cells, one of them repeated."""
        sides = []
        for side, frame in enumerate(self.sides):
            cells = [(cell, F.col(columns[side])) for cell, columns in self._cells]
            if cells:
                place = repeated_for_cells if side == repeated else in_cells
                frame = place(frame, _CELLS[side], cells, side)
            sides.append(frame)
        return sides

    def _condition(self) -> Column:
        conditions = [
            difference.holds(*(F.col(name) for name in columns))
            for difference, columns in self.differences
        ]
        if self._cells:
            conditions.append(F.col(_CELLS[0]) == F.col(_CELLS[1]))
        return reduce(lambda one, other: one & other, conditions)

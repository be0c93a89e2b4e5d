# SPDX-License-Identifier: Apache-2.0
"""The rows of one partition as they pass by: laid out, counted and checked."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from host import CountWindow
from host.query.queries import JoinQuery
from host.reference.types import JoinType
from host.session.intake import TaggedLayout
from spark_offload.layout.halos import HaloCounts
from spark_offload.layout.tagged import (
    ALONE_COLUMN,
    HALO_COLUMNS,
    LEFT,
    PAYLOAD,
    RIGHT,
    SHARED,
    TAG_COLUMNS,
)
from spark_offload.tasks.departing_rows import DepartingRows
from spark_offload.tasks.halo_check import HaloCheck
from spark_offload.tasks.side_check import SideCheck

__all__ = ["PartitionChecks", "PartitionRows"]


@dataclass(frozen=True)
class PartitionChecks:
    """What is required of the rows of a partition.

    Parameters
    ----------
    query : JoinQuery
        Names the order columns, the type of the join, and whether the inputs were declared sorted.
    halos : HaloCounts, optional
        How large the halos of a count-based window are.
    """

    query: JoinQuery
    halos: HaloCounts | None = None


class PartitionRows:
    """The rows of a partition as they pass.

    Parameters
    ----------
    batches : iterator of RecordBatch
        Tagged batches.
    left, right : Schema
        Columns of the inputs.
    checks : PartitionChecks
        What is required of the rows.

    Attributes
    ----------
    layout : TaggedLayout
        Where the columns stand, by the types that they have here, which can differ in little from
        those that Spark announced.
    counts : list of int
        Rows of either side so far, without halo rows.
    halo_rows : int
        Halo rows so far, without those that the window does not hold any more.
    """

    def __init__(
        self,
        batches: Iterator[pa.RecordBatch],
        left: pa.Schema,
        right: pa.Schema,
        checks: PartitionChecks,
    ) -> None:
        self._batches = batches
        self._first = next(batches, None)
        query = checks.query
        self._halo_check = None if checks.halos is None else HaloCheck(checks.halos)
        self._departing: DepartingRows | None = None
        if checks.halos is not None and query.how is not JoinType.INNER:
            assert isinstance(query.window, CountWindow)  # what halos are counted for
            self._departing = DepartingRows(checks.halos, query.window.size)
        if self._first is None:
            self._schema = pa.schema(
                [("side", pa.int8()), ("order", pa.int64()), ("row", pa.int64())]
            )
            for letter, columns in zip(PAYLOAD, (left, right), strict=True):
                for index, column in enumerate(columns):
                    self._schema = self._schema.append(pa.field(f"{letter}{index}", column.type))
        else:
            self._schema = self._first.schema
        if self._departing is not None and self._first is not None:
            self._schema = self._schema.append(pa.field(ALONE_COLUMN, pa.bool_()))
        types = self._schema.types[len(TAG_COLUMNS) :]
        shared = f"{SHARED}0" in self._schema.names
        middle = 0 if shared else len(left)
        self._checks = [
            SideCheck(
                side,
                order,
                query.sorted,
                columns.names,
                len(TAG_COLUMNS) + first,
                per_partition=query.per_partition,
            )
            for side, order, columns, first in zip(
                ("left", "right"), query.order, (left, right), (0, middle), strict=True
            )
        ]
        self._halo = HALO_COLUMNS[1] if HALO_COLUMNS[1] in self._schema.names else None
        self.layout = TaggedLayout(
            pa.schema(zip(left.names, types[: len(left)], strict=True)),
            pa.schema(zip(right.names, types[middle : middle + len(right)], strict=True)),
            len(TAG_COLUMNS),
            shared=shared,
            halo=self._halo,
            alone=ALONE_COLUMN if ALONE_COLUMN in self._schema.names else None,
        )
        self.counts = [0, 0]
        self.halo_rows = 0

    def reader(self) -> pa.RecordBatchReader:
        """Return the batches, to be read once."""
        return pa.RecordBatchReader.from_batches(self._schema, self._passing())

    def _passing(self) -> Iterator[pa.RecordBatch]:
        first, self._first = self._first, None
        for batch in self._batches if first is None else chain([first], self._batches):
            kept = batch if self._halo_check is None else self._halo_check.see(batch)
            if self._departing is not None:
                kept = self._departing.see(kept)
            if kept.num_rows:
                self._see(kept)
                yield kept
        for check in (self._halo_check, self._departing):
            if check is not None:
                check.finish()

    def _see(self, batch: pa.RecordBatch) -> None:
        """Count and check the rows of both sides."""
        halo = None if self._halo is None else batch.column(self._halo)
        for side in (LEFT, RIGHT):
            mask = pc.equal(batch.column("side"), pa.scalar(side, pa.int8()))
            count = mask.true_count
            self._checks[side].see(batch, mask)
            halos = 0 if halo is None else pc.and_(mask, halo).true_count
            self.counts[side] += count - halos
            self.halo_rows += halos

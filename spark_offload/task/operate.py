# SPDX-License-Identifier: Apache-2.0
"""What the Spark tasks of a described operator do, in two phases.

The first phase finds keys, and reduces the rows at hand. The second one makes windows and pairs of
all parts of some keys.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from host.operators.operate import OperatorColumns, OperatorEngine, OperatorQuery
from spark_offload.cluster.machines import local_device_uri
from spark_offload.partitioning.tagged import LEFT, RIGHT
from spark_offload.task.rows import gathered
from spark_offload.task.task import BUFFER_ROWS, Task, declared

__all__ = [
    "OperatorTask",
]


@dataclass(frozen=True, kw_only=True)
class OperatorTask(Task):
    """Description of the tasks of one phase of an operator; shipped with the function.

    Parameters
    ----------
    query : OperatorQuery
        What is computed.
    given : tuple of pa.Schema
        Columns of the rows of each input.
    side : int or None
        The input whose rows the first phase reads. None for the second phase, which reads parts: of
        two inputs, those with their side before them, and with nulls for the other side's columns.
    device : str or None
        Address of the accelerator, shipped; None for software.
    device_name : str
        Its address as given.
    """

    query: OperatorQuery
    given: tuple[pa.Schema, ...]
    side: int | None = None
    device: str | None = None
    device_name: str = ""

    def work(
        self, batches: Iterator[pa.RecordBatch], told: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        """Yield what the phase gives for a partition."""
        columns = OperatorColumns(self.given, self.query)
        device = None if self.device is None else local_device_uri(self.device)
        with closing(OperatorEngine(self.query.operator, device)) as engine:
            if self.side is None:
                parts = _parts_of(batches, columns)
                if parts is not None:
                    yield from columns.second(parts, engine)[0].to_batches()
            else:
                yield from self._first(batches, self.side, columns, engine, told)
            work = engine.work
        told.update(
            device=self.device_name,
            device_seconds=work.seconds,
            waited_seconds=work.waited,
            cycles=work.cycles,
        )

    def _first(
        self,
        batches: Iterator[pa.RecordBatch],
        side: int,
        columns: OperatorColumns,
        engine: OperatorEngine,
        told: dict[str, Any],
    ) -> Iterator[pa.RecordBatch]:
        rows = 0
        none = [schema.empty_table() for schema in self.given]
        for batch in gathered(batches, BUFFER_ROWS):
            found = pa.Table.from_batches([declared(batch, self.given[side])])
            sides = [found if at == side else table for at, table in enumerate(none)]
            given = columns.first(sides, engine, [rows] * len(sides))
            rows += batch.num_rows
            yield from given[0 if len(given) == 1 else side].to_batches()
        told["left_rows" if side == LEFT else "right_rows"] = rows
        if columns.has_parts:
            told["results"] = 0


def _parts_of(batches: Iterator[pa.RecordBatch], columns: OperatorColumns) -> list[pa.Table] | None:
    """Return the parts of each input of a partition; None if there is none."""
    gathered_ = list(batches)
    if not gathered_:
        return None
    table = pa.Table.from_batches(gathered_)
    if len(columns.parts) == 1:
        return [_named(table, columns.parts[0])]
    sides = table.column(0).to_numpy()
    shared = 1 + len(columns.part_keys)
    width = len(columns.parts[LEFT]) - shared
    found = []
    for side, schema in enumerate(columns.parts):
        own = table.filter(pa.array(sides == side))
        first = 1 + shared + (width if side == RIGHT else 0)
        places = [*range(1, 1 + shared), *range(first, first + len(schema) - shared)]
        found.append(_named(own.select(places), schema))
    return found


def _named(table: pa.Table, schema: pa.Schema) -> pa.Table:
    batches = [declared(batch, schema) for batch in table.to_batches()]
    return pa.Table.from_batches(batches, schema).combine_chunks()

# SPDX-License-Identifier: Apache-2.0
"""The engine as its callers see it: open a query, push batches as they arrive, finish.

:class:`JoinEngine` is the contract for a program that gets its rows bit by bit and owns the loop.
It runs the graph of :class:`~host.session.join.Join`, so every row takes the one road.
"""

from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from host.devices import Device, open_device
from host.devices.bundles import SOFTWARE
from host.errors import UsageError
from host.query.queries import Query
from host.reference.types import JoinType
from host.runtime import ExecStreamGraph, Scheduler, Stream, StreamParams
from host.runtime.source import PushSource
from host.session.join import add_join
from host.session.params import JoinOptions, plan_join
from host.session.rows import RowStore

__all__ = [
    "JoinEngine",
    "JoinState",
]


@dataclass(frozen=True)
class JoinState:
    """State of a join behind rows that have been answered; it can be pickled.

    Parameters
    ----------
    rows : tuple of pa.Table
        The left and the right rows that later rows can meet, or that wait for the other side.
    first, answered : tuple of int
        For each side, the number of the first of these rows, and of the first that was not answered
        yet.
    """

    rows: tuple[pa.Table, pa.Table]
    first: tuple[int, int]
    answered: tuple[int, int]


class JoinEngine:
    """A join of rows that are pushed batch by batch, by the software engine or by a device.

    Rows of either side must come in the order of time. A row is answered as soon as no earlier row
    of the other side can follow, so one side may run ahead of the other. Results come in the order
    of :class:`~host.session.join.Join`, each once. A device answers when it has found the results,
    at the latest in :meth:`finish`.

    Parameters
    ----------
    query : Query
        The join.
    left, right : pa.Schema
        Columns of the rows.
    device : Device, optional
        An open device, which nobody else uses meanwhile; it stays open. By default, the software
        engine joins.
    state : JoinState, optional
        Result of :meth:`save`, to go on from there; the query and the columns must be the same.
    options
        Those of :class:`~host.session.params.JoinOptions`.

    Attributes
    ----------
    schema : pa.Schema
        Columns of the results.

    Raises
    ------
    UsageError
        If the query does not suit the columns or the device.
    """

    def __init__(
        self,
        query: Query,
        left: pa.Schema,
        right: pa.Schema,
        device: Device | None = None,
        *,
        state: JoinState | None = None,
        **options: Any,
    ) -> None:
        chosen = JoinOptions(**options, eager=True)
        if state is not None:
            chosen = replace(chosen, first_rows=state.first, answered=state.answered)
        self._held = ExitStack()
        if device is None:
            device = self._held.enter_context(open_device(SOFTWARE))
        query = replace(query, sorted=True)
        self._params = plan_join(left, right, query, device, options=chosen)
        self.schema = self._params.schema
        self._kept = [RowStore(first) for first in chosen.first_rows]
        self._sources = [PushSource("left"), PushSource("right")]
        graph = ExecStreamGraph(chosen.buffer_rows)
        inputs: list[Stream] = [graph.add(each, StreamParams()) for each in self._sources]
        self._stream = add_join(graph, inputs, self._params)
        graph.prepare()
        self._buffer = self._stream.output
        self._scheduler = Scheduler(graph)
        self._scheduler.open()
        self._held.callback(graph.close)
        if state is not None:
            self.push(*(table.combine_chunks() for table in state.rows))

    def push(
        self,
        left: pa.RecordBatch | pa.Table | None = None,
        right: pa.RecordBatch | pa.Table | None = None,
    ) -> list[pa.RecordBatch]:
        """Take the next rows of either side, or of both; return the results found meanwhile.

        Raises
        ------
        OrderError
            If a time is less than the one before it on its side.
        UsageError
            If the engine has finished or was closed, or the columns are others.
        """
        schemas = self._params.left, self._params.right
        for side, rows in enumerate((left, right)):
            if rows is None:
                continue
            if not rows.schema.equals(schemas[side]):
                raise UsageError(
                    f"Rows of the {'left' if not side else 'right'} side have the columns "
                    f"{rows.schema.to_string()!r}, but the engine was opened for "
                    f"{schemas[side].to_string()!r}; push rows of these columns."
                )
            batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
            for batch in batches:
                self._sources[side].push(batch)
                if self._params.in_software:
                    self._kept[side].append(batch)
        found = list(self._results())
        if self._params.in_software:
            for kept, (oldest, _) in zip(self._kept, self._stream.reached(), strict=True):
                kept.forget(oldest)
        return found

    def finish(self) -> list[pa.RecordBatch]:
        """End both inputs; return all results that are left."""
        for source in self._sources:
            source.end()
        found = list(self._results())
        self.close()
        return found

    def save(self) -> JoinState:
        """Return what another engine needs to go on from here; this one may go on, too.

        Raises
        ------
        UsageError
            If a device joins, whose windows cannot be read back, or rows can come alone: whether
            these have matched is not in the rows.
        """
        how = self._params.query.how
        if not self._params.in_software or how is not JoinType.INNER:
            what = "an inner join" if self._params.in_software else "the software engine"
            raise UsageError(
                f"The state of {what} can be saved, not that of a {how.value} join on "
                f"{self._params.device.uri}; push the rows of two windows once more to go on."
            )
        reached = self._stream.reached()
        rows = []
        for kept, (oldest, _), schema in zip(
            self._kept, reached, (self._params.left, self._params.right), strict=True
        ):
            numbers = np.arange(oldest, kept.count)
            arrays = kept.take(numbers) if len(numbers) else []
            rows.append(
                pa.Table.from_arrays(arrays, schema=schema) if arrays else schema.empty_table()
            )
        firsts, answered = zip(*reached, strict=True)
        return JoinState((rows[0], rows[1]), (firsts[0], firsts[1]), (answered[0], answered[1]))

    def close(self) -> None:
        """End the join, wherever it stands; calling it again has no effect."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _results(self) -> Generator[pa.RecordBatch, None, None]:
        """Run the graph as far as it goes with the rows at hand; yield what comes out."""
        try:
            while True:
                while self._buffer.demand():
                    batch = self._buffer.access()
                    self._buffer.consume()
                    yield batch
                if self._scheduler.ended:
                    return
                if all(source.ended for source in self._sources):
                    self._scheduler.step()
                elif not self._scheduler.advance():
                    return
        except BaseException:
            self.close()
            raise

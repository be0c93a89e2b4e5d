# SPDX-License-Identifier: Apache-2.0
"""Aggregation over windows of time as a stream."""

from dataclasses import dataclass, field

import pyarrow as pa

from host.aggregate.device_aggregation import DeviceAggregation
from host.aggregate.stream import WindowAggregation
from host.exchange.watch import Deadline
from host.query.aggregate_query import AggregateQuery
from host.runtime import ConduitExecStream, ConduitParams, Quantum, StreamResult

__all__ = ["Aggregate", "AggregateParams"]


@dataclass(frozen=True)
class AggregateParams(ConduitParams):
    """Parameters of :class:`Aggregate`.

    Parameters
    ----------
    query : AggregateQuery
        The aggregation.
    schema : pa.Schema
        Columns of the input.
    in_order : bool
        Whether the input is sorted by time. Results then leave as soon as their windows have ended;
        otherwise they leave at the end of the input.
    device : str, optional
        URI of the accelerator that keeps the windows; by default, the host does.
    deadline : Deadline
        Longest time without progress of the accelerator.
    """

    query: AggregateQuery
    schema: pa.Schema
    in_order: bool
    device: str | None = None
    deadline: Deadline = field(default_factory=Deadline)


class Aggregate(ConduitExecStream[AggregateParams, pa.RecordBatch, pa.RecordBatch]):
    """Stream of the results of windows, in the order of (window, key).

    It holds the states of keys in panes that windows still need, and one batch of results; so with
    a sorted input, memory grows with the keys of a window and not with the input. An accelerator is
    open from the beginning of an execution to its end.

    Attributes
    ----------
    work : WindowAggregation
        The aggregation of the last execution, with its counts of rows and results.
    cycles : int
        Clock cycles of the last execution's accelerator; 0 if there is none.
    """

    work: WindowAggregation

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._rest: pa.RecordBatch | None = None
        self._done: DeviceAggregation | None = None

    def prepare(self, params: AggregateParams) -> None:
        super().prepare(params)
        self._params = params

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._release()
        self._rest, self._ended = None, False
        params = self._params
        self._done = DeviceAggregation(params.schema, params.query, params.device, params.deadline)
        self.work = self._done.work

    @property
    def cycles(self) -> int:
        """Clock cycles of the accelerator in the last execution."""
        return 0 if self._done is None else self._done.cycles

    def execute(self, quantum: Quantum) -> StreamResult:
        done = 0
        while done < quantum.rows:
            if self._rest is not None:
                room = self.output.provide()
                if not room:
                    return StreamResult.BUF_OVERFLOW
                self.output.produce(self._rest.slice(0, room))
                done += min(room, self._rest.num_rows)
                self._rest = self._rest.slice(room) if room < self._rest.num_rows else None
            elif self._ended:
                return self.finish()
            elif self.input.at_end:
                self._ended = True
                self._put(self.work.last_rows())
            elif not self.input.demand():
                return StreamResult.BUF_UNDERFLOW
            else:
                done += self._take(self.input.access())
                self.input.consume()
        return StreamResult.QUANTUM_EXPIRED

    def close_impl(self) -> None:
        self._rest = None
        self._release()

    def _release(self) -> None:
        """Close the accelerator, if one is open."""
        if self._done is not None:
            self._done.close()

    def _take(self, batch: pa.RecordBatch) -> int:
        if self._params.in_order:
            self._put(self.work.rows_in_order(batch))
        else:
            self.work.more_rows(batch)
        return batch.num_rows

    def _put(self, batch: pa.RecordBatch) -> None:
        self._rest = batch if batch.num_rows else None

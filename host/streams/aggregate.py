# SPDX-License-Identifier: Apache-2.0
"""Aggregation over windows of time as a stream."""

from dataclasses import dataclass, field

import pyarrow as pa

from host.aggregate.stream import WindowAggregation
from host.aggregate.time_column import TimeColumn
from host.aggregate.values import AggregateStates
from host.device import open_aggregate
from host.device.simulated import SimulatedAggregate
from host.query.aggregate_query import AggregateQuery
from host.runtime import ConduitExecStream, ConduitParams, Quantum, StreamResult
from host.streams.device_windows import DeviceWindows
from host.streams.watch import Deadline

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
        self._device: SimulatedAggregate | None = None
        self._windows: DeviceWindows | None = None

    def prepare(self, params: AggregateParams) -> None:
        super().prepare(params)
        self._params = params

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._release()
        self._rest, self._ended = None, False
        params = self._params
        if params.device is None:
            self.work = WindowAggregation(params.schema, params.query)
            return
        self._device = open_aggregate(params.device)
        self.work = WindowAggregation(params.schema, params.query, self._on_device)

    @property
    def cycles(self) -> int:
        """Clock cycles of the accelerator in the last execution."""
        return 0 if self._windows is None else self._windows.watch.cycles

    def _on_device(self, time: TimeColumn, values: AggregateStates) -> DeviceWindows:
        assert self._device is not None
        params = self._params
        self._windows = DeviceWindows(
            time,
            values,
            device=self._device,
            keyed=bool(params.query.keys),
            deadline=params.deadline,
        )
        return self._windows

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
        device, self._device = self._device, None
        try:
            if self._windows is not None:
                self._windows.close()
        finally:
            if device is not None:
                device.close()

    def _take(self, batch: pa.RecordBatch) -> int:
        if self._params.in_order:
            self._put(self.work.rows_in_order(batch))
        else:
            self.work.more_rows(batch)
        return batch.num_rows

    def _put(self, batch: pa.RecordBatch) -> None:
        self._rest = batch if batch.num_rows else None

# SPDX-License-Identifier: Apache-2.0
"""An aggregation with the accelerator that keeps its windows, if there is one."""

from types import TracebackType
from typing import Self

import pyarrow as pa

from host.aggregate.device_windows import DeviceThenHost, DeviceWindows, suitable_lanes
from host.aggregate.open_windows import HostWindows, OpenWindows
from host.aggregate.stream import WindowAggregation
from host.aggregate.time_column import TimeColumn
from host.aggregate.values import AggregateStates
from host.device import open_aggregate
from host.device.simulated import SimulatedAggregate
from host.errors import JoinError
from host.exchange.watch import Deadline, DeviceWatch
from host.manifest import AggregateManifest
from host.query.aggregate_query import AggregateQuery

__all__ = ["DeviceAggregation", "require_suitable"]


def require_suitable(schema: pa.Schema, query: AggregateQuery, manifest: AggregateManifest) -> None:
    """Raise unless an accelerator can keep the windows of a query, as far as its rows are not seen.

    Raises
    ------
    AcceleratorLimitError
        If the accelerator does not compute what the query needs, or its windows are too short.
    UsageError
        If the query does not suit the columns.
    """
    time, values = (
        TimeColumn(schema, query),
        AggregateStates(schema, query.aggregates, parts=query.parts),
    )
    suitable_lanes(manifest, time, values, keyed=bool(query.keys))


class DeviceAggregation:
    """A :class:`~host.aggregate.stream.WindowAggregation` on the host or on an accelerator.

    A context manager; the accelerator is open from the beginning until :meth:`close`.

    Parameters
    ----------
    schema : pa.Schema
        Columns of the input.
    query : AggregateQuery
        The aggregation.
    device : str, optional
        URI of the accelerator; by default, the host keeps the windows.
    deadline : Deadline
        Longest time without progress of the accelerator.
    goes_on : bool
        Whether the host goes on from the first rows for which the accelerator has no room; by
        default, these are an error.

    Attributes
    ----------
    work : WindowAggregation
        Takes rows and gives results.
    refusal : JoinError or None
        Why the host went on; None if it did not.

    Raises
    ------
    UsageError
        If the query does not suit the columns, or the accelerator cannot serve it.
    DeviceError
        If the accelerator does not open.
    """

    work: WindowAggregation

    def __init__(
        self,
        schema: pa.Schema,
        query: AggregateQuery,
        device: str | None = None,
        deadline: Deadline | None = None,
        *,
        goes_on: bool = False,
    ) -> None:
        self.refusal: JoinError | None = None
        self._goes_on = goes_on
        self._keyed = bool(query.keys)
        self._deadline = deadline or Deadline()
        self._device: SimulatedAggregate | None = None
        self._windows: DeviceWindows | None = None
        if device is None:
            self.work = WindowAggregation(schema, query)
            return
        self._device = open_aggregate(device)
        try:
            self.work = WindowAggregation(schema, query, self._on_device)
        except BaseException:
            self.close()
            raise

    @property
    def watch(self) -> DeviceWatch | None:
        """Cycles and seconds of the accelerator; None if there is none."""
        return None if self._windows is None else self._windows.watch

    @property
    def cycles(self) -> int:
        """Clock cycles of the accelerator; 0 if there is none."""
        return 0 if self.watch is None else self.watch.cycles

    def close(self) -> None:
        """Close the accelerator, if one is open."""
        device, self._device = self._device, None
        try:
            if self._windows is not None:
                self._windows.close()
        finally:
            if device is not None:
                device.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _on_device(self, time: TimeColumn, values: AggregateStates) -> OpenWindows:
        assert self._device is not None
        self._windows = DeviceWindows(
            time, values, device=self._device, keyed=self._keyed, deadline=self._deadline
        )
        if not self._goes_on:
            return self._windows
        return DeviceThenHost(
            self._windows, HostWindows(time, values), time.advance // time.pane, self._refused
        )

    def _refused(self, refusal: JoinError) -> None:
        self.refusal = refusal

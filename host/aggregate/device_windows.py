# SPDX-License-Identifier: Apache-2.0
"""Windows that an accelerator keeps: rows become words, and its results the states of windows."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from host.aggregate.lanes import Lanes
from host.aggregate.open_windows import HostWindows
from host.aggregate.time_column import TimeColumn
from host.aggregate.values import AggregateStates, Array
from host.device.simulated import SimulatedAggregate
from host.device.software import REFUSALS
from host.device.thread import DeviceThread
from host.errors import AcceleratorLimitError, JoinError
from host.exchange.watch import Deadline, DeviceWatch
from host.manifest import AggregateManifest
from host.reference.exact import UInt64s
from host.windowed import WindowedOperator
from host.windowed.panes import WindowStates
from host.words import AggregateCodec

__all__ = ["DeviceThenHost", "DeviceWindows", "suitable_lanes"]

Int64s = npt.NDArray[np.int64]

#: Rows that are staged before the accelerator gets them.
STAGED_ROWS = 1 << 16
#: Result words, and most clock cycles, of an exchange.
RESULT_WORDS, EXCHANGE_CYCLES = 1 << 16, 1 << 20


def suitable_lanes(
    manifest: AggregateManifest, time: TimeColumn, values: AggregateStates, *, keyed: bool
) -> Lanes:
    """Return where an accelerator computes the states of a query.

    Parameters
    ----------
    manifest : AggregateManifest
        The accelerator.
    time, values : TimeColumn, AggregateStates
        Column of time and states of the query.
    keyed : bool
        Whether the query has keys.

    Raises
    ------
    AcceleratorLimitError
        If the accelerator does not compute what the query needs, or its windows are too short.
    """
    length = time.window // time.pane
    if length > manifest.panes:
        raise AcceleratorLimitError(
            f"Windows of {time.window} that begin every {time.advance} units of column "
            f"{time.name!r} have {length} panes, but those of the accelerator at most "
            f"{manifest.panes}",
            "choose an advance that divides the window into fewer, generate an accelerator "
            "with a larger --panes, or aggregate without a device",
        )
    return Lanes(WindowedOperator.from_dict(manifest.operator), values, keyed=keyed)


class DeviceWindows:
    """Open windows of an accelerator; see :class:`~host.aggregate.open_windows.OpenWindows`.

    Its unit of time is a pane, counted from a beginning of a window. It gets the rows of a pane
    when no more can come, or when the input is known to be in order; until then, they wait here.

    Parameters
    ----------
    time : TimeColumn
    values : AggregateStates
    device : SimulatedAggregate
        An open device, which nobody else uses, and which has nothing left to answer.
    keyed : bool
        Whether the query has keys.
    deadline : Deadline
        Longest time without progress.

    Attributes
    ----------
    watch : DeviceWatch
        Cycles and seconds.

    Raises
    ------
    AcceleratorLimitError
        If the accelerator does not compute what the query needs, or its windows are too short.
    """

    def __init__(
        self,
        time: TimeColumn,
        values: AggregateStates,
        *,
        device: SimulatedAggregate,
        keyed: bool,
        deadline: Deadline,
    ) -> None:
        manifest = device.manifest
        self._time, self._length = time, time.window // time.pane
        self._advance = time.advance // time.pane
        self._keys = manifest.keys
        self._lanes = suitable_lanes(manifest, time, values, keyed=keyed)
        self._codec = AggregateCodec(manifest)
        self._times = 1 << manifest.input_word["tuple.timestamp"].bits
        self._deadline = deadline
        self.watch = DeviceWatch(device, deadline)
        self._thread = DeviceThread(device)
        self._room = np.zeros((RESULT_WORDS, manifest.result_word.columns), np.uint64)
        self._waiting: list[tuple[Int64s, list[Array]]] = []  # panes; keys and values
        self._staged: list[UInt64s] = []
        self._arrived: list[UInt64s] = []
        self._origin: int | None = None  # pane in which the accelerator's time begins
        self._reached = 0  # pane that the accelerator's time has reached
        self._cleared = False  # until then, faults are those of whoever used the device before

    def __len__(self) -> int:
        """Return the number of rows that wait."""
        return sum(len(panes) for panes, _ in self._waiting)

    def add(self, keys: Int64s, panes: Int64s, values: list[Array], floor: int | None) -> None:
        """See :meth:`OpenWindows.add`.

        Raises
        ------
        AcceleratorLimitError
            If there are more keys than the accelerator has room for, or a row is in a pane that it
            has ended already.
        """
        if not len(panes):
            return
        most = int(keys.max())
        if most >= self._keys:
            raise AcceleratorLimitError(
                f"The input has at least {most + 1} distinct keys, but the accelerator has room "
                f"for {self._keys}",
                "group by fewer columns, generate an accelerator with a larger --key-capacity, or "
                "aggregate without a device",
            )
        if self._origin is not None and int(panes.min()) < self._reached:
            pane, reached = self._time.values_of(
                [int(panes.min()) * self._time.pane, self._reached * self._time.pane]
            )
            raise AcceleratorLimitError(
                f"A row of the pane that begins at {self._time.name!r} {pane} came after a "
                f"watermark, and some of its windows have not ended, but the accelerator has "
                f"ended all panes before {reached}",
                "let watermarks be later, or aggregate without a device",
            )
        self._waiting.append((panes, [keys, *values]))
        if floor is not None:
            self._stage(floor + 1)
            if sum(map(len, self._staged)) >= STAGED_ROWS:
                self._send(self._codec.pack_control("FLUSH"))

    def ended(self, ranks: Int64s, first: int | None, last: int | None) -> WindowStates:
        """See :meth:`OpenWindows.ended`.

        Raises
        ------
        DeviceError
            If the accelerator reports a fault, or makes no progress.
        """
        end = None if last is None else last * self._advance + self._length
        self._stage(end)
        if self._origin is not None:
            if end is None:
                end = self._reached + self._length
            if end > self._origin:
                # A watermark has one bit more than a timestamp; none beyond is needed.
                told = min(end - self._origin, 2 * self._times - 1)
                self._send(
                    np.concatenate(
                        [
                            self._codec.pack_control("WATERMARK", told),
                            self._codec.pack_control("FLUSH"),
                        ]
                    )
                )
                self._reached = max(self._reached, end)
        found = self._found(ranks, first)
        if last is None:
            self._origin = None  # what comes now begins anew
        return found

    def close(self) -> None:
        """End the thread that drives the device, which stays open."""
        self._thread.close()

    def _stage(self, end: int | None) -> None:
        """Stage the rows that wait, of panes before ``end`` or all, in the order of panes."""
        if not self._waiting:
            return
        panes = np.concatenate([panes for panes, _ in self._waiting])
        columns = [
            np.concatenate(parts) for parts in zip(*(at for _, at in self._waiting), strict=True)
        ]
        self._waiting = []
        if end is not None and (panes >= end).any():
            kept, chosen = np.flatnonzero(panes >= end), np.flatnonzero(panes < end)
            self._waiting.append((panes[kept], [column[kept] for column in columns]))
            panes, columns = panes[chosen], [column[chosen] for column in columns]
        if not len(panes):
            return
        if (np.diff(panes) < 0).any():
            order = np.argsort(panes, kind="stable")
            panes, columns = panes[order], [column[order] for column in columns]
        self._pack(panes, columns[0], columns[1:])

    def _pack(self, panes: Int64s, keys: Int64s, values: list[Array]) -> None:
        """Stage rows that are sorted by pane."""
        if self._origin is None:
            self._begin(int(panes[0]))
        assert self._origin is not None
        latest = int(panes[-1]) - self._origin
        if latest >= self._times or latest + self._length >= 2 * self._times:
            raise AcceleratorLimitError(
                f"The rows span {latest + 1} panes of {self._time.pane} units of column "
                f"{self._time.name!r}, but the accelerator's timestamps number {self._times}",
                "generate an accelerator with a larger --timestamp-bits, or aggregate without a "
                "device",
            )
        columns = self._lanes.columns(values)
        if self._lanes.key is not None:
            columns[self._lanes.key] = keys
        self._staged.append(self._codec.pack_tuples(panes - self._origin, columns))
        self._reached = int(panes[-1])

    def _begin(self, pane: int) -> None:
        """Let the accelerator forget everything, and its time begin at or before a pane."""
        self._origin = pane // self._advance * self._advance
        fields = {"PANE": 1, "SIZE": self._length, "ADVANCE": self._advance, "CLEAR": 0}
        self._send(
            np.concatenate([self._codec.pack_control(op, value) for op, value in fields.items()])
        )
        self._cleared, self._arrived = True, []

    def _send(self, control: UInt64s) -> None:
        """Send what is staged and control words, of which the last is answered by the only mark."""
        words = np.concatenate([*self._staged, control])
        self._staged = []
        mark = self._codec.manifest.result_kinds["MARK"]
        answered = False
        while not answered:
            self._thread.begin(words, self._room, cycles=EXCHANGE_CYCLES)
            finished = self._thread.finish(self._deadline.of_exchange)
            self.watch.see(finished)
            words = words[finished.done.accepted :]
            results = self._room[: finished.done.produced].copy()
            if self._cleared:
                self._codec.check(results)
            if len(results):
                self._arrived.append(results)
                answered = bool(self._codec.unpack(results[-1:]).kind[0] == mark)

    def _found(self, ranks: Int64s, first: int | None) -> WindowStates:
        """Return the windows that have arrived, sorted."""
        none = np.zeros((0, self._room.shape[1]), np.uint64)
        results = self._codec.unpack(np.concatenate([none, *self._arrived]))
        self._arrived = []
        begin = results.boundary + (self._origin or 0) - self._length
        chosen = results.kind == self._codec.manifest.result_kinds["VALUE"]
        if first is not None:
            chosen &= begin >= first * self._advance
        window, key = begin[chosen] // self._advance, results.key[chosen]
        order = np.lexsort((ranks[key], window))
        values = {name: column[chosen][order] for name, column in results.window.items()}
        return WindowStates(window[order], key[order], self._lanes.states(values, len(order)))


class DeviceThenHost:
    """Open windows of an accelerator, and of the host from the first rows that it refuses.

    It refuses times, values or keys for which it has no room. The rows of windows that have not
    ended are kept for that, as the accelerator's states of them cannot be read.

    Parameters
    ----------
    device : DeviceWindows
        What the accelerator keeps.
    host : HostWindows
        What goes on; no row has come.
    advance : int
        Panes from the beginning of a window to that of the next one.
    tell : callable
        Told why the accelerator refuses rows, once.
    """

    def __init__(
        self,
        device: DeviceWindows,
        host: HostWindows,
        advance: int,
        tell: Callable[[JoinError], None],
    ) -> None:
        self._device: DeviceWindows | None = device
        self._host = host
        self._advance = advance
        self._tell = tell
        self._kept: list[tuple[Int64s, Int64s, list[Array]]] = []

    def __len__(self) -> int:
        """Return the number of rows or states that the host keeps."""
        return len(self._host) + sum(len(keys) for keys, _, _ in self._kept)

    def add(self, keys: Int64s, panes: Int64s, values: list[Array], floor: int | None) -> None:
        """See :meth:`OpenWindows.add`."""
        if self._device is None:
            self._host.add(keys, panes, values, floor)
            return
        self._kept.append((keys, panes, values))
        try:
            self._device.add(keys, panes, values, floor)
        except REFUSALS as refusal:
            self._go_on(refusal)

    def ended(self, ranks: Int64s, first: int | None, last: int | None) -> WindowStates:
        """See :meth:`OpenWindows.ended`."""
        if self._device is not None:
            try:
                found = self._device.ended(ranks, first, last)
            except REFUSALS as refusal:
                self._go_on(refusal)
            else:
                self._forget(None if last is None else (last + 1) * self._advance)
                return found
        return self._host.ended(ranks, first, last)

    def _go_on(self, refusal: JoinError) -> None:
        self._tell(refusal)
        self._device = None
        kept, self._kept = self._kept, []
        for keys, panes, values in kept:
            self._host.add(keys, panes, values, None)

    def _forget(self, pane: int | None) -> None:
        """Let go of the rows of panes before one that a window to come holds first."""
        kept, self._kept = self._kept, []
        for keys, panes, values in kept:
            needed = panes >= (1 << 62 if pane is None else pane)
            if needed.all():
                self._kept.append((keys, panes, values))
            elif needed.any():
                part = [column[needed] for column in values]
                self._kept.append((keys[needed], panes[needed], part))

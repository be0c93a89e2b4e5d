# SPDX-License-Identifier: Apache-2.0
"""Aggregation over windows of rows that come in pieces, on the host or with an accelerator.

What the rows contribute, and what becomes of the states of a window, is said by an aggregation's
query (:class:`WindowAggregation`) or by a described operator (:mod:`host.operators.operate`). The
windows are kept here, for both.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pyarrow as pa

from host.arrays import Array, Int64s, UInt64s, inverse
from host.columns.times import OrderCheck
from host.columns.windows import TimeColumn, Windows
from host.devices import open_aggregate
from host.devices.bundles import SIMULATED, operator_bundle
from host.devices.simulated import SimulatedAggregate
from host.devices.waiting import Conversation, Deadline, Work
from host.engine.equal_keys import order_by
from host.errors import AcceleratorLimitError, JoinError
from host.expressions import Expression
from host.installation import command
from host.operators.panes import Cells, Combine, WindowStates
from host.operators.states import (
    ROWS,
    AggregateStates,
    KeyNumbers,
    State,
)
from host.operators.windowed import Field, Key, Reduction, WindowedOperator
from host.protocol.codecs import AggregateCodec
from host.protocol.manifest import AggregateManifest
from host.query.queries import BOUNDARIES, AggregateQuery
from host.runtime import ConduitExecStream, Quantum, StreamParams, StreamResult

__all__ = [
    "Aggregate",
    "AggregateParams",
    "Aggregation",
    "DeviceWindows",
    "HostWindows",
    "Lanes",
    "OpenWindows",
    "WindowAggregation",
    "accelerator_of",
]

# The states of windows that have not ended: the contract of who keeps them, and the host.


class OpenWindows(ABC):
    """Rows go in by key and pane; states of windows come out when the windows have ended.

    Attributes
    ----------
    work : Work
        What a device took.
    refusal : JoinError or None
        Why the host goes on in the place of a device; None if it does not.
    """

    work: Work
    refusal: JoinError | None = None

    def __init__(self, windows: Windows) -> None:
        self.length, self.advance = windows.window // windows.pane, windows.advance // windows.pane

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of states or rows that are kept in the host's memory."""

    @abstractmethod
    def add(self, keys: Int64s, panes: Int64s, values: list[Array], floor: int | None) -> None:
        """Take rows.

        Parameters
        ----------
        keys, panes : array of int64
            Number of each row's key, and of its pane.
        values : list of array
            What the rows contribute to each state.
        floor : int or None
            No later row is in a pane below this one; None if nothing is known.
        """

    @abstractmethod
    def ended(self, ranks: Int64s, first: int | None, last: int | None) -> WindowStates:
        """Return the states of windows that have ended, sorted by window and rank of the key.

        Parameters
        ----------
        ranks : array of int64
            Place of each key among all of them.
        first, last : int or None
            Numbers of the windows; None for those of the first and the last row. Windows up to
            ``last`` are not asked for again.
        """

    @abstractmethod
    def panes(self) -> Cells:
        """Return the states of panes; of a device, if its windows are no longer than a pane."""

    def floor(self, last: int) -> int:
        """Return the first pane whose rows count in a window behind ``last``."""
        return (last + 1) * self.advance


class HostWindows(OpenWindows):
    """The states of keys in panes, and only of panes that a window to come still holds.

    Parameters
    ----------
    windows : Windows
    combines : sequence of Combine
        Combination of each state.
    """

    def __init__(self, windows: Windows, combines: Sequence[Combine]) -> None:
        super().__init__(windows)
        self.combines = combines
        self.cells = Cells.none(len(combines))
        self.work = Work()

    def __len__(self) -> int:
        """Return the number of states."""
        return len(self.cells)

    def add(self, keys: Int64s, panes: Int64s, values: list[Array], floor: int | None) -> None:
        """See :meth:`OpenWindows.add`."""
        del floor
        self.cells = self.cells.with_tuples(keys, panes, values, self.combines)

    def ended(self, ranks: Int64s, first: int | None, last: int | None) -> WindowStates:
        """See :meth:`OpenWindows.ended`."""
        cells = self.cells
        # Keys are renumbered by their order, so that results come sorted: there are many more
        # results than cells.
        cells = Cells(ranks[cells.key], cells.pane, cells.states)
        if not self.length == self.advance == 1:
            order = order_by(cells.key)
            states = tuple(at[order] for at in cells.states)
            cells = Cells(cells.key[order], cells.pane[order], states)
        found = cells.windows(self.length, self.advance, self.combines, first=first, last=last)
        none = Cells.none(len(self.combines))
        self.cells = none if last is None else self.cells.after(self.floor(last))
        return WindowStates(found.window, inverse(ranks)[found.key], found.states)

    def panes(self) -> Cells:
        """See :meth:`OpenWindows.panes`."""
        return self.cells


# Which reductions of an accelerator are the states of a query, and which fields carry the values.
#
# An accelerator is generated for an operator with names and expressions of its own. A reduction
# that reads nothing but one field can be a state of any column: the host puts what the column's
# rows contribute into the field. A null contributes what changes no state, so two states of a
# column with nulls need a field each. Without nulls they can share one, and the number of rows is
# that of values.


class Lanes:
    """Fields of the words of an operator's accelerator, and its reductions.

    Parameters
    ----------
    operator : WindowedOperator
        What the accelerator computes.

    Attributes
    ----------
    key : str or None
        The field into which the host puts the number of a key; None if there is none, or if the
        accelerator finds the keys.
    reads_time : bool
        Whether the accelerator needs the times themselves, which are the last column of the values;
        otherwise, numbers of panes do.
    """

    def __init__(self, operator: WindowedOperator) -> None:
        self.operator = operator
        self.key: str | None = None
        self.reads_time = operator.reads_time

    def columns(self, values: Sequence[Array]) -> dict[str, Int64s]:
        """Return the fields of tuples, but for the key."""
        return {one.name: at for one, at in zip(self.operator.fields, values, strict=True)}

    def states(self, window: Mapping[str, Int64s], count: int) -> tuple[Array, ...]:
        """Return the states of so many windows from their reductions."""
        del count
        return tuple(window[one.name] for one in self.operator.reductions)


class QueryLanes(Lanes):
    """The places of a query's states in the words of an accelerator.

    Parameters
    ----------
    operator : WindowedOperator
        What the accelerator computes.
    values : AggregateStates
        The states of the query.
    keyed : bool
        Whether the query has keys.

    Raises
    ------
    AcceleratorLimitError
        If the accelerator does not compute what the query needs.
    """

    def __init__(self, operator: WindowedOperator, values: AggregateStates, *, keyed: bool) -> None:
        super().__init__(operator)
        self._values = values
        _require_plain_results(operator)
        self.key, self.reads_time = _key_field(operator, keyed=keyed), False
        self._fields = {field.name: field for field in operator.fields if field.name != self.key}
        self._reductions = {
            name: {
                one.function: one.name
                for one in operator.reductions
                if one.function != "count" and str(one.value) == name
            }
            for name in self._fields
        }
        counting = (one.name for one in operator.reductions if one.function == "count")
        self._count = next(counting, None)
        self._field_of: dict[State, str] = {}
        self._assign()

    def columns(self, values: Sequence[Array]) -> dict[str, Int64s]:
        """Return the fields of tuples, but for the key, from what rows contribute to each state.

        Raises
        ------
        AcceleratorLimitError
            If a value does not fit its field, or is a null that the accelerator cannot leave out.
        """
        given = dict(zip(self._values.states, values, strict=True))
        columns = {name: np.zeros(len(values[0]), np.int64) for name in self._fields}
        for state, name in self._field_of.items():
            function, column = state
            numbers, lane = given[state], self._fields[name]
            if column is not None and function != "count":
                valid = given["count", column].astype(np.bool_)
                if numbers.dtype == np.uint64:
                    _require_range(column, numbers[valid], lane)
                    numbers = numbers.astype(np.int64)  # nulls are replaced below
                if not valid.all():
                    shared = [*self._field_of.values()].count(name) > 1
                    if shared or ("count", column) not in self._field_of:
                        self._refuse_null(column)
                    nothing = {"sum": 0, "min": lane.range.high, "max": lane.range.low}
                    numbers = np.where(valid, numbers, nothing[function])
                _require_range(column, numbers, lane)
            columns[name] = numbers.astype(np.int64)
        for state in self._values.states:
            if state not in self._field_of and state != ROWS and not given[state].all():
                self._refuse_null(str(state[1]))
        return columns

    def states(self, window: Mapping[str, Int64s], count: int) -> tuple[Array, ...]:
        """Return the states of the query from the reductions of so many windows."""

        def sent(state: State) -> Array:
            name, function = self._field_of[state], state[0]
            return window[self._reductions[name]["sum" if function == "count" else function]]

        rows: Array = np.ones(count, np.int64) if self._count is None else window[self._count]
        rows = sent(ROWS) if ROWS in self._field_of else rows
        return tuple(sent(at) if at in self._field_of else rows for at in self._values.states)

    def _assign(self) -> None:
        """Give each state that needs one a field, states of one column different ones if possible.

        Numbers of values come last: a column without nulls needs none.
        """
        numbers = [state for state in self._values.states if state[0] != "count"]
        by_column: dict[str | None, list[State]] = {}
        for state in numbers:
            by_column.setdefault(state[1], []).append(state)
            if self._values.is_float(str(state[1])):
                raise AcceleratorLimitError(
                    f"Column {state[1]!r} has floats, but accelerators reduce integers",
                    "cast it to integers of a smaller unit, or aggregate without a device",
                )
        if not self._match([[state] for state in numbers]) and not self._match(by_column.values()):
            self._refuse(numbers)
        shown = self._values.shown_counts
        counts = [state for state in self._values.states if state[0] == "count" and state != ROWS]
        for state in sorted(counts, key=lambda state: state not in shown):
            self._match([[state]])
            if state in shown and state not in self._field_of:
                shown = shown | {ROWS}
        if ROWS in shown and self._count is None and not self._match([[ROWS]]):
            self._refuse([ROWS])

    def _match(self, wants: Collection[Sequence[State]]) -> bool:
        """Give each of these states a field of their own, or none any; return whether it worked.

        A matching of wants and fields, which grows along augmenting paths.
        """
        owners: dict[str, Sequence[State]] = {}
        taken = set(self._field_of.values())

        def place(want: Sequence[State], tried: set[str]) -> bool:
            (function, column), *_ = want
            needed = {"sum" if function == "count" else function for function, _ in want}
            least = 1 if function == "count" else 0  # that the field has to hold
            # A narrow field is left to numbers of values, if there is a wider one.
            order = sorted(self._fields.values(), key=lambda one: (one.name != column, -one.bits))
            for name in (one.name for one in order):
                fits = needed <= self._reductions[name].keys()
                fits &= self._fields[name].range.high >= least
                if not fits or name in taken or name in tried:
                    continue
                tried.add(name)
                if name not in owners or place(owners[name], tried):
                    owners[name] = want
                    return True
            return False

        if not all(place(want, set()) for want in wants):
            return False
        self._field_of |= {state: name for name, want in owners.items() for state in want}
        return True

    def _refuse_null(self, column: str) -> None:
        raise AcceleratorLimitError(
            f"Column {column!r} has a null, and operator {self.operator.name!r} of the "
            f"accelerator has no field for each of its reductions, and another one to count values",
            "leave out rows with nulls, generate an operator with a sum over one more field of 1 "
            "bit, or aggregate without a device",
        )

    def _refuse(self, states: Sequence[State]) -> None:
        needed = ", ".join(f"{function}({column or '*'})" for function, column in states)
        has = ", ".join(f"{one.function}({one.value})" for one in self.operator.reductions)
        raise AcceleratorLimitError(
            f"The query needs {needed}, but operator {self.operator.name!r} of the accelerator "
            f"computes {has}",
            "generate an accelerator for an operator with a field for each of them, or aggregate "
            "without a device",
        )


def _require_plain_results(operator: WindowedOperator) -> None:
    """Raise for an operator that gives something else than its reductions, of every window.

    An accelerator sends the reductions, and the query says what is computed of them, so nobody
    would compute the operator's outputs, or leave windows out.
    """
    shown = {str(one.name): (one.value.text, one.per) for one in operator.outputs or ()}
    own = []
    if shown != {one.name: (one.name, None) for one in operator.reductions}:
        texts = (
            f"{name} = {at}" + f" / {per}" * (per is not None) for name, (at, per) in shown.items()
        )
        own.append(f"`outputs` of its own ({', '.join(texts)})")
    if operator.having is not None:
        own.append(f"`having` ({operator.having})")
    if own:
        raise AcceleratorLimitError(
            f"Operator {operator.name!r} of the accelerator has {' and '.join(own)}, but a query "
            f"gets the aggregates that it names, of every window",
            f"run the operator itself, `{command('host operate')}`, or generate an accelerator for "
            f"it without them, ask for a mean as an aggregate, and filter the result; or aggregate "
            f"without a device",
        )


def _key_field(operator: WindowedOperator, *, keyed: bool) -> str | None:
    """Return the field that is an operator's key, if it has keys."""
    if not operator.keys and not keyed:
        return None
    parts = [part.text for key in operator.keys for part in key.parts]
    conditional = any(key.when is not None for key in operator.keys)
    names = {field.name for field in operator.fields}
    if len(parts) != 1 or parts[0] not in names or conditional:
        raise AcceleratorLimitError(
            f"The query's keys need an operator whose tuples have one field as their key, but that "
            f"of operator {operator.name!r} of the accelerator is {parts}",
            f"run the operator itself, `{command('host operate')}`, generate an accelerator for "
            f"one with such a key, or aggregate without a device",
        )
    return parts[0]


def _require_range(column: str, numbers: Array, field: Field) -> None:
    if not len(numbers):
        return
    low, high = int(numbers.min()), int(numbers.max())
    if low < field.range.low or high > field.range.high:
        raise AcceleratorLimitError.out_of_range(
            column,
            low if low < field.range.low else high,
            field.range.low,
            field.range.high,
            remedy=f"use an accelerator with a wider field {field.name!r}",
        )


# Windows that an accelerator keeps: rows become words, and its results the states of windows.

#: Rows that are staged before the accelerator gets them.
STAGED_ROWS = 1 << 16
#: Result words, and most clock cycles, of an exchange.
RESULT_WORDS, EXCHANGE_CYCLES = 1 << 16, 1 << 20


def require_panes(manifest: AggregateManifest, windows: Windows) -> None:
    """Raise unless an accelerator holds so many panes as a window has.

    Raises
    ------
    AcceleratorLimitError
        If its windows are too short.
    """
    length = windows.window // windows.pane
    if length > manifest.panes:
        raise AcceleratorLimitError(
            f"Windows of {windows.window} that begin every {windows.advance} units of column "
            f"{windows.name!r} have {length} panes, but those of the accelerator at most "
            f"{manifest.panes}",
            "choose an advance that divides the window into fewer, generate an accelerator "
            "with a larger --panes, or aggregate without a device",
        )


class DeviceWindows(OpenWindows):
    """Open windows of an accelerator.

    Its unit of time is a pane, counted from a beginning of a window. It gets the rows of a pane
    when no more can come, or when the input is known to be in order; until then, they wait here.

    Parameters
    ----------
    windows : Windows
    lanes : Lanes
        What stands in the words.
    device : SimulatedAggregate
        An open device, which nobody else uses, and which has nothing left to answer.
    deadline : Deadline
        Longest time without progress.
    work : Work, optional
        What the accelerator takes is added to it; by default to a new one.

    Attributes
    ----------
    keys : int
        How many keys it has room for.

    Raises
    ------
    AcceleratorLimitError
        If the windows of the accelerator are too short.
    """

    def __init__(
        self,
        windows: Windows,
        lanes: Lanes,
        device: SimulatedAggregate,
        deadline: Deadline,
        work: Work | None = None,
    ) -> None:
        manifest = device.manifest
        require_panes(manifest, windows)
        super().__init__(windows)
        self._time = windows
        self.keys = manifest.keys
        self._lanes = lanes
        # Length of a pane in the accelerator's own units of time.
        self._scale = windows.pane if lanes.reads_time else 1
        self._codec = AggregateCodec(manifest)
        self._times = 1 << manifest.input_word["tuple.timestamp"].bits
        self._room = np.zeros((RESULT_WORDS, manifest.result_word.columns), np.uint64)
        self._talk = Conversation(
            device, deadline, self._codec.marks, self._room, EXCHANGE_CYCLES, work
        )
        self.work = self._talk.work
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
        if most >= self.keys:
            raise AcceleratorLimitError(
                f"The input has at least {most + 1} distinct keys, but the accelerator has room "
                f"for {self.keys}",
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
                self._send({"FLUSH": 0})

    def ended(self, ranks: Int64s, first: int | None, last: int | None) -> WindowStates:
        """See :meth:`OpenWindows.ended`.

        Raises
        ------
        DeviceError
            If the accelerator reports a fault, or makes no progress.
        """
        end = None if last is None else last * self.advance + self.length
        self._stage(end)
        if self._origin is not None:
            if end is None:
                end = self._reached + self.length
            if end > self._origin:
                # A watermark has one bit more than a timestamp; none beyond is needed.
                told = min((end - self._origin) * self._scale, 2 * self._times - 1)
                self._send({"WATERMARK": told, "FLUSH": 0})
                self._reached = max(self._reached, end)
        found = self._found(ranks, first)
        if last is None:
            self._origin = None  # what comes now begins anew
        return found

    def panes(self) -> Cells:
        """See :meth:`OpenWindows.panes`."""
        found = self.ended(np.arange(self.keys), None, None)
        return Cells(found.key, found.window, found.states)

    def close(self) -> None:
        """End the thread that drives the device, which stays open."""
        self._talk.close()

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
        latest, scale = int(panes[-1]) - self._origin, self._scale
        ends = (latest + 1) * scale > self._times
        ends |= (latest + self.length) * scale >= 2 * self._times
        if ends or int(panes[0]) < self._origin:
            raise AcceleratorLimitError(
                f"The rows span {latest + 1} panes of {self._time.pane} units of column "
                f"{self._time.name!r}, but the accelerator's timestamps number {self._times}",
                "generate an accelerator with a larger --timestamp-bits, or aggregate without a "
                "device",
            )
        times = panes - self._origin
        if self._lanes.reads_time:
            *values, times = values
        columns = self._lanes.columns(values)
        if self._lanes.key is not None:
            columns[self._lanes.key] = keys
        self._staged.append(self._codec.pack_tuples(times, columns))
        self._reached = int(panes[-1])

    def _begin(self, pane: int) -> None:
        """Let the accelerator forget everything, and its time begin at or before a pane."""
        self._origin = 0 if self._lanes.reads_time else pane // self.advance * self.advance
        self._send({"PANE": self._scale, "SIZE": self.length, "ADVANCE": self.advance, "CLEAR": 0})
        self._cleared, self._arrived = True, []

    def _send(self, control: Mapping[str, int]) -> None:
        """Send what is staged and control words, of which the last is answered by the only mark."""
        words = [*self._staged]
        words += [self._codec.pack_control(op, value=value) for op, value in control.items()]
        self._staged = []
        check = self._codec.check if self._cleared else None
        self._arrived.append(self._talk.send(np.concatenate(words), check=check))

    def _found(self, ranks: Int64s, first: int | None) -> WindowStates:
        """Return the windows that have arrived, sorted."""
        none = np.zeros((0, self._room.shape[1]), np.uint64)
        results = self._codec.fields(np.concatenate([none, *self._arrived]))
        self._arrived = []
        begin = results["boundary"] // self._scale + (self._origin or 0) - self.length
        chosen = results["kind"] == self._codec.manifest.result_kinds["VALUE"]
        if first is not None:
            chosen &= begin >= first * self.advance
        window, key = begin[chosen] // self.advance, results["key"][chosen]
        order = np.lexsort((ranks[key], window))
        values = {
            name.removeprefix("window."): column[chosen][order]
            for name, column in results.items()
            if name.startswith("window.")
        }
        return WindowStates(window[order], key[order], self._lanes.states(values, len(order)))


class DeviceThenHost(HostWindows):
    """Open windows of an accelerator, and of the host from the first rows that it refuses.

    It refuses times, values or keys for which it has no room. The rows of windows that have not
    ended are kept for that, as the accelerator's states of them cannot be read.

    Parameters
    ----------
    windows, combines
        As for the host's.
    device : DeviceWindows
        What the accelerator keeps.
    """

    def __init__(
        self, windows: Windows, combines: Sequence[Combine], device: DeviceWindows
    ) -> None:
        super().__init__(windows, combines)
        self._device, self.work = device, device.work
        self._kept: list[tuple[Int64s, Int64s, list[Array]]] = []

    def __len__(self) -> int:
        """Return the number of rows or states that the host keeps."""
        return super().__len__() + sum(len(keys) for keys, _, _ in self._kept)

    def add(self, keys: Int64s, panes: Int64s, values: list[Array], floor: int | None) -> None:
        """See :meth:`OpenWindows.add`."""
        if self.refusal is not None:
            super().add(keys, panes, values, floor)
            return
        self._kept.append((keys, panes, values))
        try:
            self._device.add(keys, panes, values, floor)
        except AcceleratorLimitError as refusal:
            self._go_on(refusal)

    def ended(self, ranks: Int64s, first: int | None, last: int | None) -> WindowStates:
        """See :meth:`OpenWindows.ended`."""
        if self.refusal is None:
            try:
                found = self._device.ended(ranks, first, last)
            except AcceleratorLimitError as refusal:
                self._go_on(refusal)
            else:
                self._forget(None if last is None else self.floor(last))
                return found
        return super().ended(ranks, first, last)

    def _go_on(self, refusal: JoinError) -> None:
        self.refusal = refusal
        kept, self._kept = self._kept, []
        for keys, panes, values in kept:
            super().add(keys, panes, values, None)

    def _forget(self, pane: int | None) -> None:
        """Let go of the rows of panes before one that a window to come holds first."""
        kept, self._kept = self._kept, []
        for keys, panes, values in kept:
            needed = panes >= (1 << 62 if pane is None else pane)
            if needed.any():
                self._kept.append((keys[needed], panes[needed], [at[needed] for at in values]))


# Aggregation over windows of rows that come in pieces: results leave as windows end.


class Aggregation(ABC):
    """An aggregation whose rows come in pieces; a context manager.

    Results come in the order of (window, key), keys ascending and nulls last.

    Parameters
    ----------
    time : TimeColumn
        The column of time, and the windows over it.
    keys : KeyNumbers
        The keys.
    schema : pa.Schema
        Columns of the results.
    since : int, optional
        A watermark that rows have reached before these, in units of the column.

    Attributes
    ----------
    schema : pa.Schema
        Columns of the results.
    rows, results : int
        Rows that have come, and results that have left.
    late_rows : int
        Rows that were left out, because all their windows had ended.
    """

    windows: OpenWindows

    def __init__(
        self, time: TimeColumn, keys: KeyNumbers, schema: pa.Schema, since: int | None = None
    ) -> None:
        self.time, self.keys, self.schema = time, keys, schema
        self.closing = ExitStack()
        #: Number of the last window that has ended.
        self._done = None if since is None else time.last_ended(since)
        self._order = OrderCheck(time.column)
        self.rows = self.results = self.late_rows = 0

    @abstractmethod
    def entries(self, batch: pa.RecordBatch, times: Int64s) -> tuple[Int64s, Int64s, list[Array]]:
        """Return the time, the number of the key and the contributions of each key of each row."""

    @abstractmethod
    def columns(self, found: WindowStates) -> list[pa.Array]:
        """Return the results of windows."""

    @property
    def held(self) -> int:
        """Number of states or rows that the host keeps, which is what memory grows with."""
        return len(self.windows)

    @property
    def device_work(self) -> Work:
        """What an accelerator took; nothing if there is none."""
        return self.windows.work

    @property
    def refusal(self) -> JoinError | None:
        """Why the host went on in the place of an accelerator; None if it did not."""
        return self.windows.refusal

    def rows_in_order(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Take the next rows, which are sorted by time; return results of windows that they end.

        Raises
        ------
        OrderError
            If a time is less than the one before it.
        """
        self._order.see(batch)
        times = self.time.read(batch, self.rows)
        if not len(times):
            return self._results(None)
        last = int(times[-1])
        self._add(batch, times, floor=last // self.time.pane)
        return self.ended(last)

    def rows_until(self, batch: pa.RecordBatch, time: object) -> pa.RecordBatch:
        """Take more rows in any order; return results of the windows that a watermark ends.

        No row that comes later should have a time less than ``time``, a value of the column of time
        and the watermark; one that has is left out of windows that have ended.
        """
        self.more_rows(batch)
        return self.ended(self.time.units(time))

    def more_rows(self, batch: pa.RecordBatch) -> None:
        """Take more rows in any order, without a watermark."""
        self._add(batch, self.time.read(batch, self.rows))

    def last_rows(self, batch: pa.RecordBatch | None = None) -> pa.RecordBatch:
        """Take the last rows; return the results of all windows that are left."""
        if batch is not None:
            self.more_rows(batch)
        return self._results(self._windows(None))

    def ended(self, watermark: int) -> pa.RecordBatch:
        """Return the results of the windows that end at or before a time; forget what is done."""
        last = self.time.last_ended(watermark)
        if self._done is not None and last <= self._done:
            return self._results(None)
        found = self._windows(last)
        self._done = last
        return self._results(found)

    def close(self) -> None:
        """Close an accelerator, if one has been opened here."""
        self.closing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _add(self, batch: pa.RecordBatch, times: Int64s, floor: int | None = None) -> None:
        """Add rows with these times to the states."""
        if len(times):
            times, keys, values = self.entries(batch, times)
            self.add(keys, times // self.time.pane, values, floor)
        self.rows += batch.num_rows

    def add(
        self, keys: Int64s, panes: Int64s, values: list[Array], floor: int | None = None
    ) -> None:
        """Add contributions to the states, but for those that are late."""
        if self._done is not None:
            open_ = panes >= self.windows.floor(self._done)
            self.late_rows += int(np.count_nonzero(~open_))
            if not open_.all():
                keys, panes, values = keys[open_], panes[open_], [at[open_] for at in values]
        self.windows.add(keys, panes, values, floor)

    def _windows(self, last: int | None) -> WindowStates:
        first = None if self._done is None else self._done + 1
        return self.windows.ended(self.keys.ranks(), first, last)

    def _results(self, found: WindowStates | None) -> pa.RecordBatch:
        if found is None or not len(found.window):
            # Not from lists: Arrow makes no dictionaries of decimals out of these.
            nothing = [pa.nulls(0, kind) for kind in self.schema.types]
            return pa.RecordBatch.from_arrays(nothing, schema=self.schema)
        batch = pa.RecordBatch.from_arrays(self.columns(found), schema=self.schema)
        self.results += batch.num_rows
        return batch


class WindowAggregation(Aggregation):
    """The aggregation that a query asks for.

    The columns of the results are the boundaries of the window, the keys, and the aggregates.

    Parameters
    ----------
    schema : pa.Schema
        Columns of the input.
    query : AggregateQuery
        The aggregation.
    device : str or SimulatedAggregate, optional
        The accelerator that keeps the windows: its address, and then it is open from the beginning
        until :meth:`close`, or one that is open and stays so. By default, the host keeps them.
    deadline : Deadline
        Longest time without progress of the accelerator.
    goes_on : bool
        Whether the host goes on from the first rows for which the accelerator has no room; by
        default, these are an error.

    Raises
    ------
    UsageError
        If the query does not suit the columns, or the accelerator cannot serve it.
    DeviceError
        If the accelerator does not open.
    """

    def __init__(
        self,
        schema: pa.Schema,
        query: AggregateQuery,
        device: SimulatedAggregate | str | None = None,
        deadline: Deadline | None = None,
        *,
        goes_on: bool = False,
    ) -> None:
        time = TimeColumn(schema, query.time, query.window, query.advance)
        keys = KeyNumbers(schema, query.on)
        self.query = query
        self._values = AggregateStates(schema, query.aggregates, parts=query.parts)
        columns = [(name, time.type) for name in BOUNDARIES]
        columns += [(field.name, field.type) for field in [*keys.schema, *self._values.schema]]
        super().__init__(time, keys, pa.schema(columns))
        if device is None:
            self.windows = HostWindows(time, self._values.combines)
            return
        with ExitStack() as held:
            if isinstance(device, str):
                address = accelerator_of(schema, query, device)
                device = held.enter_context(closing(open_aggregate(address)))
            lanes = self.lanes(device.manifest)
            kept = DeviceWindows(time, lanes, device, deadline or Deadline())
            held.enter_context(closing(kept))
            self.windows = DeviceThenHost(time, self._values.combines, kept) if goes_on else kept
            self.closing = held.pop_all()

    def lanes(self, manifest: AggregateManifest) -> Lanes:
        """Return where an accelerator computes the states of the query.

        Raises
        ------
        AcceleratorLimitError
            If the accelerator does not compute what the query needs, or its windows are too short.
        """
        require_panes(manifest, self.time)
        operator = WindowedOperator.from_dict(manifest.operator)
        return QueryLanes(operator, self._values, keyed=bool(self.query.on))

    def entries(self, batch: pa.RecordBatch, times: Int64s) -> tuple[Int64s, Int64s, list[Array]]:
        """See :meth:`Aggregation.entries`."""
        return times, self.keys.of_rows(batch), self._values.of_rows(batch)

    def columns(self, found: WindowStates) -> list[pa.Array]:
        """See :meth:`Aggregation.columns`."""
        return [
            *self.time.boundaries(found.window),
            *self.keys.rows(found.key),
            *self._values.results(found.states),
        ]


#: Width of the number of a key, and of a value, in an accelerator that is generated for a query.
_KEY_BITS = 12
_VALUE_BITS = 32


def accelerator_of(schema: pa.Schema, query: AggregateQuery, device: str) -> str:
    """Return the address of the accelerator that a query names.

    ``"sim:"`` is one that is generated for the query, unless its bundle is here. There is room in
    it for 4,096 keys, which may have any number of columns, and for values of 32 bits.

    Raises
    ------
    AcceleratorLimitError
        If no accelerator can compute what the query needs.
    MissingToolError, BuildError
        If the bundle must be built and cannot be.
    """
    if device != SIMULATED:
        return device
    time = TimeColumn(schema, query.time, query.window, query.advance)
    values = AggregateStates(schema, query.aggregates, parts=query.parts)
    operator = _operator_of(time, values, keyed=bool(query.on))
    QueryLanes(operator, values, keyed=bool(query.on))  # raises if it does not suit
    return f"{SIMULATED}{operator_bundle(operator.to_dict())}"


def _operator_of(time: Windows, values: AggregateStates, *, keyed: bool) -> WindowedOperator:
    """Return the operator of a query: a field for each state, and one that counts the values."""
    fields = [Field("key", _KEY_BITS, signed=False)] if keyed else []
    reductions = [Reduction("rows", "count")]
    for number, (function, _) in enumerate(state for state in values.states if state != ROWS):
        name = f"v{number}"
        is_count = function == "count"
        fields.append(Field(name, 1, signed=False) if is_count else Field(name, _VALUE_BITS))
        function = "sum" if is_count else function
        reductions.append(Reduction(f"r{number}", function, Expression(name)))
    return WindowedOperator(
        name="query",
        size=time.window // time.pane,
        advance=time.advance // time.pane,
        fields=tuple(fields) or (Field("nothing", 1, signed=False),),
        keys=(Key((Expression("key"),)),) if keyed else (),
        reductions=tuple(reductions),
    )


# Aggregation over windows of time as a stream.


@dataclass(frozen=True)
class AggregateParams(StreamParams):
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
    """

    work: WindowAggregation

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._open = ExitStack()

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._ended = False
        params = self.params
        self.work = WindowAggregation(params.schema, params.query, params.device, params.deadline)
        self._open.enter_context(self.work)

    def execute(self, quantum: Quantum) -> StreamResult:
        return self.hand_on(quantum, self._next)

    def close_impl(self) -> None:
        self._open.close()

    def _next(self) -> pa.RecordBatch | StreamResult:
        while not self.input.at_end:
            if not self.input.demand():
                return StreamResult.BUF_UNDERFLOW
            batch, rows = self.input.access(), None
            if self.params.in_order:
                rows = self.work.rows_in_order(batch)
            else:
                self.work.more_rows(batch)
            self.input.consume()
            if rows is not None:
                return rows
        if self._ended:
            return self.finish()
        self._ended = True
        return self.work.last_rows()

# SPDX-License-Identifier: Apache-2.0
"""Aggregation with an accelerator that keeps the windows, and aggregation as a stream."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.devices import open_aggregate
from host.devices.simulated import SimulatedAggregate
from host.devices.software import REFUSALS
from host.devices.waiting import Conversation, Deadline, Work
from host.errors import AcceleratorLimitError, JoinError, KeyRangeError
from host.operators.aggregate import (
    ROWS,
    AggregateStates,
    Array,
    HostWindows,
    OpenWindows,
    State,
    TimeColumn,
    WindowAggregation,
)
from host.operators.panes import WindowStates
from host.operators.windowed import Field, WindowedOperator
from host.protocol.codecs import AggregateCodec
from host.protocol.manifest import AggregateManifest
from host.query.queries import AggregateQuery
from host.reference.arrivals import UInt64s
from host.runtime import ConduitExecStream, ConduitParams, Quantum, StreamResult

__all__ = [
    "Aggregate",
    "AggregateParams",
    "DeviceAggregation",
    "DeviceThenHost",
    "DeviceWindows",
    "Lanes",
    "Panes",
    "WordLanes",
    "require_panes",
    "require_suitable",
    "suitable_lanes",
]

# Which reductions of an accelerator are the states of a query, and which fields carry the values.
#
# An accelerator is generated for an operator with names and expressions of its own. A reduction
# that reads nothing but one field can be a state of any column: the host puts what the column's
# rows contribute into the field. A null contributes what changes no state, so two states of a
# column with nulls need a field each. Without nulls they can share one, and the number of rows is
# that of values.

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Want:
    """States that have to come from one field: a column's functions, or one number per row."""

    column: str | None
    functions: tuple[str, ...]
    states: tuple[State, ...]


class Lanes:
    """The places of a query's states in the words of an accelerator.

    Parameters
    ----------
    operator : WindowedOperator
        What the accelerator computes.
    values : AggregateStates
        The states of the query.
    keyed : bool
        Whether the query has keys.

    Attributes
    ----------
    key : str or None
        The field of the key, if the operator has keys.

    Raises
    ------
    AcceleratorLimitError
        If the accelerator does not compute what the query needs.
    """

    def __init__(self, operator: WindowedOperator, values: AggregateStates, *, keyed: bool) -> None:
        self._operator, self._values = operator, values
        _require_plain_results(operator)
        self.key = _key_field(operator, keyed=keyed)
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

    #: Numbers of panes are all that a query's accelerator has to know of time.
    reads_time = False

    def columns(self, values: Sequence[Array]) -> dict[str, Int64s]:
        """Return the fields of tuples, but for the key, from what rows contribute to each state.

        Raises
        ------
        KeyRangeError
            If a value does not fit its field.
        AcceleratorLimitError
            If there is a null that the accelerator cannot leave out.
        """
        given = dict(zip(self._values.states, values, strict=True))
        rows = len(values[0])
        columns = {name: np.zeros(rows, np.int64) for name in self._fields}
        for state, name in self._field_of.items():
            function, column = state
            numbers = given[state]
            if column is not None and function != "count":
                valid = given["count", column].astype(np.bool_)
                if numbers.dtype == np.uint64:
                    _require_range(column, numbers[valid], self._fields[name])
                    numbers = numbers.astype(np.int64)  # nulls are replaced below
                if not valid.all():
                    self._require_lanes(state)
                    numbers = np.where(valid, numbers, _neutral(function, self._fields[name]))
                _require_range(column, numbers, self._fields[name])
            columns[name] = numbers.astype(np.int64)
        for state in self._values.states:
            if state not in self._field_of and state != ROWS and not given[state].all():
                self._refuse_null(str(state[1]))
        return columns

    def states(self, window: Mapping[str, Int64s], count: int) -> tuple[Array, ...]:
        """Return the states of the query from the reductions of so many windows."""
        rows = np.ones(count, np.int64) if self._count is None else window[self._count]
        if ROWS in self._field_of:
            rows = window[self._reductions[self._field_of[ROWS]]["sum"]]
        found = []
        for state in self._values.states:
            name = self._field_of.get(state)
            function = "sum" if state[0] == "count" else state[0]
            found.append(rows if name is None else window[self._reductions[name][function]])
        return tuple(found)

    def _assign(self) -> None:
        """Give each state that needs one a field, states of one column different ones if possible.

        Numbers of values come last: a column without nulls needs none.
        """
        numbers = [state for state in self._values.states if state[0] != "count"]
        for _, column in numbers:
            if self._values.is_float(str(column)):
                raise AcceleratorLimitError(
                    f"Column {column!r} has floats, but accelerators reduce integers",
                    "cast it to integers of a smaller unit, or aggregate without a device",
                )
        alone = [_Want(column, (function,), ((function, column),)) for function, column in numbers]
        if not self._match(alone):
            by_column: dict[str | None, list[State]] = {}
            for state in numbers:
                by_column.setdefault(state[1], []).append(state)
            shared = [
                _Want(column, tuple(function for function, _ in states), tuple(states))
                for column, states in by_column.items()
            ]
            if not self._match(shared):
                self._refuse(numbers)
        shown = self._values.shown_counts
        counts = [state for state in self._values.states if state[0] == "count" and state != ROWS]
        for state in sorted(counts, key=lambda state: state not in shown):
            self._match([_Want(state[1], ("sum",), (state,))])
            if state in shown and state not in self._field_of:
                shown = shown | {ROWS}
        ones = _Want(None, ("sum",), (ROWS,))
        if ROWS in shown and self._count is None and not self._match([ones]):
            self._refuse([ROWS])

    def _match(self, wants: Iterable[_Want]) -> bool:
        """Give each of these a field of its own, or none of them any; return whether it worked.

        A matching of wants and fields, which grows along augmenting paths.
        """
        owners: dict[str, _Want] = {}
        taken = set(self._field_of.values())

        def place(want: _Want, tried: set[str]) -> bool:
            for name in sorted(self._fields, key=lambda name: name != want.column):
                fits = set(want.functions) <= self._reductions[name].keys()
                if not fits or name in taken or name in tried or not self._holds(want, name):
                    continue
                tried.add(name)
                if name not in owners or place(owners[name], tried):
                    owners[name] = want
                    return True
            return False

        if not all(place(want, set()) for want in wants):
            return False
        for name, want in owners.items():
            self._field_of.update(dict.fromkeys(want.states, name))
        return True

    def _holds(self, want: _Want, name: str) -> bool:
        """Return whether a field holds 1, if that is what it has to carry."""
        return want.states[0][0] != "count" or self._fields[name].range.high >= 1

    def _require_lanes(self, state: State) -> None:
        """Raise unless a null of the state's column can be left out."""
        column = str(state[1])
        shares = [at for at, name in self._field_of.items() if name == self._field_of[state]]
        if len(shares) > 1 or ("count", column) not in self._field_of:
            self._refuse_null(column)

    def _refuse_null(self, column: str) -> None:
        raise AcceleratorLimitError(
            f"Column {column!r} has a null, and operator {self._operator.name!r} of the "
            f"accelerator has no field for each of its reductions, and another one to count values",
            "leave out rows with nulls, generate an operator with a sum over one more field of 1 "
            "bit, or aggregate without a device",
        )

    def _refuse(self, states: Sequence[State]) -> None:
        needed = ", ".join(f"{function}({column or '*'})" for function, column in states)
        has = ", ".join(f"{one.function}({one.value})" for one in self._operator.reductions)
        raise AcceleratorLimitError(
            f"The query needs {needed}, but operator {self._operator.name!r} of the accelerator "
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
            "generate an accelerator for the operator without them, ask for a mean as an "
            "aggregate, and filter the result; or aggregate without a device",
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
            "generate an accelerator for such an operator, or aggregate without a device",
        )
    return parts[0]


def _neutral(function: str, field: Field) -> int:
    """Return what a null puts into a field, which changes no state that has a value."""
    return {"sum": 0, "min": field.range.high, "max": field.range.low}[function]


def _require_range(column: str, numbers: Array, field: Field) -> None:
    if not len(numbers):
        return
    low, high = int(numbers.min()), int(numbers.max())
    if low < field.range.low or high > field.range.high:
        raise KeyRangeError(
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
    require_panes(manifest, time)
    return Lanes(WindowedOperator.from_dict(manifest.operator), values, keyed=keyed)


class Panes(Protocol):
    """Windows over a column of time, as a :class:`~host.operators.aggregate.TimeColumn` has them.

    ``window``, ``advance`` and ``pane`` are lengths in units of the column ``name``.
    """

    @property
    def name(self) -> str: ...
    @property
    def window(self) -> int: ...
    @property
    def advance(self) -> int: ...
    @property
    def pane(self) -> int: ...

    def values_of(self, times: Sequence[int]) -> list[object]:
        """Return times as messages show them."""


def require_panes(manifest: AggregateManifest, time: Panes) -> None:
    """Raise unless an accelerator holds so many panes as a window has.

    Raises
    ------
    AcceleratorLimitError
        If its windows are too short.
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


class WordLanes(Protocol):
    """What stands in the words of an accelerator; see :class:`Lanes`.

    Attributes
    ----------
    key : str or None
        The field into which the host puts the number of a key; None if there is none, or if the
        accelerator finds the keys.
    reads_time : bool
        Whether the accelerator needs the times themselves, which are the last column of the values;
        otherwise, numbers of panes do.
    """

    @property
    def key(self) -> str | None: ...
    @property
    def reads_time(self) -> bool: ...

    def columns(self, values: Sequence[Array]) -> dict[str, Int64s]:
        """Return the fields of tuples, but for the key."""

    def states(self, window: Mapping[str, Int64s], count: int) -> tuple[Array, ...]:
        """Return the states of so many windows from their reductions."""


class DeviceWindows:
    """Open windows of an accelerator; see :class:`~host.operators.aggregate.OpenWindows`.

    Its unit of time is a pane, counted from a beginning of a window. It gets the rows of a pane
    when no more can come, or when the input is known to be in order; until then, they wait here.

    Parameters
    ----------
    time : Panes
    lanes : WordLanes
        What stands in the words.
    device : SimulatedAggregate
        An open device, which nobody else uses, and which has nothing left to answer.
    deadline : Deadline
        Longest time without progress.

    Attributes
    ----------
    work : Work
        What the accelerator took.

    Raises
    ------
    AcceleratorLimitError
        If the windows of the accelerator are too short.
    """

    def __init__(
        self, time: Panes, lanes: WordLanes, device: SimulatedAggregate, deadline: Deadline
    ) -> None:
        manifest = device.manifest
        require_panes(manifest, time)
        self._time, self._length = time, time.window // time.pane
        self._advance = time.advance // time.pane
        self._keys = manifest.keys
        self._lanes = lanes
        # Length of a pane in the accelerator's own units of time.
        self._scale = time.pane if lanes.reads_time else 1
        self._codec = AggregateCodec(manifest)
        self._times = 1 << manifest.input_word["tuple.timestamp"].bits
        self._room = np.zeros((RESULT_WORDS, manifest.result_word.columns), np.uint64)
        self._talk = Conversation(device, deadline, self._codec.marks, self._room, EXCHANGE_CYCLES)
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
                told = min((end - self._origin) * self._scale, 2 * self._times - 1)
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
        ends |= (latest + self._length) * scale >= 2 * self._times
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
        self._origin = 0 if self._lanes.reads_time else pane // self._advance * self._advance
        fields = {"PANE": self._scale, "SIZE": self._length, "ADVANCE": self._advance, "CLEAR": 0}
        self._send(
            np.concatenate([self._codec.pack_control(op, value) for op, value in fields.items()])
        )
        self._cleared, self._arrived = True, []

    def _send(self, control: UInt64s) -> None:
        """Send what is staged and control words, of which the last is answered by the only mark."""
        words = np.concatenate([*self._staged, control])
        self._staged = []
        check = self._codec.check if self._cleared else None
        self._arrived.append(self._talk.send(words, check=check))

    def _found(self, ranks: Int64s, first: int | None) -> WindowStates:
        """Return the windows that have arrived, sorted."""
        none = np.zeros((0, self._room.shape[1]), np.uint64)
        results = self._codec.unpack(np.concatenate([none, *self._arrived]))
        self._arrived = []
        begin = results.boundary // self._scale + (self._origin or 0) - self._length
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


# An aggregation with the accelerator that keeps its windows, if there is one.


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
    suitable_lanes(manifest, time, values, keyed=bool(query.on))


class DeviceAggregation:
    """A :class:`~host.operators.aggregate.WindowAggregation` on the host or on an accelerator.

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
        self._keyed = bool(query.on)
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
    def device_work(self) -> Work:
        """What the accelerator took; nothing if there is none."""
        return Work() if self._windows is None else self._windows.work

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
        lanes = suitable_lanes(self._device.manifest, time, values, keyed=self._keyed)
        self._windows = DeviceWindows(time, lanes, self._device, self._deadline)
        if not self._goes_on:
            return self._windows
        return DeviceThenHost(
            self._windows, HostWindows(time, values), time.advance // time.pane, self._refused
        )

    def _refused(self, refusal: JoinError) -> None:
        self.refusal = refusal


# Aggregation over windows of time as a stream.


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

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._release()
        self._rest, self._ended = None, False
        params = self.params
        self._done = DeviceAggregation(params.schema, params.query, params.device, params.deadline)
        self.work = self._done.work

    @property
    def cycles(self) -> int:
        """Clock cycles of the accelerator in the last execution."""
        return 0 if self._done is None else self._done.device_work.cycles

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
        if self.params.in_order:
            self._put(self.work.rows_in_order(batch))
        else:
            self.work.more_rows(batch)
        return batch.num_rows

    def _put(self, batch: pa.RecordBatch) -> None:
        self._rest = batch if batch.num_rows else None

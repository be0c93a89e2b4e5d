# SPDX-License-Identifier: Apache-2.0
"""Batches between streams: bounded buffers, columns, and the places where a batch is copied."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from host.arrays import Array, Int64s
from host.errors import FailureError

__all__ = [
    "Batch",
    "Buffer",
    "BufferState",
    "ColumnLog",
    "Columns",
    "GraphError",
    "Passing",
    "Transfer",
    "Writable",
    "plan_transfers",
]

# Errors of a graph of streams itself, as opposed to errors in its data.


class GraphError(FailureError):
    """Streams are connected, used or stuck in a way that cannot run: a programming error."""


# Decide where a batch must be copied, by the mutability of ports.
#
# An output port is *mutating* if its operator gives up what it has submitted, so that a receiver
# may write into it. An input port is mutating if its operator writes into what it receives.
# Batches travel by reference. A copy is made only where an operator would otherwise see changes
# made by another one.


class Passing(Enum):
    """Way of a batch from an output port to one of its consumers."""

    #: The batch itself, which the consumer may write into.
    REFERENCE = "reference"
    #: The batch itself, read-only.
    CONSTANT = "constant reference"
    #: A copy of the batch that belongs to the consumer.
    COPY = "copy"


@dataclass(frozen=True)
class Transfer:
    """The decision for one connection, and its reason.

    Parameters
    ----------
    passing : Passing
        How the batch is passed.
    reason : str
        The row of the table that applies, in words.
    """

    passing: Passing
    reason: str


def plan_transfers(
    mutable_output: bool, mutates: Sequence[bool], retains: Sequence[bool] | None = None
) -> list[Transfer]:
    """Decide how each consumer of an output port gets batches, in the order of their calls.

    Parameters
    ----------
    mutable_output : bool
        Whether the output port is mutating.
    mutates : sequence of bool
        Whether each consumer's input port is mutating.
    retains : sequence of bool, optional
        Whether each consumer may still refer to the batch after its call. By default none does, as
        with operators that are called one after another.
    """
    kept = [False] * len(mutates) if retains is None else list(retains)
    return [_transfer(mutable_output, mutates, kept, index) for index in range(len(mutates))]


def _transfer(
    mutable_output: bool, mutates: Sequence[bool], kept: Sequence[bool], index: int
) -> Transfer:
    if not mutates[index]:
        if mutable_output:
            return Transfer(Passing.CONSTANT, "mutating to non-mutating")
        return Transfer(Passing.CONSTANT, "non-mutating to non-mutating")
    if not mutable_output:
        return Transfer(Passing.COPY, "non-mutating to mutating: the sender still refers to it")
    if len(mutates) == 1:
        return Transfer(Passing.REFERENCE, "mutating to mutating, the only consumer")
    if index < len(mutates) - 1:
        return Transfer(Passing.COPY, "mutating to mutating, and others consume it later")
    readers = zip(kept[:-1], mutates[:-1], strict=True)
    if any(keeps and not writes for keeps, writes in readers):
        return Transfer(Passing.COPY, "mutating to mutating, and an earlier consumer keeps it")
    return Transfer(Passing.REFERENCE, "mutating to mutating, the last consumer")


# A batch of NumPy arrays of one length: the struct of arrays between streams.


class Columns:
    """Named arrays of one length.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        One-dimensional arrays of the same length, at least one.
    """

    __slots__ = ("arrays", "num_rows")

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        lengths = {len(array) for array in arrays.values()}
        if len(lengths) != 1:
            raise ValueError(f"Columns must have one length, not {sorted(lengths)}")
        self.arrays = dict(arrays)
        self.num_rows: int = lengths.pop()

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def slice(self, offset: int = 0, length: int | None = None) -> "Columns":
        """Return the rows from ``offset`` as views."""
        stop = None if length is None else offset + length
        return Columns({name: array[offset:stop] for name, array in self.arrays.items()})

    def take(self, rows: Int64s) -> "Columns":
        """Return copies of the given ``rows``."""
        return Columns({name: array[rows] for name, array in self.arrays.items()})

    def copy(self) -> "Columns":
        """Return the same rows in new arrays, which can be written into."""
        return Columns({name: array.copy() for name, array in self.arrays.items()})

    def read_only(self) -> "Columns":
        """Return the same arrays as views that raise ``ValueError`` on writing."""
        views = {name: array.view() for name, array in self.arrays.items()}
        for view in views.values():
            view.flags.writeable = False
        return Columns(views)

    @staticmethod
    def concatenate(batches: Sequence["Columns"]) -> "Columns":
        """Return all rows of ``batches`` in order; several batches are copied once.

        All batches must have columns of the same names.
        """
        if len(batches) == 1:
            return batches[0]
        return Columns(
            {
                name: np.concatenate([batch.arrays[name] for batch in batches])
                for name in batches[0].arrays
            }
        )

    def __repr__(self) -> str:
        return f"<Columns {', '.join(self.arrays)}: {self.num_rows} rows>"


class ColumnLog:
    """Columns of a stream's tuples, by the tuples' numbers; old ones are released.

    :meth:`forget` releases tuples, so memory depends on what is kept, not on the stream.

    Parameters
    ----------
    first : int
        Number of the first tuple.

    Attributes
    ----------
    count : int
        Number of the next tuple.
    kept : int
        Number of the oldest tuple that is still needed.
    """

    def __init__(self, first: int = 0) -> None:
        self.count = first
        self._columns: dict[str, Array] = {}
        self._first = first  # number of the tuple at index 0 of the columns
        self.kept = first

    def append(self, columns: Columns) -> None:
        """Add tuples. Existing columns must be given again.

        In a new column, earlier tuples get True if the column is boolean, and their numbers
        otherwise.
        """
        size = columns.num_rows
        used = self.count - self._first
        for name, array in columns.arrays.items():
            if name not in self._columns:
                length = max((len(other) for other in self._columns.values()), default=0)
                numbers = np.arange(self._first, self._first + length)
                is_flag = array.dtype == np.bool_
                self._columns[name] = (
                    np.ones(length, np.bool_) if is_flag else numbers.astype(array.dtype)
                )
        length = min(len(array) for array in self._columns.values())
        if used + size > length:
            self._make_room(size)
            used = self.count - self._first
        for name, array in columns.arrays.items():
            self._columns[name][used : used + size] = array
        self.count += size

    def read(self, column: str, numbers: Int64s) -> Array:
        """Return the values of ``column`` for tuples that have not been forgotten."""
        if not self._columns:
            return np.zeros(0, np.int64)
        return self._columns[column][numbers - self._first]

    def part(self, column: str, begin: int, end: int) -> Array:
        """Return ``column`` for adjacent tuples, as a view that the next append may change."""
        return self._columns[column][begin - self._first : end - self._first]

    def stored(self) -> dict[str, Array]:
        """Return all columns of the tuples from :attr:`kept` on, as :meth:`part` does."""
        return {name: self.part(name, self.kept, self.count) for name in self._columns}

    def at(self, column: str, number: int) -> Any:
        """Return one value as a Python number."""
        return self._columns[column][number - self._first].item()

    def has(self, column: str) -> bool:
        """Return whether tuples have that column; False before the first tuple."""
        return column in self._columns

    def forget(self, before: int) -> None:
        """Release tuples with lower numbers; their room is reused when more is needed."""
        self.kept = max(self.kept, min(before, self.count))

    def _make_room(self, size: int) -> None:
        start, stop = self.kept - self._first, self.count - self._first
        length = max(1 << 12, 2 * (stop - start + size))
        for name, array in self._columns.items():
            grown = np.empty(length, array.dtype)
            grown[: stop - start] = array[start:stop]
            self._columns[name] = grown
        self._first = self.kept


# The bounded buffer between a producer and a consumer, and its states.


class Batch(Protocol):
    """A batch of rows in columns, such as a ``pyarrow.RecordBatch`` or :class:`Columns`."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""

    def slice(self, offset: int = 0, length: int | None = None) -> Self:
        """Return the rows from ``offset`` without copying them."""


@runtime_checkable
class Writable(Protocol):
    """A batch with arrays that can be written into, unlike those of an Arrow batch."""

    def copy(self) -> Self:
        """Return the same rows in new arrays."""

    def read_only(self) -> Self:
        """Return the same arrays in a form that raises on writing."""


class BufferState(Enum):
    """State of a buffer, which tells each end what to expect of the other."""

    #: There is no data, and the consumer has not demanded any.
    EMPTY = "EMPTY"
    #: There is data, and the producer has not been refused room.
    NONEMPTY = "NONEMPTY"
    #: The consumer has demanded data and there is none: the producer should run.
    UNDERFLOW = "UNDERFLOW"
    #: The producer has asked for room and there is none: the consumer should run.
    OVERFLOW = "OVERFLOW"
    #: There is no data, and no more will come.
    EOS = "EOS"


B = TypeVar("B", bound=Batch)


class Buffer(Generic[B]):
    """A bounded queue of batches that one stream produces and another consumes.

    The producer calls :meth:`provide` (is there room?), :meth:`produce` and :meth:`finish`. The
    consumer calls :meth:`demand` (is there data?), :meth:`access` and :meth:`consume`. After
    ``access``, *consumption is pending*: the batch stays valid in the buffer until it is consumed.
    A consumer that cannot place its output simply returns, and finds the same batch next time.

    A batch is accepted while the buffer holds fewer than ``capacity`` rows, so the buffer never
    holds more than ``capacity`` rows plus one batch. If producers cut their batches to the room
    that ``provide`` returns, the buffer never holds more than ``capacity`` rows.

    Parameters
    ----------
    capacity : int
        Number of rows that the buffer holds, at least one.
    name : str
        Name in messages.

    Attributes
    ----------
    passing : Passing
        How batches get to the consumer. :meth:`produce` makes copies and read-only views of
        batches that can be written into, by their methods ``copy`` and ``read_only``.
    produced, copied : int
        Number of batches in this execution, and how many of them were copied.
    """

    def __init__(self, capacity: int = 1 << 17, name: str = "buffer") -> None:
        if capacity < 1:
            raise GraphError(f"Buffer {name!r} must hold at least one row, not {capacity}")
        self.capacity = capacity
        self.name = name
        self.passing = Passing.REFERENCE
        self.clear()

    def clear(self) -> None:
        """Reset the buffer to its state before an execution."""
        self._batches: deque[B] = deque()
        self.rows = 0
        self._finished = False
        self._abandoned = False
        self._pending = False
        self._demanded = False
        self._refused = False
        self.produced = 0
        self.copied = 0
        #: Grows with every change; a stream that waits for the buffer compares it.
        self.version = 0

    @property
    def state(self) -> BufferState:
        """The buffer's current state."""
        if self._batches:
            return BufferState.OVERFLOW if self._refused else BufferState.NONEMPTY
        if self._finished:
            return BufferState.EOS
        return BufferState.UNDERFLOW if self._demanded else BufferState.EMPTY

    # Producer's end.

    def provide(self) -> int:
        """Return how many rows may be produced now; if none, change the state to OVERFLOW."""
        room = self.capacity - self.rows
        if room <= 0:
            self._refused = True
            return 0
        return room

    def produce(self, batch: B) -> bool:
        """Put ``batch`` into the buffer; return False, without any effect, if there is no room.

        An empty batch is accepted and dropped, so every batch that a consumer sees has rows. A
        batch is also dropped after the consumer has abandoned the buffer.
        """
        if self._finished:
            raise GraphError(f"Buffer {self.name!r} is produced into after its end")
        if batch.num_rows == 0 or self._abandoned:
            return True
        if not self.provide():
            return False
        self._batches.append(self._passed(batch))
        self.rows += batch.num_rows
        self.produced += 1
        self._demanded = False
        self.version += 1
        return True

    def _passed(self, batch: B) -> B:
        if self.passing is Passing.COPY:
            if not isinstance(batch, Writable):
                raise GraphError(
                    f"Buffer {self.name!r}: its consumer writes into batches, and a "
                    f"{type(batch).__name__} cannot be copied for that; produce Columns"
                )
            self.copied += 1
            return batch.copy()
        # Arrow batches, which are immutable, have no such method. (Testing isinstance(batch,
        # Writable) takes ten times as long.)
        if self.passing is Passing.CONSTANT and (view := getattr(batch, "read_only", None)):
            constant: B = view()
            return constant
        return batch

    def finish(self) -> None:
        """Declare that no batch follows; calling it again has no effect."""
        if not self._finished:
            self._finished = True
            self.version += 1

    # Consumer's end.

    def demand(self) -> bool:
        """Return whether there is a batch to access; if not, request one from the producer."""
        if self._batches:
            return True
        self._demanded = True
        return False

    @property
    def at_end(self) -> bool:
        """Whether everything has been consumed and nothing follows."""
        return self._finished and not self._batches

    @property
    def last(self) -> bool:
        """Whether no batch will follow those in the buffer."""
        return self._finished

    @property
    def consumption_pending(self) -> bool:
        """Whether a batch has been accessed and not yet consumed."""
        return self._pending

    def access(self) -> B:
        """Return the first batch, which stays in the buffer with its consumption pending."""
        if not self._batches:
            raise GraphError(f"Buffer {self.name!r} is accessed while it has no data")
        self._pending = True
        return self._batches[0]

    def consume(self, rows: int | None = None) -> None:
        """Remove the pending batch, or its first ``rows`` rows."""
        if not self._pending:
            raise GraphError(f"Buffer {self.name!r} is consumed from without an access")
        head = self._batches[0]
        taken = head.num_rows if rows is None else rows
        if not 0 <= taken <= head.num_rows:
            raise GraphError(
                f"Buffer {self.name!r}: {taken} of {head.num_rows} rows cannot be consumed"
            )
        if taken == head.num_rows:
            self._batches.popleft()
        elif taken:
            self._batches[0] = head.slice(taken)
        self.rows -= taken
        self._pending = False
        if taken:
            self._refused = False
            self.version += 1

    def abandon(self) -> None:
        """Declare that the consumer has ended: all batches, present and future, are dropped.

        From then on there is always room, so that the producer can go on for its other consumers.
        """
        self._abandoned = True
        self._batches.clear()
        self.rows = 0
        self._pending = False
        self._refused = False
        self.version += 1

    def __repr__(self) -> str:
        return f"<Buffer {self.name} {self.state.value} {self.rows}/{self.capacity} rows>"

# SPDX-License-Identifier: Apache-2.0
"""The bounded buffer between a producer and a consumer, and its states."""

from collections import deque
from enum import Enum
from typing import Generic, Protocol, Self, TypeVar, runtime_checkable

from host.runtime.errors import LifeCycleError
from host.runtime.mutability import Passing

__all__ = ["Batch", "Buffer", "BufferState", "Writable"]


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
            raise LifeCycleError(f"Buffer {name!r} must hold at least one row, not {capacity}")
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
            raise LifeCycleError(f"Buffer {self.name!r} is produced into after its end")
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
                raise LifeCycleError(
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
            raise LifeCycleError(f"Buffer {self.name!r} is accessed while it has no data")
        self._pending = True
        return self._batches[0]

    def consume(self, rows: int | None = None) -> None:
        """Remove the pending batch, or its first ``rows`` rows."""
        if not self._pending:
            raise LifeCycleError(f"Buffer {self.name!r} is consumed from without an access")
        head = self._batches[0]
        taken = head.num_rows if rows is None else rows
        if not 0 <= taken <= head.num_rows:
            raise LifeCycleError(
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

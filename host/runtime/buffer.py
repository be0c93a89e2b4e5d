# SPDX-License-Identifier: Apache-2.0
"""The bounded buffer between a producer and a consumer, and the states it goes through."""

from collections import deque
from enum import Enum
from typing import Generic, Protocol, Self, TypeVar, runtime_checkable

from host.runtime.errors import LifeCycleError
from host.runtime.mutability import Passing

__all__ = ["Batch", "Buffer", "BufferState", "Writable"]


class Batch(Protocol):
    """What travels: rows in columns, such as a ``pyarrow.RecordBatch`` or :class:`Columns`."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""

    def slice(self, offset: int = 0, length: int | None = None) -> Self:
        """Rows from ``offset``, without copying them."""


@runtime_checkable
class Writable(Protocol):
    """A batch whose arrays can be written into; an Arrow batch never can."""

    def copy(self) -> Self:
        """The same rows in arrays of their own."""

    def read_only(self) -> Self:
        """The same arrays; writing through the result raises."""


class BufferState(Enum):
    """What the two ends of a buffer may expect of each other."""

    #: No data, and nobody has asked for any.
    EMPTY = "EMPTY"
    #: There is data, and room for more.
    NONEMPTY = "NONEMPTY"
    #: The consumer has demanded data and there is none: the producer should run.
    UNDERFLOW = "UNDERFLOW"
    #: The producer has asked for room and there is none: the consumer should run.
    OVERFLOW = "OVERFLOW"
    #: No data, and there will never be any more.
    EOS = "EOS"


B = TypeVar("B", bound=Batch)


class Buffer(Generic[B]):
    """A bounded queue of batches that one stream produces and another consumes.

    The producer calls :meth:`provide` (is there room?), :meth:`produce` and :meth:`finish`; the
    consumer calls :meth:`demand` (is there data?), :meth:`access` and :meth:`consume`. After
    ``access`` *consumption is pending*: the batch stays where it is, and valid, until it has been
    consumed, so a consumer that cannot place its output simply returns and finds the same batch
    next time.

    Holds fewer than ``capacity`` rows whenever a batch is accepted, so never more than
    ``capacity`` rows and one batch; producers that cut their batches to what ``provide`` answers
    keep it at ``capacity``.

    Parameters
    ----------
    capacity : int
        Rows that the buffer holds, at least one.
    name : str
        Name in messages.

    Attributes
    ----------
    passing : Passing
        How batches get to the consumer; copies and read-only views are made by :meth:`produce`,
        of batches that can be written into (they have ``copy`` and ``read_only``).
    produced, copied : int
        Batches of this execution, and how many of them were copied.
    """

    def __init__(self, capacity: int = 1 << 17, name: str = "buffer") -> None:
        if capacity < 1:
            raise LifeCycleError(f"Buffer {name!r} must hold at least one row, not {capacity}")
        self.capacity = capacity
        self.name = name
        self.passing = Passing.REFERENCE
        self.clear()

    def clear(self) -> None:
        """Forget everything, as before an execution."""
        self._batches: deque[B] = deque()
        self.rows = 0
        self._finished = False
        self._abandoned = False
        self._pending = False
        self._demanded = False
        self._refused = False
        self.produced = 0
        self.copied = 0
        #: Grows with every change; whoever waits for the buffer compares it.
        self.version = 0

    @property
    def state(self) -> BufferState:
        """What the two ends may expect of each other now."""
        if self._batches:
            return BufferState.OVERFLOW if self._refused else BufferState.NONEMPTY
        if self._finished:
            return BufferState.EOS
        return BufferState.UNDERFLOW if self._demanded else BufferState.EMPTY

    # Producer's end.

    def provide(self) -> int:
        """Rows that may be produced now; none turns the buffer to OVERFLOW."""
        room = self.capacity - self.rows
        if room <= 0:
            self._refused = True
            return 0
        return room

    def produce(self, batch: B) -> bool:
        """Hand over ``batch``; false, and nothing happens, if there is no room.

        An empty batch is accepted and dropped: every batch that a consumer sees has rows. So is any
        batch that nobody will read.
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
        # Arrow batches, which are constant anyway, have no such method. (Asking whether a batch is
        # Writable takes ten times as long.)
        if self.passing is Passing.CONSTANT and (view := getattr(batch, "read_only", None)):
            constant: B = view()
            return constant
        return batch

    def finish(self) -> None:
        """Say that no batch follows; saying it again does nothing."""
        if not self._finished:
            self._finished = True
            self.version += 1

    # Consumer's end.

    def demand(self) -> bool:
        """Whether there is a batch to access; if not, ask the producer for one."""
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
        """Whether what the buffer holds now is all that follows."""
        return self._finished

    @property
    def consumption_pending(self) -> bool:
        """Whether a batch has been accessed and not yet consumed."""
        return self._pending

    def access(self) -> B:
        """Return the first batch, which stays in the buffer: its consumption is pending."""
        if not self._batches:
            raise LifeCycleError(f"Buffer {self.name!r} is accessed while it has no data")
        self._pending = True
        return self._batches[0]

    def consume(self, rows: int | None = None) -> None:
        """Give up the pending batch, or its first ``rows`` rows."""
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
        """Say that the consumer has ended: what there is, and what is produced, is dropped.

        There is always room then, so that the producer can go on for its other consumers.
        """
        self._abandoned = True
        self._batches.clear()
        self.rows = 0
        self._pending = False
        self._refused = False
        self.version += 1

    def __repr__(self) -> str:
        return f"<Buffer {self.name} {self.state.value} {self.rows}/{self.capacity} rows>"

# SPDX-License-Identifier: Apache-2.0
"""Known properties of a stream of rows, and what an operation is: its effect on them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntFlag
from typing import Any, TypeAlias

import pyarrow as pa

from host.runtime import ExecStreamGraph, Stream, StreamParams

__all__ = [
    "Chained",
    "Decision",
    "Effect",
    "Flag",
    "Operation",
    "Place",
    "Stateful",
    "Traits",
]

# Properties of rows.


class Flag(IntFlag):
    """Properties of a source or of the output of an operation.

    SHORT_CIRCUIT is a property of operations only.
    """

    NONE = 0
    #: The number of rows is known.
    SIZED = 1
    #: The rows have a meaningful order of encounter.
    ORDERED = 2
    #: Rows are sorted by known columns.
    SORTED = 4
    #: No two rows agree in all of some known columns.
    DISTINCT = 8
    #: Not all of the input may be needed: batches before it are pulled one by one, not pushed.
    SHORT_CIRCUIT = 16

    def __str__(self) -> str:
        names = [flag.name for flag in Flag if flag in self and flag.name is not None]
        return " ".join(names) or "none"


_STREAM = Flag.SIZED | Flag.ORDERED | Flag.SORTED | Flag.DISTINCT


@dataclass(frozen=True)
class Effect:
    """Effect of an operation on flags: it injects, clears or (neither) preserves each of them.

    Parameters
    ----------
    inject, clear : Flag
        Disjoint sets of flags.
    """

    inject: Flag = Flag.NONE
    clear: Flag = Flag.NONE

    def __post_init__(self) -> None:
        if self.inject & self.clear:
            raise ValueError(f"A flag cannot be injected and cleared: {self.inject & self.clear}")

    def __call__(self, flags: Flag) -> Flag:
        """Return the flags of an operation's output, from those of its input."""
        return (flags & ~self.clear & _STREAM) | self.inject


@dataclass(frozen=True)
class Traits:
    """Flags, and the values that belong to them.

    Parameters
    ----------
    flags : Flag
        The flags that hold.
    rows : int or None
        Number of rows if SIZED and already counted; a source that is bound late counts later.
    sorted_by, distinct_by : tuple of str
        Columns that belong to SORTED and to DISTINCT.
    ranges : mapping of str to (low, high)
        Smallest and largest value of those columns for which they are known.
    """

    flags: Flag = Flag.NONE
    rows: int | None = None
    sorted_by: tuple[str, ...] = ()
    distinct_by: tuple[str, ...] = ()
    ranges: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    def has(self, flag: Flag) -> bool:
        """Return whether ``flag`` holds."""
        return flag in self.flags

    def is_sorted_by(self, columns: tuple[str, ...]) -> bool:
        """Return whether sorting by ``columns`` would change nothing."""
        return self.has(Flag.SORTED) and self.sorted_by[: len(columns)] == columns

    def is_distinct_by(self, columns: tuple[str, ...]) -> bool:
        """Return whether no two rows agree in all of ``columns``."""
        known = bool(self.distinct_by) and set(self.distinct_by) <= set(columns)
        return self.has(Flag.DISTINCT) and known

    def after(
        self,
        effect: Effect,
        *,
        rows: int | None = None,
        sorted_by: tuple[str, ...] = (),
        distinct_by: tuple[str, ...] = (),
    ) -> "Traits":
        """Return the traits of an operation's output; injected flags get the given values."""
        flags = effect(self.flags)
        counted = rows if Flag.SIZED in effect.inject else self.rows
        order = sorted_by if Flag.SORTED in effect.inject else self.sorted_by
        unique = distinct_by if Flag.DISTINCT in effect.inject else self.distinct_by
        return replace(
            self,
            flags=flags,
            rows=counted if Flag.SIZED in flags else None,
            sorted_by=order if Flag.SORTED in flags else (),
            distinct_by=unique if Flag.DISTINCT in flags else (),
        )

    def unordered(self) -> "Traits":
        """Return the traits if the order is not observed."""
        return replace(self, flags=self.flags & ~Flag.ORDERED)

    def __str__(self) -> str:
        words = []
        for flag in Flag:
            if flag not in self.flags:
                continue
            detail = {
                Flag.SIZED: "" if self.rows is None else str(self.rows),
                Flag.SORTED: ", ".join(self.sorted_by),
                Flag.DISTINCT: ", ".join(self.distinct_by),
            }.get(flag, "")
            words.append(f"{flag}({detail})" if detail else str(flag))
        return " ".join(words) or "none"


# Base classes of intermediate operations, with their effects on flags and columns.


@dataclass(frozen=True)
class Place:
    """The place of a stateful operation in a pipeline.

    Parameters
    ----------
    traits : Traits
        Known properties of the operation's input.
    schema : Schema
        Schema of the operation's input.
    order_matters : bool
        Whether the order of the operation's output is observed.
    """

    traits: Traits
    schema: pa.Schema
    order_matters: bool = True


class Operation(ABC):
    """A step of a pipeline.

    Attributes
    ----------
    checks_order : bool
        Whether the step itself raises an error if it relies on an order that its input has not.
    needs_order : bool
        Whether the output depends on the order of the input.
    """

    checks_order = False
    needs_order = False

    def bound(self) -> "Operation":
        """Return the step for one execution; a step with inputs of its own binds them now."""
        return self

    @abstractmethod
    def effect(self, traits: Traits) -> Effect:
        """Return the operation's effect on the flags of an input with these ``traits``."""

    def traits(self, traits: Traits) -> Traits:
        """Return the traits of the operation's output."""
        return traits.after(self.effect(traits))

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the operation's output; by default, that of the input."""
        return schema


class Stateful(Operation):
    """An operation that must see other rows; it ends a segment."""

    needs_order = True

    @abstractmethod
    def reason(self, place: Place) -> str:
        """Return how the operation is carried out, and why."""

    @abstractmethod
    def build(self, graph: ExecStreamGraph, producer: Stream, place: Place) -> Stream:
        """Add the streams behind ``producer``; return the last one."""

    def vanishes(self, place: Place) -> bool:
        """Return whether the operation would change nothing."""
        del place  # by default, an operation changes something everywhere
        return False


# Operations that become a chain of streams.

#: Streams with their parameters, in the order of the chain.
Chain: TypeAlias = Sequence[tuple[Stream, StreamParams]]


@dataclass(frozen=True)
class Decision:
    """The chain that an operation becomes, given the known properties of its input.

    Parameters
    ----------
    chain : sequence of (Stream, StreamParams)
        Streams of the chain; empty if the operation would change nothing.
    reason : str
        Reason for the choice, for the plan.
    """

    chain: Chain
    reason: str


class Chained(Stateful):
    """A stateful operation that becomes a chain of streams, or none."""

    @abstractmethod
    def decide(self, place: Place) -> Decision:
        """Choose the chain of streams."""

    def reason(self, place: Place) -> str:
        return self.decide(place).reason

    def vanishes(self, place: Place) -> bool:
        return not self.decide(place).chain

    def build(self, graph: ExecStreamGraph, producer: Stream, place: Place) -> Stream:
        for stream, params in self.decide(place).chain:
            graph.add(stream, params)
            graph.connect(producer, stream)
            producer = stream
        return producer

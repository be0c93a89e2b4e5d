# SPDX-License-Identifier: Apache-2.0
"""Decide where a batch must be copied, by the mutability of ports (seed 000, table 1).

An output port is *mutating* if its operator gives up what it has submitted, so that a receiver may
write into it. An input port is mutating if its operator writes into what it receives. Batches
travel by reference. A copy is made only where an operator would otherwise see changes made by
another one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

__all__ = ["Passing", "Transfer", "plan_transfers"]


class Passing(Enum):
    """How a batch gets from an output port to one of its consumers."""

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

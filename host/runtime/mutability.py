# SPDX-License-Identifier: Apache-2.0
"""Where a batch must be copied on its way: port mutability (seed 000, table 1).

An output port is *mutating* if its operator lets go of what it has submitted, so that a receiver
may write into it. An input port is mutating if its operator writes into what it receives. Batches
travel by reference; a copy is made only where someone would otherwise see a change that is not his.
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
    #: A batch of the consumer's own.
    COPY = "copy"


@dataclass(frozen=True)
class Transfer:
    """What is decided for one connection, and why.

    Parameters
    ----------
    passing : Passing
        How the batch is passed.
    reason : str
        The row of the table, in words.
    """

    passing: Passing
    reason: str


def plan_transfers(
    mutable_output: bool, mutates: Sequence[bool], retains: Sequence[bool] | None = None
) -> list[Transfer]:
    """Decide for every consumer of one output port, in the order in which they are called.

    Parameters
    ----------
    mutable_output : bool
        Whether the output port is mutating.
    mutates : sequence of bool
        Whether each consumer's input port is.
    retains : sequence of bool, optional
        Whether each consumer may still refer to the batch after it has been called; by default
        none does, as with operators that are called one after the other.
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

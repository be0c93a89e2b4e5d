# SPDX-License-Identifier: Apache-2.0
"""Operators fused into one pass: rows are pushed through all of them, call by call."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from host.operators.operator import Emit, Operator
from host.operators.rows import Rows
from host.runtime import Passing, Transfer, plan_transfers

__all__ = ["Fused", "Node"]


@dataclass(frozen=True)
class Node:
    """An operator and who consumes what it submits, in the order in which they are called.

    Parameters
    ----------
    operator : Operator
        The operator.
    consumers : sequence of Node
        None: what it submits leaves the pass.
    """

    operator: Operator
    consumers: Sequence["Node"] = field(default=())

    @property
    def retains(self) -> bool:
        """Whether rows that are passed to it may be referred to when its call has returned."""
        leaves = self.operator.submits and not self.consumers
        return leaves or self.operator.retains or any(each.retains for each in self.consumers)


class Fused:
    """A tree of operators as one function of rows.

    As in a fused processing element (seed 000) a consumer's call returns before the next one is
    called, so whether rows are copied between two operators follows from their ports alone, and
    is decided here, once.

    Parameters
    ----------
    root : Node
        The first operator.
    mutable_input : bool
        Whether the rows that are pushed in may be written into.
    leave : callable
        Takes the rows that leave the pass.
    """

    def __init__(self, root: Node, *, mutable_input: bool, leave: Emit) -> None:
        self._leave = leave
        #: Decisions, as (sender, receiver, transfer), in the order of the calls.
        self.transfers: list[tuple[str, str, Transfer]] = []
        self.push: Emit = self._sink("input", mutable_input, [root])

    @classmethod
    def chain(cls, operators: Sequence[Operator], *, mutable_input: bool, leave: Emit) -> "Fused":
        """Fuse operators that follow one another."""
        node: Node | None = None
        for operator in reversed(operators):
            node = Node(operator, () if node is None else (node,))
        if node is None:
            raise ValueError("A pass needs at least one operator")
        return cls(node, mutable_input=mutable_input, leave=leave)

    @property
    def copies(self) -> list[tuple[str, str]]:
        """Senders and receivers between which rows are copied."""
        return [
            (sender, receiver)
            for sender, receiver, transfer in self.transfers
            if transfer.passing is Passing.COPY
        ]

    def _sink(self, sender: str, mutable: bool, consumers: Sequence[Node]) -> Emit:
        """Wrap the sinks behind ``consumers`` into the one that ``sender`` submits to."""
        if not consumers:
            return self._leave
        transfers = plan_transfers(
            mutable,
            [node.operator.mutates_input for node in consumers],
            [node.retains for node in consumers],
        )
        targets = []
        for node, transfer in zip(consumers, transfers, strict=True):
            name = str(node.operator)
            self.transfers.append((sender, name, transfer))
            behind = self._sink(name, node.operator.mutable_output, node.consumers)
            targets.append(_target(node.operator, transfer.passing, behind))
        if len(targets) == 1:
            return targets[0]

        def to_all(rows: Rows) -> None:
            for target in targets:
                target(rows)

        return to_all


def _target(operator: Operator, passing: Passing, emit: Emit) -> Emit:
    """Return the function that calls ``operator`` with rows passed as decided."""
    apply = operator.apply
    if passing is Passing.COPY:
        return lambda rows: apply(rows.copy(), emit)
    if passing is Passing.CONSTANT:
        return lambda rows: apply(rows.read_only(), emit)
    return lambda rows: apply(rows, emit)

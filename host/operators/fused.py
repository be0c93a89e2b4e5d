# SPDX-License-Identifier: Apache-2.0
"""Fuse operators into one pass: rows are pulled through all of them by nested generators."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TypeAlias

from host.operators.operator import Operator, Submitted
from host.operators.rows import Rows
from host.runtime import Passing, Transfer, plan_transfers

__all__ = ["Fused", "Node"]

#: Function that yields the results of rows.
_Pull: TypeAlias = Callable[[Rows], Submitted]


@dataclass(frozen=True)
class Node:
    """An operator and the consumers of its output, in the order in which they are called.

    Parameters
    ----------
    operator : Operator
        The operator.
    consumers : sequence of Node
        Consumers; if there are none, the output leaves the pass.
    """

    operator: Operator
    consumers: Sequence["Node"] = field(default=())

    @property
    def retains(self) -> bool:
        """Whether rows passed to the operator may still be referred to after its call."""
        leaves = self.operator.submits and not self.consumers
        return leaves or self.operator.retains or any(each.retains for each in self.consumers)


class Fused:
    """A tree of operators as one function of rows.

    As in a fused processing element (seed 000), a consumer is done with rows before the next one
    gets them. Whether rows are copied between two operators therefore depends only on their ports,
    and is decided here once.

    Unlike in seed 000, rows are pulled. :attr:`pull` works only until the next rows leave the pass,
    so a reader that has enough stops every operator where it is.

    Parameters
    ----------
    root : Node
        The first operator.
    mutable_input : bool
        Whether the input rows may be written into.

    Attributes
    ----------
    pull : callable
        Takes rows and returns a generator of the rows that leave the pass; it yields None where
        there are no rows yet. Closing the generator closes all operators.
    transfers : list of (sender, receiver, transfer)
        The decision for each connection, in the order of the calls.
    """

    def __init__(self, root: Node, *, mutable_input: bool) -> None:
        self.transfers: list[tuple[str, str, Transfer]] = []
        self.pull: _Pull = self._behind("input", mutable_input, [root])

    @classmethod
    def chain(cls, operators: Sequence[Operator], *, mutable_input: bool) -> "Fused":
        """Fuse operators that follow one another."""
        node: Node | None = None
        for operator in reversed(operators):
            node = Node(operator, () if node is None else (node,))
        if node is None:
            raise ValueError("A pass needs at least one operator")
        return cls(node, mutable_input=mutable_input)

    @property
    def copies(self) -> list[tuple[str, str]]:
        """Senders and receivers between which rows are copied."""
        return [
            (sender, receiver)
            for sender, receiver, transfer in self.transfers
            if transfer.passing is Passing.COPY
        ]

    def _behind(self, sender: str, mutable: bool, consumers: Sequence[Node]) -> _Pull:
        """Return the function that processes the rows that ``sender`` submits."""
        transfers = plan_transfers(
            mutable,
            [node.operator.mutates_input for node in consumers],
            [node.retains for node in consumers],
        )
        targets = []
        for node, transfer in zip(consumers, transfers, strict=True):
            name = str(node.operator)
            self.transfers.append((sender, name, transfer))
            target = _target(node.operator, transfer.passing)
            if node.consumers:
                behind = self._behind(name, node.operator.mutable_output, node.consumers)
                target = _followed(target, behind)
            targets.append(target)
        return targets[0] if len(targets) == 1 else _one_by_one(targets)


def _target(operator: Operator, passing: Passing) -> _Pull:
    """Return the function that calls ``operator`` with rows passed as decided."""
    apply = operator.apply
    if passing is Passing.COPY:
        return lambda rows: apply(rows.copy())
    if passing is Passing.CONSTANT:
        return lambda rows: apply(rows.read_only())
    return apply


def _followed(target: _Pull, behind: _Pull) -> _Pull:
    """Return the function that passes rows through an operator and then those behind it."""

    def pull(rows: Rows) -> Submitted:
        with closing(target(rows)) as pulled:
            for submitted in pulled:
                if submitted is None:
                    yield None
                else:
                    yield from behind(submitted)

    return pull


def _one_by_one(targets: Sequence[_Pull]) -> _Pull:
    """Return the function that passes the same rows to several operators in turn."""

    def pull(rows: Rows) -> Submitted:
        for target in targets:
            yield from target(rows)

    return pull

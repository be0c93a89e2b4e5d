# SPDX-License-Identifier: Apache-2.0
"""A budget of threads and staging buffers, shared among the streams that ask for them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
import threading
from typing import Any

from host.runtime.errors import ResourceError
from host.runtime.resources import Quantity, Requirements
from host.runtime.stream import ExecStream

__all__ = ["Governor", "shares"]


class Governor:
    """Grants every stream of a graph at least its minimum, and a share of what remains.

    Several graphs, in several threads, may share a governor. What a graph was granted returns to
    the budget when the graph's execution ends.

    Parameters
    ----------
    budget : Quantity
        All resources; by default 4 threads and 64 buffers.
    """

    def __init__(self, budget: Quantity | None = None) -> None:
        self.budget = Quantity(threads=4, buffers=64) if budget is None else budget
        self._granted = Quantity()
        self._lock = threading.Lock()

    @property
    def available(self) -> Quantity:
        """Resources that are not granted now."""
        return self.budget - self._granted

    @contextmanager
    def granting(self, streams: Sequence[ExecStream[Any]]) -> Iterator[None]:
        """Set ``allocation`` of all ``streams`` while the block runs.

        Raises
        ------
        ResourceError
            If the minima exceed the available resources; then nothing is granted.
        """
        wanted = [(stream.name, stream.requirements()) for stream in streams]
        with self._lending(wanted) as granted:
            for stream, quantity in zip(streams, granted, strict=True):
                stream.allocation = quantity
            try:
                yield
            finally:
                for stream in streams:
                    stream.allocation = Quantity()

    @contextmanager
    def lending(self, name: str, wanted: Requirements) -> Iterator[Quantity]:
        """Grant resources while the block runs to what is no stream, under a name in messages.

        Raises
        ------
        ResourceError
            If the minimum exceeds the available resources.
        """
        with self._lending([(name, wanted)]) as [granted]:
            yield granted

    @contextmanager
    def _lending(self, wanted: Sequence[tuple[str, Requirements]]) -> Iterator[list[Quantity]]:
        with self._lock:
            granted = self._share(wanted)
            total = sum(granted, Quantity())
            self._granted += total
        try:
            yield granted
        finally:
            with self._lock:
                self._granted -= total

    def _share(self, named: Sequence[tuple[str, Requirements]]) -> list[Quantity]:
        available, wanted = self.available, [each for _, each in named]
        minimum = sum((each.minimum for each in wanted), Quantity())
        if not available.covers(minimum):
            needs = "; ".join(
                f"{name}: {each.minimum}" for name, each in named if each.minimum != Quantity()
            )
            raise ResourceError(
                f"The streams need {minimum} at least, and {available} of {self.budget} are "
                f"available ({needs}); raise the governor's budget, or run fewer graphs at once."
            )
        spare = available - minimum
        columns = {
            field.name: shares(
                getattr(spare, field.name),
                [
                    getattr(each.optimum, field.name) - getattr(each.minimum, field.name)
                    for each in wanted
                ],
            )
            for field in fields(Quantity)
        }
        return [
            each.minimum + Quantity(**{name: column[index] for name, column in columns.items()})
            for index, each in enumerate(wanted)
        ]


def shares(amount: int, wishes: Sequence[int]) -> list[int]:
    """Divide ``amount`` in proportion to ``wishes``, but give no wish more than it asks for.

    Shares are whole numbers. What rounding leaves is given in units to the largest remainders;
    among equal remainders, the first come first.
    """
    total = sum(wishes)
    if total <= amount:
        return list(wishes)
    exact = [divmod(amount * wish, total) for wish in wishes]
    result = [whole for whole, _ in exact]
    order = sorted(range(len(wishes)), key=lambda index: -exact[index][1])
    for index in order[: amount - sum(result)]:
        result[index] += 1
    return result

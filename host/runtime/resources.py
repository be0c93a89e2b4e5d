# SPDX-License-Identifier: Apache-2.0
"""Amounts of what is costly enough to be shared out centrally: threads and staging buffers."""

from dataclasses import dataclass, fields
from typing import Self

from host.runtime.errors import LifeCycleError

__all__ = ["BUFFER_BYTES", "Quantity", "Requirements"]

#: Size of one staging buffer, in bytes.
BUFFER_BYTES = 1 << 20


@dataclass(frozen=True)
class Quantity:
    """So much of each resource (Fennel's ``ExecStreamResourceQuantity``).

    Parameters
    ----------
    threads : int
        Threads besides the scheduler's own.
    buffers : int
        Staging buffers of :data:`BUFFER_BYTES`.
    """

    threads: int = 0
    buffers: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 0:
                raise LifeCycleError(f"A quantity of {field.name} cannot be negative: {value}")

    def __add__(self, other: "Quantity") -> Self:
        return type(self)(self.threads + other.threads, self.buffers + other.buffers)

    def __sub__(self, other: "Quantity") -> Self:
        return type(self)(self.threads - other.threads, self.buffers - other.buffers)

    def covers(self, other: "Quantity") -> bool:
        """Whether there is at least as much of everything as in ``other``."""
        return self.threads >= other.threads and self.buffers >= other.buffers

    def __str__(self) -> str:
        return f"{self.threads} threads, {self.buffers} buffers"


@dataclass(frozen=True)
class Requirements:
    """What a stream needs at least, and what it can make use of at most.

    Parameters
    ----------
    minimum, optimum : Quantity
        ``optimum`` covers ``minimum``.
    """

    minimum: Quantity = Quantity()
    optimum: Quantity = Quantity()

    def __post_init__(self) -> None:
        if not self.optimum.covers(self.minimum):
            raise LifeCycleError(
                f"The optimum ({self.optimum}) must cover the minimum ({self.minimum})"
            )

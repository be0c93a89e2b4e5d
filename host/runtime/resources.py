# SPDX-License-Identifier: Apache-2.0
"""Quantities of the resources that a governor shares out: threads and staging buffers."""

from dataclasses import dataclass, fields
from typing import Self

from host.runtime.errors import LifeCycleError

__all__ = ["BUFFER_BYTES", "Quantity", "Requirements"]

#: Size of one staging buffer, in bytes.
BUFFER_BYTES = 1 << 20


@dataclass(frozen=True)
class Quantity:
    """A quantity of each resource (Fennel's ``ExecStreamResourceQuantity``).

    Parameters
    ----------
    threads : int
        Number of threads besides the scheduler's own.
    buffers : int
        Number of staging buffers of :data:`BUFFER_BYTES` bytes.
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
        """Return whether every resource is at least as large as in ``other``."""
        return self.threads >= other.threads and self.buffers >= other.buffers

    def __str__(self) -> str:
        return f"{self.threads} threads, {self.buffers} buffers"


@dataclass(frozen=True)
class Requirements:
    """The least and the most resources that a stream can use.

    Parameters
    ----------
    minimum, optimum : Quantity
        Resources without which the stream cannot run, and the most it can use. ``optimum`` must
        cover ``minimum``.
    """

    minimum: Quantity = Quantity()
    optimum: Quantity = Quantity()

    def __post_init__(self) -> None:
        if not self.optimum.covers(self.minimum):
            raise LifeCycleError(
                f"The optimum ({self.optimum}) must cover the minimum ({self.minimum})"
            )

# SPDX-License-Identifier: Apache-2.0
"""How precisely results are ordered."""

from dataclasses import dataclass

__all__ = ["Ordering"]


@dataclass(frozen=True)
class Ordering:
    """Ordering precision; use :meth:`outer`, :meth:`relaxed` or :meth:`none`.

    Parameters
    ----------
    period : int
        Probes of a side from one star to the next; zero for no ordering.
    """

    period: int

    def __post_init__(self) -> None:
        if isinstance(self.period, bool) or not isinstance(self.period, int) or self.period < 0:
            raise ValueError(
                f"Ordering period must be an integer of at least 0, not {self.period!r}"
            )

    @classmethod
    def outer(cls) -> "Ordering":
        """Results in the order of their probes; a star after every probe."""
        return cls(1)

    @classmethod
    def relaxed(cls, period: int) -> "Ordering":
        """A star every ``period`` probes of a side; between stars as the device likes."""
        if period < 1:
            raise ValueError(f"Relaxed ordering needs a period of at least 1, not {period!r}")
        return cls(period)

    @classmethod
    def none(cls) -> "Ordering":
        """No ordering; stars only as often as the device itself needs them."""
        return cls(0)

    def __str__(self) -> str:
        if self.period == 0:
            return "none"
        return "outer" if self.period == 1 else f"relaxed({self.period})"

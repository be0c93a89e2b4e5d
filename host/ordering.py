# SPDX-License-Identifier: Apache-2.0
"""The ordering precision of results."""

from dataclasses import dataclass

__all__ = ["Ordering"]


@dataclass(frozen=True)
class Ordering:
    """Ordering precision; construct it with :meth:`outer`, :meth:`relaxed` or :meth:`none`.

    Parameters
    ----------
    period : int
        Number of probes of a side per star; zero for no ordering.
    """

    period: int

    def __post_init__(self) -> None:
        if isinstance(self.period, bool) or not isinstance(self.period, int) or self.period < 0:
            raise ValueError(
                f"Ordering period must be an integer of at least 0, not {self.period!r}"
            )

    @classmethod
    def outer(cls) -> "Ordering":
        """Return the precision with results in the order of their probes: a star per probe."""
        return cls(1)

    @classmethod
    def relaxed(cls, period: int) -> "Ordering":
        """Return the precision with a star every ``period`` probes of a side.

        The order of the results between two stars is up to the device.
        """
        if period < 1:
            raise ValueError(f"Relaxed ordering needs a period of at least 1, not {period!r}")
        return cls(period)

    @classmethod
    def none(cls) -> "Ordering":
        """Return the precision without ordering; the device sends only the stars that it needs."""
        return cls(0)

    def __str__(self) -> str:
        if self.period == 0:
            return "none"
        return "outer" if self.period == 1 else f"relaxed({self.period})"

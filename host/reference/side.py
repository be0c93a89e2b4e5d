# SPDX-License-Identifier: Apache-2.0
"""The two input streams."""

from enum import IntEnum

__all__ = ["Side"]


class Side(IntEnum):
    """One of the two input streams; on a tie of timestamps R arrives before S."""

    R = 0
    S = 1

    @property
    def other(self) -> "Side":
        """The side whose window a tuple of this side probes."""
        return Side(1 - self)

# SPDX-License-Identifier: Apache-2.0
"""Where an as-of join looks for the partner of a row: earlier, later, or on both sides."""

from enum import Enum

from host.errors import UsageError

__all__ = ["Direction"]


class Direction(Enum):
    """The side of a left row's time on which its right row lies, as in pandas' ``merge_asof``.

    ``BACKWARD`` takes the last right row that is not later, ``FORWARD`` the first one that is not
    earlier, ``NEAREST`` the one of these two that is closer, and the earlier one if both are
    equally close. The value of a member is its name in messages and plans.
    """

    BACKWARD = "backward"
    FORWARD = "forward"
    NEAREST = "nearest"

    @classmethod
    def of(cls, direction: "Direction | str") -> "Direction":
        """Return the direction called ``direction``.

        Raises
        ------
        UsageError
            If there is no such direction.
        """
        if isinstance(direction, cls):
            return direction
        for member in cls:
            if isinstance(direction, str) and direction.lower() == member.value:
                return member
        raise UsageError(
            f"direction must be one of {', '.join(repr(member.value) for member in cls)}, not "
            f"{direction!r}."
        )

    @property
    def looks_back(self) -> bool:
        """Whether an earlier right row can be a partner."""
        return self is not Direction.FORWARD

    @property
    def looks_ahead(self) -> bool:
        """Whether a later right row can be a partner."""
        return self is not Direction.BACKWARD

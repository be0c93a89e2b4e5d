# SPDX-License-Identifier: Apache-2.0
"""What decides how many cores a join should use."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from host.elastic.observation import Observation
from host.errors import UsageError

__all__ = ["INTERVAL", "Controller"]

#: Cycles of an observation, unless the caller says otherwise.
INTERVAL = 8_192


@dataclass(frozen=True, kw_only=True)
class Controller(ABC):
    """A law that maps one observation to a number of cores; it keeps no state.

    :class:`~host.elastic.core_control.CoreControl` adds the bounds and the patience.

    Parameters
    ----------
    interval : int
        Least number of cycles in an observation.

    Raises
    ------
    UsageError
        If the interval is no whole number from 1 on.
    """

    interval: int = INTERVAL

    #: Name for users.
    name: ClassVar[str]

    def __post_init__(self) -> None:
        cycles = self.interval
        if isinstance(cycles, bool) or not isinstance(cycles, int) or cycles < 1:
            raise UsageError(
                f"The interval of an elastic join is a whole number of cycles from 1 on, not "
                f"{cycles!r}."
            )

    @abstractmethod
    def wanted(self, seen: Observation) -> int:
        """Return how many cores the load asks for, which may be none or more than there are.

        The number does not fall when the observed regions were busier.
        """

    @property
    @abstractmethod
    def text(self) -> str:
        """The name and the parameters, in a few words."""

    def __str__(self) -> str:
        return self.text

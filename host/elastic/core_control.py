# SPDX-License-Identifier: Apache-2.0
"""Bounds and patience around a controller: the number of cores that a join really uses."""

from collections.abc import Sequence

from host.elastic.controller import Controller
from host.elastic.observation import Observation
from host.errors import UsageError

__all__ = ["PATIENCE", "CoreControl"]

#: Observations in a row that must allow fewer cores.
PATIENCE = 2


class CoreControl:
    """Takes observations one by one, and keeps the number of cores that is in force.

    - The number is never below the ``least`` of the last observation, and never above ``cores``.
    - It grows as soon as one observation asks for more.
    - It falls when ``patience`` observations in a row ask for less, to the largest number that any
      of them asked for.

    The same observations give the same numbers, so a log of observations can be replayed.

    Parameters
    ----------
    controller : Controller
        What asks for cores.
    cores : int
        Cores that there are, at least one. At first all of them are in force.
    patience : int
        At least one.
    active : int, optional
        The number in force at first, instead of all cores.
    calm : sequence of int
        The attribute ``calm`` of a control that this one continues.

    Attributes
    ----------
    active : int
        The number of cores in force.
    calm : list of int
        What the last observations asked for, each of them for fewer cores than are in force.

    Raises
    ------
    UsageError
        If there are no cores, or no observation is enough.
    """

    def __init__(
        self,
        controller: Controller,
        cores: int,
        *,
        patience: int = PATIENCE,
        active: int | None = None,
        calm: Sequence[int] = (),
    ) -> None:
        for what, number in (("core", cores), ("observation of patience", patience)):
            if number < 1:
                raise UsageError(f"A control of cores needs at least one {what}, not {number}.")
        self.controller, self.cores, self.patience = controller, cores, patience
        self.active = cores if active is None else max(1, min(cores, active))
        self.calm = [wanted for wanted in calm if wanted < self.active]

    def see(self, seen: Observation) -> int:
        """Take an observation; return the number of cores from now on."""
        wanted = min(self.cores, max(1, seen.least, self.controller.wanted(seen)))
        if wanted >= self.active:
            self.active = wanted
            self.calm.clear()
            return self.active
        self.calm.append(wanted)
        if len(self.calm) >= self.patience:
            self.active = max(self.calm)
            self.calm.clear()
        return self.active

    def lose(self, cores: int) -> None:
        """Choose among so many cores from now on, because the others have failed."""
        self.cores = cores
        self.active = min(self.active, cores)
        self.calm = [wanted for wanted in self.calm if wanted < self.active]

    def require(self, least: int) -> None:
        """Use at least so many cores from now on, or all that there are."""
        if least > self.active:
            self.active = min(self.cores, least)
            self.calm.clear()

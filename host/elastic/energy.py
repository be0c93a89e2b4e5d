# SPDX-License-Identifier: Apache-2.0
"""The energy controller: the fewest cores that keep a latency, also when the rate jumps."""

from dataclasses import dataclass
from fractions import Fraction
import math
from typing import ClassVar

from host.elastic.controller import Controller
from host.elastic.observation import Observation
from host.errors import UsageError
from host.reference.quantity import positive, share

__all__ = ["EnergyController"]


@dataclass(frozen=True)
class EnergyController(Controller):
    """Asks for the fewest cores that do all of the following.

    - They do the work of the present rate on refilled windows, at a load of ``target``.
    - They do the work of the highest rate on the *present* windows, at a load of ``most``. A jump
      to that rate then leaves no queue: cores that join take over no stored tuples, so only the
      cores that hold the windows can answer what comes first. Until an observation has shown the
      jump, :data:`REACTION` intervals, what comes is stored in these cores as well.
    - They keep the mean latency below the bound, by a quarter. The latency is taken to be in
      proportion to the windows, and in inverse proportion to the cores.

    Parameters
    ----------
    latency : int
        Bound on the cycles from the arrival of a tuple to its answer, at least 1.
    target, most : int, float or Fraction
        Shares of the cores' cycles: ``target <= most``.
    rate : int, float or Fraction, optional
        Highest rate to be ready for, in tuples of both sides per clock cycle. Without it, and above
        it, that is the highest rate observed so far.

    Raises
    ------
    UsageError
        If a parameter is out of range.
    """

    latency: int
    target: Fraction | float = Fraction(75, 100)
    most: Fraction | float = Fraction(95, 100)
    rate: Fraction | float | None = None

    #: How much lower than the bound the mean latency is kept.
    MARGIN: ClassVar[Fraction] = Fraction(3, 4)
    #: Intervals from a jump of the rate to the epoch that answers it.
    REACTION: ClassVar[int] = 2
    name: ClassVar[str] = "energy"

    def __post_init__(self) -> None:
        super().__post_init__()
        latency = self.latency
        if isinstance(latency, bool) or not isinstance(latency, int) or latency < 1:
            raise UsageError(
                f"An energy controller keeps a latency of a whole number of cycles from 1 on, not "
                f"{latency!r}."
            )
        for field in ("target", "most"):
            object.__setattr__(self, field, share(getattr(self, field), f"{field} load"))
        if self.rate is not None:
            object.__setattr__(self, "rate", positive(self.rate, "tuples per cycle"))
        if self.target > self.most:
            raise UsageError(
                f"The target load of {float(self.target):g} is above the most of "
                f"{float(self.most):g} that a jump of the rate may reach."
            )

    @property
    def text(self) -> str:
        """The name and the parameters, in a few words."""
        return f"{self.name}, latency of at most {self.latency:,} cycles"

    def wanted(self, seen: Observation) -> int:
        """Return the fewest cores that hold all three conditions."""
        per_core = Fraction(seen.capacity, seen.cores)
        steady = seen.arrived * seen.work * seen.growth / per_core / Fraction(self.target)
        peak = Fraction(max(seen.peak, math.ceil(Fraction(self.rate or 0) * seen.cycles)))
        stored = (1 + self.REACTION * peak / seen.window) if seen.window else Fraction(1)
        jump = peak * seen.work * stored / per_core / Fraction(self.most)
        latency = (seen.latency or 0) * seen.growth * seen.cores / (self.latency * self.MARGIN)
        short = seen.load * seen.cores / Fraction(self.target) if seen.is_short else Fraction(0)
        return math.ceil(max(steady, jump, latency, short))

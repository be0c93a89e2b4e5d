# SPDX-License-Identifier: Apache-2.0
"""The threshold controller: keep the load of the cores between two thresholds."""

from dataclasses import dataclass
from fractions import Fraction
import math
from typing import ClassVar

from host.elastic.controller import Controller
from host.elastic.observation import Observation
from host.errors import UsageError
from host.reference.quantity import share

__all__ = ["ThresholdController"]


@dataclass(frozen=True)
class ThresholdController(Controller):
    """Asks for other cores when their load leaves a band, and then for a load of the target.

    Above the upper threshold it asks for the fewest cores that bring the load down to the target,
    below the lower one likewise. Inside the band it asks for the cores that there are.

    The load of a scan is the same work over more or fewer cores. The fewest cores that reach the
    target are therefore the same wherever one starts, and a constant load settles at once.

    Parameters
    ----------
    upper, target, lower : int, float or Fraction
        Shares of the cores' cycles: ``lower <= target <= upper``.

    Raises
    ------
    UsageError
        If a share is out of range, or the three are not in order.
    """

    upper: Fraction | float = Fraction(90, 100)
    target: Fraction | float = Fraction(70, 100)
    lower: Fraction | float = Fraction(45, 100)

    name: ClassVar[str] = "threshold"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("upper", "target", "lower"):
            number = share(getattr(self, field), f"{field} threshold of a load")
            object.__setattr__(self, field, number)
        if not self.lower <= self.target <= self.upper:
            raise UsageError(
                f"The thresholds of a load are in order, lower <= target <= upper, not "
                f"{float(self.lower):g}, {float(self.target):g} and {float(self.upper):g}."
            )

    @property
    def text(self) -> str:
        """The name and the parameters, in a few words."""
        shares = "/".join(f"{float(100 * n):g}" for n in (self.upper, self.target, self.lower))
        return f"{self.name} {shares} %"

    def wanted(self, seen: Observation) -> int:
        """Return the cores in force, or the fewest that bring the load to the target."""
        load = self.load(seen)
        if self.lower <= load <= self.upper:
            return seen.cores
        return math.ceil(load * seen.cores / Fraction(self.target))

    def load(self, seen: Observation) -> Fraction:
        """Return the load that is held between the thresholds: the observed one."""
        return seen.load

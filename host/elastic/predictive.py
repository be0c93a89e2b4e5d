# SPDX-License-Identifier: Apache-2.0
"""The predictive controller: thresholds on the work that is pending and that will come."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from host.elastic.observation import Observation
from host.elastic.threshold import ThresholdController

__all__ = ["PredictiveController"]


@dataclass(frozen=True)
class PredictiveController(ThresholdController):
    """Compares the thresholds with a predicted load instead of the observed one.

    The predicted load is that of an interval as long as the observed one, in which as many tuples
    arrive again and all pending ones are worked off, once the windows have been refilled at the
    present rate. A tuple costs as much work as the observed ones did, times the growth of the
    windows. Where the input has no pace of its own, a shortage of cores counts as in
    :class:`~host.elastic.observation.Observation`.

    A core that joins takes over no stored tuples, so it relieves the others only as tuples expire.
    That is why the prediction asks for all cores of the refilled windows at once.

    Parameters
    ----------
    upper, target, lower : int, float or Fraction
        As in :class:`~host.elastic.threshold.ThresholdController`, but close to each other.
    """

    upper: Fraction | float = Fraction(80, 100)
    target: Fraction | float = Fraction(75, 100)
    lower: Fraction | float = Fraction(70, 100)

    name: ClassVar[str] = "predictive"

    def load(self, seen: Observation) -> Fraction:
        """Return the predicted load."""
        tuples = seen.arrived + seen.pending
        predicted = tuples * seen.work * seen.growth / seen.capacity
        return max(predicted, seen.load) if seen.is_short else predicted

# SPDX-License-Identifier: Apache-2.0
"""A controller as a caller names it."""

from host.elastic.controller import Controller
from host.elastic.threshold import ThresholdController
from host.errors import UsageError

__all__ = ["controller_of"]


def controller_of(value: object) -> Controller | None:
    """Return the controller that ``elastic=value`` asks for; None if the cores stay.

    Raises
    ------
    UsageError
        If the value is neither a controller nor a boolean nor None.
    """
    if value is None or value is False:
        return None
    if value is True:
        return ThresholdController()
    if isinstance(value, Controller):
        return value
    raise UsageError(
        f"Parameter 'elastic' is True, a ThresholdController, a PredictiveController or an "
        f"EnergyController, not {value!r}."
    )

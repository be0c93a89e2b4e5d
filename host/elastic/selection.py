# SPDX-License-Identifier: Apache-2.0
"""A controller as a caller names it."""

from host.elastic.controller import Controller
from host.elastic.energy import EnergyController
from host.elastic.predictive import PredictiveController
from host.elastic.threshold import ThresholdController
from host.errors import UsageError

__all__ = ["controller_of", "parse_controller"]


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


def parse_controller(
    name: str, latency: int | None = None, option: str = "--elastic"
) -> Controller:
    """Return the controller of this name, as a command line gives it.

    Parameters
    ----------
    name : str
        ``threshold``, ``predictive`` or ``energy``.
    latency : int, optional
        Bound of the latency in cycles; for ``energy``, which needs it.
    option : str
        The option, for messages.

    Raises
    ------
    UsageError
        If there is no such controller, or it does not go with the latency.
    """
    if name == EnergyController.name:
        if latency is None:
            raise UsageError(f"{option} energy needs --latency, a number of clock cycles.")
        return EnergyController(latency)
    if latency is not None:
        raise UsageError(f"--latency is for {option} energy, not for {option} {name}.")
    for law in (ThresholdController, PredictiveController):
        if name == law.name:
            return law()
    raise UsageError(f"{option} takes threshold, predictive, energy or replay:FILE, not {name!r}.")

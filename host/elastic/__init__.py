# SPDX-License-Identifier: Apache-2.0
"""How many cores of an accelerator a join uses: from what was observed to a number of cores.

Nothing here knows a device. The driver that observes and decides is
:mod:`host.control.elastic_cores`.
"""

from host.elastic.controller import Controller
from host.elastic.core_control import PATIENCE, CoreControl
from host.elastic.energy import EnergyController
from host.elastic.observation import Observation
from host.elastic.predictive import PredictiveController
from host.elastic.selection import controller_of, parse_controller
from host.elastic.threshold import ThresholdController

__all__ = [
    "PATIENCE",
    "Controller",
    "CoreControl",
    "EnergyController",
    "Observation",
    "PredictiveController",
    "ThresholdController",
    "controller_of",
    "parse_controller",
]

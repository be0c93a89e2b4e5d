# SPDX-License-Identifier: Apache-2.0
"""The host side of the kit: the meaning of a stream join, and how to run one on an accelerator.

Host code knows an accelerator only by its manifest, and needs no hardware tools.
"""

from host.cli import startup  # before all that takes long to load
from host.device import Device, open_device
from host.elastic import EnergyController, PredictiveController, ThresholdController
from host.errors import FailureError, JoinError, UsageError
from host.manifest import Manifest
from host.query.epochs import Epoch, EpochSchedule
from host.query.goals import InputRate, Latency, Queue
from host.query.ordering import Ordering
from host.query.segments import Segment, SegmentSchedule
from host.reference.arrivals import Arrivals
from host.reference.join import Matches, reference_join
from host.reference.predicate import EQUAL, OPEN, Bounds, DifferenceBand
from host.reference.side import Side
from host.reference.window import CountWindow, TimeWindow

__all__ = [
    "EQUAL",
    "OPEN",
    "Arrivals",
    "Bounds",
    "CountWindow",
    "Device",
    "DifferenceBand",
    "EnergyController",
    "Epoch",
    "EpochSchedule",
    "FailureError",
    "InputRate",
    "JoinError",
    "Latency",
    "Manifest",
    "Matches",
    "Ordering",
    "PredictiveController",
    "Queue",
    "Segment",
    "SegmentSchedule",
    "Side",
    "ThresholdController",
    "TimeWindow",
    "UsageError",
    "open_device",
    "reference_join",
    "startup",
]

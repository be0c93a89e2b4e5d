# SPDX-License-Identifier: Apache-2.0
"""The host side of the kit: the meaning of a stream join, and how to run one on an accelerator.

Host code knows an accelerator only by its manifest, and needs no hardware tools.
"""

from host.cli import startup  # before all that takes long to load
from host.devices import Device, open_device
from host.errors import FailureError, JoinError, UsageError
from host.protocol.manifest import Manifest
from host.query.cores import (
    EnergyController,
    Epoch,
    EpochSchedule,
    PredictiveController,
    Segment,
    SegmentSchedule,
    ThresholdController,
)
from host.query.ordering import InputRate, Latency, Ordering, Queue
from host.reference.arrivals import Arrivals, Side
from host.reference.join import Matches, reference_join
from host.reference.predicate import EQUAL, OPEN, Bounds, DifferenceBand
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

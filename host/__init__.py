# SPDX-License-Identifier: Apache-2.0
"""The host side of the kit: the meaning of a stream join, and how to run one on an accelerator.

Host code knows an accelerator only by its manifest, and needs no hardware tools.
"""

from host import startup  # before all that takes long to load
from host.arrivals import Arrivals
from host.device import Device, open_device
from host.errors import FailureError, JoinError, UsageError
from host.goals import InputRate, Latency, Queue
from host.manifest import Manifest
from host.ordering import Ordering
from host.predicate import EQUAL, OPEN, Bounds, DifferenceBand
from host.reference import Matches, reference_join
from host.segments import Segment, SegmentSchedule
from host.side import Side
from host.window import CountWindow, TimeWindow

__all__ = [
    "EQUAL",
    "OPEN",
    "Arrivals",
    "Bounds",
    "CountWindow",
    "Device",
    "DifferenceBand",
    "FailureError",
    "InputRate",
    "JoinError",
    "Latency",
    "Manifest",
    "Matches",
    "Ordering",
    "Queue",
    "Segment",
    "SegmentSchedule",
    "Side",
    "TimeWindow",
    "UsageError",
    "open_device",
    "reference_join",
    "startup",
]

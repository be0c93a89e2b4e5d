# SPDX-License-Identifier: Apache-2.0
"""The host side of the kit: the meaning of a stream join, and how to run one on an accelerator.

Host code knows an accelerator only by its manifest, and needs no hardware tools. The functions for
programs (:mod:`host.api`) are loaded when one of them is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from host.cli import command_package  # before all that takes long to load
from host.devices import Device, open_device
from host.errors import FailureError, JoinError, UsageError
from host.protocol.manifest import Manifest
from host.query.cores import (
    EnergyController,
    Epoch,
    EpochSchedule,
    PredictiveController,
    ThresholdController,
)
from host.query.ordering import InputRate, Latency, Ordering, Queue
from host.query.queries import AggregateQuery, AsofQuery, Query
from host.reference.arrivals import Arrivals, Side
from host.reference.join import Matches, reference_join
from host.reference.predicate import EQUAL, OPEN, Bounds, DifferenceBand
from host.reference.window import CountWindow, TimeWindow

if TYPE_CHECKING:
    from host.api import (
        aggregate,
        asof_join,
        join,
        join_aggregate,
        join_many,
        operate,
        overlap_join,
    )

__all__ = [
    "EQUAL",
    "OPEN",
    "AggregateQuery",
    "Arrivals",
    "AsofQuery",
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
    "Query",
    "Queue",
    "Side",
    "ThresholdController",
    "TimeWindow",
    "UsageError",
    "aggregate",
    "asof_join",
    "command_package",
    "join",
    "join_aggregate",
    "join_many",
    "open_device",
    "operate",
    "overlap_join",
    "reference_join",
]

_API = (
    "aggregate", "asof_join", "join", "join_aggregate", "join_many", "operate", "overlap_join",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load the functions for programs, which most modules of the kit do without."""
    if name in _API:
        return getattr(import_module("host.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

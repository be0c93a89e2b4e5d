# SPDX-License-Identifier: Apache-2.0
"""The analytical model: cycles and latencies of an accelerator, from its manifest alone.

:mod:`~host.cost_model.equations` has the paper's equations 1 to 6 as they stand there.
:class:`Circuit` has the paper's terms of one accelerator, in cycles, :class:`Workload` those of
what it is given to do. :mod:`~host.cost_model.latency` is about an idle accelerator,
:mod:`~host.cost_model.throughput` about a busy one, :mod:`~host.cost_model.load` about both, and
:mod:`~host.cost_model.join` about a join of known size, :mod:`~host.cost_model.matches` about one
whose matches are reduced. ``docs/cost-model.md`` tells how far the
model is from the hardware counters.
"""

from host.cost_model.circuit import Circuit
from host.cost_model.join import (
    JoinSize,
    describe_latency,
    estimated_cycles,
    expected_load,
    mean_of_last,
)
from host.cost_model.latency import idle_processing_latency, idle_visiting_latency
from host.cost_model.load import processing_latency, processing_terms, visiting_latency
from host.cost_model.matches import match_passes
from host.cost_model.throughput import bottleneck, cycles_per_tuple, limits
from host.cost_model.workload import IDLE, SATURATED, Workload

__all__ = [
    "IDLE",
    "SATURATED",
    "Circuit",
    "JoinSize",
    "Workload",
    "bottleneck",
    "cycles_per_tuple",
    "describe_latency",
    "estimated_cycles",
    "expected_load",
    "idle_processing_latency",
    "idle_visiting_latency",
    "limits",
    "match_passes",
    "mean_of_last",
    "processing_latency",
    "processing_terms",
    "visiting_latency",
]

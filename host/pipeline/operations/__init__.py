# SPDX-License-Identifier: Apache-2.0
"""Intermediate operations: their effects on the flags, and the streams that they become."""

from host.pipeline.operations.aggregated import Aggregated
from host.pipeline.operations.chained import Chained, Decision
from host.pipeline.operations.distinct import Distinct
from host.pipeline.operations.limited import Limited
from host.pipeline.operations.operation import Lazy, Operation, Place, Stateful
from host.pipeline.operations.sorted import Sorted
from host.pipeline.operations.stateless import (
    Stateless,
    filtering,
    flat_mapping,
    mapping,
    mapping_batches,
    peeking,
    selecting,
    updating,
)
from host.pipeline.operations.unordered import Unordered

__all__ = [
    "Aggregated",
    "Chained",
    "Decision",
    "Distinct",
    "Lazy",
    "Limited",
    "Operation",
    "Place",
    "Sorted",
    "Stateful",
    "Stateless",
    "Unordered",
    "filtering",
    "flat_mapping",
    "mapping",
    "mapping_batches",
    "peeking",
    "selecting",
    "updating",
]

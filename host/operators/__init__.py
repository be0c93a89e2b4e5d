# SPDX-License-Identifier: Apache-2.0
"""Stateless operators on rows, and their fusion into one pass over a batch."""

from host.operators.fused import Fused, Node
from host.operators.operator import Operator, Submitted
from host.operators.rows import CopyCounters, ReadOnlyError, Rows
from host.operators.stateless import Filter, FlatMap, Map, MapBatches, Peek, Project, Update

__all__ = [
    "CopyCounters",
    "Filter",
    "FlatMap",
    "Fused",
    "Map",
    "MapBatches",
    "Node",
    "Operator",
    "Peek",
    "Project",
    "ReadOnlyError",
    "Rows",
    "Submitted",
    "Update",
]

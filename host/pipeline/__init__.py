# SPDX-License-Identifier: Apache-2.0
"""Pipelines: a source, lazy operations with flags, one terminal operation (seed 001).

What is known of the rows (SIZED, ORDERED, SORTED, DISTINCT) decides what is run; it becomes a graph
of execution streams.
"""

from host.pipeline.execution import Execution
from host.pipeline.flags import Effect, Flag, Traits
from host.pipeline.operations import Chained, Decision, Lazy, Operation, Place, Stateful, Stateless
from host.pipeline.pipeline import Pipeline
from host.pipeline.settings import Settings
from host.pipeline.source import BatchSource, Bound, ParquetSource, Source, TableSource

__all__ = [
    "BatchSource",
    "Bound",
    "Chained",
    "Decision",
    "Effect",
    "Execution",
    "Flag",
    "Lazy",
    "Operation",
    "ParquetSource",
    "Pipeline",
    "Place",
    "Settings",
    "Source",
    "Stateful",
    "Stateless",
    "TableSource",
    "Traits",
]

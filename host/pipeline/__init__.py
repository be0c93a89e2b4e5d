# SPDX-License-Identifier: Apache-2.0
"""Pipelines: a source, lazy operations with flags, and one terminal operation (seed 001).

The known properties of the rows (SIZED, ORDERED, SORTED, DISTINCT) decide which execution streams a
pipeline becomes.
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

# SPDX-License-Identifier: Apache-2.0
"""Pipelines: a source, lazy operations with flags, and one terminal operation (seed 001).

The known properties of the rows (SIZED, ORDERED, SORTED, DISTINCT) decide which execution streams a
pipeline becomes. Operators on rows, sorting and merging are here; joins and aggregates are in
:mod:`host.session` and :mod:`host.pipeline.row_operators`, and how streams are driven in
:mod:`host.runtime`.
"""

from host.pipeline.execution import Execution, Settings
from host.pipeline.flags import Effect, Flag, Traits
from host.pipeline.operations import Chained, Decision, Lazy, Operation, Place, Stateful, Stateless
from host.pipeline.pipeline import Pipeline
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

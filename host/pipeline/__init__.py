# SPDX-License-Identifier: Apache-2.0
"""Pipelines: a source, lazy operations with flags, and one terminal operation.

The known properties of the rows (SIZED, ORDERED, SORTED, DISTINCT) decide which execution streams a
pipeline becomes. Operators on rows, sorting and merging are here; the join
is in :mod:`host.session`, aggregates are in :mod:`host.operators`, and how streams are driven is in
:mod:`host.runtime`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from host.pipeline.execution import Execution, Settings
    from host.pipeline.flags import (
        Chained,
        Decision,
        Effect,
        Flag,
        Operation,
        Place,
        Stateful,
        Traits,
    )
    from host.pipeline.pipeline import Pipeline
    from host.pipeline.row_operators import Stateless
    from host.pipeline.source import BatchSource, Bound, ParquetSource, Source, TableSource

__all__ = [
    "BatchSource",
    "Bound",
    "Chained",
    "Decision",
    "Effect",
    "Execution",
    "Flag",
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

_HOLDERS = ("flags", "source", "row_operators", "execution", "pipeline")


def __getattr__(name: str) -> Any:
    """Load what is asked for, and no more: a source needs no operation."""
    for holder in _HOLDERS if name in __all__ else ():
        module = import_module(f"{__name__}.{holder}")
        if name in module.__all__:
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

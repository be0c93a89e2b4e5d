# SPDX-License-Identifier: Apache-2.0
"""The kit under one name: the functions for tables here, those for Spark in ``splitjoin.spark``.

``from splitjoin import join`` is ``from host import join``. The command ``splitjoin`` leads to the
commands of the kit's four packages.

Examples
--------
>>> from splitjoin import join
>>> pairs = join("trades.parquet", "quotes.parquet", time="time", on="symbol", within="5s")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from host import (
        AggregateQuery,
        AsofQuery,
        FailureError,
        JoinError,
        Ordering,
        Query,
        UsageError,
        aggregate,
        asof_join,
        join,
        join_aggregate,
        join_many,
        open_device,
        operate,
        overlap_join,
    )

__all__ = [
    "AggregateQuery",
    "AsofQuery",
    "FailureError",
    "JoinError",
    "Ordering",
    "Query",
    "UsageError",
    "aggregate",
    "asof_join",
    "join",
    "join_aggregate",
    "join_many",
    "open_device",
    "operate",
    "overlap_join",
]


def __getattr__(name: str) -> Any:
    """Return a name of ``host``, which is loaded when it is asked for: commands may not need it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("host"), name)

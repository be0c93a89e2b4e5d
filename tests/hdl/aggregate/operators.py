# SPDX-License-Identifier: Apache-2.0
"""Small aggregates for the tests of their circuits."""

from hdl.aggregate.aggregate_parameters import AggregateParameters
from hdl.windowed.description import OperatorDescription
from host.operators.windowed import Field, Key, Reduction, WindowedOperator

__all__ = ["REDUCTIONS", "aggregate_parameters", "operator"]

REDUCTIONS = {
    "sum": Reduction("total", "sum", "v", bits=14),
    "count": Reduction("tuples", "count", bits=12),
    "min": Reduction("least", "min", "v"),
    "max": Reduction("greatest", "max", "v - 3"),
    "reduce": Reduction("seen", "reduce", "v", combine="a ^ b"),
}


def operator(*functions, size=4, advance=1, **changes):
    """An aggregate of field ``v`` by field ``item``."""
    return WindowedOperator(**{
        "name": "small", "size": size, "advance": advance, "keys": [Key("item")],
        "fields": [Field("item", 4, signed=False), Field("v", 8)],
        "reductions": [REDUCTIONS[name] for name in functions], **changes,
    })  # fmt: skip


def aggregate_parameters(described, **changes):
    """Parameters of a small accelerator for an operator."""
    description = OperatorDescription.from_dict(described.to_dict())
    return AggregateParameters(**{"operator": description, "timestamp_bits": 16, **changes})

# SPDX-License-Identifier: Apache-2.0
"""Encode columns of tables as key fields and timestamps of an accelerator, exactly or not at all.

An encoding is *planned* first and then applied batch by batch. The plan of whole tables uses all
values. They are converted to one unit and rebased to their common minimum. If the span still does
not fit a field, the values and the bounds are divided by the greatest common divisor of the values.
If that does not help, values that are only tested for equality become codes that both sides share.
The plan of streams uses the schemas, and ranges if they are given; every batch is then checked.
How tuples become words is not known here: see :mod:`host.protocol`.
"""

from host.columns.encoding import (
    Arrangement,
    BatchEncoder,
    EncodedBatch,
    EncodedJoin,
    EncodedSide,
    EncodingPlan,
    arrange,
    encode,
    plan_streams,
    plan_tables,
)
from host.columns.kinds import SUPPORTED, ColumnRange, Ranges

__all__ = [
    "Arrangement",
    "BatchEncoder",
    "ColumnRange",
    "EncodedBatch",
    "EncodedJoin",
    "EncodedSide",
    "EncodingPlan",
    "Ranges",
    "SUPPORTED",
    "arrange",
    "encode",
    "plan_streams",
    "plan_tables",
]

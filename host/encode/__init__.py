# SPDX-License-Identifier: Apache-2.0
"""Encode columns of tables as key fields and timestamps of an accelerator, exactly or not at all.

An encoding is *planned* first and then applied batch by batch. The plan of whole tables uses all
values. They are converted to one unit and rebased to their common minimum. If the span still does
not fit a field, the values and the bounds are divided by the greatest common divisor of the values.
If that does not help, values that are only tested for equality become codes that both sides share.
The plan of streams uses the schemas, and ranges if they are given; every batch is then checked.
"""

from host.encode.batches import BatchEncoder, EncodedBatch
from host.encode.kinds import SUPPORTED
from host.encode.plan import EncodingPlan, plan_streams, plan_tables
from host.encode.ranges import ColumnRange, Ranges
from host.encode.tables import Arrangement, EncodedJoin, EncodedSide, arrange, encode

__all__ = [
    "SUPPORTED",
    "Arrangement",
    "BatchEncoder",
    "ColumnRange",
    "EncodedBatch",
    "EncodedJoin",
    "EncodedSide",
    "EncodingPlan",
    "Ranges",
    "arrange",
    "encode",
    "plan_streams",
    "plan_tables",
]

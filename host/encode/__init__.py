# SPDX-License-Identifier: Apache-2.0
"""Columns of tables as key fields and timestamps of an accelerator, exactly or not at all.

An encoding is *planned* first and then applied batch by batch. The plan of whole tables looks at
all values: they are brought to one unit and rebased to their common minimum; if the span still
does not fit a field they are divided by their greatest common divisor, and the bounds with them;
what is only tested for equality falls back to codes shared by both sides. The plan of streams
knows the schemas, and ranges if somebody gives them; every batch is then checked.
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

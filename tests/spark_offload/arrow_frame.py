# SPDX-License-Identifier: Apache-2.0
"""What is used of a frame by functions of Arrow batches: its tasks run here, without Spark."""

from types import SimpleNamespace

import pyarrow as pa

__all__ = ["ArrowFrame"]


class ArrowFrame:
    """A frame whose partitions are lists of record batches.

    Parameters
    ----------
    parts : list of list of RecordBatch
        The partitions.
    """

    def __init__(self, parts):
        self.parts = parts

    @property
    def columns(self):
        return next(batch for part in self.parts for batch in part).schema.names

    def toDF(self, *names):
        return ArrowFrame([[batch.rename_columns(names) for batch in p] for p in self.parts])

    def select(self, *names):
        return ArrowFrame([[batch.select(names) for batch in part] for part in self.parts])

    def mapInArrow(self, function, schema):
        """Run a function on each partition; Spark takes what it yields by position."""
        names, kinds = zip(*(column.split() for column in schema.split(", ")), strict=True)
        types = {"int": pa.int32(), "bigint": pa.int64()}
        parts = [list(function(iter(part))) for part in self.parts]
        for batch in (batch for part in parts for batch in part):
            assert batch.schema.names == list(names)
            assert batch.schema.types == [types[kind] for kind in kinds]
        return ArrowFrame(parts)

    def collect(self):
        rows = [row for part in self.parts for batch in part for row in batch.to_pylist()]
        return [SimpleNamespace(**row) for row in rows]

# SPDX-License-Identifier: Apache-2.0
"""Between which values the columns of a band lie, found by a job before the join.

A band on a wide column, such as microseconds, fits a key field if the values lie close together or
have a common divisor; tasks, whose rows pass by, cannot know that.
"""

from collections.abc import Callable, Iterator, Sequence
from math import gcd

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from host.encode.kinds import column_type, integer_view, validity
from host.encode.ranges import ColumnRange, Ranges
from host.manifest import Manifest
from host.query.join_query import JoinQuery
from spark_offload.layout.columns import arrow_schema

__all__ = ["band_ranges", "column_ranges"]

_RESULT = "number int, low bigint, high bigint, step bigint"


def band_ranges(
    left: DataFrame, right: DataFrame, query: JoinQuery, manifest: Manifest
) -> tuple[Ranges, Ranges]:
    """Return what is known of the columns of bands that are wider than the key fields."""
    narrowest = min((key.bits for key in manifest.keys), default=64)
    ranges: list[Ranges] = []
    for index, (frame, side) in enumerate(((left, "left"), (right, "right"))):
        schema = arrow_schema(frame.schema, side)
        wanted = set()
        for term in query.terms:
            name = (term.left, term.right)[index]
            kind = column_type(schema, name, side)
            if not (term.is_equality or kind.kind.is_coded) and kind.dtype.bit_width > narrowest:
                wanted.add(name)
        ranges.append(column_ranges(frame, sorted(wanted), schema, side))
    return ranges[0], ranges[1]


def column_ranges(
    frame: DataFrame, columns: Sequence[str], schema: pa.Schema, side: str
) -> dict[str, ColumnRange]:
    """Read ``columns`` of ``frame``; return least and greatest value and common distance."""
    if not columns:
        return {}
    # Positions as names: no name of the user's can clash or need quoting.
    places = [f"c{frame.columns.index(name)}" for name in columns]
    chosen = frame.toDF(*(f"c{at}" for at in range(len(frame.columns)))).select(*places)
    parts = chosen.mapInArrow(_measuring(columns, schema, side), _RESULT).collect()
    found: dict[str, ColumnRange] = {}
    for at, name in enumerate(columns):
        mine = [part for part in parts if part.number == at]
        if mine:
            low, high = min(part.low for part in mine), max(part.high for part in mine)
            steps = (part.step % (1 << 64) for part in mine)  # sent as signed numbers
            step = gcd(*steps, *(part.low - low for part in mine))
            found[name] = ColumnRange(low, high, max(1, step))
    return found


def _measuring(
    columns: Sequence[str], schema: pa.Schema, side: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for ``mapInArrow``: a row for each batch and column with values."""
    kinds = [column_type(schema, name, side) for name in columns]

    def splitjoin_ranges(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = []
            for number, kind in enumerate(kinds):
                array = kind.comparable(batch.column(number))
                values, known = integer_view(array), validity(array)
                values = values if known is None else values[known]
                if len(values):
                    low = values.min()
                    step = np.gcd.reduce((values - low).astype(np.uint64))
                    rows.append((number, int(low), int(values.max()), int(step)))
            if rows:
                numbers, lows, highs, steps = zip(*rows, strict=True)
                yield pa.record_batch(
                    {
                        "number": pa.array(numbers, pa.int32()),
                        "low": pa.array(lows, pa.int64()),
                        "high": pa.array(highs, pa.int64()),
                        "step": pa.array(np.array(steps, np.uint64).view(np.int64)),
                    }
                )

    return splitjoin_ranges

# SPDX-License-Identifier: Apache-2.0
"""Where ranges of time and their halos begin, as a value that Spark knows when an action runs."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_offload.layout.halos import Halos
from spark_offload.layout.steps import literals

__all__ = ["CUTS", "cuts_literal", "cuts_row"]

_FIELDS = ("starts", "left", "right", "departures")

CUTS = f"cuts struct<{', '.join(f'{name}: array<bigint>' for name in _FIELDS)}>"
"""First order numbers of the ranges, of their halos by side, and of the rows that leave a window
in them; without those of the first range."""


def cuts_row(halos: Halos) -> pa.RecordBatch:
    """Return the cuts as the only row of a task."""
    kind = pa.struct([(name, pa.list_(pa.int64())) for name in _FIELDS])
    row = {name: list(steps) for name, steps in zip(_FIELDS, _steps(halos), strict=True)}
    return pa.record_batch({"cuts": pa.array([row], kind)})


def cuts_literal(halos: Halos) -> Column:
    """Return cuts that are known already."""
    fields = (
        f"'{name}', cast(array({', '.join(literals(steps))}) as array<bigint>)"
        for name, steps in zip(_FIELDS, _steps(halos), strict=True)
    )
    return F.expr(f"named_struct({', '.join(fields)})")


def _steps(halos: Halos) -> tuple[Sequence[int], ...]:
    return halos.starts, *halos.reaches, halos.departures or ()

# SPDX-License-Identifier: Apache-2.0
"""The left and the right rows of tagged batches, as two tables."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from host.session.intake import TaggedLayout
from spark_offload.layout.tagged import LEFT, RIGHT

__all__ = ["split_sides"]


def split_sides(
    batches: Sequence[pa.RecordBatch], layout: TaggedLayout
) -> tuple[pa.Table, pa.Table]:
    """Return the left and the right rows of tagged batches, each in their order."""
    sides = []
    for side, schema in ((LEFT, layout.left), (RIGHT, layout.right)):
        own = [
            pa.RecordBatch.from_arrays(
                batch.filter(pc.equal(batch.column(layout.side), side)).columns[
                    layout.slices[side]
                ],
                schema=schema,
            )
            for batch in batches
        ]
        sides.append(pa.Table.from_batches(own, schema))
    return sides[LEFT], sides[RIGHT]

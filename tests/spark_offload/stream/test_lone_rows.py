# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

from host.query.tables import output_schema
from host.reference.types import JoinType
from spark_offload.stream.task import as_results
from tests.spark_offload.stream_model import BEGIN, SCHEMA, stream_task

ROWS = [{"t": BEGIN, "k": n, "x": None, "id": 7 + n} for n in range(3)]


@pytest.mark.parametrize("how", [kind for kind in JoinType if kind is not JoinType.INNER])
@pytest.mark.parametrize("side", [0, 1])
def test_a_row_alone_has_its_own_columns_and_nulls_for_those_of_the_other_side(how, side):
    if side and not how.has_pairs:
        return  # such a join answers with left rows only
    task = stream_task(equal=True, groups=1, within=timedelta(seconds=1), how=how)
    right = SCHEMA.append(pa.field("y", pa.string()))
    task = replace(task, right=right, output=output_schema(SCHEMA, right, how=how))
    table = pa.Table.from_pylist(ROWS, task.schema(side))
    pieces = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    found = pa.Table.from_batches(as_results(task, side, pieces), task.output)
    names = task.output.names
    own = names[4:] if side else names[:4]
    rows = table.to_pylist()
    assert [tuple(row[name] for name in own) for row in found.to_pylist()] == [
        tuple(row.values()) for row in rows
    ]
    for name in set(names) - set(own):
        assert found[name].null_count == len(ROWS)

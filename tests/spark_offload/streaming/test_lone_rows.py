# SPDX-License-Identifier: Apache-2.0
from datetime import timedelta

import pyarrow as pa
import pytest

from host.join_type import JoinType
from spark_offload.streaming.lone_rows import as_results
from tests.spark_offload.stream_model import BEGIN, SCHEMA, stream_task

ROWS = [{"t": BEGIN, "k": n, "x": None, "id": 7 + n} for n in range(3)]


@pytest.mark.parametrize("how", [kind for kind in JoinType if kind is not JoinType.INNER])
@pytest.mark.parametrize("side", [0, 1])
def test_a_row_alone_has_its_own_columns_and_nulls_for_those_of_the_other_side(how, side):
    if side and not how.has_pairs:
        return  # such a join answers with left rows only
    task = stream_task(equal=True, groups=1, within=timedelta(seconds=1), how=how)
    table = pa.Table.from_pylist(ROWS, SCHEMA)
    pieces = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    found = pa.Table.from_batches(as_results(task, side, pieces), task.output)
    names = task.output.names
    own = names[4:] if side else names[:4]
    assert [
        dict(zip(SCHEMA.names, (row[name] for name in own), strict=True))
        for row in found.to_pylist()
    ] == ROWS
    for name in set(names) - set(own):
        assert found[name].null_count == len(ROWS)

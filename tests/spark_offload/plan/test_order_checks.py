# SPDX-License-Identifier: Apache-2.0
import random

import pyarrow as pa
import pytest

from host.errors import OrderError
from host.query.queries import Query
from spark_offload.errors import kit_errors
from spark_offload.plan.join import (
    checked_for_disorder,
    checked_for_nulls,
    splitjoin_order_suspects,
)
from spark_offload.task.rows import SideCheck


def goes_back(times, cuts):
    """Say whether the check finds a fall in ``times``, whose rows come in batches cut there."""
    table = pa.table(
        {"row": pa.array(range(len(times)), pa.int64()), "order": pa.array(times, pa.int64())}
    )
    batches = [
        batch
        for begin, end in zip([0, *cuts], [*cuts, len(times)], strict=True)
        for batch in table[begin:end].combine_chunks().to_batches()
    ]
    suspects = pa.Table.from_batches(splitjoin_order_suspects(iter(batches)), table.schema)
    assert suspects.num_rows <= 4 * len(batches)
    check = SideCheck("left", "t", True, (), 0)
    ordered = suspects.sort_by([("order", "ascending"), ("row", "ascending")])
    try:
        for batch in ordered.combine_chunks().to_batches():
            check.see(batch, pa.array([True] * batch.num_rows))
    except OrderError:
        return True
    return False


@pytest.mark.few(100)
@pytest.mark.parametrize("seed", range(300))
def test_the_few_rows_that_are_looked_at_tell_of_all(seed):
    rng = random.Random(seed)
    times = [rng.randrange(30) for _ in range(rng.randrange(12))]
    if rng.random() < 0.7:
        times.sort()
    if times and rng.random() < 0.3:
        times[rng.randrange(len(times))] = rng.choice([0, 29])
    cuts = sorted(rng.randrange(len(times) + 1) for _ in range(rng.randrange(4)))
    assert goes_back(times, cuts) is (times != sorted(times))


QUERY = Query(time="t", within=1)


def test_an_input_that_cannot_hold_a_null_is_not_read(spark, capsys):
    whole = spark.range(3).selectExpr("id as t")
    answer = whole.limit(2)
    assert checked_for_nulls(answer, whole, whole, QUERY) is answer
    gaps = whole.selectExpr("nullif(t, 7) as t")
    checked = checked_for_nulls(answer, gaps, whole, QUERY)
    checked.explain()
    assert capsys.readouterr().out.count("MapInArrow splitjoin_order_check") == 1
    assert checked.columns == ["t"]
    assert checked.count() == 2


def test_the_first_null_is_shown_and_files_without_one_are_spared(spark, tmp_path, capsys):
    path = str(tmp_path / "gaps")
    rows = spark.range(100, numPartitions=2).selectExpr("nullif(nullif(id, 60), 80) as t", "id")
    rows.write.parquet(path)
    gaps = spark.read.parquet(path)
    checked = checked_for_nulls(gaps, gaps, spark.range(3).selectExpr("id as t"), QUERY)
    checked.explain()
    assert "PushedFilters: [IsNull(t)]" in capsys.readouterr().out
    with pytest.raises(OrderError, match="t=null, id=60;"), kit_errors():
        checked.collect()


def test_only_the_order_column_is_read_again_to_find_disorder(spark, tmp_path, capsys):
    path = str(tmp_path / "rows")
    spark.range(100, numPartitions=1).selectExpr("nullif(id, 7) as t", "id").write.parquet(path)
    rows = spark.read.parquet(path)
    checked = checked_for_disorder(rows.limit(5), rows, rows, QUERY)
    checked.explain()
    plan = capsys.readouterr().out
    assert plan.count("ReadSchema: struct<t:bigint>") == 2
    assert plan.count("MapInArrow splitjoin_order_check") == 2
    assert checked.count() == 5
    late = rows.unionAll(rows)
    with pytest.raises(OrderError, match="left.t"), kit_errors():
        checked_for_disorder(rows, late, rows, QUERY).collect()

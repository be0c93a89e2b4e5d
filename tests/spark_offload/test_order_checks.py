# SPDX-License-Identifier: Apache-2.0
import random

import pyarrow as pa
import pytest

from host import TimeWindow, UsageError
from host.errors import DisorderError
from host.query import JoinQuery
from spark_offload.order_checks import order_checked, splitjoin_order_suspects
from spark_offload.side_check import SideCheck


def first_fault(times, cuts):
    """Return what the check says of ``times``, whose rows come in batches cut there."""
    table = pa.table(
        {"row": pa.array(range(len(times)), pa.int64()), "order": pa.array(times, pa.int64())}
    )
    batches = [
        batch
        for begin, end in zip([0, *cuts], [*cuts, len(times)], strict=True)
        for batch in table[begin:end].combine_chunks().to_batches()
    ]
    suspects = pa.Table.from_batches(splitjoin_order_suspects(iter(batches)), table.schema)
    assert suspects.num_rows <= 5 * len(batches)
    check = SideCheck("left", "t", True)
    try:
        # As Spark sorts: nulls first.
        ordered = suspects.sort_by([("order", "ascending"), ("row", "ascending")])
        nulls = ordered.filter(ordered["order"].is_null())
        rest = ordered.filter(ordered["order"].is_valid())
        for batch in pa.concat_tables([nulls, rest]).combine_chunks().to_batches():
            check.see(batch, pa.array([True] * batch.num_rows))
    except UsageError as error:
        return type(error)
    return None


@pytest.mark.parametrize("seed", range(300))
def test_the_few_rows_that_are_looked_at_tell_of_all(seed):
    rng = random.Random(seed)
    times = [rng.randrange(30) for _ in range(rng.randrange(12))]
    if rng.random() < 0.7:
        times.sort()
    if times and rng.random() < 0.3:
        at = rng.randrange(len(times))
        times[at] = rng.choice([None, 0, 29])
    cuts = sorted(rng.randrange(len(times) + 1) for _ in range(rng.randrange(4)))
    known = [time for time in times if time is not None]
    expected = DisorderError if known != sorted(known) else None
    assert first_fault(times, cuts) is (UsageError if None in times else expected)


def test_an_input_that_cannot_break_a_rule_is_not_read(spark, capsys):
    whole = spark.range(3).selectExpr("id as t")
    query = JoinQuery(order=("t", "t"), window=TimeWindow(1))
    answer = whole.limit(2)
    assert order_checked(answer, whole, whole, query) is answer
    gaps = whole.selectExpr("nullif(t, 7) as t")
    checked = order_checked(answer, gaps, whole, query)
    checked.explain()
    assert capsys.readouterr().out.count("MapInArrow splitjoin_order_check") == 1
    assert checked.columns == ["t"]
    assert checked.count() == 2

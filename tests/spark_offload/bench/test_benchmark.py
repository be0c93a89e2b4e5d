# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from bench.spark.race import ClusteredBenchmark, by_expert


def test_clustered_fields_are_normal_around_the_middle():
    for table in ClusteredBenchmark(rows=20_000, deviation=100).tables():
        for name in "xy":
            values = table[name].to_numpy()
            assert values.dtype == np.int32
            assert values.mean() == pytest.approx(5_000, abs=5)
            assert values.std() == pytest.approx(100, rel=0.05)


def test_values_beyond_the_ends_are_kept_within():
    for table in ClusteredBenchmark(rows=2_000, deviation=10_000).tables():
        values = table["x"].to_numpy()
        assert (values.min(), values.max()) == (1, 10_000)


@pytest.mark.long
@pytest.mark.parametrize(
    "deviation", [None, 100, *(pytest.param(n, marks=pytest.mark.long) for n in (0, 10_000))]
)
def test_the_expert_has_the_rows_of_the_conditions_as_they_are(spark, tmp_path, deviation):
    benchmark = ClusteredBenchmark(rows=150, window=40, reach=60, deviation=deviation)
    left, right = (spark.createDataFrame(table.to_pandas()) for table in benchmark.tables())
    wanted = sorted(benchmark.in_spark(left, right).collect())
    assert wanted or deviation in (None, 10_000)
    assert sorted(by_expert(benchmark, left, right).collect()) == wanted

# SPDX-License-Identifier: Apache-2.0
"""What is read of the order columns before rows are placed."""

import pytest

from spark_offload.partitioning.ranges import LEAST_QUANTILES, profile_order

ROWS = 200_000


@pytest.fixture(scope="module")
def times(spark):
    """Times of two sides; a third of the rows is of the left one."""
    return spark.range(ROWS).selectExpr(
        "cast(id % 3 > 0 as tinyint) as side", "id * 10 - 500 as time"
    )


def test_counts_and_extremes_are_exact_and_quantiles_near(times):
    profile = profile_order(times, 4)
    assert profile.rows == (-(-ROWS // 3), ROWS - -(-ROWS // 3))
    assert (profile.least, profile.greatest) == (-500, ROWS * 10 - 510)
    shares = len(profile.quantiles) + 1
    assert shares >= LEAST_QUANTILES
    assert shares % 4 == 0
    for place, quantile in enumerate(profile.quantiles, 1):
        assert abs((quantile + 500) / 10 / ROWS - place / shares) < 0.001


def test_no_rows_have_an_empty_profile(spark):
    none = spark.range(0).selectExpr("cast(0 as tinyint) as side", "id as time")
    assert profile_order(none, 2).rows == (0, 0)


def test_a_narrow_span_far_from_zero_is_told_apart(spark):
    far = (1 << 62) + 7
    times = spark.range(1_000).selectExpr("cast(0 as tinyint) as side", f"id + {far}L as time")
    assert profile_order(times, 2).starts(2) == (far + 500,)

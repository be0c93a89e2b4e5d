# SPDX-License-Identifier: Apache-2.0
"""What a job finds out of the columns of a band holds for every value."""

from datetime import date
from math import gcd

from hypothesis import example, given
from hypothesis import strategies as st
import pyarrow as pa

from spark_offload.layout.order_axis import LEAST
from spark_offload.planning.ranges import column_ranges
from tests.spark_offload.arrow_frame import ArrowFrame

VALUE = (
    st.none() | st.sampled_from([LEAST, -LEAST - 1, 0]) | st.integers(-5, 5).map(lambda n: 6 * n)
)


def frame_of(parts):
    """Return a frame of columns ``a b`` and ``x``, a list of batches for each partition."""
    return ArrowFrame(
        [
            [
                pa.record_batch({"a b": pa.nulls(len(values)), "x": pa.array(values, pa.int64())})
                for values in batches
            ]
            for batches in parts
        ]
    )


@given(
    st.lists(st.lists(st.lists(VALUE, max_size=4), min_size=1, max_size=3), min_size=1, max_size=3)
)
@example([[[LEAST, -LEAST - 1]]])
@example([[[LEAST, 0]], [[2]]])
def test_all_values_lie_whole_steps_above_the_least_one(parts):
    frame = frame_of(parts)
    schema = frame.parts[0][0].schema
    found = column_ranges(frame, ["x"], schema, "left")
    values = [value for part in parts for batch in part for value in batch if value is not None]
    if not values:
        assert found == {}
        return
    low, high, step = found["x"]
    assert (low, high) == (min(values), max(values))
    assert step == max(1, gcd(*(value - low for value in values)))


def test_no_column_is_no_job():
    assert column_ranges(None, [], pa.schema([]), "left") == {}


def test_columns_of_several_types_are_read_in_one_job():
    batch = pa.record_batch(
        {
            "d": pa.array([date(1970, 1, 11), date(1970, 1, 3), None]),
            "n": pa.array([None, None, None], pa.int64()),
            "t": pa.array([3_000, 9_000, 6_000], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        }
    )
    found = column_ranges(ArrowFrame([[batch]]), ["d", "n", "t"], batch.schema, "right")
    assert found == {"d": (2, 10, 8), "t": (3_000, 9_000, 3_000)}

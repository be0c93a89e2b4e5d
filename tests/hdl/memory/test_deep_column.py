# SPDX-License-Identifier: Apache-2.0
"""A memory deeper than a block RAM, inferred and built of banks."""

import pytest

from hdl.memory.columns import DeepColumn
from tests.hdl.column_bench import exercise_column


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("width", "depth"), [(3, 2), (9, 1 << 10), (5, 1 << 14), (2, 1 << 15), (3, 1 << 18)]
)
def test_a_row_reads_as_it_was_written_after_the_latency(platform, width, depth):
    dut = DeepColumn(width=width, depth=depth)
    assert dut.latency == DeepColumn.LATENCY == 5
    exercise_column(dut, platform, width=width, depth=depth, cycles=120)

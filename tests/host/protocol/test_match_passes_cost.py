# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.manifest import describe
from hdl.presets import PRESETS
from host import CountWindow, Ordering, TimeWindow
from host.protocol.cost_model import JoinSize, describe_latency, estimated_cycles, match_passes
from host.protocol.manifest import JoinAggregateManifest
from host.query.queries import Query
from tests.windows import over

MANIFEST = JoinAggregateManifest.from_dict(
    describe(PRESETS["demo-join-aggregate"], "", verilog_file="")
)
SIZE = JoinSize((80_000, 80_000), (4_000, 4_000))


def asked(window):
    return Query(time="t", **over(window))


def test_a_window_of_time_is_met_on_both_sides_in_one_pass():
    passes, each = match_passes(asked(TimeWindow(9)), SIZE)
    assert passes == 1
    assert each == JoinSize((80_000, 80_000), (4_000, 8_000))
    # 8,007 keys in 4 cores of 4 lanes, and 8 left rows in a pass; right rows do not probe.
    rows = (8_007 / 4 + 3) / 4
    found = estimated_cycles(MANIFEST, each, Ordering.none())
    assert found == pytest.approx(10_000 * rows, abs=1)


def test_a_window_of_rows_takes_a_pass_for_each_side_of_a_row():
    assert match_passes(asked(CountWindow(9)), SIZE) == (2, SIZE)


def test_the_latency_is_that_of_a_left_row():
    assert describe_latency(MANIFEST, (1_600, 1_600)).startswith("131 cycles from a tuple to its ")
    assert describe_latency(MANIFEST, (0, 1_600)).startswith("131 cycles from a tuple to its ")

# SPDX-License-Identifier: Apache-2.0
import pyarrow as pa

from host.reference.arrivals import Side
from host.session.records import CoreFailure, FailureRecord, LostTuples
from sim.failures.expectation import arrivals, without_lost

PLACES = arrivals(pa.table({"t": [0, 2, 4, 6]}), pa.table({"t": [0, 1, 4, 9]}))


def test_rows_arrive_by_time_and_left_ones_first():
    assert [part.tolist() for part in PLACES] == [[0, 3, 4, 6], [1, 2, 5, 7]]


def test_a_pair_is_missing_if_its_later_row_probes_too_late():
    pairs = [(0, 0), (0, 2), (2, 0), (1, 3), (2, 3), (3, 2)]
    lost = LostTuples(Side.R, 0, 2, 2, probes_from=3)
    record = FailureRecord([CoreFailure(1, 10, (lost,))])
    # Row 3 of S is the only probe from number 3 on; rows 0 and 2 of R are lost to it.
    assert without_lost(pairs, record, PLACES) == (
        [(0, 0), (0, 2), (2, 0), (1, 3), (3, 2)],
        {(2, 3)},
    )
    assert without_lost(pairs, FailureRecord(), PLACES) == (pairs, set())

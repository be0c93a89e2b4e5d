# SPDX-License-Identifier: Apache-2.0
from host.session.records import PeriodChange, PrecisionRecord


def test_a_record_tells_what_was_held_and_the_last_period():
    record = PrecisionRecord("a rate", bound=16, first=8)
    assert record.period == 8
    assert str(record) == "a star every 8 probes: no measurement was completed"
    record.judge(held=True)
    record.judge(held=False)
    record.change(PeriodChange(1000, 50, 12))
    assert record.period == 12
    assert str(record) == (
        "a rate held in 1 of 2 measurements; period 8 at first, 12 at last, 1 changes, 16 at most"
    )

# SPDX-License-Identifier: Apache-2.0
from host.reference.arrivals import Side
from host.session.records import CoreFailure, FailureRecord, LostTuples


def test_a_record_says_what_is_missing_or_was_sent_again():
    assert str(FailureRecord()) == "no core failed"
    lost = (LostTuples(Side.S, 4, 12, 3, 9), LostTuples(Side.R, 1, 1, 1, 7))
    record = FailureRecord([CoreFailure(2, 100, lost), CoreFailure(0, 120)])
    assert record.lost_tuples == 4
    assert str(record) == (
        "failed cores: 2, 0; 3 tuples of S stored by core 2, numbers 4 to 12, are missing for "
        "probes from 9 on; 1 tuples of R stored by core 2, numbers 1 to 1, are missing for probes "
        "from 7 on"
    )
    again = FailureRecord([CoreFailure(1, 10, replayed=1500)])
    assert (again.replayed, again.lost_tuples) == (1500, 0)
    assert str(again) == "failed cores: 1; 1,500 tuples sent again, nothing is missing"


def test_a_record_says_of_whose_tuples_a_bit_had_flipped():
    both = (Side.R, Side.S)
    record = FailureRecord([CoreFailure(2, 9, parity=(Side.S,)), CoreFailure(3, 9, parity=both)])
    assert str(record) == (
        "failed cores: 2 (a flipped bit in its tuples of S), 3 (a flipped bit in its tuples of R "
        "and S)"
    )

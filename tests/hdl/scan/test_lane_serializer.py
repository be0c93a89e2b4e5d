# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.scan.layouts import match_layout
from hdl.scan.serializers import LaneSerializer
from tests.halves import half
from tests.hdl.scan_rows import by_probe, queue_parameters, random_rows, serialize


@pytest.mark.parametrize(
    ("lanes", "probes", "stalls"), half([(2, 1), (3, 2), (4, 3), (26, 2)], [0.0, 0.5])
)
def test_a_row_becomes_its_lanes_with_matches_and_the_last_one_if_the_pass_ends(
    lanes, probes, stalls
):
    parameters = queue_parameters(lanes, probes)
    rows, _ = random_rows(parameters, random.Random(lanes), 40)
    expected = [
        (matches, lane, row["row"], ends, row["ending"]["count"])
        for row in rows
        for lane, matches in enumerate(row["matches"])
        for ends in [bool(row["last"]) and lane == lanes - 1]
        if matches or ends
    ]
    lanes_sent = serialize(
        LaneSerializer(parameters, bits=parameters.engine.probes),
        match_layout(parameters, parameters.engine.probes),
        [by_probe(parameters, row) for row in rows],
        len(expected),
        stalls=stalls,
    )
    assert [
        (word.matches, word.lane, word.row, bool(word.last), word.ending.count)
        for word in lanes_sent
    ] == expected


@pytest.mark.few(3)
@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("stalls", [0.0, 0.5])
def test_lanes_in_which_a_round_ends_are_sent_without_a_match_too(lanes, stalls):
    parameters = queue_parameters(lanes, 1).with_(rounds=True)
    generator = random.Random(lanes)
    rows, expected = [], []
    for n in range(60):
        ends, code = generator.choice([0, 0, 1, generator.getrandbits(lanes)]), n % 3
        matches = [generator.random() < 0.2 for _ in range(lanes)]
        last = n % 5 == 4
        if not (ends or last or any(matches)):
            continue
        turned = [sum(bit << lane for lane, bit in enumerate(matches))]
        rows.append(
            {
                "matches": turned,
                "row": n % parameters.ring_rows,
                "last": last,
                "ends": ends,
                "rounds": code,
            }
        )
        expected += [
            (
                match,
                lane,
                n % parameters.ring_rows,
                last and lane == lanes - 1,
                ends >> lane & 1,
                code,
            )
            for lane, match in enumerate(matches)
            if match or ends >> lane & 1 or (last and lane == lanes - 1)
        ]
    found = serialize(
        LaneSerializer(parameters, bits=1), match_layout(parameters, 1), rows, len(expected),
        stalls=stalls,
    )  # fmt: skip
    assert [
        (word.matches, word.lane, word.row, word.last, word.ends, word.rounds) for word in found
    ] == expected


@pytest.mark.parametrize("lanes", [2, 3])
@pytest.mark.parametrize("full", [False, True])
def test_latency_of_lanes_and_one_lane_per_cycle(lanes, full):
    parameters = queue_parameters(lanes, 2)
    dut = LaneSerializer(parameters, bits=parameters.engine.probes)
    assert dut.latency == 3
    row = by_probe(parameters, {"matches": [3 if full or n == 1 else 0 for n in range(lanes)]})
    each = lanes if full else 1
    sent, taken = [], []
    serialize(
        dut,
        match_layout(parameters, parameters.engine.probes),
        [row] * 20,
        20 * each,
        stamps=(sent, taken),
    )
    assert taken == list(range(sent[0] + dut.latency, sent[0] + dut.latency + 20 * each))
    if not full:
        assert taken == [s + dut.latency for s in sent]

# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.scan.layouts import lane_matches_layout
from hdl.scan.serializers import PairSerializer
from hdl.words.results import ResultKind
from tests.hdl.scan_rows import as_tuple, queue_parameters, random_rows, serialize


@pytest.mark.few(3)
@pytest.mark.parametrize("probes", [1, 3, 4])
@pytest.mark.parametrize("stalls", [0.0, 0.5])
def test_a_lane_becomes_its_pairs_then_star_and_mark(probes, stalls):
    parameters = queue_parameters(1, probes)
    rows, expected = random_rows(parameters, random.Random(probes), 60)
    lanes = [{**row, "matches": row["matches"][0], "lane": 0} for row in rows]
    words = serialize(
        PairSerializer(parameters),
        lane_matches_layout(parameters, parameters.engine.probes),
        lanes,
        len(expected),
        stalls=stalls,
    )
    assert [as_tuple(word) for word in words] == expected


@pytest.mark.parametrize("stalls", [0.0, 0.5])
def test_the_star_of_a_round_comes_between_its_pairs_and_the_star_of_the_probe(stalls):
    parameters = queue_parameters(2, 1).with_(rounds=True)
    generator = random.Random(7)
    lanes, expected = [], []
    for n in range(80):
        match, ends, last, star, mark = (generator.random() < 0.5 for _ in range(5))
        code = generator.randrange(1, 4)
        lane, row = generator.randrange(2), generator.randrange(32)
        flags = {"overflow": n % 2, "disorder": n % 3 == 0, "inner": mark}
        ending = {"count": 1, "star": star, "mark": mark, "punctuation": flags}
        lanes.append(
            {"matches": match, "lane": lane, "row": row, "last": last, "ending": ending,
             "ends": ends, "rounds": code}
        )  # fmt: skip
        number = (2 * row + lane >> code - 1) % 4
        expected += [("pair", number)] * match + [("inner", number, 0, 0)] * ends
        if last:
            faults = (flags["overflow"], flags["disorder"])
            expected += [("star", *faults)] * star + [("mark", *faults, mark)] * mark

    def said(word):
        flags = word.body.punctuation
        faults = (flags.overflow, flags.disorder)
        if word.kind == ResultKind.PAIR:
            return "pair", word.round
        if word.kind == ResultKind.MARK:
            return "mark", *faults, flags.inner
        return ("inner", word.round, *faults) if flags.inner else ("star", *faults)

    layout = lane_matches_layout(parameters, 1)
    words = serialize(PairSerializer(parameters), layout, lanes, len(expected), stalls=stalls)
    assert [said(word) for word in words] == expected


@pytest.mark.parametrize("full", [False, True])
def test_latency_of_pairs_and_one_word_per_cycle(full):
    parameters = queue_parameters(1, 4)
    dut = PairSerializer(parameters)
    assert dut.latency == 2
    ending = {"count": 4, "star": 1, "mark": full}
    lane = {"matches": 0xF if full else 0, "last": 1, "ending": ending}
    each = 6 if full else 1
    sent, taken = [], []
    serialize(
        dut,
        lane_matches_layout(parameters, parameters.engine.probes),
        [lane] * 20,
        20 * each,
        stamps=(sent, taken),
    )
    assert taken == list(range(sent[0] + dut.latency, sent[0] + dut.latency + 20 * each))
    if not full:
        assert taken == [s + dut.latency for s in sent]

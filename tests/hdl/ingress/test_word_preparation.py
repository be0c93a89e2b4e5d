# SPDX-License-Identifier: Apache-2.0
import random

import pytest

from hdl.ingress.preparation import WordPreparation
from hdl.parameters import JoinParameters, KeyField
from hdl.words.inputs import InputKind
from hdl.words.prepared import region_word, scheduled_word
from tests.halves import half
from tests.hdl.input_words import (
    both_word,
    control_word,
    criterion_of,
    integer,
    stored_key,
    tuple_word,
)
from tests.hdl.stream_bench import StreamBench


def lane_parameters(comparator, tuples_per_word=2):
    """Parameters of a small index."""
    keys = (KeyField(name="x", bits=8), KeyField(name="y", bits=5, signed=False))
    return JoinParameters.of(
        keys=keys, engine="index", comparator=comparator, timestamp_bits=7, bucket_bits=6,
        tuples_per_word=tuples_per_word,
    )  # fmt: skip


def scheduled(parameters, word):
    """A word as it is scheduled: the tuple of S is where it is among two."""
    if word["kind"] == InputKind.S and parameters.side_by_side:
        word = {**word, "first": 0, "body": {"both": {"s": word["body"]["tuple"]}}}
    return {"word": word, "close": 1, "star": 2, "disorder": 1, "illegal": 0, "free": 1}


def drive(parameters, words, **options):
    """Return the region words that leave, and the cycles in which words entered and left."""
    dut = WordPreparation(parameters)
    bench = StreamBench(dut, deadline=5_000, **options)
    layout = scheduled_word(parameters)
    sent, taken = [], []
    bench.source(
        dut.i, [integer(layout, scheduled(parameters, word)) for word in words], stamps=sent
    )
    received = bench.sink(dut.o, len(words), stamps=taken)
    bench.run()
    return [region_word(parameters).from_bits(word) for word in received], sent, taken


def check_cycles(parameters, latency, sent, taken):
    """Words enter in every cycle, and each leaves after the stated latency."""
    assert WordPreparation(parameters).latency == latency
    assert taken == [cycle + latency for cycle in sent]
    assert sent == list(range(sent[0], sent[0] + len(sent)))


@pytest.mark.parametrize(("comparator", "stalls"), half(["equality", "band"], [0.0, 0.4]))
def test_both_tuples_are_prepared_in_the_same_cycle(comparator, stalls):
    parameters = lane_parameters(comparator)
    generator = random.Random(1)

    def key():
        return {"x": generator.randrange(-128, 128), "y": generator.randrange(32)}

    words = []
    for n in range(100):
        words.append(
            generator.choice(
                [
                    both_word(n % 2, key(), key(), n, n + 1),
                    tuple_word(n % 2, key(), n),
                    control_word("FLUSH", n % 16, n),
                ]
            )
        )
    received, sent, taken = drive(parameters, words, stalls=stalls, seed=2)
    for word, found in zip(words, received, strict=True):
        assert found.kind == word["kind"]
        assert (found.close, found.star, found.disorder, found.free) == (1, 2, 1, 1)
        body = word["body"]
        if word["kind"] == InputKind.CONTROL:
            assert found.body.control.op == body["control"]["op"]
            assert found.body.control.value == body["control"]["value"]
            continue
        if word["kind"] == InputKind.BOTH:
            assert found.first == word["first"]
            tuples = body["both"]
        else:
            tuples = {"rs"[word["kind"].value]: body["tuple"]}
        for side, values in tuples.items():
            prepared = found.body.both[side]
            assert prepared.timestamp == values["timestamp"]
            for name, value in stored_key(parameters, values["key"]).items():
                assert prepared.key[name] == value
            if comparator == "equality":  # whose criterion is the key itself
                continue
            of_side = criterion_of(parameters, "rs".index(side), values["key"])
            for name, value in of_side.items():
                assert prepared.criterion[name] == value
    if not stalls:
        check_cycles(parameters, 7 + 2 * (comparator == "band"), sent, taken)


@pytest.mark.parametrize(
    ("engine", "comparator", "stalls"),
    half(["scan", "index"], ["band", "equality"], [0.0, 0.3, 0.8], of=4),
)
def test_a_single_lane_keeps_every_word_in_order(engine, comparator, stalls):
    buckets = {} if engine == "index" else {"bucket_bits": None}
    parameters = lane_parameters(comparator, 1).with_(engine=engine, **buckets)
    generator = random.Random(3)
    words = [
        generator.choice(
            [
                tuple_word(n % 2, {"x": generator.randrange(-128, 128), "y": n % 32}, n),
                control_word("FLUSH", n % 16, n),
            ]
        )
        for n in range(100)
    ]
    received, sent, taken = drive(parameters, words, stalls=stalls, seed=4)
    for word, found in zip(words, received, strict=True):
        assert found.kind == word["kind"]
        assert (found.close, found.star, found.disorder, found.free) == (1, 2, 1, 1)
        body = word["body"]
        if word["kind"] == InputKind.CONTROL:
            assert found.body.control.value == body["control"]["value"]
            continue
        assert found.body.tuple.timestamp == body["tuple"]["timestamp"]
        for name, value in stored_key(parameters, body["tuple"]["key"]).items():
            assert found.body.tuple.key[name] == value
    if not stalls:
        cells = {"scan": 0, "index": 3 + 2 * (comparator == "band")}[engine]
        check_cycles(parameters, 3 + cells + 1, sent, taken)

# SPDX-License-Identifier: Apache-2.0
"""The digests of tuples against plain integers, with cells that change between the tuples."""

import random

import pytest

from hdl.parameters import JoinParameters, KeyField
from hdl.predicates.cells import DigestPreparation, cell_layout
from hdl.words.inputs import InputKind
from hdl.words.prepared import region_word
from tests.halves import half
from tests.hdl.cell_digests import with_digests
from tests.hdl.input_words import control_word, integer, least, region_values, tuple_word
from tests.hdl.stream_bench import StreamBench

FIELDS = [
    (KeyField(name="x", bits=6),),
    (KeyField(name="x", bits=7), KeyField(name="y", bits=4, signed=False)),
    (KeyField(name="x", bits=1), KeyField(name="y", bits=33), KeyField(name="z", bits=5)),
]


def parameters_of(fields, bits):
    """Parameters of a band with digests."""
    return JoinParameters.of(keys=fields, digest_bits=bits, timestamp_bits=3, cores=3, sub_window=4)


def random_words(parameters, generator, count):
    """Region words without digests, and those that should leave."""
    settings = [(0, 0)] * len(parameters.keys)
    layout = cell_layout(parameters)
    words, expected = [], []
    for _ in range(count):
        if generator.random() < 0.2:
            part = generator.randrange(len(settings) + (generator.random() < 0.3))
            field = generator.randrange(1 << layout["field"].width)
            shift = generator.choice([0, 1, 2, generator.randrange(1 << layout["shift"].width)])
            value = integer(layout, {"field": field, "shift": shift})
            op = generator.choice(["CELL", "CELL", "CELL", "CELL", "WINDOW"])
            values = region_values(parameters, control_word(op, part, value))
            if op == "CELL" and part < len(settings):
                settings[part] = (field, shift)
            words.append(values)
            expected.append(values)
            continue
        key, bounds = {}, {}
        for field in parameters.keys:
            first = least(field)
            key[field.name] = generator.choice(
                [first, first + (1 << field.bits) - 1, first + generator.getrandbits(field.bits)]
            )
            low = generator.randrange(-6, 4)
            bounds[field.name] = (low, low + generator.choice([0, 1, 2, 3, 7, -1]))
        word = tuple_word(generator.randrange(2), key, generator.randrange(8))
        values = region_values(parameters, word, bounds=bounds, close=1, star=2)
        words.append(values)
        prepared = with_digests(parameters, settings, values["body"]["tuple"])
        expected.append({**values, "body": {"tuple": prepared}})
    return words, expected


def drive(parameters, words):
    """Send words; return those that leave, and the cycles of both."""
    dut = DigestPreparation(parameters)
    bench = StreamBench(dut, deadline=5_000)
    layout = region_word(parameters)
    sent, taken = [], []
    bench.source(dut.i, [integer(layout, word) for word in words], stamps=sent)
    received = bench.sink(dut.o, len(words), stamps=taken)
    bench.run()
    return received, sent, taken


@pytest.mark.parametrize(
    ("fields", "more"), half([(fields,) for fields in FIELDS], [0, 1, 5], of=4)
)
def test_digests_are_those_of_the_last_cells(fields, more):
    parameters = parameters_of(fields, 2 * len(fields) + more)
    words, expected = random_words(parameters, random.Random(more), 300)
    received, sent, taken = drive(parameters, words)
    layout = region_word(parameters)
    assert received == [integer(layout, word) for word in expected]
    assert taken == [cycle + DigestPreparation(parameters).latency for cycle in sent]
    assert sent == list(range(sent[0], sent[0] + len(sent)))
    tuples = [word["body"]["tuple"] for word in expected if word["kind"] != InputKind.CONTROL]
    every = sum(prepared["criterion"]["every"] for prepared in tuples)
    assert 10 < every < len(tuples) - 10

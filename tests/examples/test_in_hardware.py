# SPDX-License-Identifier: Apache-2.0
"""The operators of the seed's appendix, in the circuits that are generated for them.

Aggregates run in cores of aggregates, ScaleJoin in join cores. The reference operator says what
they must answer.
"""

from collections import Counter
import random

import pyarrow as pa
import pytest

from examples import (
    count_by_map,
    longest_tweet,
    longest_tweet_by_map,
    paircount,
    scalejoin,
    wordcount,
)
from examples.words import MOST, Vocabulary, hashtags_of, words_of
from hdl.aggregate.accelerator import AggregateAccelerator
from hdl.aggregate.aggregate_parameters import AggregateParameters
from hdl.aggregate.words import AggregateControl, AggregateKind, aggregate_word
from hdl.bundle import write_bundle
from hdl.parameters import JoinParameters, KeyField
from hdl.windowed.description import OperatorDescription
from host import open_device
from host.operators.meaning import reference_results
from host.query.queries import Query
from host.reference.operator import Arrival
from host.session.join import Join
from sim.verilated.library import build_library
from tests.hdl.aggregate.core_program import decoded
from tests.hdl.stream_bench import StreamBench


def random_texts(count, most=MOST):
    """Texts of few words, many of which occur again, a minute or an hour later."""
    generator = random.Random(count)
    words = ["#red", "#pink", "so", "hi", "blue", "#a", "b", "c"]
    time, texts = 0, []
    for _ in range(count):
        time += generator.choice([0, 1, 7, 40, 70])
        text = " ".join(generator.choice(words) for _ in range(generator.randrange(most + 1)))
        texts.append((time, text))
    return texts


def whole(texts, names, split):
    return names.arrivals((time, text, split(text)) for time, text in texts)


CASES = {
    "wordcount": (
        wordcount.OPERATOR,
        lambda texts, names: whole(texts, names, words_of),
    ),
    "longest_tweet": (
        longest_tweet.OPERATOR,
        lambda texts, names: whole(texts, names, hashtags_of),
    ),
    "paircount": (
        paircount.OPERATOR,
        lambda texts, names: whole(texts, names, words_of),
    ),
    "longest_tweet_by_map": (
        longest_tweet_by_map.OPERATOR,
        lambda texts, names: longest_tweet_by_map.mapped([(t, "", s) for t, s in texts], names),
    ),
    "words_by_map": (count_by_map.WORDS, count_by_map.mapped_words),
    "pairs_by_map": (
        count_by_map.PAIRS,
        lambda texts, names: count_by_map.mapped_pairs(texts, names, paircount.DISTANCE),
    ),
}


def words_in(parameters, arrivals):
    """The input words of tuples, and of a watermark behind all of their windows."""
    layout = aggregate_word(parameters)
    bodies = [
        {
            "kind": AggregateKind.TUPLE,
            "body": {"tuple": {**one.payload, "timestamp": one.timestamp}},
        }
        for one in arrivals
    ]
    last = max(one.timestamp for one in arrivals) + 2 * parameters.operator.size
    for op, value in ((AggregateControl.WATERMARK, last), (AggregateControl.FLUSH, 0)):
        control = {"control": {"op": op, "value": value}}
        bodies.append({"kind": AggregateKind.CONTROL, "body": control})
    return [layout.const(body) for body in bodies]


@pytest.mark.parametrize(
    "name",
    [
        name
        if name in ("wordcount", "longest_tweet")
        else pytest.param(name, marks=pytest.mark.long)
        for name in CASES
    ],
)
def test_an_aggregate_in_its_circuit_is_the_reference(name):
    operator, tuples = CASES[name]
    arrivals = list(tuples(random_texts(12 if "pair" in name else 25), Vocabulary()))
    parameters = AggregateParameters(
        operator=OperatorDescription.from_dict(operator.to_dict()), cores=3, timestamp_bits=12
    )
    expected = Counter(
        (result.timestamp, number_of(operator, result.key), result.values)
        for result in reference_results(operator, arrivals)
    )
    stars = len({boundary for boundary, _, _ in expected})
    dut = AggregateAccelerator(parameters)
    bench = StreamBench(dut, deadline=100_000)
    bench.source(dut.i, words_in(parameters, arrivals))
    received = bench.sink(dut.o, expected.total() + stars + 1)
    bench.run(extra_cycles=60)
    results = decoded(parameters, received)
    assert results.pop() == "mark"
    assert Counter(one for one in results if one[1] is not None) == expected
    assert expected.total() > 20
    boundaries = [boundary for boundary, _, _ in results]
    assert boundaries == sorted(boundaries)


def number_of(operator, key):
    """The number of a key: its parts, the first one lowest."""
    number = 0
    for part, field in zip(reversed(key), reversed(operator.key_fields), strict=True):
        number = number << field.bits | part
    return number


@pytest.mark.long
def test_scalejoin_in_join_cores_is_the_reference(tmp_path):
    """A key is a core, a window of 300 is a lifespan of 299, and the predicate a band."""
    operator = scalejoin.OPERATOR
    write_bundle(
        JoinParameters(
            cores=scalejoin.CORES,
            sub_window=64,
            keys=tuple(KeyField(name=field.name, bits=field.bits) for field in operator.fields),
            timestamp_bits=16,
        ),
        tmp_path,
    )
    build_library(tmp_path)
    generator = random.Random(10)
    arrivals = [
        # Of tuples with one time, those of the first input come first, as in the accelerator.
        Arrival(2 * n + n % 2, {"x": generator.randrange(99), "y": generator.randrange(99)}, n % 2)
        for n in range(400)
    ]
    left, right = (
        pa.Table.from_pylist(
            [{"t": one.timestamp, **one.payload} for one in arrivals if one.input == side]
        )
        for side in (0, 1)
    )
    asked = Query(
        band=[("x", "x", -10, 10), ("y", "y", -10, 10)],
        time="t",
        within=operator.size - 1,
    )
    with open_device(f"sim:{tmp_path}") as device:
        join = Join(left, right, asked, device)
        rows = [row for batch in join.batches() for row in batch.to_pylist()]
    expected = Counter(
        (result.timestamp, *result.values) for result in reference_results(operator, arrivals)
    )
    found = Counter(
        (max(row["t"], row["t_right"]) + 1, row["x"], row["y"], row["x_right"], row["y_right"])
        for row in rows
    )
    assert found == expected
    assert expected.total() > 500

# SPDX-License-Identifier: Apache-2.0
"""Buckets and cells against plain integers, and against what they are for."""

from dataclasses import replace
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl.index.cells import CellPreparation
from hdl.parameters import JoinParameters, KeyField
from hdl.words.inputs import SEED_BITS, coordinate_layout
from hdl.words.prepared import region_word
from host.protocol.buckets import bucket_plan
from host.protocol.configuration import configuration
from host.protocol.manifest import Manifest
from host.protocol.spread import seeds
from host.query.ordering import Ordering
from host.reference.predicate import Bounds
from host.reference.window import CountWindow
from sim.model.words import JoinWords
from tests.halves import half
from tests.hdl.cells_model import Part, bucket_of, cells_of, granted, visited_buckets
from tests.hdl.input_words import (
    control_word,
    criterion_of,
    criterion_ranges,
    integer,
    least,
    region_values,
    tuple_word,
)
from tests.hdl.key_fields import FIELD_SETS, bounds, keys
from tests.hdl.stream_bench import StreamBench
from tests.host.small_bundles import write_manifest


def index_parameters(fields, bits, comparator="band"):
    """Parameters of an index with these key fields and so many bits of bucket."""
    return JoinParameters.of(
        keys=fields, engine="index", bucket_bits=bits, comparator=comparator, timestamp_bits=3
    )


SEEDS = st.one_of(st.just(0), st.integers(0, (1 << SEED_BITS) - 1))


@st.composite
def parts_of(draw, fields, bits, *, hashes=True):
    """Strategy for parts of fields that do not overlap."""
    parts, place = [], 0
    for field in fields:
        width = draw(st.integers(0, bits - place))
        if hashes and draw(st.booleans()):
            parts.append(Part(hashed=True, seed=draw(SEEDS)))
            continue
        shift = draw(st.integers(0, field.bits))
        parts.append(Part(shift, width, place))
        place += width
    return parts


@st.composite
def any_parts_of(draw, fields, bits):
    """Strategy for parts of fields as no host sends them: any that a control word can hold."""
    most = (1 << bits.bit_length()) - 1
    shifts = [st.integers(0, field.bits) for field in fields]
    widths = st.integers(0, most)
    return [
        Part(draw(shift), draw(widths), draw(widths), draw(st.booleans()), draw(SEEDS))
        for shift in shifts
    ]


@settings(max_examples=200)
@given(data=st.data(), bits=st.integers(1, 7))
def test_every_match_is_in_one_bucket_that_is_visited_once(data, bits):
    """Whatever the bounds and parts, and however small the table; what makes results complete."""
    fields = (KeyField(name="a", bits=4), KeyField(name="b", bits=3, signed=False))
    parameters = index_parameters(fields, bits)
    limits = data.draw(bounds(fields))
    parts = [Part() for _ in fields]
    for n, wanted in enumerate(data.draw(any_parts_of(fields, bits))):
        low, high = limits[fields[n].name]
        wanted = replace(wanted, hashed=wanted.hashed and low == high)
        parts[n] = granted(parameters, parts, n, wanted)
    side, probe = data.draw(st.integers(0, 1)), data.draw(keys(fields))
    criterion = criterion_of(parameters, side, probe, limits)
    visited = visited_buckets(parameters, parts, cells_of(parameters, parts, criterion))
    assert len(set(visited)) == len(visited), "a bucket twice: its pairs twice, and no end in sight"
    ranges = criterion_ranges(parameters, criterion)
    for stored in product(*(range(1 << field.bits) for field in fields)):
        if all(low <= value <= high for value, (low, high) in zip(stored, ranges, strict=True)):
            key = {f.name: value + least(f) for f, value in zip(fields, stored, strict=True)}
            assert bucket_of(parameters, parts, key) in visited


def test_a_host_gets_the_parts_that_it_asks_for_whatever_the_last_query_had(tmp_path):
    fields = tuple(KeyField(name=name, bits=16) for name in "abc")
    parameters = index_parameters(fields, 14)
    manifest = Manifest.load(write_manifest(parameters, tmp_path))
    codec = JoinWords(manifest)
    parts = [Part() for _ in fields]
    for spans in [(5, 5, 5), (9, 200, None), (None, 3, 3), (0, 40, 700), (0, None, 0), (1, 1, 1)]:
        bounds = {
            field.name: Bounds(0, span)
            for field, span in zip(fields, spans, strict=True)
            if span is not None
        }
        for word in configuration(manifest, bounds, CountWindow(3), Ordering.outer()):
            name, n, value = codec.unpack_control(word)
            if name == "COORDINATE":
                wanted = coordinate_layout(parameters).from_bits(value)
                wanted = Part(*(int(wanted[name]) for name in vars(Part())))
                wanted = replace(wanted, hashed=bool(wanted.hashed))
                parts[n] = granted(parameters, parts, n, wanted)
        assert [vars(part) for part in parts] == [
            vars(part) for part in bucket_plan(manifest, bounds).values()
        ]


@pytest.mark.few(3)
@pytest.mark.parametrize(("fields", "comparator"), half(FIELD_SETS, ["band", "equality"]))
@settings(max_examples=4)
@given(data=st.data(), bits=st.sampled_from([1, 3, 8, 13]), stalls=st.sampled_from([0.0, 0.4]))
def test_preparation_computes_what_the_model_does(fields, comparator, data, bits, stalls):
    fields = FIELD_SETS[fields]
    parameters = index_parameters(fields, bits, comparator)
    parts = [Part(seed=seed) for seed in seeds(0, len(fields))]
    sent, expected = [], []
    for _ in range(data.draw(st.integers(1, 12))):
        if data.draw(st.booleans()):
            drawn = any_parts_of if data.draw(st.booleans()) else parts_of
            for n, wanted in enumerate(data.draw(drawn(fields, bits))):
                parts[n] = granted(parameters, parts, n, wanted)
                for part, words in ((wanted, sent), (parts[n], expected)):
                    word = control_word("COORDINATE", n, part.value(parameters))
                    words.append(region_values(parameters, word))
        word = tuple_word(data.draw(st.integers(0, 1)), data.draw(keys(fields)), 5)
        values = region_values(parameters, word, bounds=data.draw(bounds(fields)), close=2)
        sent.append(values)
        prepared = dict(values["body"]["tuple"])
        prepared["bucket"] = bucket_of(parameters, parts, word["body"]["tuple"]["key"])
        if comparator == "band":
            prepared["cells"] = cells_of(parameters, parts, prepared["criterion"])
        expected.append({**values, "body": {"tuple": prepared}})
    layout = region_word(parameters)
    dut = CellPreparation(parameters)
    bench = StreamBench(dut, deadline=500, stalls=stalls)
    bench.source(dut.i, [integer(layout, word) for word in sent])
    received = bench.sink(dut.o, len(expected))
    bench.run()
    assert received == [integer(layout, word) for word in expected]


@pytest.mark.parametrize("comparator", ["band", "equality"])
def test_latency_and_a_word_per_cycle(comparator):
    parameters = index_parameters(FIELD_SETS["unlike"], 4, comparator)
    word = tuple_word(0, {"a": 3, "b": 7, "c": 0})
    layout = region_word(parameters)
    dut = CellPreparation(parameters)
    bench = StreamBench(dut, deadline=100)
    sent, taken = [], []
    bench.source(dut.i, [integer(layout, region_values(parameters, word))] * 20, stamps=sent)
    received = bench.sink(dut.o, 20, stamps=taken)
    bench.run()
    assert dut.latency == (4 if comparator == "band" else 3)
    assert [b - a for a, b in zip(sent, taken, strict=True)] == [dut.latency] * 20
    assert taken == list(range(taken[0], taken[0] + 20))
    bucket = layout.from_bits(received[0]).body.tuple.bucket
    parts = [Part(seed=seed) for seed in seeds(0, 3)]
    assert bucket == bucket_of(parameters, parts, word["body"]["tuple"]["key"])

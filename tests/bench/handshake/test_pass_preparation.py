# SPDX-License-Identifier: Apache-2.0
"""Passes and criteria of tuples, in order, against plain integers."""

import random

from amaranth.hdl import ResetInserter, Signal
import pytest

from bench.handshake import HANDSHAKE
from bench.handshake.segment import PassPreparation
from hdl.parameters import JoinParameters, KeyField
from tests.halves import half
from tests.hdl.cycles import each_cycle
from tests.hdl.input_words import criterion_of, least, open_bounds, stored_key
from tests.hdl.stream_bench import StreamBench

X8 = (KeyField(name="x", bits=8),)
MIXED = (KeyField(name="x", bits=7), KeyField(name="y", bits=5, signed=False))
WIDE = (KeyField(name="x", bits=40), KeyField(name="y", bits=33, signed=False))


def close(r, s):
    """A custom predicate."""
    return r.x - s.x <= 2


def parameters_of(keys, comparator, cores=2):
    predicate = f"{__name__}:close" if comparator == "custom" else None
    return JoinParameters.of(
        cores=cores, sub_window=4, keys=keys, comparator=comparator, predicate=predicate,
        architecture=HANDSHAKE,
    )  # fmt: skip


def random_key(parameters, generator):
    key = {}
    for field in parameters.keys:
        first = least(field)
        top = first + (1 << field.bits) - 1
        key[field.name] = generator.choice([first, top, 0, 1, generator.randint(first, top)])
    return key


def random_bound(parameters, generator):
    """The name of a field, which of its bounds, and a value that the bound can have."""
    field = generator.choice(parameters.keys)
    most = (1 << field.bits) - 1
    value = generator.choice([-most - 1, -most, most, 0, 1, -1, generator.randint(-most, most)])
    return field.name, generator.randrange(2), value


def random_pass(parameters, generator):
    """What a pass is, and one of its values at random."""
    return {
        "mark": generator.randrange(2),
        "first": generator.randrange(2 * parameters.ring_rows),
        "rows": generator.randrange(parameters.ring_rows + 1),
        "oldest": generator.getrandbits(parameters.arrangement.ordinal_bits),
        "tag": generator.getrandbits(parameters.arrangement.ordinal_bits),
    }


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("side", "keys", "comparator", "cores"),
    half(
        [0, 1],
        [
            (X8, "band", 1),
            (MIXED, "band", 2),
            (WIDE, "band", 3),
            (X8, "equality", 5),
            (MIXED, "equality", 1),
            (X8, "custom", 2),
        ],
    ),
)
def test_a_pass_and_its_criterion_come_out_together(keys, comparator, cores, side):
    """The bounds in force are those set before the tuple, each in the cycle of its word."""
    parameters = parameters_of(keys, comparator, cores)
    dut = PassPreparation(parameters, side=side)
    generator = random.Random(side)
    came = []

    def steps(put, get):
        bounds, expected = open_bounds(parameters), [None] * dut.latency
        for _ in range(400):
            put(push=0, bound=0)
            due = expected.pop(0)
            assert get("pushed") == (due is not None)
            if due is not None:
                pass_, criterion = due
                prepared, found = get("prepared"), get("criterion")
                assert {name: prepared[name] for name in pass_} == pass_
                assert {name: found[name] for name in criterion} == criterion
                came.append(criterion)
            choice = generator.random()
            # The bits that no word sets are as they were before, and mean nothing.
            put(key=stored_key(parameters, random_key(parameters, generator)))
            if choice < 0.3 and comparator == "band":
                name, end, value = random_bound(parameters, generator)
                put(bound=1, value=value, bounds={name: {("low", "high")[end]: 1}})
                bounds[name] = (*bounds[name][:end], value, *bounds[name][end + 1 :])
            elif choice < 0.8:
                key, pass_ = random_key(parameters, generator), random_pass(parameters, generator)
                put(push=1, key=stored_key(parameters, key), pass_=pass_)
                expected.append((pass_, criterion_of(parameters, side, key, bounds)))
                yield
                continue
            expected.append(None)
            yield

    each_cycle(dut, steps)
    assert len(came) > 150


def test_the_side_decides_how_bounds_are_applied():
    """``1 <= r - s <= 3``: a tuple of R meets smaller ones, and a tuple of S greater ones."""
    parameters = parameters_of(X8, "band")
    found = []
    for side in range(2):
        dut = PassPreparation(parameters, side=side)

        def steps(put, get, dut=dut):
            for end, value in (("low", 1), ("high", 3)):
                put(bound=1, value=value, bounds={"x": {end: 1}})
                yield
            put(bound=0, push=1, key={"x": 10 + 128})
            yield
            put(push=0)
            for _ in range(dut.latency - 1):
                assert not get("pushed")
                yield
            assert get("pushed")
            criterion = get("criterion")
            found.append((criterion["low_0"] - 128, criterion["high_0"] - 128 - 256))

        each_cycle(dut, steps)
    assert found == [(7, 9), (11, 13)]


@pytest.mark.parametrize(("comparator", "latency"), [("band", 3), ("equality", 1), ("custom", 1)])
def test_only_a_band_takes_the_stages_of_a_probe(comparator, latency):
    assert PassPreparation(parameters_of(X8, comparator), side=0).latency == latency


@pytest.mark.parametrize("comparator", ["band", "equality"])
def test_a_reset_forgets_the_passes_under_way(comparator):
    preparation = PassPreparation(parameters_of(X8, comparator), side=0)
    reset = Signal()
    bench = StreamBench(ResetInserter(reset)(preparation), deadline=20)

    async def script(ctx):
        ctx.set(preparation.push, 1)
        await ctx.tick().repeat(preparation.latency + 1)
        assert ctx.get(preparation.pushed)
        ctx.set(preparation.push, 0)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        for _ in range(preparation.latency + 1):
            assert not ctx.get(preparation.pushed)
            await ctx.tick()
        bench.done()

    bench.spawn(script)
    bench.run()

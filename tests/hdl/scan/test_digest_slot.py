# SPDX-License-Identifier: Apache-2.0
"""The slot of a digest against the digest that it should compare, cycle by cycle."""

import random

import pytest

from hdl import ecp5 as carry_chain
from hdl.parameters import JoinParameters, KeyField
from hdl.predicates.cells import DoubleCells
from hdl.scan.digests import DigestSlot
from hdl.scan.ring import KeyRing
from tests.halves import half
from tests.hdl.cell_digests import doubles_of
from tests.hdl.ecp5 import CCU2C, ECP5, simulate


def digest_parameters(*, lanes, bits, comparator="equality"):
    """Parameters with digests."""
    field = KeyField(name="x", bits=32)
    return JoinParameters.of(
        lanes=lanes, sub_window=9 * lanes, keys=(field,), comparator=comparator, digest_bits=bits
    )


def compared(parameters, digest):
    """What a slot gets of a stored digest."""
    if parameters.predicate.kind == "band":
        return doubles_of([parameters.engine.digest_bits], [digest])
    return {"digest": digest}


def agrees(parameters, key, probe):
    """Whether the digests of a key and of a probe agree."""
    if parameters.predicate.kind == "band":  # the lowest bit of the probe is its grid
        doubles = doubles_of([parameters.engine.digest_bits], [key])
        return doubles["odd" if probe & 1 else "even"] == probe >> 1
    return key == probe


def exercise(dut, *, platform=None, cycles=300, begins=0.3, adds=0.4):
    """Hold, begin and compare random digests; return how many lanes matched and did not."""
    lanes, bits = dut.parameters.engine.lanes, dut.parameters.engine.digest_bits
    generator = random.Random(f"{lanes} {bits} {begins} {adds}")
    held = waiting = 0
    found = [0, 0]

    async def bench(ctx):
        nonlocal held, waiting
        expected = None
        for _ in range(cycles):
            if expected is not None:
                assert ctx.get(dut.matches) == sum(same << n for n, same in enumerate(expected))
            begin, add = generator.random() < begins, generator.random() < adds
            criterion = generator.getrandbits(bits)
            # Digests that differ in one bit, so that every bit has to be compared.
            other = held ^ 1 << generator.randrange(bits)
            keys = [generator.choice([held, waiting, other]) for _ in range(lanes)]
            ctx.set(dut.begin_keys, begin)
            ctx.set(dut.add, add)
            ctx.set(dut.criterion, {"digest": criterion})
            ctx.set(dut.keys, [compared(dut.parameters, key) for key in keys])
            expected = [agrees(dut.parameters, key, held) for key in keys]
            for same in expected:
                found[same] += 1
            if begin:
                held = waiting
            if add:
                waiting = criterion
            await ctx.tick()

    simulate(dut, platform, bench)
    return found


@pytest.mark.few(4)
@pytest.mark.parametrize(("lanes", "bits"), half([1, 2, 3], [1, 2, 3, 16, 17, 24], of=3))
@pytest.mark.parametrize("platform", [None, ECP5()], ids=["inferred", "primitive"])
def test_a_row_is_compared_with_the_digest_of_its_pass_in_every_cycle(
    monkeypatch, lanes, bits, platform
):
    monkeypatch.setattr(carry_chain, "Instance", CCU2C)
    dut = DigestSlot(digest_parameters(lanes=lanes, bits=bits))
    assert dut.latency == KeyRing.LATENCY + 1 == 3
    missed, matched = exercise(dut, platform=platform)
    assert min(missed, matched) > 60 * lanes


@pytest.mark.few(3)
@pytest.mark.parametrize(("lanes", "bits"), half([1, 2, 3], [2, 3, 16, 24], of=3))
@pytest.mark.parametrize("platform", [None, ECP5()], ids=["inferred", "primitive"])
def test_a_band_compares_the_double_cells_of_a_row(monkeypatch, lanes, bits, platform):
    monkeypatch.setattr(carry_chain, "Instance", CCU2C)
    dut = DigestSlot(digest_parameters(lanes=lanes, bits=bits, comparator="band"))
    assert dut.latency == KeyRing.LATENCY + DoubleCells.LATENCY + 1 == 4
    missed, matched = exercise(dut, platform=platform)
    assert min(missed, matched) > 30 * lanes


@pytest.mark.few(2)
@pytest.mark.parametrize(("begins", "adds"), [(1.0, 1.0), (0.5, 0.0), (0.0, 0.5), (0.9, 0.1)])
def test_a_digest_waits_for_its_pass_and_stays_until_another_one_is_added(begins, adds):
    dut = DigestSlot(digest_parameters(lanes=2, bits=3))
    exercise(dut, begins=begins, adds=adds)

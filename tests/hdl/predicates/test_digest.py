# SPDX-License-Identifier: Apache-2.0
"""Digests: nothing is lost, and keys that are alike have different ones."""

from amaranth import *
from amaranth.sim import Simulator
from hypothesis import given
from hypothesis import strategies as st
import pytest

from hdl.predicates.equality import divisor, split_key
from tests.hdl.input_words import digest_of


@pytest.mark.parametrize(
    ("degree", "polynomial"),
    [(1, 0b11), (2, 0b111), (3, 0b1011), (4, 0b10011), (8, 0x11B), (16, 0x1002B), (24, 0x100001B)],
)
def test_the_divisor_is_the_least_irreducible_polynomial(degree, polynomial):
    assert divisor(degree) == polynomial


@pytest.mark.parametrize(("width", "bits"), [(2, 1), (7, 3), (8, 7), (9, 4)])
def test_every_key_has_a_digest_and_rest_of_its_own(width, bits):
    seen = set()
    for key in range(1 << width):
        rest = key >> bits
        seen.add((digest_of(key, bits), rest))
    assert len(seen) == 1 << width


@given(
    key=st.integers(0, (1 << 32) - 1),
    other=st.integers(1, (1 << 12) - 1),
    place=st.integers(0, 20),
)
def test_keys_that_differ_in_neighbouring_bits_only_have_different_digests(key, other, place):
    assert digest_of(key, 12) != digest_of(key ^ other << place, 12)


@pytest.mark.parametrize(("width", "bits"), [(2, 1), (12, 5), (32, 16), (70, 24)])
def test_the_circuit_divides_as_on_paper(width, bits):
    key = Signal(width)
    digest, rest = split_key(key, bits)
    m = Module()
    numbers = [0, 1, (1 << width) - 1]
    numbers += [n * 0x9E3779B97F4A7C15F39CC % (1 << width) for n in range(200)]

    async def bench(ctx):
        for number in numbers:
            ctx.set(key, number)
            assert (ctx.get(digest), ctx.get(rest)) == (digest_of(number, bits), number >> bits)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()

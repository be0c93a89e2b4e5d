# SPDX-License-Identifier: Apache-2.0
"""The hash of a field in hardware, against that of the host."""

from amaranth import *
from amaranth.lib import data
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from hdl.index.cells import LIMB, FieldHash
from hdl.parameters import JoinParameters, KeyField
from hdl.words.inputs import SEED_BITS
from sim.model.words import field_hash

VALUES = st.lists(st.tuples(st.integers(min_value=0), st.integers(min_value=0)), min_size=8)


def hash_of(bits, bucket_bits, n):
    """The hash of field ``n`` of so many bits."""
    keys = tuple(KeyField(name=f"k{m}", bits=bits) for m in range(n + 1))
    parameters = JoinParameters.of(keys=keys, engine="index", bucket_bits=bucket_bits)
    return FieldHash(parameters, n)


@settings(max_examples=60)
@given(
    bits=st.integers(1, 64),
    bucket_bits=st.integers(1, 24),
    n=st.integers(0, 2),
    random=st.randoms(use_true_random=False),
)
def test_hardware_and_host_hash_alike(bits, bucket_bits, n, random):
    hash_ = hash_of(bits, bucket_bits, n)
    value, seed = Signal(bits), Signal(SEED_BITS)
    products = Signal(hash_.layout)
    total = Signal(bucket_bits)
    m = Module()
    m.d.comb += [
        products.as_value().eq(
            hash_.gathered(value, [a * b for a, b in hash_.operands(value, seed)])
        ),
        total.eq(hash_.total(products)),
    ]

    async def compare(ctx):
        for _ in range(20):
            number = random.getrandbits(bits) & random.choice([~0, ~0 << bits // 2])
            own = random.choice([0, 1, (1 << SEED_BITS) - 1, random.getrandbits(SEED_BITS)])
            ctx.set(value, number)
            ctx.set(seed, own)
            expected = field_hash(
                np.array([number], np.uint64),
                seed=own, bits=bits, bucket_bits=bucket_bits, first=n == 0,
            )  # fmt: skip
            assert ctx.get(total) == expected[0]

    simulator = Simulator(m)
    simulator.add_testbench(compare)
    simulator.run()


@pytest.mark.parametrize(
    ("bits", "bucket_bits", "n", "multipliers"),
    [(32, 14, 0, 2), (32, 18, 0, 2), (32, 18, 1, 5), (16, 18, 0, 0), (16, 16, 1, 2)],
)
def test_no_product_needs_more_than_one_multiplier(bits, bucket_bits, n, multipliers):
    layout = hash_of(bits, bucket_bits, n).layout
    assert isinstance(layout, data.StructLayout)
    products = [name for name, _ in layout if name.startswith("product")]
    assert len(products) == multipliers
    assert all(layout[name].width <= 2 * LIMB for name in products)

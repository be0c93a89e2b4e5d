# SPDX-License-Identifier: Apache-2.0
"""The hash of keys: how adversarial families of keys spread over the buckets."""

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from hdl.index import cells as hardware
from hdl.words import inputs
from host.protocol.spread import FIRST_SEEDS, SEED_BITS, seeds
from sim.model.words import field_hash

HALF = np.arange(1 << 8, dtype=np.uint64)
GRID = (np.repeat(HALF, 1 << 8), np.tile(HALF, 1 << 8))
COUNTED = np.arange(1 << 16, dtype=np.uint64)

#: Families of 2**16 different keys: fields as pairs of their bits and their values.
FAMILIES = {
    "counted": [(32, COUNTED)],
    "octets": [(32, GRID[0] << np.uint64(16) | GRID[1])],
    "octets above": [(32, GRID[0] << np.uint64(24) | GRID[1] << np.uint64(8))],
    "fold adversary": [(40, COUNTED * np.uint64((1 << 18) + 1))],
    "thousands": [(32, COUNTED * np.uint64(1000))],
    "upper half": [(32, COUNTED << np.uint64(16))],
    "upper quarter": [(64, COUNTED << np.uint64(48))],
    "palindromes": [(64, COUNTED << np.uint64(48) | COUNTED)],
    "two small fields": [(32, GRID[0]), (32, GRID[1])],
    "equal fields": [(32, COUNTED), (32, COUNTED)],
    "opposed fields": [(32, COUNTED), (32, COUNTED[::-1])],
    "shifted fields": [(32, GRID[0] << np.uint64(20)), (32, GRID[1] << np.uint64(24))],
    "second field": [(32, COUNTED * 0), (32, COUNTED << np.uint64(12))],
    "third field": [(16, COUNTED * 0), (16, COUNTED * 0), (16, COUNTED)],
}  # fmt: skip


def hashed(fields, bucket_bits, choice):
    """The hashes of keys."""
    return reduce(
        np.bitwise_xor,
        (
            field_hash(values, seed=seed, bits=bits, bucket_bits=bucket_bits, first=n == 0)
            for n, ((bits, values), seed) in enumerate(
                zip(fields, seeds(choice, len(fields)), strict=True)
            )
        ),
    )


def entries_per_probe(hashes, bucket_bits):
    """How many keys a probe of one of these keys meets in its bucket, on average."""
    counts = np.bincount(hashes.astype(np.int64), minlength=1 << bucket_bits)
    return float((counts * counts).sum() / len(hashes))


def test_hardware_and_host_agree_about_seeds():
    assert hardware.FIRST_SEEDS == FIRST_SEEDS
    assert inputs.SEED_BITS == SEED_BITS
    assert [hardware.first_seed(n) for n in range(20)] == list(seeds(0, 20))


@pytest.mark.parametrize("bucket_bits", [14, 16, 18])
@pytest.mark.parametrize("family", FAMILIES)
def test_families_of_keys_spread(family, bucket_bits):
    """At random a probe meets its own key and as many others as a bucket has on average."""
    entries = [
        entries_per_probe(hashed(FAMILIES[family], bucket_bits, choice), bucket_bits)
        for choice in range(8)
    ]
    random = 1 + 2 ** (16 - bucket_bits)
    assert entries[0] <= 1.25 * random, "with the seeds after reset"
    assert sum(entries) / len(entries) <= 1.5 * random, "on average of the choices"


@given(
    first=st.integers(0, (1 << 32) - (1 << 10)),
    bucket_bits=st.integers(10, 24),
    seed=st.integers(0, (1 << SEED_BITS) - 1),
)
def test_close_keys_share_no_bucket(first, bucket_bits, seed):
    """Not even where they differ in bits that are multiplied: these lie side by side."""
    start = first >> bucket_bits << bucket_bits
    values = np.arange(start, start + (1 << 10), dtype=np.uint64)
    hashes = field_hash(values, seed=seed, bits=32, bucket_bits=bucket_bits)
    assert len(np.unique(hashes)) == len(values)


@pytest.mark.parametrize("choice", range(4))
def test_keys_of_one_bucket_part_with_other_seeds(choice):
    """An adversary who knows the seeds finds keys that all collide; with others they do not."""
    generator = np.random.default_rng(choice)
    values = generator.integers(0, 1 << 32, 1 << 22).astype(np.uint64)
    fields = [(32, values & np.uint64(0xFFFF)), (32, values)]
    own = hashed(fields, 12, choice)
    chosen = own == own[0]
    assert chosen.sum() > 500
    other = hashed([(bits, of[chosen]) for bits, of in fields], 12, choice + 1)
    assert entries_per_probe(other, 12) <= 1.5

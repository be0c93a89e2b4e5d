# SPDX-License-Identifier: Apache-2.0
"""The steps of a probe along one field, against lists of the cells that each step has."""

import random

import pytest

from hdl.index.cell_counter import CellDigit
from hdl.index.layouts import bank_count
from hdl.parameters import JoinParameters, KeyField
from tests.hdl.cells_model import Part
from tests.hdl.cycles import each_cycle

#: Cycles from ``configure`` to the part.
PART_LATENCY = 2


def digit_of(bucket_bits):
    """A digit of a band with so many bits in the number of a bucket."""
    keys = (KeyField(name="x", bits=8),)
    parameters = JoinParameters.of(
        engine="index", sub_window=20, keys=keys, bucket_bits=bucket_bits
    )
    return CellDigit(parameters)


def steps_of(dut, part, extent):
    """How many cells each step has, for a range of ``extent`` more cells than one."""
    cells = extent + 1
    if not is_paired(dut, part):
        return [1] * cells
    return [2] * (cells // 2) + [1] * (cells % 2)


def is_paired(dut, part):
    """Whether the field has the bit that tells the banks apart."""
    return bank_count(dut.parameters) > 1 and part.width > 0 and part.place == 0


def configure(put, get, dut, part, before=None):
    """Let the field take ``part`` instead of ``before``; nothing else is looked at meanwhile."""
    bits = dut.parameters.engine.bucket_bits
    for cycle in range(PART_LATENCY):
        if before is not None:
            check_part(get, dut, before)
        seen = part if cycle == 0 else Part(width=bits)
        values = {"width": seen.width, "place": seen.place, "shift": 3, "hashed": 1, "seed": 5}
        put(configure=cycle == 0, part=values, begin=0, step=0)
        yield
    put(configure=0)
    check_part(get, dut, part)


def check_part(get, dut, part):
    """The bits of the field, and what a step adds there."""
    paired = is_paired(dut, part)
    assert get("mask") == ((1 << part.width) - 1) << part.place
    assert get("paired") == paired
    if part.width > paired:  # otherwise there is one step
        assert get("stride") == (1 + paired) << part.place


def walk(put, get, dut, part, extents, *, pauses, generator):
    """Step through each range once, or more often, or not to its end, before the next begins."""
    most = (1 << dut.parameters.engine.bucket_bits) - 1
    left = []  # cells of the steps of the range under way, this one's first
    for extent in extents:
        wanted = steps_of(dut, part, extent)
        ahead = max(0, generator.choice([1, 1, 2, 3]) * len(wanted) - generator.choice([0, 1, 5]))
        begin = True
        while begin or ahead:
            step = generator.random() >= pauses  # does nothing if a range begins
            ended = get("ended")
            put(begin=begin, step=step, extent=extent if begin else generator.randint(0, most))
            assert get("ended") == ended  # from a register
            if left:
                assert ended == (len(left) == 1)
                assert get("both") == (left[0] == 2)
            if begin:
                left = list(wanted)
            elif step:
                left = left[1:] or list(wanted)
                ahead -= 1
            begin = False
            yield
    put(begin=0, step=0)


@pytest.mark.parametrize("bucket_bits", [1, 2, 3])
@pytest.mark.parametrize("pauses", [0.0, 0.4])
def test_every_range_of_every_part(bucket_bits, pauses):
    """All parts that fit, one after the other, and all ranges that a port can say."""
    dut = digit_of(bucket_bits)
    assert dut.latency == 1
    generator = random.Random(bucket_bits)
    parts = [
        Part(width=width, place=place)
        for width in range(bucket_bits + 1)
        for place in range(bucket_bits - width + 1)
    ]
    generator.shuffle(parts)

    def steps(put, get):
        before = None
        for part in parts:
            yield from configure(put, get, dut, part, before)
            extents = list(range(1 << bucket_bits))
            generator.shuffle(extents)
            yield from walk(put, get, dut, part, extents, pauses=pauses, generator=generator)
            before = part

    each_cycle(dut, steps)


@pytest.mark.parametrize("bucket_bits", [5, 8, 13])
@pytest.mark.parametrize("place", [0, 1])
def test_ranges_of_large_parts(bucket_bits, place):
    dut = digit_of(bucket_bits)
    part = Part(width=bucket_bits - place, place=place)
    generator = random.Random(bucket_bits)
    extents = [generator.randrange(24) for _ in range(12)]
    extents += [1 << bit for bit in range(min(8, part.width))]
    extents += [(1 << part.width) - 1] * (bucket_bits <= 8)

    def steps(put, get):
        yield from configure(put, get, dut, part)
        yield from walk(put, get, dut, part, extents, pauses=0.1, generator=generator)

    each_cycle(dut, steps)

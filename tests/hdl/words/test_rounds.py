# SPDX-License-Identifier: Apache-2.0
"""Sizes of rounds and their codes, against plain numbers; the host reckons the same."""

from amaranth.hdl import signed, unsigned
import pytest

from hdl.parameters import JoinParameters, KeyField
from hdl.words.inputs import Control, control_layout, operation_indices
from hdl.words.values import ROUND_BITS, longest_round, round_of, rounds_code, rounds_shape
from host.protocol.manifest import Manifest
from host.protocol.segments import round_size
from tests.hdl.word_model import outcomes
from tests.host.small_bundles import write_manifest

SIZES = [(1, 1, 1), (1, 5, 1), (2, 8, 2), (3, 16, 4), (1, 3, 8)]


def parameters_of(cores, sub_window, lanes, **more):
    return JoinParameters.of(
        cores=cores, sub_window=sub_window, lanes=lanes, keys=(KeyField(name="x", bits=3),),
        probe_bits=0, rounds=True, **more,
    )  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_a_value_stands_for_the_largest_power_of_two_that_divides_it(size, tmp_path):
    parameters = parameters_of(*size)
    manifest = Manifest.load(write_manifest(parameters, tmp_path / "bundle"))
    longest = 1 << longest_round(parameters)
    assert longest << ROUND_BITS == parameters.ring_rows * parameters.engine.lanes
    values = [*range(-70, 71), longest, 2 * longest, 3 * longest, 5 * longest]
    codes = outcomes(
        signed(16),
        lambda _, value: {"code": rounds_code(parameters, value)},
        [value & 0xFFFF for value in values],
    )
    for value, found in zip(values, codes, strict=True):
        powers = [n for n in range(17) if value % (1 << n) == 0 and 1 << n <= longest]
        expected = 1 << powers[-1] if value else 0
        assert (1 << found["code"]) >> 1 == expected, value
        assert round_size(manifest, value) == expected
        assert not expected or value % expected == 0


@pytest.mark.parametrize("size", SIZES)
def test_the_round_of_a_place_is_that_of_the_tuple_stored_there(size):
    parameters = parameters_of(*size)
    lanes, rows = parameters.engine.lanes, parameters.ring_rows
    slots = lanes * rows
    code_bits = max(rounds_shape(parameters)).bit_length()
    inputs = [
        (code, ordinal)
        for code in rounds_shape(parameters)
        if code
        for ordinal in [*range(slots + 3), 5 * slots - 1]
    ]

    def round_number(m, given):
        code = given[:code_bits]
        place = given[code_bits:]
        lane, row = place[:8], place[8:]
        width = (lanes - 1).bit_length()
        row_bits = (rows - 1).bit_length()
        return {"round": round_of(m, parameters, code, lane[:width], row[:row_bits])}

    packed = [
        code | ((ordinal % lanes) | (ordinal // lanes % rows) << 8) << code_bits
        for code, ordinal in inputs
    ]
    found = outcomes(unsigned(code_bits + 24), round_number, packed)
    for (code, ordinal), one in zip(inputs, found, strict=True):
        assert one["round"] == (ordinal >> code - 1) % (1 << ROUND_BITS)


def test_only_an_accelerator_with_rounds_executes_inner():
    parameters = parameters_of(2, 8, 2)
    assert operation_indices(parameters)[Control.INNER] == 16
    assert Control.INNER not in operation_indices(parameters.with_(rounds=False))
    # The value of INNER can be any size of a round.
    least = 1 << longest_round(parameters)
    assert control_layout(parameters)["value"].width > least.bit_length()

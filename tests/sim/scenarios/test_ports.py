# SPDX-License-Identifier: Apache-2.0
"""Results of two ports as one sequence, for sequences of any kind."""

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from hdl.parameters import JoinParameters, KeyField
from sim.model.words import JoinWords
from sim.scenarios.ports import by_side, merge_ports
from tests.host.protocol.test_codec import manifest_of

PARAMETERS = JoinParameters.of(cores=4, sub_window=8, keys=(KeyField(name="x", bits=8),))
PARAMETERS = PARAMETERS.with_(failure_cycles=PARAMETERS.longest_silence, result_streams=2)
CODEC = JoinWords(manifest_of(PARAMETERS))
PLAIN = JoinWords(manifest_of(PARAMETERS.with_(failure_cycles=0)))

RESULTS = st.lists(st.integers(0, 7), max_size=6)
BLOCKS = st.lists(st.tuples(RESULTS, RESULTS), min_size=1, max_size=5)


def pairs(side, rows, codec=CODEC):
    """Pairs of a side, which are told apart by their rows."""
    rows, zero = np.array(rows, np.int64), np.zeros(len(rows), np.int64)
    return codec.pack_pairs(side, zero, zero, rows, zero)


def mark(overflow=0, disorder=False, illegal=False, failed=None, codec=CODEC):
    return codec.pack_punctuation(codec.mark, 0, overflow, disorder, illegal, failed)


@given(BLOCKS, st.randoms(use_true_random=False))
def test_results_of_both_sides_stand_between_the_same_marks(blocks, random):
    want, mixed, ports = [], [], ([], [])
    for block in blocks:
        parts = [pairs(side, rows) for side, rows in enumerate(block)]
        for port, part in zip(ports, parts, strict=True):
            port += [part, mark()]
        want += [*parts, mark()]
        turns = [0] * len(block[0]) + [1] * len(block[1])
        random.shuffle(turns)
        left = [list(part) for part in parts]
        mixed += [left[side].pop(0)[None] for side in turns]
        mixed.append(mark())
    want = np.concatenate(want)
    merged = merge_ports(CODEC, *(np.concatenate(port) for port in ports))
    np.testing.assert_array_equal(merged, want)
    np.testing.assert_array_equal(by_side(CODEC, np.concatenate(mixed)), want)


@pytest.mark.parametrize(
    ("r", "s", "both"),
    [
        ({"overflow": 2}, {"overflow": 1}, {"overflow": 3}),
        ({}, {"overflow": 1}, {"overflow": 1}),
        (
            {"disorder": True, "illegal": True},
            {"disorder": True},
            {"disorder": True, "illegal": True},
        ),
    ],
)
def test_a_mark_tells_the_faults_of_both_ports(r, s, both):
    for codec in (CODEC, PLAIN):
        merged = merge_ports(codec, mark(**r, codec=codec), mark(**s, codec=codec))
        np.testing.assert_array_equal(merged, mark(**both, codec=codec))


@pytest.mark.parametrize(
    ("r", "s", "told"), [(None, 2, 2), (3, None, 3), (1, 2, 1), (0, 3, 0), (None, None, None)]
)
def test_a_mark_names_the_failed_core_of_the_first_port(r, s, told):
    merged = merge_ports(CODEC, mark(failed=r), mark(failed=s))
    np.testing.assert_array_equal(merged, mark(failed=told))


def test_a_core_that_has_not_failed_has_no_number():
    """Bits of a core that has not failed may be anything."""
    stale = mark(failed=3)
    place = CODEC.result["failed"]
    stale[:, place.offset // 64] &= ~np.uint64(1 << place.offset % 64)
    np.testing.assert_array_equal(merge_ports(CODEC, stale, mark(failed=2)), mark(failed=2))
    np.testing.assert_array_equal(merge_ports(CODEC, stale, stale), mark())


def test_a_mark_of_one_port_alone_is_refused():
    with pytest.raises(ValueError, match="R's port has 2 and S's port 1; read the port that lacks"):
        merge_ports(CODEC, np.concatenate([mark(), mark()]), mark())

# SPDX-License-Identifier: Apache-2.0
"""The soak's model of a chain of cores beside the reference join: two readings of the same page."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from bench.handshake import HANDSHAKE, LOW_LATENCY, Handshake
from hdl.parameters import JoinParameters, KeyField
from host.protocol.manifest import Manifest
from tests.bench.handshake.programs import Program, random_program
from tests.host.small_bundles import write_manifest
from tests.soak import shapes
from tests.soak.checking import difference
from tests.soak.model import ChainModel, Model, model_of
from tests.soak.results import MARK, ORDINAL, describe, pack, pack_match
from tests.soak.shapes import KINDS, random_shape

CHAINS = (HANDSHAKE, LOW_LATENCY)
short = Handshake(expedited=True, ordinal_bits=7)
X8 = (KeyField(name="x", bits=8),)


def manifests(folder, **parameters):
    """The manifest of a chain as the soak and as the host read it."""
    path = write_manifest(JoinParameters.of(keys=X8, **parameters), folder)
    return json.loads((path / "manifest.json").read_text()), Manifest.load(path)


def by_mark(answer):
    """Pairs before every mark, and the faults in it."""
    pairs, faults, current = [], [], []
    for code in answer.results.code.tolist():
        if code >> 60 == MARK:
            pairs.append(sorted(current))
            faults.append((code >> 2 & 3, code >> 1 & 1, code & 1))
            current = []
        else:
            every = (1 << ORDINAL) - 1
            current.append((code >> ORDINAL & every, code & every))
    assert not current
    return pairs, faults


@pytest.mark.parametrize("architecture", CHAINS)
@settings(max_examples=25)
@given(
    seed=st.integers(0, 1 << 31),
    cores=st.integers(1, 5),
    comparator=st.sampled_from(["band", "equality"]),
    timestamp_bits=st.sampled_from([0, 12]),
)
def test_agrees_with_the_reference_join(
    tmp_path_factory, architecture, seed, cores, comparator, timestamp_bits
):
    ours, theirs = manifests(
        tmp_path_factory.mktemp("bundle"), architecture=architecture, cores=cores, sub_window=3,
        comparator=comparator, timestamp_bits=timestamp_bits,
    )  # fmt: skip
    program = random_program(theirs, seed, timed=timestamp_bits > 0)
    answer = ChainModel(ours).answer(program.packed())
    assert by_mark(answer) == (program.answer.pairs, program.answer.faults)


@pytest.mark.parametrize("architecture", CHAINS)
def test_faults_and_dropped_tuples_are_those_of_the_reference(tmp_path, architecture):
    """Overflow of one side, then a tuple out of order, an illegal word, and CLEAR."""
    ours, theirs = manifests(
        tmp_path, architecture=architecture, cores=2, sub_window=2, timestamp_bits=8,
        comparator="equality",
    )  # fmt: skip
    program = Program(theirs)
    for side in range(2):
        program.control("LIFESPAN", side, 5)
    program.tuples([0] * 7 + [1] * 2, [[1]] * 9, [1, 1, 1, 2, 2, 7, 8, 8, 9])
    program.control("FLUSH")
    program.illegal(3)
    program.tuples([0, 1, 1], [[1]] * 3, [9, 4, 9])
    program.control("CLEAR")
    program.tuples([0, 1], [[1]] * 2, [1, 1])
    program.control("FLUSH")
    assert program.answer.faults == [(1, 0, 0), (1, 1, 1), (0, 0, 0)]
    answer = ChainModel(ours).answer(program.packed())
    assert by_mark(answer) == (program.answer.pairs, program.answer.faults)
    assert answer.tuples == (9, 3)  # the one that overflowed is among them, as in the counters


def test_numbers_of_tuples_wrap_around(tmp_path):
    ours, theirs = manifests(
        tmp_path, architecture=f"{__name__}:short", cores=1, sub_window=2, comparator="equality"
    )
    program, count = Program(theirs), 130
    program.tuples([0, 1] * count, [[1]] * 2 * count, [0] * 2 * count)
    program.control("FLUSH")
    assert by_mark(ChainModel(ours).answer(program.packed()))[0] == program.answer.pairs
    assert {number for pair in program.answer.pairs[0] for number in pair} == {*range(128)}


def test_a_pair_that_is_missing_doubled_or_changed_is_a_difference(tmp_path):
    """In any order between two marks they are none; beyond a mark they are."""
    ours, theirs = manifests(tmp_path, architecture=CHAINS[1], cores=2, sub_window=3)
    answer = ChainModel(ours).answer(random_program(theirs, 6).packed())
    results, everything = answer.results, np.arange(len(answer.results))
    assert difference(answer, results, "scan") is None
    pair = int(np.flatnonzero(results.is_pair[1:] & results.is_pair[:-1])[0])
    swapped = everything.copy()
    swapped[[pair, pair + 1]] = [pair + 1, pair]
    assert difference(answer, results[swapped], "scan") is None
    last = int(np.flatnonzero(results.is_pair[:-1] & (results.kind[1:] == MARK))[0])
    swapped = everything.copy()
    swapped[[last, last + 1]] = [last + 1, last]
    assert difference(answer, results[swapped], "scan")
    for at in (pair, last + 1):
        assert difference(answer, results[np.delete(everything, at)], "scan")
        assert difference(answer, results[np.insert(everything, at, at)], "scan")
        changed = results[everything]
        changed.code[at] ^= 1
        assert difference(answer, changed, "scan")


def test_codes_of_pairs_are_described():
    assert describe(0, pack_match(70_000, 3)) == "PAIR r=70000 s=3"
    assert describe(0, pack(MARK, 2, 0, 1)) == "MARK overflow=2 disorder=0 illegal=1"


def test_the_manifest_says_which_model_is_meant(tmp_path):
    chain, _ = manifests(tmp_path / "chain", architecture=CHAINS[0])
    other, _ = manifests(tmp_path / "other")
    assert type(model_of(chain)) is ChainModel
    assert type(model_of(other)) is Model


def test_shapes_of_chains_differ():
    of_chains = [number for number, (engine, _) in enumerate(KINDS) if engine in shapes.CHAINS]
    numbers = [number + len(KINDS) * turn for turn in range(15) for number in of_chains]
    found = [random_shape(2, number) for number in numbers]
    arrangements = {(one.arrangement.expedited, one.arrangement.ordinal_bits) for one in found}
    assert arrangements == {(kind, bits) for kind in (False, True) for bits in (13, 16, 24)}
    assert {shape.predicate.kind for shape in found} == {"band", "equality", "custom"}
    assert len({shape.cores for shape in found}) >= 6
    assert len({shape.timestamp_bits for shape in found}) >= 5

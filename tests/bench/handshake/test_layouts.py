# SPDX-License-Identifier: Apache-2.0
"""What words, passes and matches of a chain carry, for each architecture and comparator."""

from amaranth.hdl import Shape, unsigned
import pytest

from bench import handshake
from bench.handshake import HANDSHAKE, LOW_LATENCY, Handshake
from bench.handshake.layouts import (
    LaneKind,
    chain_result,
    lane_word,
    match_layout,
    pass_layout,
    place_shape,
    with_criterion,
)
from hdl.parameters import JoinParameters, KeyField
from hdl.words.prepared import criterion_layout, stored_layout

CHAINS = (HANDSHAKE, LOW_LATENCY)
MIXED = (KeyField(name="x", bits=7), KeyField(name="y", bits=5, signed=False))


def parameters_of(architecture, comparator="band", **others):
    few = {"cores": 3, "sub_window": 5, "keys": MIXED}
    return JoinParameters.of(architecture=architecture, comparator=comparator, **{**few, **others})


def names(layout):
    return set(layout.members)


@pytest.mark.parametrize("architecture", CHAINS)
@pytest.mark.parametrize("comparator", ["band", "equality"])
def test_a_tuple_carries_a_criterion_only_where_its_cores_do_not_prepare_one(
    architecture, comparator
):
    parameters = parameters_of(architecture, comparator)
    carries = comparator == "band" and architecture != HANDSHAKE
    body = lane_word(parameters).members["body"]
    assert with_criterion(parameters) is carries
    assert names(body["tuple"].shape) == ({"key", "criterion"} if carries else {"key"})
    assert body["tuple"].shape["key"].shape == stored_layout(parameters)
    if carries:
        assert body["tuple"].shape["criterion"].shape == criterion_layout(parameters)


@pytest.mark.parametrize(
    ("architecture", "comparator", "bounds"),
    [(CHAINS[0], "band", 1), (CHAINS[0], "equality", 0), (CHAINS[1], "band", 0)],
)
def test_bounds_flow_only_where_cores_prepare_criteria(architecture, comparator, bounds):
    body = lane_word(parameters_of(architecture, comparator)).members["body"]
    assert ("bound" in names(body)) == bounds
    if bounds:
        ends = body["bound"].shape["bounds"].shape
        assert names(ends) == {key.name for key in MIXED}
        assert all(names(ends[name].shape) == {"low", "high"} for name in names(ends))


@pytest.mark.parametrize("architecture", CHAINS)
def test_only_the_low_latency_join_says_what_came_before_a_tuple(architecture):
    parameters = parameters_of(architecture)
    word = lane_word(parameters)
    own = {"homeless", "before"} if architecture != HANDSHAKE else set()
    assert names(word) == {"kind", "restart", "body"} | own
    if own:
        assert word["homeless"].width == 1
        assert word["before"].shape == unsigned(parameters.arrangement.ordinal_bits)


def test_every_kind_of_word_has_a_number_of_its_own():
    assert len({kind.value for kind in LaneKind}) == len(LaneKind)
    assert max(kind.value for kind in LaneKind) < 1 << Shape.cast(LaneKind).width


@pytest.mark.parametrize("sub_window", [1, 2, 3, 4, 5, 15, 16, 47, 48])
def test_a_place_has_a_wrap_bit_and_a_pass_may_have_every_row(sub_window):
    parameters = parameters_of(CHAINS[1], sub_window=sub_window)
    rows = parameters.ring_rows
    assert 1 << place_shape(parameters).width == 2 * rows
    counted = pass_layout(parameters)["rows"].width
    assert 1 << counted > rows
    assert 1 << (counted - 1) <= rows


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("meets", [0, 1, 5])
def test_a_pass_has_what_its_segment_asks_for(limited, meets):
    layout = pass_layout(parameters_of(CHAINS[1]), limited=limited, meets=meets)
    more = {"limit"} if limited else set()
    more |= {"met_first", "met", "homeless"} if meets else set()
    assert names(layout) == {"mark", "first", "rows", "oldest", "tag"} | more
    if meets:
        assert layout["met"].width == meets


@pytest.mark.parametrize("tag", [9, 11, 24])
def test_numbers_of_tuples_are_as_wide_as_the_arrangement_says(tag, monkeypatch):
    monkeypatch.setattr(handshake, "low_latency_handshake", Handshake(ordinal_bits=tag))
    parameters = parameters_of(LOW_LATENCY)
    match = match_layout(parameters)
    assert match["stored"].width == match["passing"].width == tag
    pair = chain_result(parameters)["pair"].shape
    assert [field.width for _, field in pair] == [tag, tag]
    numbers = pass_layout(parameters, limited=True, meets=2)
    for name in ("oldest", "tag", "limit", "met_first"):
        assert numbers[name].width == tag

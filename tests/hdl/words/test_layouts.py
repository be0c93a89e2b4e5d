# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.parameters import JoinParameters, KeyField
from hdl.predicates.band import comparison_groups
from hdl.presets import PRESETS
from hdl.tree import tree_levels
from hdl.words.inputs import input_word, key_layout
from hdl.words.prepared import (
    criterion_layout,
    is_own_criterion,
    pointer_layout,
    region_word,
    stored_layout,
)
from hdl.words.results import core_shape, node_result, result_word


@pytest.mark.parametrize(
    ("leaves", "arity", "levels"),
    [
        (1, 2, [1]),
        (2, 2, [1]),
        (3, 2, [2, 1]),
        (4, 4, [1]),
        (5, 4, [2, 1]),
        (7, 3, [3, 1]),
        (16, 4, [4, 1]),
        (17, 4, [5, 2, 1]),
    ],
)
def test_a_tree_has_the_fewest_levels_of_full_nodes(leaves, arity, levels):
    assert tree_levels(leaves, arity) == levels


@pytest.mark.parametrize("name", PRESETS)
def test_a_region_word_says_in_its_prepared_words_what_the_input_word_said(name):
    parameters = PRESETS[name].lane
    before, after = input_word(parameters)["body"].shape, region_word(parameters)["body"].shape
    assert after["control"].shape == before["control"].shape
    assert after["tuple"].shape["timestamp"].width == before["tuple"].shape["timestamp"].width
    # A band with digests needs them beside its fields.
    more = (parameters.engine.digest_bits or 0) if parameters.predicate.kind == "band" else 0
    assert after["tuple"].shape["key"].width == before["tuple"].shape["key"].width + more
    # An index compares the keys of an equality with the key itself.
    members = dict(after["tuple"].shape)
    assert ("criterion" in members) != is_own_criterion(parameters)
    if "criterion" in members:
        assert members["criterion"].shape == criterion_layout(parameters)


@pytest.mark.parametrize(
    ("bits", "groups"),
    [
        ([5], [[5]]),
        ([63], [[63]]),
        ([64], [[64]]),  # a field may be wider than a group
        ([31, 31], [[31, 31]]),
        ([31, 32], [[31], [32]]),
        ([31, 31, 1], [[31, 31], [1]]),
        ([64, 1, 62, 64], [[64], [1], [62], [64]]),
        ([64, 1, 61, 64], [[64], [1, 61], [64]]),
        ([8] * 16, [[8] * 7, [8] * 7, [8] * 2]),
    ],
)
def test_fields_are_compared_in_groups_as_wide_as_a_processor_word(bits, groups):
    parameters = JoinParameters.of(
        keys=tuple(KeyField(name=f"f{n}", bits=width) for n, width in enumerate(bits))
    )
    found = comparison_groups(parameters)
    assert [[key.bits for key in group] for group in found] == groups
    assert [key for group in found for key in group] == list(parameters.keys)
    assert {name: field.width for name, field in criterion_layout(parameters)} == {
        f"{bound}_{n}": sum(group) + len(group)
        for n, group in enumerate(groups)
        for bound in ("low", "high")
    }


@pytest.mark.parametrize("comparator", ["band", "equality"])
def test_only_a_band_stores_keys_without_signs(comparator):
    parameters = JoinParameters.of(
        keys=(KeyField(name="a", bits=5), KeyField(name="b", bits=7, signed=False)),
        comparator=comparator,
    )
    signs = {name: field.shape.signed for name, field in stored_layout(parameters)}
    assert signs == {"a": comparator == "equality", "b": False}
    assert stored_layout(parameters).size == key_layout(parameters).size


@pytest.mark.parametrize("cores", [1, 2, 3, 4, 7, 16])
def test_pairs_keep_their_fields_while_the_core_grows(cores):
    parameters = JoinParameters.of(cores=cores, fan_in=3)
    levels = len(tree_levels(cores, 3))
    pairs = [node_result(parameters, n)["body"].shape["pair"].shape for n in range(levels + 1)]
    for pair in pairs:
        for name in ("probe", "lane", "row"):
            assert pair[name] == pairs[0][name]
    assert pairs[-1]["core"].width == core_shape(parameters).width == 2 * levels


def test_widths_follow_the_parameters():
    parameters = JoinParameters.of(
        keys=(KeyField(name="a", bits=5), KeyField(name="b", bits=7, signed=False)),
        timestamp_bits=9,
        sub_window=100,
        lanes=3,
        probe_bits=4,
    )
    assert input_word(parameters).size == 2 + 5 + 7 + 9
    assert pointer_layout(parameters)["row"].width == 7  # 64 rows of 3, and the wrap bit
    assert pointer_layout(parameters)["lane"].width == 2
    assert result_word(parameters).size == 2 + 1 + 4 + 2 + 6 + 2

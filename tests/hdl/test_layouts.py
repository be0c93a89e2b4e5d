# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.layouts import (
    core_shape,
    input_word,
    node_result,
    pointer_layout,
    region_word,
    result_word,
    tree_levels,
)
from hdl.parameters import PRESETS, JoinParameters, KeyField


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
def test_a_region_word_begins_with_the_input_word(name):
    layout = region_word(PRESETS[name])
    assert layout["word"].offset == 0
    assert layout["word"].shape == input_word(PRESETS[name])


@pytest.mark.parametrize("cores", [1, 2, 3, 4, 7, 16])
def test_pairs_keep_their_fields_while_the_core_grows(cores):
    parameters = JoinParameters(cores=cores, fan_in=3)
    levels = len(tree_levels(cores, 3))
    pairs = [node_result(parameters, n)["body"].shape["pair"].shape for n in range(levels + 1)]
    for pair in pairs:
        for name in ("probe", "lane", "row"):
            assert pair[name] == pairs[0][name]
    assert pairs[-1]["core"].width == core_shape(parameters).width == 2 * levels


def test_widths_follow_the_parameters():
    parameters = JoinParameters(
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

# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import pytest

from hdl.tree import leaf_beside, least_arity, tree_levels


@pytest.mark.parametrize(
    ("leaves", "arity", "counts"),
    [
        (1, 2, [1]),
        (2, 2, [1]),
        (3, 2, [2, 1]),
        (5, 2, [3, 2, 1]),
        (16, 4, [4, 1]),
        (17, 4, [5, 2, 1]),
    ],
)
def test_levels_go_up_to_one_root(leaves, arity, counts):
    assert tree_levels(leaves, arity) == counts


@pytest.mark.parametrize("arity", [2, 3, 4])
@pytest.mark.parametrize("leaves", [1, 2, 3, 5, 16, 27, 64])
def test_a_node_takes_the_reset_of_a_leaf_below_it(arity, leaves):
    for level, count in enumerate(tree_levels(leaves, arity)):
        for number in range(count):
            leaf = leaf_beside(level, number, arity=arity, leaves=leaves)
            assert leaf in range(leaves)
            assert leaf // arity ** (level + 1) == number


@pytest.mark.parametrize(("arity", "leaves"), [(2, 16), (2, 64), (3, 27), (4, 16)])
def test_no_leaf_serves_two_nodes_of_a_full_tree(arity, leaves):
    taken = [
        leaf_beside(level, number, arity=arity, leaves=leaves)
        for level, count in enumerate(tree_levels(leaves, arity))
        for number in range(count)
    ]
    assert len(set(taken)) == len(taken)


@given(st.integers(1, 300), st.integers(1, 8))
def test_the_arity_grows_before_the_depth(leaves, levels):
    arity = least_arity(leaves, levels)
    assert len(tree_levels(leaves, arity)) <= levels
    assert arity == 2 or len(tree_levels(leaves, arity - 1)) > levels

# SPDX-License-Identifier: Apache-2.0
import pytest

from bench.figures import latency_model as equations
from host.protocol.cost_model import levels


def test_equation_1_adds_a_link_and_a_look_for_every_core_of_the_chain():
    terms = {"t_link": 2, "t_monitor": 1, "t_probe": 0.5, "t_collect": 7}
    assert equations.equation_1(1, 10, **terms) == 2 + 5 + 7
    assert equations.equation_1(9, 10, **terms) == 2 + 8 * 3 + 5 + 7


def test_equation_2_meets_in_the_middle_of_the_chain_and_of_the_window():
    terms = {"t_link": 2, "t_monitor": 1, "t_probe": 0.5}
    assert equations.equation_2(9, 10, **terms) == 2 + 4 * 3 + 2.5


def test_equation_3_is_that_of_the_slowest_core():
    links = [(1, 2), (5, 1), (1, 1)]
    assert equations.equation_3(links, 10, (1, 1, 3), 4) == 2 + 30 + 4


@pytest.mark.parametrize(("k", "b", "c"), [(1, 2, 2), (5, 2, 3), (64, 8, 4)])
def test_equations_3_to_5_agree_where_cores_and_links_are_equal(k, b, c):
    depth, up = levels(k, b), levels(k, c)
    third = equations.equation_3([[2] * depth] * k, 20, [1] * k, 2 * up)
    fourth = equations.equation_4(k, b, 20, t_links=[2] * k, t_probes=[1] * k, t_collect=2 * up)
    fifth = equations.equation_5(k, b, c, 20, t_link=2, t_probe=1)
    assert third == fourth == fifth == 2 * depth + 20 + 2 * up


def test_equation_6_reads_half_of_the_window():
    assert equations.equation_6(64, 8, 20, t_link=2, t_probe=1) == 4 + 10


@pytest.mark.parametrize(
    ("leaves", "arity", "expected"), [(1, 2, 0), (2, 2, 1), (3, 2, 2), (9, 8, 2), (64, 4, 3)]
)
def test_levels_are_those_of_the_next_full_tree(leaves, arity, expected):
    assert levels(leaves, arity) == expected

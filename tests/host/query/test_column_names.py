# SPDX-License-Identifier: Apache-2.0
import pytest

from host import UsageError
from host.query.tables import output_names, require_column
from host.reference.types import JoinType

CASES = {
    "different names stay": (["a"], ["b"], ["a", "b"]),
    "an equal name gets the suffix": (["a"], ["a"], ["a", "a_2"]),
    "case does not matter": (["T", "k"], ["t", "K"], ["T", "k", "t_2", "K_2"]),
    "one input may tell columns apart by case": (["T", "t"], ["x"], ["T", "t", "x"]),
    "so may the right one": (["x"], ["T", "t"], ["x", "T", "t"]),
    "even with the suffix": (["T"], ["t", "T"], ["T", "t_2", "T_2"]),
    "any letters": (["a b", "`", "ä"], ["a.b", "Ä", "``"], ["a b", "`", "ä", "a.b", "Ä_2", "``"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_names_of_an_answer(case):
    left, right, expected = CASES[case]
    assert output_names(left, right, "_2", JoinType.INNER) == expected
    assert output_names(left, right, "_2", JoinType.LEFT_SEMI) == left


@pytest.mark.parametrize(
    ("left", "right"),
    [(["a", "a_2"], ["a"]), (["A", "a_2"], ["a"]), (["a"], ["a", "A_2"]), (["a"], ["a_2", "a"])],
)
def test_a_name_that_is_taken_with_the_suffix_too_is_refused(left, right):
    with pytest.raises(UsageError, match=r"would be called '[aA]_2' in the answer, which is taken"):
        output_names(left, right, "_2", JoinType.INNER)
    assert output_names(left, right, "_2", JoinType.LEFT_ANTI) == left


@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.LEFT_SEMI])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_name_that_stands_twice_in_an_input_is_refused(how, side):
    names = {"left": ["x"], "right": ["y"]} | {side: ["a", "A", "a"]}
    with pytest.raises(UsageError, match=f"The {side} input has several columns called 'a'"):
        output_names(names["left"], names["right"], "_2", how)


def test_a_query_names_columns_exactly():
    require_column(["k", "K"], "K", "the left input")
    with pytest.raises(UsageError, match=r"no column 'K' in the left input.*'k'"):
        require_column(["k"], "K", "the left input")
    with pytest.raises(UsageError, match="The left input has several columns called 'k'"):
        require_column(["k", "x", "k"], "k", "the left input")

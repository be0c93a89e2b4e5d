# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import numpy as np

from host import Side
from host.protocol.pairing import SidePlaces, joined, one_each, seconds

SIDES = st.lists(st.integers(0, 1), max_size=60)


def greedy(sides, alone):
    """Go from the front, element by element."""
    found, free = [], False
    for n, side in enumerate(sides):
        joins = free and side != sides[n - 1] and not alone[n] and not alone[n - 1]
        found.append(joins)
        free = not joins
    return found


@given(SIDES, st.data())
def test_neighbours_that_differ_are_joined_from_the_front(sides, data):
    alone = data.draw(st.lists(st.booleans(), min_size=len(sides), max_size=len(sides)))
    array = np.array(sides, np.uint8)
    assert seconds(array).tolist() == greedy(sides, [False] * len(sides))
    assert seconds(array, np.array(alone, np.bool_)).tolist() == greedy(sides, alone)


@given(SIDES)
def test_words_come_in_the_order_of_their_tuples(sides):
    members = {side: np.flatnonzero(np.array(sides, np.int64) == side) for side in Side}
    places = joined(members, len(sides))
    rows = []
    for side, at in places.sides.items():
        shares = at.shares if at.shares is not None else [0] * len(at.words)
        rows += zip(members[side], at.words, shares, strict=True)
    words = [int(word) for _, word, _ in sorted(rows)]
    shares = [int(share) for _, _, share in sorted(rows)]
    second = greedy(sides, [False] * len(sides))
    assert words == [n - sum(second[: n + 1]) for n in range(len(sides))]
    assert shares == [
        2 if second[n] else int(n + 1 < len(sides) and second[n + 1]) for n in range(len(sides))
    ]
    assert places.count == len(set(words))


def test_a_word_each_is_a_place_each():
    members = {Side.R: np.array([0, 3]), Side.S: np.array([1, 2])}
    places = one_each(members, 4)
    assert places.count == 4
    assert all(places.sides[side].words is members[side] for side in Side)
    assert joined({Side.S: np.arange(3)}, 3).count == 3


def test_places_of_some_tuples_are_part_of_those_of_all():
    places = SidePlaces(np.arange(10, 15), np.array([0, 1, 2, 0, 1], np.uint8))
    part = places.part(1, 4)
    assert (part.words.tolist(), part.shares.tolist()) == ([11, 12, 13], [1, 2, 0])
    alone = SidePlaces(np.arange(10, 15)).part(2, 9)
    assert (alone.words.tolist(), alone.shares) == ([12, 13, 14], None)

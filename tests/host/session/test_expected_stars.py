# SPDX-License-Identifier: Apache-2.0
"""Expected stars: the same whether tuples get their places at once or as they are sent."""

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from host import Ordering, Side
from host.protocol.punctuation import Grouper
from host.session.decoder import ExpectedStars
from tests.host.tables import manifest_of


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    return manifest_of(tmp_path_factory.mktemp("stars"), cores=3, probes=4, probe_bits=3)


def places(sides):
    return {side: np.flatnonzero(sides == side) for side in Side}


@given(st.data())
def test_stars_stand_where_a_grouper_puts_them(manifest, data):
    """Whatever the portions in which tuples are staged and sent, and wherever precision changes."""
    sides = np.array(data.draw(st.lists(st.integers(0, 1), max_size=120)), np.uint8)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sides)), max_size=5)))
    periods = data.draw(st.lists(st.integers(1, 12), min_size=len(cuts), max_size=len(cuts)))
    limit = manifest.storage.cores * manifest.storage.slack

    stars = ExpectedStars(manifest, Ordering(2), changes=True)
    begin = 0
    cuts_staged = data.draw(st.lists(st.integers(0, len(sides)), max_size=4))
    for end in [*sorted(cuts_staged), len(sides)]:
        stars.stage(places(sides[begin:end]))
        begin = end
    if data.draw(st.booleans()):
        stars.flush()  # before everything has its place
    expected = {side: [0] for side in Side}
    seen = dict.fromkeys(Side, 0)
    period, sent = 2, 0
    for cut, later in zip([*cuts, len(sides)], [*periods, None], strict=True):
        for middle in sorted(data.draw(st.lists(st.integers(sent, cut), max_size=3))):
            stars.send(middle)
        stars.send(cut)
        grouper = Grouper(Ordering(period), probes=4, limit=limit, probe_bits=3)
        for closed in (grouper.feed(sides[sent:cut]), grouper.finish()):
            for side, probes, star in zip(closed.side, closed.probes, closed.star, strict=True):
                seen[Side(int(side))] += int(probes)
                if star:
                    expected[Side(int(side))].append(seen[Side(int(side))])
        sent = cut
        if later is not None:
            stars.change(Ordering(later))
            period = later
    stars.flush()
    assert {side: ends.tolist() for side, ends in stars.ends.items()} == expected


def test_stars_that_are_seen_are_no_longer_expected(manifest):
    stars = ExpectedStars(manifest, Ordering(2))
    stars.stage(places(np.zeros(5, np.uint8)))
    assert stars.see(Side.R, 1).tolist() == [0, 2]
    assert stars.ends[Side.R].tolist() == [2, 4]
    stars.flush()
    assert stars.ends[Side.R].tolist() == [2, 4, 5]


@given(st.data())
def test_a_segment_ends_the_groups_before_it_whenever_its_tuples_are_sent(manifest, data):
    """Also if the places of tuples are known only when they are sent."""
    sides = np.array(data.draw(st.lists(st.integers(0, 1), max_size=150)), np.uint8)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sides)), max_size=5)))
    lives = [data.draw(st.integers(1, 3)) for _ in cuts]
    at_once = ExpectedStars(manifest, Ordering(4))
    later = ExpectedStars(manifest, Ordering(4), changes=True)
    begin = 0
    for end, live in zip([*cuts, len(sides)], [*lives, None], strict=True):
        for stars in (at_once, later):
            stars.stage(places(sides[begin:end]))
            if live is not None:
                stars.begin_segment(live)
        later.send(data.draw(st.integers(0, end)))
        begin = end
    for stars in (at_once, later):
        stars.flush()
    later.send(len(sides))
    assert {side: ends.tolist() for side, ends in later.ends.items()} == {
        side: ends.tolist() for side, ends in at_once.ends.items()
    }


@given(st.data())
def test_a_segment_and_a_change_of_precision_at_one_place_come_in_either_order(manifest, data):
    sides = np.array(data.draw(st.lists(st.integers(0, 1), max_size=80)), np.uint8)
    cut, live = data.draw(st.integers(0, len(sides))), data.draw(st.integers(1, 3))
    ends = []
    for change_first in (False, True):
        stars = ExpectedStars(manifest, Ordering(4), changes=True)
        stars.stage(places(sides[:cut]))
        if change_first:
            stars.send(cut)
            stars.change(Ordering(3))
        stars.begin_segment(live)
        stars.stage(places(sides[cut:]))
        stars.send(cut)
        if not change_first:
            stars.change(Ordering(3))
        stars.send(len(sides))
        stars.flush()
        ends.append([of_side.tolist() for of_side in stars.ends.values()])
    assert ends[0] == ends[1]

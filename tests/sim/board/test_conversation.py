# SPDX-License-Identifier: Apache-2.0
"""A host and a board in one process, as the figures of the link run them."""

import pytest

from bench.figures import links
from bench.figures.links import run_board
from sim.board.conversation import BoardConversation, Course, Undelivered


@pytest.fixture
def built(monkeypatch, found, bundle, library):
    monkeypatch.setattr(links, "board_built", lambda *_: (found, bundle, library))


def test_a_clean_line_carries_words_both_ways(built):
    course = run_board(print, tuples=250)
    assert (course.differences, course.damaged) == (0, 0)
    assert min(course.shares) > 0.5  # with short frames at first
    assert course.counters.repeated == course.counters.timeouts == 0


@pytest.mark.long
def test_damaged_bytes_change_no_word(built):
    course = run_board(print, tuples=120, damage=0.02, seed=3)
    assert course.damaged > 50
    assert course.counters.garbled > 0
    assert course.differences == 0
    assert len(course.results) >= 3 * 122


@pytest.mark.parametrize(
    ("found", "differences"),
    [(b"abcdef", 0), (b"abcdeX", 1), (b"defabc", 2), (b"abc", 1), (b"abcdefabc", 1), (b"bcdef", 2)],
)
def test_words_that_are_lost_changed_or_out_of_place_are_counted(found, differences):
    course = Course(b"", b"abcdef", found, 3, 1, 1.0, None, 0)
    assert course.differences == differences


def test_a_run_that_does_not_end_is_an_error_that_says_how_far_it_came(board, found):
    run = BoardConversation(board, found)
    with pytest.raises(Undelivered, match="0 of 3 bytes have come"):
        run.exchange(b"", 3, cycles=100_000)


@pytest.mark.long
def test_ten_thousand_tuples_pass_a_line_that_damages_a_byte_in_a_hundred_each_time_the_same(built):
    course = run_board(print, tuples=10_000, damage=0.01, seed=5)
    assert course.differences == 0
    assert course.damaged > 500

# SPDX-License-Identifier: Apache-2.0
"""A host and a board with Ethernet in one process, as the figures of the fast link run them."""

from contextlib import closing

import pytest

from hdl.boards.table import find_board
from hdl.bundle import write_bundle
from hdl.presets import PRESETS
from sim.board.conversation import Undelivered
from sim.board.ethernet_board import SimulatedEthernetBoard
from sim.board.ethernet_conversation import EthernetConversation
from sim.board.library import build_board
from sim.ethernet.frames import Address, arp_answer, arp_request, on_the_line
from sim.figures import fast_link
from sim.figures.fast_link import run_fast

# Building the board takes half a minute. In `make test`, a join passes the same pins in Amaranth's
# simulator (tests/hdl/shells/test_ethernet_shell.py).
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def board():
    return find_board("ecpix5-45f")


@pytest.fixture(scope="module")
def built(board, tmp_path_factory):
    """The smallest accelerator, built once for all tests of this module."""
    folder = tmp_path_factory.mktemp("ethernet") / "bundle"
    parameters = PRESETS["board-small"]
    digest = write_bundle(parameters, folder)["hash"]
    return board, folder, build_board(board, parameters, digest=digest)


@pytest.fixture
def small(monkeypatch, built):
    monkeypatch.setattr(fast_link, "built", lambda report: built)


def test_a_clean_network_carries_words_both_ways_without_repeating_any(small):
    course, run = run_fast(print, tuples=2_000, values=378)
    assert (course.differences, course.damaged) == (0, 0)
    counters = course.counters
    assert (counters.repeated, counters.timeouts, counters.garbled, counters.dropped) == (0,) * 4
    assert min(course.shares) > 0.05  # a scan with one lane, which is slower than the line
    assert run.frames[0] < 400


def test_lost_damaged_and_doubled_frames_change_no_word(small):
    course, run = run_fast(print, tuples=2_000, values=378, damage=0.1, seed=3)
    assert course.differences == 0
    assert all(noise.lost + noise.damaged + noise.doubled for noise in run.noises)
    assert course.counters.repeated > 0


def test_a_board_answers_who_asks_for_it(built):
    board, _, library = built
    own = Address(board.ethernet.mac_bytes, board.ethernet.ip_bytes, 0)
    asker = Address(b"\x02\1\2\3\4\5", bytes((192, 168, 1, 3)), 0)
    request = on_the_line(arp_request(asker, own.ip))
    with closing(SimulatedEthernetBoard(library, seed=1)) as simulated:
        sent, frames = simulated.exchange_frames([request] * 3, 20)
        assert (sent, frames) == (1, [])
        sent, frames = simulated.exchange_frames([request] * 2, 1_000)
        assert sent == 2
        assert set(frames) == {on_the_line(arp_answer(own, asker))}
        assert simulated.cycle == 1_020
        assert not simulated.busy


def test_a_run_that_does_not_end_is_an_error_that_says_how_far_it_came(built):
    board, _, library = built
    with closing(SimulatedEthernetBoard(library, seed=1)) as simulated:
        run = EthernetConversation(simulated, board)
        with pytest.raises(Undelivered, match="0 of 3 bytes have come"):
            run.exchange(b"", 3, cycles=100_000)

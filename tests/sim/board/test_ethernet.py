# SPDX-License-Identifier: Apache-2.0
"""A host and a board with Ethernet in one process, as the figures of the fast link run them."""

from contextlib import closing, contextmanager

import pytest

from bench.figures import links
from bench.figures.links import run_fast
from hdl.boards.table import find_board
from hdl.bundle import write_bundle
from hdl.presets import PRESETS
from host.devices import open_device
from sim.board.conversation import Undelivered
from sim.board.ethernet_board import SimulatedEthernetBoard
from sim.board.ethernet_conversation import EthernetConversation
from sim.board.library import build_board
from sim.board.server import running
from sim.board.udp_server import UdpServer
from sim.ethernet.frames import Address, arp_answer, arp_request, on_the_line
from tests.host.device_contract import ask
from tests.host.small_bundles import expected
from tests.sim.board.test_server import BAUD, script_of

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
    monkeypatch.setattr(links, "board_built", lambda board, preset, report: built)


def test_a_clean_network_carries_words_both_ways_without_repeating_any(small):
    course, run = run_fast(print, tuples=2_000, values=378)
    assert (course.differences, course.damaged) == (0, 0)
    counters = course.counters
    assert (counters.repeated, counters.timeouts, counters.garbled, counters.dropped) == (0,) * 4
    assert min(course.shares) > 0.05  # a scan with one lane, which is slower than the line
    assert run.card.frames[0] < 400


def test_lost_damaged_and_doubled_frames_change_no_word(small):
    course, run = run_fast(print, tuples=2_000, values=378, damage=0.1, seed=3)
    assert course.differences == 0
    assert all(noise.lost + noise.damaged + noise.doubled for noise in run.card.noises)
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


@contextmanager
def served(built, **options):
    """Serve the board in a thread for a block of code; the value is the server."""
    board, _, library = built
    with closing(SimulatedEthernetBoard(library, seed=1)) as simulated:
        with running(UdpServer(simulated, board, **options)) as server:
            yield server


@pytest.mark.parametrize("damage", [0.0, 0.05])
def test_an_unchanged_device_of_the_host_reaches_the_pins_by_udp(built, damage):
    parameters = PRESETS["board-small"]
    script = script_of(parameters, 200, 4)
    with served(built, damage=damage, seed=2) as server:
        uri = f"{server.place}?baud={BAUD}&bundle={built[1]}"
        for _ in range(2):  # another session from another port
            with open_device(uri) as device:
                assert ask(device, script) == expected(parameters, script)
    assert (server.card.damaged > 0) == (damage > 0)


def test_the_rate_of_a_simulated_link_is_measured(built):
    board, _, library = built
    with closing(SimulatedEthernetBoard(library, seed=1)) as simulated:
        server = UdpServer(simulated, board)
        assert server.rate(seconds=0.02) > 1000
        server.end()
        server.run()

# SPDX-License-Identifier: Apache-2.0
"""The circuit of a board at its pins, where the test counts bytes and cycles itself."""

import pytest

from host.devices.link import FrameDecoder, HostEndpoint, Timing
from host.protocol.manifest import Manifest
from sim.board.board import SimulatedBoard

#: Cycles of a byte on the line: ten bits of 25 cycles.
BYTE = 250


def greet(board, *, cycles=500):
    """Begin a session; return the host's end."""
    host = HostEndpoint(9, timing=Timing(timeout=1.0, heartbeat=0.5))
    waiting, end = b"", board.cycle + 200 * BYTE
    while not host.is_open:
        assert board.cycle < end, "the board does not answer"
        waiting += host.transmit_frame(board.cycle / 25e6)
        taken, heard = board.exchange(waiting, cycles)
        waiting = waiting[taken:]
        host.receive(heard, board.cycle / 25e6)
    return host


@pytest.mark.long
def test_a_board_says_what_it_is_and_lights_its_led(board, bundle):
    manifest = Manifest.load(bundle)
    assert not board.led
    host = greet(board)
    assert board.led
    assert host.greeting.hash.hex() == manifest.hash
    sizes = [host.greeting.input_bytes, host.greeting.result_bytes]
    assert sizes == [-(-word.bits // 8) for word in (manifest.input_word, manifest.result_word)]


@pytest.mark.few(1)
@pytest.mark.parametrize("cycles", [1, 3, 100, 251])
def test_a_byte_takes_ten_bits_on_the_line_however_the_cycles_are_cut(board, cycles):
    greet(board, cycles=cycles if cycles > 50 else 500)
    data, begun, count = bytes(range(1, 6)), board.cycle, 0
    while count < len(data):
        taken, _ = board.exchange(data[count:], cycles)
        count += taken
    assert 4 * BYTE <= board.cycle - begun < 4 * BYTE + max(cycles, BYTE)
    assert board.busy


def test_a_byte_that_is_no_frame_is_answered_with_a_nak(board):
    host = greet(board)
    decoder = FrameDecoder()
    decoder.session = host.session
    board.exchange(b"", 200 * BYTE)
    _, heard = board.exchange(b"\x07\x07\0", 60 * BYTE)
    assert [frame.kind.name for frame in decoder.feed(heard) if frame] == ["NAK"]


def test_a_board_without_a_session_is_silent(board):
    taken, heard = board.exchange(b"\x55" * 30, 2000 * BYTE)
    assert (taken, heard) == (30, b"")
    assert not board.busy
    assert board.cycle == 2000 * BYTE
    assert (board.bytes_in, board.bytes_out) == (30, 0)


def test_a_closed_board_is_refused(library):
    board = SimulatedBoard(library)
    board.close()
    board.close()
    with pytest.raises(ValueError, match="is closed"):
        board.exchange(b"", 1)
    with pytest.raises(ValueError, match="is closed"):
        _ = board.cycle


@pytest.mark.timeout(120)
def test_boards_of_one_library_are_closed_in_any_order(library):
    for order in (1, -1):
        boards = [SimulatedBoard(library) for _ in range(3)]
        for board in boards:
            board.exchange(b"", 1000)
        for board in boards[::order]:
            board.close()

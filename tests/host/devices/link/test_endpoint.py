# SPDX-License-Identifier: Apache-2.0
import random

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from host.devices.link import (
    Frame,
    Greeting,
    HostEndpoint,
    Kind,
    Timing,
    encode_frame,
)
from host.devices.link.endpoint import Answer
from tests.host.devices.link.board_endpoint import BoardEndpoint
from tests.host.devices.link.noisy_channel import converse

TIMING = Timing(timeout=0.06, heartbeat=0.03)


def greeting(**changes):
    sizes = {"input_bytes": 7, "result_bytes": 3, "payload_bytes": 64}
    slots = {"receive_slots": 4, "send_slots": 4}
    return Greeting(**{**sizes, **slots, "hash": bytes(range(32)), **changes})


def pair(*, told=None, **changes):
    """Return two endpoints that have not met; the board tells what ``told`` names."""
    host = HostEndpoint(0xC0FFEE, send_slots=4, receive_slots=3, timing=TIMING)
    return host, BoardEndpoint(greeting(**changes), timing=TIMING, **(told or {}))


def meet(host, board, now=0.0):
    """Let two endpoints speak over a perfect line until neither has anything to say."""
    while data := host.transmit(now, 10_000):
        board.receive(data, now)
        host.receive(board.transmit(now, 10_000), now)


def words(count, size, seed):
    """Return words with many zeros."""
    rng = random.Random(seed)
    return bytes(rng.choice((0, 0, rng.randrange(256))) for _ in range(count * size))


def test_words_pass_both_ways():
    host, board = pair()
    inputs, outputs = words(500, 7, 1), words(900, 3, 2)
    got_inputs, got_outputs, _ = converse(host, board, inputs, outputs)
    assert (got_inputs, got_outputs) == (inputs, outputs)
    for end in (host, board):
        counters = end.counters()
        assert counters.garbled == counters.dropped == counters.repeated == counters.timeouts == 0
    meet(host, board, 10.0)
    assert host.sender.delivered == 500
    assert board.sender.delivered == 900
    assert host.sender.idle


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    rate=st.sampled_from([0.0, 0.001, 0.01, 0.03]),
    cuts=st.sets(st.integers(1, 250), max_size=3),
    payload=st.sampled_from([7, 64, 240]),
    slots=st.sampled_from([1, 2, 4]),
    step=st.sampled_from([20, 64, 300]),
)
def test_words_come_once_in_order_and_complete_over_any_line(
    seed, rate, cuts, payload, slots, step
):
    host, board = pair(payload_bytes=payload, send_slots=slots, receive_slots=slots)
    inputs, outputs = words(120, 7, seed), words(260, 3, seed + 1)
    got = converse(
        host, board, inputs, outputs, rate=rate, seed=seed, cuts=cuts, step=step, limit=60_000
    )
    assert got[:2] == (inputs, outputs)
    assert host.sender.delivered <= 120
    assert board.counters().resumed >= host.counters().resumed


def test_numbers_wrap_around():
    host, board = pair(payload_bytes=7, send_slots=4)
    inputs, outputs = words(700, 7, 3), words(1500, 3, 4)
    got = converse(host, board, inputs, outputs, rate=0.002, seed=5, step=200)
    assert got[:2] == (inputs, outputs)
    assert host.counters().frames_out > 700 > 512


def test_damage_is_counted_and_repaired():
    host, board = pair()
    inputs, outputs = words(1000, 7, 1), words(1000, 3, 2)
    got = converse(host, board, inputs, outputs, rate=0.01, seed=3)
    assert got[:2] == (inputs, outputs)
    for end in (host, board):
        assert end.counters().garbled > 5
        assert end.counters().repeated > 5
        assert end.counters().asked > 5


def test_a_board_without_room_stops_the_host_and_loses_nothing():
    host, board = pair()
    meet(host, board)
    data = words(600, 7, 1)
    sent = 0
    for n in range(2000):
        sent += host.sender.offer(data[sent:])
        meet(host, board, now=n / 1000)
    assert 4 * 256 >= board.receiver.waiting > 2 * 256
    assert sent < len(data)
    got = bytearray()
    for n in range(2000, 4000):
        got += board.receiver.take(21)
        sent += host.sender.offer(data[sent:])
        meet(host, board, now=n / 1000)
    assert got == data
    assert board.counters().dropped == 0


def test_a_lost_opening_of_the_window_is_told_again():
    host, board = pair()
    meet(host, board)
    data = words(600, 7, 1)
    sent = 0
    for n in range(100):
        sent += host.sender.offer(data[sent:])
        meet(host, board, now=n / 1000)
    board.receiver.take(10_000)
    assert board.transmit(0.2, 1000)  # and lost
    before = board.receiver.waiting
    board.transmit(0.201, 1000)
    host.receive(board.transmit(0.24, 1000), 0.24)
    board.receive(host.transmit(0.241, 10_000), 0.241)
    assert board.receiver.waiting > before


def test_the_same_session_is_resumed_where_it_stood():
    host, board = pair()
    meet(host, board)
    host.sender.offer(bytes(range(14)))
    board.receive(host.transmit(0.0, 1000), 0.0)
    board.transmit(0.0, 1000)  # the acknowledgement is lost with the connection
    assert host.sender.delivered == 0
    host.reconnect(0.1)
    assert not host.is_open
    meet(host, board, 0.1)
    assert host.is_open
    assert host.sender.delivered == 2
    assert board.receiver.take(100) == bytes(range(14))
    assert host.counters().resumed == 1


def test_a_board_that_was_reset_is_in_no_session_and_says_so():
    host, board = pair()
    meet(host, board)
    _, other = pair()
    host.reconnect(1.0)
    meet(host, other, 1.0)
    assert not host.is_open
    assert host.greeting.session == 0


def test_another_host_takes_the_board_over():
    begun = []
    host, board = pair(told={"begun": lambda: begun.append(True)})
    meet(host, board)
    other = HostEndpoint(7, timing=TIMING)
    meet(other, board)
    assert other.is_open
    assert len(begun) == 2
    host.reconnect(1.0)
    meet(host, board, 1.0)
    assert not host.is_open
    assert host.greeting.session == 7


def test_a_repeated_hello_begins_nothing_anew():
    begun = []
    host, board = pair(told={"begun": lambda: begun.append(True)})
    hello = host.transmit(0.0, 1000)
    board.receive(hello + hello, 0.0)
    host.receive(board.transmit(0.0, 1000), 0.0)
    host.sender.offer(bytes(7))
    board.receive(host.transmit(0.0, 1000), 0.0)
    board.receive(hello, 0.0)
    assert len(begun) == 1
    assert board.receiver.waiting == 7


def test_a_board_of_another_version_is_not_open():
    host, board = pair(version=1)
    meet(host, board)
    assert not host.is_open
    assert host.greeting.version == 1


def test_a_register_request_is_executed_once_and_answered_as_often_as_asked():
    seen = []

    def registers(address, data, strobe):
        seen.append((address, data, strobe))
        return None if address == 8 else 0xABCD0000 + address

    host, board = pair(told={"registers": registers})
    meet(host, board)
    host.request(4)
    with pytest.raises(RuntimeError, match="not answered"):
        host.request(4)
    board.receive(host.transmit(0.0, 1000), 0.0)
    board.transmit(0.0, 1000)  # the answer is lost
    assert host.answer() is None
    assert host.transmit(0.02, 1000) == b""
    meet(host, board, host.deadline + 1)
    assert host.answer() == Answer(False, 0xABCD0004)
    host.request(12, 0x1234, 0x3)
    meet(host, board, 2.0)
    assert host.answer() == Answer(False, 0)
    host.request(8)
    meet(host, board, 3.0)
    assert host.answer() == Answer(True, 0)
    assert seen == [(4, None, 0), (12, 0x1234, 3), (8, None, 0)]


def test_what_is_no_frame_of_the_session_changes_nothing():
    host, board = pair()
    meet(host, board)
    for kind in Kind:
        for size in (0, 1, 3, 9):
            board.receive(encode_frame(Frame(kind, 200, bytes(size)), host.greeting.session), 0.0)
    board.receive(random.Random(1).randbytes(5000), 0.0)
    assert board.is_open
    assert (board.receiver.expected, board.receiver.waiting) == (0, 0)


@pytest.mark.parametrize("slots", [0, 128])
def test_slots_must_be_told_apart(slots):
    with pytest.raises(ValueError, match="1 to 127"):
        HostEndpoint(1, send_slots=slots)
    with pytest.raises(ValueError, match="1 to 127"):
        HostEndpoint(1, receive_slots=slots)


@pytest.mark.parametrize("session", [0, 1 << 32])
def test_a_session_has_a_number(session):
    with pytest.raises(ValueError, match="Number of a session"):
        HostEndpoint(session)


@pytest.mark.parametrize("size", [4, 8, 16])
def test_a_busy_line_carries_words_nine_tenths_of_the_time_both_ways(size):
    host = HostEndpoint(1, timing=Timing.at(100_000, slots=8))
    board = BoardEndpoint(
        greeting(
            input_bytes=size, result_bytes=size, payload_bytes=240 // size * size,
            send_slots=8, receive_slots=8,
        ),
        timing=Timing.at(100_000, slots=8),
    )  # fmt: skip
    data = words(30_000 // size, size, 1)
    *got, seconds = converse(host, board, data, data, step=100)
    assert got == [data, data]
    assert len(data) / (seconds * 100_000) > 0.9
    bytes_out = max(host.counters().bytes_out, board.counters().bytes_out)
    assert len(data) / bytes_out > 0.93


@pytest.mark.parametrize(("delay", "least"), [(10, 0.3), (100, 0.22)])
def test_a_line_that_damages_one_byte_in_a_hundred_carries_a_third_of_what_it_could(delay, least):
    timing = Timing.at(1000 * delay, slots=8)  # the line carries ``delay`` bytes in a millisecond
    host = HostEndpoint(1, timing=timing)
    sizes = {"input_bytes": 8, "result_bytes": 4, "payload_bytes": 240}
    board = BoardEndpoint(greeting(**sizes, send_slots=8, receive_slots=8), timing=timing)
    data = words(2500, 8, 1)
    *got, seconds = converse(host, board, data, data, rate=0.01, seed=1, step=delay)
    assert got == [data, data]
    assert len(data) / (seconds * 1000 * delay) > least
    for end in (host, board):
        counters = end.counters()
        assert counters.timeouts < counters.frames_out / 100
        assert counters.repeated < counters.frames_out / 2


def test_never_more_bytes_are_sent_than_there_is_room_for():
    data = words(36, 7, 1)
    sent = []
    for rooms in ([10_000], [1, 30, 0, 7, 20, 10_000, 10_000]):
        host, board = pair()
        meet(host, board)
        before = host.counters().bytes_out
        assert host.sender.offer(data) == len(data)
        pieces = [host.transmit(0.0, room) for room in rooms]
        assert all(len(piece) <= room for piece, room in zip(pieces, rooms, strict=True))
        sent.append(b"".join(pieces))
        assert host.counters().bytes_out == before + len(sent[-1])
        board.receive(sent[-1], 0.0)
        assert board.counters().frames_in == 4
        assert data.startswith(board.receiver.take(1000))
    assert list(map(len, pieces[:5])) == [1, 30, 0, 7, 20]
    assert pieces[-1] == b""
    assert sent[0] == sent[1]


def test_a_frame_that_was_cut_is_forgotten_with_its_byte_stream():
    host, board = pair()
    meet(host, board)
    host.sender.offer(words(1, 7, 1))
    assert len(host.transmit(0.0, 5)) == 5
    host.reconnect(0.0)
    meet(host, board, 0.01)
    assert board.receiver.take(100) == words(1, 7, 1)
    assert board.counters().garbled == 0


def test_only_what_was_lost_is_sent_again():
    host, board = pair()
    meet(host, board)
    host.sender.offer(words(6, 7, 1))
    frames = [host.transmit_frame(0.0) for _ in range(3)]
    assert all(frames)
    board.receive(frames[0] + frames[2], 0.0)
    assert (board.receiver.expected, board.receiver.early) == (1, 1)
    host.receive(board.transmit(0.0, 1000), 0.0)
    assert host.transmit_frame(0.0) == frames[1]
    assert host.counters().repeated == 1
    board.receive(frames[1] + frames[1], 0.0)
    assert board.receiver.take(100) == words(6, 7, 1)
    assert board.counters().dropped == 1


def test_the_last_frame_is_sent_again_when_it_was_no_frame():
    host, board = pair()
    meet(host, board)
    host.sender.offer(bytes(7))
    frame = host.transmit(0.0, 1000)
    board.receive(bytes((frame[0] ^ 1,)) + frame[1:], 0.0)
    host.receive(board.transmit(0.0, 1000), 0.0)
    assert host.transmit(0.0, 1000) == frame
    assert host.transmit(0.0, 1000) == b""

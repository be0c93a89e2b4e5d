# SPDX-License-Identifier: Apache-2.0
import socket

from hypothesis import given
from hypothesis import strategies as st
import pytest

from host.devices.link.transport import DATAGRAM_BYTES, DatagramTransport, Numbering, open_udp


@pytest.fixture
def ends():
    """A transport that answers whoever speaks, and the address of its socket."""
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.bind(("127.0.0.1", 0))
    board = DatagramTransport(link)
    yield board, link.getsockname()
    board.close()


def received(transport, count):
    data = b""
    while len(data) < count:
        part = transport.exchange(b"", 5.0)[1]
        assert part, f"{len(data)} of {count} bytes have come after 5 s"
        data += part
    return data


def test_bytes_pass_in_datagrams_both_ways(ends):
    board, address = ends
    host = open_udp(*address)
    data = bytes(range(256)) * 9
    assert host.exchange(data, 1.0)[0] == len(data)
    assert received(board, len(data)) == data
    assert board.exchange(data, 1.0)[0] == len(data)
    assert received(host, len(data)) == data
    host.close()


def test_a_datagram_holds_no_more_than_a_board_stores():
    board = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    board.bind(("127.0.0.1", 0))
    board.settimeout(5.0)
    with board:
        host = open_udp(*board.getsockname())
        host.exchange(bytes(2 * DATAGRAM_BYTES + 1), 1.0)
        sizes = [len(board.recv(9000)) for _ in range(3)]
        host.close()
    assert sizes == [4 + DATAGRAM_BYTES, 4 + DATAGRAM_BYTES, 5]


def test_nothing_is_sent_before_a_peer_has_spoken(ends):
    board, address = ends
    assert board.exchange(b"abc", 0.01) == (0, b"")
    host = open_udp(*address)
    host.exchange(b"x", 1.0)
    assert received(board, 1) == b"x"
    assert board.exchange(b"abc", 1.0)[0] == 3
    assert received(host, 3) == b"abc"
    host.close()


def test_the_peer_that_spoke_last_is_answered(ends):
    board, address = ends
    hosts = [open_udp(*address) for _ in range(2)]
    for host in (0, 1, 0):
        hosts[host].exchange(b"hello", 1.0)
        assert received(board, 5) == b"hello"
        board.exchange(b"answer", 1.0)
        assert received(hosts[host], 6) == b"answer"
        assert hosts[1 - host].exchange(b"", 0.01) == (0, b"")
    for host in hosts:
        host.close()


def test_nobody_at_the_port_is_an_error():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
    host = open_udp(*address)

    def speak():
        for _ in range(50):  # the system learns of it from the answer to a datagram
            host.exchange(b"hello", 0.1)

    with pytest.raises(ConnectionRefusedError):
        speak()
    host.close()


def test_a_closed_transport_refuses(ends):
    board, _ = ends
    board.close()
    board.close()
    with pytest.raises(OSError, match="closed on this side"):
        board.exchange(b"", 1.0)


@given(st.lists(st.integers(0, 60), max_size=200))
def test_a_datagram_is_taken_only_ahead_of_all_before(order):
    sender, receiver = Numbering(), Numbering()
    datagrams = [sender.pack(bytes((n,))) for n in range(61)]
    taken = [n for n in order if receiver.unpack(datagrams[n])]
    want, last = [], -1
    for n in order:
        if n > last or n == 0:
            want.append(n)
            last = n
    assert taken == want


def test_numbers_begin_again_behind_the_last_one():
    receiver = Numbering()
    numbers = [0xFFFF_FFFE, 0xFFFF_FFFF, 0, 1, 0xFFFF_FFFF, 2]
    taken = [bool(receiver.unpack(n.to_bytes(4, "little") + b"x")) for n in numbers]
    assert taken == [True, True, True, True, False, True]
    sender = Numbering(0xFFFF_FFFF)
    assert [sender.pack(b"")[:4] for _ in range(2)] == [b"\xff\xff\xff\xff", bytes(4)]


@pytest.mark.parametrize("datagram", [b"", b"abc", bytes(4)])
def test_a_datagram_without_bytes_carries_none(datagram):
    assert Numbering().unpack(datagram) == b""


def test_another_peer_begins_with_any_number():
    receiver, sender = Numbering(), Numbering()
    datagrams = [sender.pack(b"x") for _ in range(5)]
    assert receiver.unpack(datagrams[4])
    assert not receiver.unpack(datagrams[3])
    receiver.forget()
    assert receiver.unpack(datagrams[3])

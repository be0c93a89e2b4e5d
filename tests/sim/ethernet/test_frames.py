# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import pytest

from sim.ethernet.frames import (
    Address,
    arp_request,
    checksum,
    datagram_frame,
    on_the_line,
    read_datagram,
    read_line,
)
from sim.ethernet.noise import FrameNoise

ONE = Address(b"\x02\0\0\0\0\x01", bytes((192, 168, 0, 1)), 4660)
TWO = Address(b"\x02\0\0\0\0\x02", bytes((192, 168, 0, 199)), 22136)


def test_the_checksum_is_that_of_a_known_header():
    header = bytes.fromhex("450000730000400040110000c0a80001c0a800c7")
    assert checksum(header) == 0xB861


def test_frames_are_those_of_another_program():
    scapy = pytest.importorskip("scapy.all", reason="needs scapy, which cocotbext-axi brings")
    names = [":".join(f"{byte:02x}" for byte in one.mac) for one in (ONE, TWO)]
    ips = [".".join(str(byte) for byte in one.ip) for one in (ONE, TWO)]
    ether = scapy.Ether(src=names[0], dst=names[1])
    for size in (0, 1, 18, 19, 700):
        data = bytes(range(256)) * 3
        ip = scapy.IP(src=ips[0], dst=ips[1], id=0x1234, flags="DF", ttl=64)
        udp = scapy.UDP(sport=ONE.port, dport=TWO.port)
        want = bytes(ether / ip / udp / scapy.Raw(data[:size]))
        assert datagram_frame(ONE, TWO, data[:size]) == want.ljust(60, b"\0")
    ask = scapy.ARP(op=1, hwsrc=names[0], psrc=ips[0], hwdst="0:0:0:0:0:0", pdst=ips[1])
    want = bytes(scapy.Ether(src=names[0], dst="ff:ff:ff:ff:ff:ff") / ask)
    assert arp_request(ONE, TWO.ip) == want.ljust(60, b"\0")


@given(st.binary(max_size=200), st.booleans())
def test_a_datagram_is_read_as_it_was_written(data, has_checksum):
    frame = datagram_frame(ONE, TWO, data, has_checksum=has_checksum)
    found = read_datagram(read_line(on_the_line(frame)))
    assert (found.source, found.target, found.data) == (ONE, TWO, data)


@given(st.binary(min_size=60, max_size=200), st.data())
def test_a_changed_bit_behind_the_preamble_makes_a_frame_unreadable(content, drawn):
    line = bytearray(on_the_line(content))
    place = drawn.draw(st.integers(8 * 8, 8 * len(line) - 1))
    line[place // 8] ^= 1 << place % 8
    assert read_line(bytes(line)) is None


def test_noise_loses_damages_and_doubles_as_often_as_it_is_told():
    line = on_the_line(bytes(60))
    noise = FrameNoise(0.3, seed=1)
    made = [noise(line) for _ in range(3_000)]
    assert [noise.lost, noise.doubled] == [made.count([]), made.count([line, line])]
    assert noise.damaged == sum(len(one) == 1 and one != [line] for one in made)
    assert all(230 < count < 370 for count in (noise.lost, noise.damaged, noise.doubled))
    assert FrameNoise(0, seed=1)(line) == [line]
    with pytest.raises(ValueError, match="must be 0 to 1, not 2"):
        FrameNoise(2, seed=1)

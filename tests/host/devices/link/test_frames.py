# SPDX-License-Identifier: Apache-2.0
import random
import zlib

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from host.devices.link import Frame, FrameDecoder, Kind, encode_frame
from host.devices.link.frames import MOST_CONTENT, OVERHEAD, stuff, unstuff

CONTENTS = st.one_of(
    st.binary(max_size=MOST_CONTENT),
    st.lists(st.sampled_from([0, 0, 1, 255]), max_size=MOST_CONTENT).map(bytes),
)


def decoder(session):
    made = FrameDecoder()
    made.session = session
    return made


@settings(max_examples=200)
@given(CONTENTS)
def test_stuffing_costs_one_byte_and_leaves_no_zero(content):
    stuffed = stuff(content)
    assert len(stuffed) == len(content) + 1
    assert 0 not in stuffed
    assert unstuff(stuffed) == content


def test_a_frame_is_what_the_document_says():
    content = bytes((Kind.DATA, 7, 0, 5))
    crc = zlib.crc32(content, 0x1234).to_bytes(4, "little")
    assert encode_frame(Frame(Kind.DATA, 7, b"\0\5"), 0x1234) == stuff(content + crc) + b"\0"
    assert len(encode_frame(Frame(Kind.DATA, 7, b"\0\5"), 0x1234)) == 2 + OVERHEAD


@pytest.mark.parametrize("session", [0, 1, 0xFFFFFFFF])
@pytest.mark.parametrize("count", [0, 1, MOST_CONTENT - 6])
def test_a_frame_comes_back_in_any_portions(session, count):
    frame = Frame(Kind.DATA, 255, bytes(random.Random(count).randbytes(count)))
    data = encode_frame(frame, session) * 3
    for portion in (1, 7, len(data)):
        found = decoder(session)
        frames = []
        for at in range(0, len(data), portion):
            frames += found.feed(data[at : at + portion])
        assert frames == [frame] * 3
        assert found.garbled == 0


def test_a_payload_that_is_too_long_is_refused():
    with pytest.raises(ValueError, match="at most 247 bytes, not 248"):
        encode_frame(Frame(Kind.DATA, 0, bytes(248)), 1)


def test_a_frame_of_another_session_is_no_frame():
    other = decoder(5)
    assert other.feed(encode_frame(Frame(Kind.DATA, 0, b"x"), 6)) == [None]
    assert other.garbled == 1
    hello = Frame(Kind.HELLO, 1, b"x")
    assert other.feed(encode_frame(hello, 6)) == [hello]


@settings(max_examples=150)
@given(st.binary(max_size=600), st.integers(0, 2**32 - 1))
def test_the_decoder_finds_a_frame_behind_any_garbage(garbage, session):
    frame = Frame(Kind.DATA, 3, b"\0words\0")
    frames = decoder(session).feed(garbage + b"\0" + encode_frame(frame, session))
    assert frames[-1] == frame
    assert not any(frames[:-1])


def test_a_changed_byte_makes_no_frame():
    data = encode_frame(Frame(Kind.DATA, 9, bytes(range(40))), 77)
    for at in range(len(data)):
        for flip in range(8):
            changed = bytearray(data)
            changed[at] ^= 1 << flip
            assert not any(decoder(77).feed(bytes(changed) + b"\0"))
    for at in range(len(data) - 1):
        assert not any(decoder(77).feed(data[:at] + data[at + 1 :] + b"\0"))
        assert not any(decoder(77).feed(data[:at] + data[at : at + 1] + data[at:]))


def test_what_never_ends_takes_no_memory():
    endless = decoder(1)
    for _ in range(100):
        endless.feed(b"\1" * 1000)
        assert endless.waiting < 2000
    assert endless.feed(b"\0") == [None]
    assert endless.waiting == 0

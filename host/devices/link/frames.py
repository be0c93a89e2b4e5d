# SPDX-License-Identifier: Apache-2.0
"""Frames of the link, and what a board says about itself when a session begins."""

from dataclasses import dataclass
from enum import IntEnum
import struct
from typing import NamedTuple
import zlib

__all__ = [
    "Frame",
    "FrameDecoder",
    "Greeting",
    "Hello",
    "Kind",
    "MOST_CONTENT",
    "OVERHEAD",
    "VERSION",
    "encode_frame",
    "stuff",
    "unstuff",
]

# Frames of the link: their kinds, their CRC, and their place between zeros of the byte stream.
#
# A frame is a kind, a sequence number, a payload and a CRC-32. Consistent-overhead byte stuffing
# removes every zero from it, at the cost of one byte, so that a zero can end it (`docs/link.md`).

#: Bytes of a frame besides its payload: code, kind, sequence number, CRC-32, and the final zero.
OVERHEAD = 8
#: Bytes of the longest frame before stuffing. A longer one could need a second byte of stuffing.
MOST_CONTENT = 253
#: Bytes of a frame without payload before stuffing.
LEAST_CONTENT = 6
CRC_BYTES = 4


class Kind(IntEnum):
    """Kind of a frame, its first byte."""

    #: Host to board: begin or resume a session. The sequence number is the version of the link.
    HELLO = 1
    #: Board to host: the session that the board is in, and what the board is.
    WELCOME = 2
    #: Words.
    DATA = 3
    #: The sequence number expected next, how far the other side may send, and what came early.
    ACK = 4
    #: As ACK; besides, something has come that was no frame.
    NAK = 5
    #: Host to board: read a register.
    READ = 6
    #: Host to board: write a register.
    WRITE = 7
    #: Board to host: answer to READ or WRITE of the same sequence number.
    ANSWER = 8


#: Kinds whose CRC does not depend on the session.
_GREETINGS = (Kind.HELLO, Kind.WELCOME)
_KINDS = frozenset(Kind)


class Frame(NamedTuple):
    """Frame of a link, without stuffing and CRC."""

    kind: Kind
    sequence: int
    payload: bytes = b""


def stuff(content: bytes) -> bytes:
    """Return ``content`` without zeros: each byte of stuffing says where the next zero stood.

    Parameters
    ----------
    content : bytes
        At most :data:`MOST_CONTENT` bytes.
    """
    return b"".join(bytes((len(part) + 1,)) + part for part in content.split(b"\0"))


def unstuff(chunk: bytes) -> bytes | None:
    """Return what was stuffed into ``chunk``, which has no zeros; None if nothing was."""
    parts, at = [], 0
    while at < len(chunk):
        end = at + chunk[at]
        if end > len(chunk):
            return None
        parts.append(chunk[at + 1 : end])
        at = end
    return b"\0".join(parts)


def encode_frame(frame: Frame, session: int) -> bytes:
    """Return the bytes that a frame takes in the byte stream, with the zero that ends it.

    Parameters
    ----------
    frame : Frame
        With a payload of at most ``MOST_CONTENT - 6`` bytes.
    session : int
        Number of the session, of 32 bits. The CRC of all but the greetings depends on it.
    """
    content = bytes((frame.kind, frame.sequence & 0xFF)) + frame.payload
    if len(content) > MOST_CONTENT - CRC_BYTES:
        raise ValueError(
            f"Payload of a frame must have at most {MOST_CONTENT - LEAST_CONTENT} bytes, "
            f"not {len(frame.payload)}"
        )
    seed = 0 if frame.kind in _GREETINGS else session
    return stuff(content + zlib.crc32(content, seed).to_bytes(CRC_BYTES, "little")) + b"\0"


class FrameDecoder:
    """Finds frames in a byte stream, whatever else is in it.

    Attributes
    ----------
    session : int
        Number of the session that frames must belong to.
    garbled : int
        Number of pieces between two zeros, so far, that were no frame of this session.
    """

    def __init__(self) -> None:
        self.session = 0
        self.garbled = 0
        self._rest = bytearray()

    @property
    def waiting(self) -> int:
        """Number of bytes that wait for the end of their frame."""
        return len(self._rest)

    def feed(self, data: bytes) -> list[Frame | None]:
        """Return what ends within ``data``, in order; None for what was no frame.

        Whatever follows the last zero is kept for the next call, as far as a frame could need it.
        """
        *chunks, rest = data.split(b"\0")
        frames: list[Frame | None] = []
        for chunk in chunks:
            if self._rest:
                chunk, self._rest = bytes(self._rest) + chunk, bytearray()
            if chunk:
                frame = self._decoded(chunk)
                self.garbled += frame is None
                frames.append(frame)
        self._rest += rest
        del self._rest[MOST_CONTENT + 2 :]  # long enough to be known as too long
        return frames

    def _decoded(self, chunk: bytes) -> Frame | None:
        content = unstuff(chunk) if len(chunk) <= MOST_CONTENT + 1 else None
        if content is None or len(content) < LEAST_CONTENT or content[0] not in _KINDS:
            return None
        kind = Kind(content[0])
        seed = 0 if kind in _GREETINGS else self.session
        body = content[:-CRC_BYTES]
        if zlib.crc32(body, seed) != int.from_bytes(content[-CRC_BYTES:], "little"):
            return None
        return Frame(kind, content[1], body[2:])


# What a board says about itself when a session begins.

#: Version of the link. Both sides must have the same one.
VERSION = 2

_WELCOME = struct.Struct("<IBBBBB32s")
_HELLO = struct.Struct("<IB")


@dataclass(frozen=True)
class Hello:
    """Payload of HELLO.

    Attributes
    ----------
    session : int
        Number of the session, of 32 bits, not zero.
    begin : bool
        Whether the board must begin this session if it is in another one. If not, the board only
        says which session it is in.
    """

    session: int
    begin: bool

    def pack(self) -> bytes:
        """Return the payload."""
        return _HELLO.pack(self.session, self.begin)

    @classmethod
    def unpack(cls, payload: bytes) -> "Hello | None":
        """Read a payload; return None if it has another length."""
        if len(payload) != _HELLO.size:
            return None
        session, begin = _HELLO.unpack(payload)
        return cls(session, bool(begin & 1))


@dataclass(frozen=True)
class Greeting:
    """Payload of WELCOME: a session, and what the board is.

    Attributes
    ----------
    input_bytes, result_bytes : int
        Bytes of an input word and of a result word.
    payload_bytes : int
        Most bytes of words in a frame, in both directions.
    receive_slots, send_slots : int
        Frames that the board can store, and frames that it sends without an acknowledgement.
    hash : bytes
        The 32 bytes of the manifest's hash.
    session : int
        Number of the session that the board is in.
    version : int
        Version of the link. It is the sequence number of the frame.
    """

    input_bytes: int
    result_bytes: int
    payload_bytes: int
    receive_slots: int
    send_slots: int
    hash: bytes
    session: int = 0
    version: int = VERSION

    def pack(self) -> bytes:
        """Return the payload."""
        sizes = (self.input_bytes, self.result_bytes, self.payload_bytes)
        return _WELCOME.pack(self.session, *sizes, self.receive_slots, self.send_slots, self.hash)

    @classmethod
    def unpack(cls, version: int, payload: bytes) -> "Greeting | None":
        """Read a payload; return None if it has another length."""
        if len(payload) != _WELCOME.size:
            return None
        session, input_bytes, result_bytes, most, receive, send, digest = _WELCOME.unpack(payload)
        return cls(input_bytes, result_bytes, most, receive, send, digest, session, version)

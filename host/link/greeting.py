# SPDX-License-Identifier: Apache-2.0
"""What a board says about itself when a session begins."""

from dataclasses import dataclass
import struct

__all__ = ["VERSION", "Greeting", "Hello"]

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

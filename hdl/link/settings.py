# SPDX-License-Identifier: Apache-2.0
"""Constants of the link, and what can be chosen of its board's end."""

from dataclasses import dataclass

from amaranth.lib import enum

__all__ = [
    "LEAST",
    "LEAST_CONTENT",
    "MOST_CONTENT",
    "NOISY_STEP",
    "SLOT_BYTES",
    "STEP",
    "VERSION",
    "Kind",
    "LinkSettings",
]

#: Version of the link.
VERSION = 2
#: Bytes of the longest frame and of a frame without payload, before stuffing.
MOST_CONTENT, LEAST_CONTENT = 253, 6
#: Bytes of memory that stand for one frame.
SLOT_BYTES = 256
#: Bytes of words in the first frame of a session, and in the shortest frames on a noisy line.
LEAST = 16
#: Bytes by which frames become longer with each frame that is acknowledged: while no frame was lost
#: yet, and afterwards.
STEP, NOISY_STEP = 16, 4
#: Bytes of a manifest's hash.
HASH_BYTES = 32


class Kind(enum.Enum, shape=8):
    """Kind of a frame, its first byte."""

    #: Host to board: begin or resume a session.
    HELLO = 1
    #: Board to host: the session that the board is in, and what the board is.
    WELCOME = 2
    #: Words.
    DATA = 3
    #: The frame expected next, the first frame without room, and the frames that came early.
    ACK = 4
    #: As ACK; besides, something has come that was no frame.
    NAK = 5
    #: Host to board: read a register.
    READ = 6
    #: Host to board: write a register.
    WRITE = 7
    #: Board to host: answer to a register request.
    ANSWER = 8


@dataclass(frozen=True, kw_only=True)
class LinkSettings:
    """What can be chosen of the board's end of a link.

    Parameters
    ----------
    input_bits, result_bits : int
        Bits of an input word and of a result word.
    hash : bytes
        The 32 bytes of the manifest's hash.
    payload_bytes : int
        Most bytes of words in a frame.
    receive_slots, send_slots : int
        Frames that there is room for, and frames that are sent without an acknowledgement; powers
        of two from 2 to 32. Each takes 256 bytes of memory.
    timeout_cycles : int
        Cycles without progress after which frames are sent again. It must be more than the window
        takes on the line.
    heartbeat_cycles : int
        Cycles without an acknowledgement after which one is sent.
    """

    input_bits: int
    result_bits: int
    hash: bytes
    payload_bytes: int = 240
    receive_slots: int = 8
    send_slots: int = 8
    timeout_cycles: int = 1 << 20
    heartbeat_cycles: int = 1 << 19

    def __post_init__(self):
        most = MOST_CONTENT - LEAST_CONTENT
        least = max(self.input_bytes, self.result_bytes)
        if least < 1:
            raise ValueError("A word of a link must have at least one bit")
        if not least <= self.payload_bytes <= most:
            raise ValueError(
                f"Payload of a frame must be {least} bytes, which a word takes, to {most} bytes, "
                f"not {self.payload_bytes}"
            )
        for name in ("receive_slots", "send_slots"):
            count = getattr(self, name)
            if not 2 <= count <= 32 or count & (count - 1):
                raise ValueError(f"Parameter {name!r} must be a power of two, 2 to 32, not {count}")
        for name in ("timeout_cycles", "heartbeat_cycles"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"Parameter {name!r} must be at least one cycle, not {getattr(self, name)}"
                )
        if len(self.hash) != HASH_BYTES:
            raise ValueError(
                f"Hash of a manifest must have {HASH_BYTES} bytes, not {len(self.hash)}"
            )

    @property
    def input_bytes(self):
        """Return the number of bytes of an input word."""
        return -(-self.input_bits // 8)

    @property
    def result_bytes(self):
        """Return the number of bytes of a result word."""
        return -(-self.result_bits // 8)

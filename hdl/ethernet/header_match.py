# SPDX-License-Identifier: Apache-2.0
"""Tells whether the header of a frame is the one that is wanted."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .frames import LEAST_BYTES, ReceivedFrame

__all__ = ["HeaderMatch", "bytes_at"]


def bytes_at(first, values):
    """Return what :class:`HeaderMatch` expects if ``values`` stand from byte ``first`` on."""
    return dict(enumerate(values, first))


class HeaderMatch(wiring.Component):
    """Compare bytes of a frame with what they should be.

    Latency: 2 cycles from a byte to ``matches``. Throughput: 1 byte per cycle.

    Parameters
    ----------
    expected : dict of int to (int or tuple of int)
        Values by the place of the byte, which every frame has; or value and mask of the bits that
        are compared.

    Members
    -------
    frame : In(ReceivedFrame())
    matches : Out(1)
        All bytes of the frame so far are as expected.
    """

    latency = 2

    def __init__(self, expected):
        if not expected or max(expected) >= LEAST_BYTES:
            raise ValueError(
                f"Places of expected bytes must be below {LEAST_BYTES}, which every frame has, not "
                f"{sorted(expected)}"
            )
        self.expected = dict(expected)
        super().__init__({"frame": In(ReceivedFrame()), "matches": Out(1)})

    def elaborate(self, platform):
        m = Module()
        frame = self.frame
        byte, value, mask = Signal(8), Signal(8), Signal(8)
        strobe, first = Signal(), Signal()
        m.d.sync += [
            byte.eq(frame.byte), value.eq(0), mask.eq(0),
            strobe.eq(frame.strobe), first.eq(frame.index == 0),
        ]  # fmt: skip
        with m.Switch(frame.index):
            for place, wanted in self.expected.items():
                chosen = wanted if isinstance(wanted, tuple) else (wanted, 0xFF)
                with m.Case(place):
                    m.d.sync += [value.eq(chosen[0]), mask.eq(chosen[1])]
        with m.If(strobe):
            m.d.sync += self.matches.eq((first | self.matches) & (((byte ^ value) & mask) == 0))
        return m

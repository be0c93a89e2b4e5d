# SPDX-License-Identifier: Apache-2.0
"""Keeps fields of the header of a frame."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .frames import ReceivedFrame

__all__ = ["FieldCapture"]


class FieldCapture(wiring.Component):
    """Keep fields of a frame until the same fields of the next frame come.

    Latency: 2 cycles from the last byte of a field to the field. Throughput: 1 byte per cycle.

    Parameters
    ----------
    fields : dict of str to tuple of int
        Place of the first byte, and number of bytes, by name.

    Members
    -------
    frame : In(ReceivedFrame())
    NAME : Out(8 * bytes)
        A field; its first byte has the highest bits, as numbers have in a network.
    """

    latency = 2

    def __init__(self, fields):
        self.fields = dict(fields)
        members = {name: Out(8 * size) for name, (_, size) in self.fields.items()}
        super().__init__({"frame": In(ReceivedFrame()), **members})

    def elaborate(self, platform):
        m = Module()
        frame = self.frame
        byte = Signal(8)
        m.d.sync += byte.eq(frame.byte)
        for name, (first, size) in self.fields.items():
            field, now = getattr(self, name), Signal(name=f"{name}_now")
            inside = (frame.index >= first) & (frame.index < first + size)
            m.d.sync += now.eq(frame.strobe & inside)
            with m.If(now):
                m.d.sync += field.eq(Cat(byte, field))
        return m

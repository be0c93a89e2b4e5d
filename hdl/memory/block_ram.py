# SPDX-License-Identifier: Apache-2.0
"""The block RAM primitive of an ECP5, with its output registers in use."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.streams.delay import delayed

__all__ = ["BlockRAM", "LateBlockRAM", "fits", "widest_word"]

#: Data widths of an 18-kbit block RAM, and the number of low address bits that each leaves unused.
WIDTHS = {36: 5, 18: 4, 9: 3, 4: 2, 2: 1, 1: 0}
ADDRESS_BITS = 14


def fits(depth):
    """Return whether one block RAM, at its narrowest, has at least ``depth`` rows."""
    return depth <= 1 << ADDRESS_BITS


def widest_word(depth):
    """Return the width of the widest word of which one block RAM holds ``depth``.

    It is 1 if one block RAM does not even hold ``depth`` bits.
    """
    return next(
        (width for width, unused in WIDTHS.items() if depth << unused <= 1 << ADDRESS_BITS), 1
    )


class BlockRAM(wiring.Component):
    """One ``DP16KD``: port A writes, port B reads through the output register.

    A 36-bit row takes the data pins of both ports: the low half is on port A, the high half on port
    B. There is no simulation model of the primitive here. :class:`hdl.memory.key_column.KeyColumn`
    defines its behaviour.

    Latency: 2 cycles from ``address`` to ``data``, 1 cycle from writing a row to reading it.
    Throughput: 1 row read and 1 row written per cycle.

    Parameters
    ----------
    depth : int
        Number of rows, for which :func:`fits` is true. The width follows from it.

    Members
    -------
    write : In(1)
        Write ``row`` at ``place``.
    place : In(range(depth))
    row : In(widest_word(depth))
    address : In(range(depth))
        Row to read.
    data : Out(widest_word(depth))
    """

    def __init__(self, *, depth):
        self.width = widest_word(depth)
        self.latency = 2
        super().__init__(
            {
                "write": In(1),
                "place": In(range(depth)),
                "row": In(self.width),
                "address": In(range(depth)),
                "data": Out(self.width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        unused = Const(0, WIDTHS[self.width])
        both = self.width == 36  # a row takes the data pins of both ports
        half = 18
        # From 18 bits on, the low address bits of port A are byte enables.
        enables = Const(0, 0) if self.width < half else self.write.replicate(4 if both else 2)
        place = Cat(Cat(enables, unused)[: len(unused)], self.place, Const(0, ADDRESS_BITS))
        address = Cat(unused, self.address, Const(0, ADDRESS_BITS))
        row = Cat(self.row, Const(0, 2 * half))
        out_a, out_b = Signal(half), Signal(half)
        m.d.comb += self.data.eq(Cat(out_a, out_b) if both else out_b)
        ports = {
            "CLKA": ClockSignal(), "CEA": 1, "OCEA": 1, "RSTA": 0,
            "WEA": 1 if both else self.write,
            "CLKB": ClockSignal(), "CEB": 1, "OCEB": 1, "RSTB": 0, "WEB": 0,
        }  # fmt: skip
        for port, pins in (("A", place), ("B", address)):
            ports |= {f"AD{port}{n}": pins[n] for n in range(ADDRESS_BITS)}
            ports |= {f"CS{port}{n}": 0 for n in range(3)}
        for port, offset in (("A", 0), ("B", half)) if both else (("A", 0),):
            ports |= {f"DI{port}{n}": row[offset + n] for n in range(half)}
        settings = {
            "DATA_WIDTH_A": self.width, "DATA_WIDTH_B": self.width,
            "REGMODE_A": "OUTREG", "REGMODE_B": "OUTREG",
            "RESETMODE": "SYNC", "ASYNC_RESET_RELEASE": "SYNC", "GSR": "AUTO",
            "CSDECODE_A": "0b000", "CSDECODE_B": "0b000", "CLKAMUX": "CLKA", "CLKBMUX": "CLKB",
            "WRITEMODE_A": "NORMAL", "WRITEMODE_B": "NORMAL",
        }  # fmt: skip
        m.submodules.ram = Instance(
            "DP16KD",
            **{f"p_{name}": value for name, value in settings.items()},
            **{f"i_{name}": value for name, value in ports.items()},
            **{f"o_DOA{n}": out_a[n] for n in range(half)},
            **{f"o_DOB{n}": out_b[n] for n in range(half)},
        )
        return m


class LateBlockRAM(wiring.Component):
    """A :class:`BlockRAM` with a register in front of its write port.

    A large memory consists of many block RAMs all over the device. If one set of registers drove
    the write ports of all of them, its wires would be the slowest of the accelerator. So a row
    travels to registers beside the block RAM in one cycle, and is written in the next.

    Latency: 2 cycles from ``address`` to ``data``, 2 cycles from writing a row to reading it.
    Throughput: 1 row read and 1 row written per cycle.

    Parameters
    ----------
    depth : int
        Number of rows, as of the :class:`BlockRAM`.
    width : int
        Number of low bits of a row that are used. The other bits are written as zeros.

    Members
    -------
    Those of a :class:`BlockRAM`.
    """

    def __init__(self, *, depth, width):
        self._block = BlockRAM(depth=depth)
        self._used = width
        self.width = self._block.width
        self.latency = self._block.latency
        super().__init__(self._block.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.block = block = self._block
        arriving = {"write": self.write, "place": self.place, "row": self.row[: self._used]}
        for name, near in delayed(m, arriving, "near", flags=("write",)).items():
            m.d.comb += getattr(block, name).eq(near)
        m.d.comb += [block.address.eq(self.address), self.data.eq(block.data)]
        return m

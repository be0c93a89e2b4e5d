# SPDX-License-Identifier: Apache-2.0
"""Columns of memory: block RAMs, deep ones, with parity, and for keys."""

import math

from amaranth import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from hdl.ecp5 import is_ecp5
from hdl.streams.registers import delayed
from hdl.verilog.conversion import ZEROED

__all__ = [
    "PART_BITS",
    "BlockRAM",
    "ColumnBank",
    "DeepColumn",
    "KeyColumn",
    "LateBlockRAM",
    "ParityColumn",
    "fits",
    "parity_of",
    "parity_width",
    "stored_column",
    "widest_word",
]


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


def column_ports(width, depth):
    """Return the members of a memory of ``depth`` rows that has a port to write and one to read."""
    return {
        "write": In(1),
        "place": In(range(depth)),
        "row": In(width),
        "address": In(range(depth)),
        "data": Out(width),
    }


class BlockRAM(wiring.Component):
    """One ``DP16KD``: port A writes, port B reads through the output register.

    A 36-bit row takes the data pins of both ports: the low half is on port A, the high half on port
    B. There is no simulation model of the primitive here. :class:`hdl.memory.columns.KeyColumn`
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
        super().__init__(column_ports(self.width, depth))

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


class KeyColumn(wiring.Component):
    """A memory that is read through its output register, and can be written in every cycle.

    A row that is read in the cycle in which it is written may show any value.

    On an ECP5, a memory whose rows :func:`fit <hdl.memory.columns.fits>` into a block RAM is
    built of block RAM primitives with their output registers in use. Synthesis does not infer these
    output registers, and they are worth a quarter of the clock frequency. Any other memory is
    inferred, with a register behind it. Both variants behave the same.

    Latency: :attr:`LATENCY` cycles from ``address`` to ``data``, 1 cycle from writing a row to
    reading it (2 if ``late``). Throughput: 1 row read and 1 row written per cycle.

    Parameters
    ----------
    width, depth : int
        Bits of a row; number of rows, a power of two.
    late : bool
        Rows are written a cycle late, from registers beside each block RAM. This is for memories of
        so many block RAMs that they are far from each other.
    zeroed : bool
        Rows are zero before they are written; otherwise they may be anything.

    Members
    -------
    write : In(1)
        Write ``row`` at ``place``.
    place : In(range(depth))
    row : In(width)
    address : In(range(depth))
        Row to read.
    data : Out(width)
    """

    LATENCY = 2

    def __init__(self, *, width, depth, late=False, zeroed=False):
        self.width = width
        self.depth = depth
        self.late = late
        self.zeroed = zeroed
        self.latency = self.LATENCY
        super().__init__(column_ports(width, depth))

    def elaborate(self, platform):
        m = Module()
        if is_ecp5(platform) and fits(self.depth):
            word = widest_word(self.depth)
            for n, first in enumerate(range(0, self.width, word)):
                bits = slice(first, min(first + word, self.width))
                if self.late:
                    block = LateBlockRAM(depth=self.depth, width=bits.stop - bits.start)
                else:
                    block = BlockRAM(depth=self.depth)
                m.submodules[f"block_{n}"] = block
                m.d.comb += [
                    block.write.eq(self.write),
                    block.place.eq(self.place),
                    block.row.eq(self.row[bits]),
                    block.address.eq(self.address),
                    self.data[bits].eq(block.data),
                ]
            return m
        rows = memory.Memory(shape=unsigned(self.width), depth=self.depth, init=[])
        m.submodules[ZEROED if self.zeroed else "memory"] = rows
        write, read = rows.write_port(), rows.read_port()
        written = {"write": self.write, "place": self.place, "row": self.row}
        if self.late:
            written = delayed(m, written, "near", flags=("write",))
        m.d.comb += [
            write.en.eq(written["write"]),
            write.addr.eq(written["place"]),
            write.data.eq(written["row"]),
            read.addr.eq(self.address),
        ]
        output = Signal(self.width, reset_less=True)
        m.d.sync += output.eq(read.data)
        m.d.comb += self.data.eq(output)
        return m


class ColumnBank(wiring.Component):
    """A :class:`KeyColumn` of one row of block RAMs, with registers of its own at its pins.

    It is a component because synthesis would merge equal registers of several banks.

    Latency: 3 cycles from ``address`` to ``data``. Throughput: 1 row read and 1 row written per
    cycle.

    Parameters
    ----------
    width, depth : int
        Bits of a row; number of rows, a power of two.

    Members
    -------
    write, place, row, address, data
        Those of the ``KeyColumn``.
    """

    def __init__(self, *, width, depth):
        self._column = KeyColumn(width=width, depth=depth, late=True)
        self.latency = 1 + self._column.latency
        super().__init__(self._column.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.column = column = self._column
        m.d.comb += [
            column.write.eq(self.write),
            column.place.eq(self.place),
            column.row.eq(self.row),
            self.data.eq(column.data),
        ]
        near = Signal.like(self.address, reset_less=True)
        m.d.sync += near.eq(self.address)
        m.d.comb += column.address.eq(near)
        return m


class DeepColumn(wiring.Component):
    """A memory of any depth, read through several registers.

    On an ECP5 it consists of banks as deep as a block RAM at its narrowest. Each has registers of
    its own in front, and two levels of multiplexers choose among them, each followed by a register.
    Elsewhere it is one memory, with as many registers. Both variants behave the same.

    A row that is read in the cycle in which it is written may show any value.

    Latency: :attr:`LATENCY` cycles from ``address`` to ``data``. Throughput: 1 row read and 1 row
    written per cycle.

    Parameters
    ----------
    width, depth : int
        Bits of a row; number of rows, a power of two.

    Members
    -------
    write : In(1)
        Write ``row`` at ``place``.
    place : In(range(depth))
    row : In(width)
    address : In(range(depth))
        Row to read.
    data : Out(width)
    """

    LATENCY = 5

    def __init__(self, *, width, depth):
        self.width = width
        self.depth = depth
        self.latency = self.LATENCY
        super().__init__(column_ports(width, depth))

    def elaborate(self, platform):
        m = Module()
        bank_depth = min(self.depth, 1 << ADDRESS_BITS) if is_ecp5(platform) else self.depth
        inside = (bank_depth - 1).bit_length()
        banks = []
        for n in range(self.depth // bank_depth):
            bank = ColumnBank(width=self.width, depth=bank_depth)
            m.submodules[f"bank_{n}"] = bank
            m.d.comb += [
                bank.write.eq(self.write & (self.place[inside:] == n)),
                bank.place.eq(self.place[:inside]),
                bank.row.eq(self.row),
                bank.address.eq(self.address[:inside]),
            ]
            banks.append(bank.data)
        number = {"number": self.address[inside:]}
        for cycle in range(self.LATENCY - 2):
            number = delayed(m, number, f"bank_{cycle}", flags=())
        self.elaborate_choice(m, banks, number["number"])
        return m

    def elaborate_choice(self, m, banks, number):
        """Choose the data of bank ``number`` in two registered steps."""
        arity = 1 << math.ceil((len(banks) - 1).bit_length() / 2)
        low = (arity - 1).bit_length()
        groups = []
        for n in range(0, len(banks), arity):
            group = Signal(self.width, name=f"group_{n // arity}", reset_less=True)
            m.d.sync += group.eq(Array(banks[n : n + arity])[number[:low]] if low else banks[n])
            groups.append(group)
        high = Signal(max(1, len(number) - low), reset_less=True)
        output = Signal(self.width, reset_less=True)
        m.d.sync += [high.eq(number[low:]), output.eq(Array(groups)[high])]
        m.d.comb += self.data.eq(output)


#: Most bits that share a parity bit: those of a block RAM's widest word without its four parity
#: bits.
PART_BITS = 32


def parity_width(width, part=PART_BITS):
    """Return the number of parity bits of a row of ``width`` bits in parts of ``part`` bits."""
    return -(-width // min(part, PART_BITS))


def parity_of(row, part=PART_BITS):
    """Return the parity bits of a row, one for each part of ``part`` bits.

    A part and its parity bit hold an even number of ones, so a memory of zeros is right.
    """
    part = min(part, PART_BITS)
    return Cat(row[first : first + part].xor() for first in range(0, len(row), part))


def stored_column(parameters, *, width, depth, late=False):
    """Return a memory of stored tuples: with parity if the accelerator has it.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    width, depth, late
        Those of a :class:`hdl.memory.columns.KeyColumn`.
    """
    kind = ParityColumn if parameters.engine.parity else KeyColumn
    return kind(width=width, depth=depth, late=late)


class ParityColumn(wiring.Component):
    """A :class:`hdl.memory.columns.KeyColumn` that checks the parity of the rows that are read.

    Every part of a row has a parity bit beside it. An odd number of bits that have flipped in a
    part and its parity bit is noticed; an even number is not. A read counts if it is ``checked``
    and the row is not written in the cycle in which it is read, as such a read may show anything.
    The memory begins with zeros, whose parity is right: a row that was never written counts, too.

    Latency: that of the memory to ``data``, and 1 cycle more to ``wrong``. Throughput: 1 row read
    and 1 row written per cycle.

    Parameters
    ----------
    width, depth : int
        Bits of a row without parity; number of rows, a power of two.
    late : bool
        As of the ``KeyColumn``.
    part : int
        Bits of a part; at most :data:`PART_BITS` share a parity bit.

    Members
    -------
    write, place, row, address, data
        Those of the ``KeyColumn``.
    checked : In(1)
        The row at ``address`` counts.
    wrong : Out(1)
        A row that counted has a part with a wrong parity; from a register, :attr:`told_after`
        cycles after its ``address``.
    """

    def __init__(self, *, width, depth, late=False, part=PART_BITS):
        self.width = width
        self.depth = depth
        self.late = late
        self.part = part
        self.latency = KeyColumn.LATENCY
        self.told_after = self.latency + 1
        super().__init__({**column_ports(width, depth), "checked": In(1), "wrong": Out(1)})

    def column(self, width):
        """Return the memory of rows and parity bits."""
        return KeyColumn(width=width, depth=self.depth, late=self.late, zeroed=True)

    def elaborate(self, platform):
        m = Module()
        bits = parity_width(self.width, self.part)
        m.submodules.rows = rows = self.column(self.width + bits)
        m.d.comb += [
            rows.write.eq(self.write),
            rows.place.eq(self.place),
            rows.row.eq(Cat(self.row, parity_of(self.row, self.part))),
            rows.address.eq(self.address),
            self.data.eq(rows.data[: self.width]),
        ]
        written = {"write": self.write, "place": self.place}
        if self.late:
            written = delayed(m, written, "near", flags=("write",))
        counts = self.checked & ~(written["write"] & (written["place"] == self.address))
        for cycle in range(self.latency):
            counts = delayed(m, {"counts": counts}, f"read_{cycle}", flags=("counts",))["counts"]
        agrees = parity_of(rows.data[: self.width], self.part) == rows.data[self.width :]
        m.d.sync += self.wrong.eq(counts & ~agrees)
        return m

# SPDX-License-Identifier: Apache-2.0
"""Memories of Yosys (cells ``$mem_v2``): their ports as registers and variables."""

from itertools import groupby

from .netlist import ALWAYS, Clause, Condition, Expression, Register, Target, UnknownNetlist

__all__ = ["number", "read_port", "write_port"]

#: Parameters with a bit for each port or pair of ports that must not be set: ports that are wider
#: than the memory, transparent ones, writes that come before others, falling edges, resets.
UNKNOWN = ("RD_WIDE_CONTINUATION", "RD_TRANSPARENCY_MASK", "WR_WIDE_CONTINUATION",
           "WR_PRIORITY_MASK")  # fmt: skip


def number(cell, name):
    """Return the value of a parameter."""
    return int(cell["parameters"][name], 2)


def check(cell, ports):
    """Raise :exc:`UnknownNetlist` if a memory is not of the kind that is known here."""
    unknown = [name for name in UNKNOWN if "1" in cell["parameters"].get(name, "")]
    if set(cell["parameters"]["INIT"]) != {"x"}:
        unknown.append("INIT")
    for kind in ("RD_ARST", "RD_SRST"):
        unknown += [kind] if ports[kind].value != 0 else []
    if unknown:
        raise UnknownNetlist(f"a memory with {', '.join(unknown)}")


def one_of(cell, ports, kind, place):
    """Return enable, address and data of port number ``place``; ``kind`` is "RD" or "WR"."""
    width, bits = number(cell, "WIDTH"), number(cell, "ABITS")
    enables = width if kind == "WR" else 1
    return (
        ports[f"{kind}_EN"].part(place * enables, enables),
        ports[f"{kind}_ADDR"].part(place * bits, bits),
        ports[f"{kind}_DATA"].part(place * width, width) if kind == "WR" else None,
    )


def clock(cell, ports, kind, place):
    """Return the clock of a port; None if it has none."""
    if cell["parameters"][f"{kind}_CLK_ENABLE"][-1 - place] == "0":
        return None
    if cell["parameters"][f"{kind}_CLK_POLARITY"][-1 - place] == "0":
        raise UnknownNetlist("a falling edge")
    return ports[f"{kind}_CLK"].part(place, 1)


def when(enable):
    """Return the condition that one bit is high; None if it never is."""
    if enable.value is None:
        return Condition(((enable, True),))
    return ALWAYS if enable.value else None


def read_port(cell, ports, place, memory, name):
    """Return the register ``name``, or the expression, that reads a memory.

    Parameters
    ----------
    cell : dict
        As Yosys writes it.
    ports : dict of str to Bits
        Its connections.
    place : int
        Number of the port.
    memory, name : str
        What is read, and what becomes of it.
    """
    check(cell, ports)
    enable, address, _ = one_of(cell, ports, "RD", place)
    row = Expression("row", (address,), memory=memory)
    edge = clock(cell, ports, "RD", place)
    if edge is None:
        return row
    condition = when(enable)
    if condition is None:
        raise UnknownNetlist("a memory that is never read")
    return Register(edge, [Clause(condition, Target(name), row)])


def write_port(cell, ports, place, memory):
    """Return a register for each part of the rows with an enable of its own."""
    check(cell, ports)
    enables, address, data = one_of(cell, ports, "WR", place)
    edge = clock(cell, ports, "WR", place)
    if edge is None:
        raise UnknownNetlist("a memory that is written without a clock")
    found = []
    for enable, bits in groupby(range(data.width), lambda bit: enables.part(bit, 1)):
        low, *others = bits
        width, condition = 1 + len(others), when(enable)
        if condition is not None:
            value = Expression("bits", (data.part(low, width),))
            target = Target(memory, address, low, width)
            found.append(Register(edge, [Clause(condition, target, value)]))
    return found

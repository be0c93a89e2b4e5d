# SPDX-License-Identifier: Apache-2.0
"""Memories of Yosys (cells ``$mem_v2``): their ports as registers and variables."""

from itertools import groupby

from .netlist import (
    ALWAYS,
    Clause,
    Condition,
    Expression,
    Register,
    Target,
    UnknownNetlist,
)

__all__ = ["ports_of", "shape_of"]

#: Parameters that must be zero: rows that begin elsewhere, ports that are wider than the memory,
#: transparent ones, and an order of writes.
UNKNOWN = (
    "OFFSET", "RD_WIDE_CONTINUATION", "RD_TRANSPARENCY_MASK", "WR_WIDE_CONTINUATION",
    "WR_PRIORITY_MASK",
)  # fmt: skip


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
    """Return the register ``name``, or the expression, that a port reads a memory into."""
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


def shape_of(cell):
    """Return how many rows a memory has, and the bits of a row."""
    return number(cell, "SIZE"), number(cell, "WIDTH")


def ports_of(cell, ports, memory, rows):
    """Return what the ports of a memory are.

    Parameters
    ----------
    cell : dict
        As Yosys writes it.
    ports : dict of str to Bits
        Its connections.
    memory : str
        Its name.
    rows : list of str
        Names of what its ports read.

    Returns
    -------
    variables : dict of str to Expression
        Rows that are read at any time.
    registers : list of Register
        Rows that are read at an edge, and writes.

    Raises
    ------
    UnknownNetlist
        If the memory is of a kind that is not known here.
    """
    check(cell, ports)
    variables, registers = {}, []
    for place, name in enumerate(rows):
        port = read_port(cell, ports, place, memory, name)
        if isinstance(port, Register):
            registers.append(port)
        else:
            variables[name] = port
    for place in range(number(cell, "WR_PORTS")):
        registers += write_port(cell, ports, place, memory)
    return variables, registers

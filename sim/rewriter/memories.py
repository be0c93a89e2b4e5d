# SPDX-License-Identifier: Apache-2.0
"""Translate memories of Yosys (cells ``$mem_v2``) into registers and variables."""

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

__all__ = ["initial_of", "ports_of", "shape_of"]

#: Parameters that must be zero. They stand for a first row other than zero, ports wider than the
#: memory, transparent read ports, and priorities between write ports.
UNKNOWN = (
    "OFFSET", "RD_WIDE_CONTINUATION", "RD_TRANSPARENCY_MASK", "WR_WIDE_CONTINUATION",
    "WR_PRIORITY_MASK",
)  # fmt: skip


def number(cell, name):
    """Return the value of a parameter."""
    return int(cell["parameters"][name], 2)


def check(cell, ports):
    """Raise :exc:`UnknownNetlist` if a memory uses a feature that the rewriter does not know."""
    unknown = [name for name in UNKNOWN if "1" in cell["parameters"].get(name, "")]
    if cell["parameters"]["INIT"] != "0" and set(cell["parameters"]["INIT"]) != {"x"}:
        unknown.append("INIT")
    for kind in ("RD_ARST", "RD_SRST"):
        unknown += [kind] if ports[kind].value != 0 else []
    if unknown:
        raise UnknownNetlist(f"a memory with {', '.join(unknown)}")


def one_of(cell, ports, kind, place):
    """Return enable, address and write data of port number ``place``; ``kind`` is "RD" or "WR"."""
    width, bits = number(cell, "WIDTH"), number(cell, "ABITS")
    enables = width if kind == "WR" else 1
    return (
        ports[f"{kind}_EN"].part(place * enables, enables),
        ports[f"{kind}_ADDR"].part(place * bits, bits),
        ports[f"{kind}_DATA"].part(place * width, width) if kind == "WR" else None,
    )


def clock(cell, ports, kind, place):
    """Return the clock of a port; None if the port has no clock."""
    if cell["parameters"][f"{kind}_CLK_ENABLE"][-1 - place] == "0":
        return None
    if cell["parameters"][f"{kind}_CLK_POLARITY"][-1 - place] == "0":
        raise UnknownNetlist("a falling edge")
    return ports[f"{kind}_CLK"].part(place, 1)


def when(enable):
    """Return the condition that a bit is high; None if the bit is constantly low."""
    if enable.value is None:
        return Condition(((enable, True),))
    return ALWAYS if enable.value else None


def read_port(cell, ports, place, memory, name):
    """Return a read port: the register ``name`` if it has a clock, otherwise an expression."""
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
    """Return a write port as registers: one for each part of the row that has its own enable."""
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


def initial_of(cell):
    """Return what every row of a memory holds after power-up: zero, or None for anything."""
    return 0 if cell["parameters"]["INIT"] == "0" else None


def shape_of(cell):
    """Return the number of rows of a memory, and the width of a row in bits."""
    return number(cell, "SIZE"), number(cell, "WIDTH")


def ports_of(cell, ports, memory, rows):
    """Return the ports of a memory as variables and registers.

    Parameters
    ----------
    cell : dict
        The cell as Yosys writes it.
    ports : dict of str to Bits
        Bits that its ports connect.
    memory : str
        Name of the memory.
    rows : list of str
        Names of the signals that the read ports drive.

    Returns
    -------
    variables : dict of str to Expression
        Read ports without a clock.
    registers : list of Register
        Read ports with a clock, and write ports.

    Raises
    ------
    UnknownNetlist
        If the memory uses a feature that the rewriter does not know.
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

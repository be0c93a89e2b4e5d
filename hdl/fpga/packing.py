# SPDX-License-Identifier: Apache-2.0
"""How many LUT sites of an ECP5 the cells of a netlist take when nextpnr packs them.

Yosys counts cells, nextpnr counts sites. They differ where a cell takes several sites, and where
nextpnr adds cells of its own: a carry has no wire to or from the fabric, so nextpnr leads it
through a further carry cell where a chain begins with a signal or a constant, and where a carry
leaves its chain.
"""

from collections import Counter, defaultdict

__all__ = ["CARRY", "CARRY_SITES", "CONSTANT_SITES", "RAM_SITES", "carry_feeds"]

CARRY = "CCU2C"
#: LUT sites of a carry cell, and of one that nextpnr adds.
CARRY_SITES = 2
#: LUT sites of a distributed RAM: four hold its words, and two give their inputs to its write port.
RAM_SITES = 6
#: LUT sites that hold the constants zero and one, once in a design.
CONSTANT_SITES = 2

#: A pin that is left open, in Yosys' JSON.
OPEN = "x"


def pin(cell, port):
    """Return the bit at a port of one bit, or :data:`OPEN`."""
    bits = cell["connections"].get(port) or [OPEN]
    return bits[0]


def carry_feeds(cells):
    """Count the carry cells that nextpnr adds, by the cell to which each is added.

    Parameters
    ----------
    cells : dict
        Cells of a flat netlist of the ECP5, as in Yosys' JSON: the one that nextpnr reads.

    Returns
    -------
    Counter
        Name of a carry cell to 1 or 2. One cell is added if the carry input is connected, if only
        to a constant, and no other carry cell drives it. One is added if the carry output is
        connected and does not lead to the input of exactly one carry cell and nowhere else. An
        output without any reader counts as connected, because nextpnr does not look for readers at
        the end of a chain.
    """
    chains = {name: cell for name, cell in cells.items() if cell["type"] == CARRY}
    carries = {pin(cell, "COUT") for cell in chains.values()} - {OPEN}
    readers = defaultdict(list)
    for cell in cells.values():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input":
                for bit in carries.intersection(bits):
                    readers[bit].append((cell["type"], port))
    feeds = Counter()
    for name, cell in chains.items():
        if pin(cell, "CIN") not in carries | {OPEN}:
            feeds[name] += 1
        if (carry := pin(cell, "COUT")) != OPEN and readers[carry] != [(CARRY, "CIN")]:
            feeds[name] += 1
    return feeds

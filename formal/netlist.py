# SPDX-License-Identifier: Apache-2.0
"""And-inverter graphs as Yosys writes them (AIGER 1.9, https://fmv.jku.at/aiger)."""

from dataclasses import dataclass
import re

__all__ = ["Netlist", "read_aiger"]


@dataclass(frozen=True)
class Netlist:
    """A circuit of AND gates, inverters and registers.

    A literal is twice the number of a node, plus one if it is inverted. Node 0 is the constant
    zero.

    Attributes
    ----------
    inputs : dict of str to int
        Literals of the inputs, by their names, which include the number of the bit.
    registers : list of (int, int, int or None)
        Output, input and initial value; None if any state is possible at first.
    outputs : dict of str to int
    gates : list of (int, int, int)
        Output and both inputs, ordered so that every gate follows those that it depends on.
    """

    inputs: dict
    registers: list
    outputs: dict
    gates: list


def read_aiger(text):
    """Return the :class:`Netlist` that an ASCII AIGER file describes."""
    lines = text.splitlines()
    header = [int(number) for number in lines[0].split()[1:]]
    _, inputs, registers, outputs, gates = header[:5]
    if any(header[5:]):
        raise ValueError("An AIGER file of a bench has inputs, registers, outputs and gates only")
    rows = [[int(number) for number in line.split()] for line in lines[1 : 1 + sum(header[1:5])]]
    names = dict(re.findall(r"^([io]\d+) (.*)$", "\n".join(lines[1 + len(rows) :]), re.MULTILINE))
    first = inputs + registers
    return Netlist(
        inputs={names.get(f"i{n}", f"i{n}"): rows[n][0] for n in range(inputs)},
        registers=[initial(row) for row in rows[inputs:first]],
        outputs={names[f"o{n}"]: rows[first + n][0] for n in range(outputs)},
        gates=sorted(tuple(row) for row in rows[first + outputs :][:gates]),
    )


def initial(row):
    """Return a register as in :class:`Netlist`.

    AIGER denotes an unknown initial value by the register's own output.
    """
    output, following, *value = row
    begins = value[0] if value else 0
    return output, following, None if begins == output else begins

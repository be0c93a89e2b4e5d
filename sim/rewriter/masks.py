# SPDX-License-Identifier: Apache-2.0
"""Compute masks of the lowest bits as a whole, instead of bit by bit.

A circuit makes a mask of the ``w`` lowest bits with one comparison per bit: bit n is ``n < w``. A
processor needs a shift for the whole mask, and none to put its bits together.
"""

from dataclasses import replace

from .bits import Bits, Run
from .netlist import Expression, Signal, unused

__all__ = ["shift_masks"]

#: Bits from which a mask is worth a shift.
LEAST = 4


def shift_masks(logic):
    """Replace the bits of masks, wherever four or more of them stand side by side.

    Parameters
    ----------
    logic : Logic
        Logic of a module, which is changed.
    """
    places = {}
    for name, value in logic.variables.items():
        place = place_of(value)
        if place is not None and logic.signals[name].width == 1:
            places[name] = place
    if places:
        Masks(logic, places).replace()


def place_of(value):
    """Return the number of a mask's bit and the mask's width, as bits; None for anything else."""
    if value.kind not in ("$lt", "$gt") or value.signed:
        return None
    number, width = value.operands if value.kind == "$lt" else reversed(value.operands)
    return None if number.value is None or width.value is not None else (number.value, width)


class Masks:
    """The masks of a module, one for each width that bits are compared with.

    Parameters
    ----------
    logic : Logic
    places : dict of str to (int, Bits)
        Number and width of each variable that is a bit of a mask.
    """

    def __init__(self, logic, places):
        self.logic, self.places = logic, places
        self.names = {}
        self.sizes = {}  # bits of each mask
        for number, width in places.values():
            self.sizes[width] = max(self.sizes.get(width, 0), number + 1)

    def replace(self):
        """Replace the bits in all expressions of the module."""
        logic = self.logic
        for name, value in list(logic.variables.items()):  # masks are added meanwhile
            logic.variables[name] = self.masked(value)
        for register in logic.registers:
            register.clauses = [
                replace(clause, value=self.masked(clause.value)) for clause in register.clauses
            ]

    def masked(self, value):
        """Return an expression that reads masks as a whole."""
        operands = tuple(map(self.joined, value.operands))
        return value if operands == value.operands else replace(value, operands=operands)

    def joined(self, bits):
        """Return bits with each sequence of a mask's bits as one run."""
        if len(bits.runs) < LEAST:
            return bits
        found, sequence = [], []
        for run in bits.runs:
            if sequence and not self.follows(sequence[-1], run):
                found += self.whole(sequence)
                sequence = []
            sequence.append(run)
        return Bits.of([*found, *self.whole(sequence)])

    def follows(self, below, run):
        """Return whether two runs are neighbouring bits of a mask."""
        if below.name not in self.places or run.name not in self.places:
            return False
        number, width = self.places[below.name]
        return self.places[run.name] == (number + 1, width)

    def whole(self, runs):
        """Return the runs of a sequence of a mask's bits as one run if they are worth it."""
        if len(runs) < LEAST:
            return runs
        number, width = self.places[runs[0].name]
        return [Run(self.mask(width), number, len(runs))]

    def mask(self, width):
        """Return the variable that is the mask of a width, which is declared when first used."""
        if width not in self.names:
            above, mask = self.new("above", width), self.new("mask", width)
            ones = Bits.constant((1 << self.sizes[width]) - 1, self.sizes[width])
            self.logic.variables[above] = Expression("$shl", (ones, width))
            whole = Bits.whole(above, self.sizes[width])
            self.logic.variables[mask] = Expression("$not", (whole,))
            self.names[width] = mask
        return self.names[width]

    def new(self, name, width):
        """Declare a variable for a mask."""
        found = unused(name, self.logic.signals)
        self.logic.signals[found] = Signal(self.sizes[width])
        return found

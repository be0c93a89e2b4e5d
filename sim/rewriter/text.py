# SPDX-License-Identifier: Apache-2.0
"""Print bits, expressions and conditions as Verilog."""

from itertools import groupby

from .cells import OPERATORS

__all__ = ["Printer", "size"]


def size(width):
    """Return the bit range for the declaration of a signal; empty if it has a single bit."""
    return f"[{width - 1}:0] " if width > 1 else ""


class Printer:
    """Printer of bits, expressions and conditions of one module.

    Parameters
    ----------
    signals : dict of str to Signal
    """

    def __init__(self, signals):
        self.signals = signals

    def run(self, run):
        """Return the text of a run of bits."""
        if run.name is None:
            return f"{run.width}'h{run.low:x}"
        if run.width == self.signals[run.name].width:
            return run.name
        if run.width == 1:
            return f"{run.name}[{run.low}]"
        return f"{run.name}[{run.low + run.width - 1}:{run.low}]"

    def bits(self, bits):
        """Return the text of bits: a run, or a concatenation with a count for repeated runs."""
        if len(bits.runs) == 1:
            return self.run(bits.runs[0])
        parts = []
        for run, same in groupby(reversed(bits.runs)):
            count = len(list(same))
            parts.append(f"{{{count}{{{self.run(run)}}}}}" if count > 1 else self.run(run))
        return f"{{ {', '.join(parts)} }}"

    def condition(self, condition):
        """Return the text of a condition."""
        tests = [f"{'' if high else '!'}{self.bits(bits)}" for bits, high in condition.tests]
        return " && ".join(tests) or "1'h1"

    def expression(self, value):
        """Return the text of an expression for the right side of an assignment.

        Verilog takes the width of the computation from the signal on the left side. Yosys takes it
        from the output of the cell, which is the same signal.
        """
        operands = [self.bits(bits) for bits in value.operands]
        if value.kind == "bits":
            return operands[0]
        if value.kind == "row":
            return f"{value.memory}[{operands[0]}]"
        if value.kind == "choice":
            text, *pairs = operands
            for bit, chosen in zip(pairs[::2], pairs[1::2], strict=True):
                text = f"({bit} ? {chosen} : {text})"
            return text
        if value.signed:
            shift = "<<" in OPERATORS[value.kind] or ">>" in OPERATORS[value.kind]
            operands[:1] = [f"$signed({operands[0]})"]
            operands[1:] = [text if shift else f"$signed({text})" for text in operands[1:]]
        operator = OPERATORS[value.kind]
        return f"{operator} {operands[0]}" if len(operands) == 1 else f" {operator} ".join(operands)

    def target(self, target):
        """Return the text of a target for the left side of an assignment."""
        if not target.width:
            return target.name
        row = f"{target.name}[{self.bits(target.address)}]"
        if target.width == self.signals[target.name].width:
            return row
        return f"{row}[{target.low + target.width - 1}:{target.low}]"

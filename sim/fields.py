# SPDX-License-Identifier: Apache-2.0
"""Wide signals of a netlist, cut where their fields are.

What is wider than a machine word costs several words to copy, and shifts to put together and take
apart. Most of such signals are structures that are only passed on: through registers, multiplexers
and concatenations. They become as many variables as they have fields, so nothing of that is left.
"""

from itertools import pairwise
import re

from .netlist import REFERENCE, Register, Signal, unused

__all__ = ["cut_fields"]

#: Bits of a machine word.
WORD = 64
CONSTANT = re.compile(r"(\d+)'[hdb]\w+")
CHOICE = re.compile(r"(\S+) \? (.+) : (.+)")


class Expression:
    """Bits that are only passed on: runs of them, or a choice between two expressions.

    Parameters
    ----------
    text : str
        The whole expression.
    signals : dict
        All signals by name.
    """

    def __init__(self, text, signals):
        self.signals = signals
        self.condition = None
        match = CHOICE.fullmatch(text)
        if match and all(runs_of(part, signals) is not None for part in match.groups()[1:]):
            self.condition = match[1]
            self.branches = [runs_of(part, signals) for part in match.groups()[1:]]
        else:
            runs = runs_of(text, signals)
            self.branches = [] if runs is None else [runs]

    def part(self, high, low):
        """Return the text of some bits."""
        texts = [text_of(runs, high, low, self.signals) for runs in self.branches]
        return f"{self.condition} ? {texts[0]} : {texts[1]}" if self.condition else texts[0]


def operands(text):
    """Return what stands between the commas of a concatenation without its braces."""
    found, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += {"{": 1, "}": -1, "(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            found.append(text[start:place].strip())
            start = place + 1
    return [*found, text[start:].strip()]


def runs_of(text, signals):
    """Return runs of bits, the highest first, as name, high and low; None if it is a computation.

    The name of constant bits is None; they come as the value, and as high and low bit of it.
    """
    if text.startswith("{") and text.endswith("}"):
        found = []
        for operand in operands(text[1:-1]):
            runs = runs_of(operand, signals)
            if runs is None:
                return None
            found += runs
        return found
    if match := CONSTANT.fullmatch(text):
        return [(text, int(match[1]) - 1, 0)]
    match = REFERENCE.fullmatch(text)
    if not match or match[1] not in signals or signals[match[1]].rows:
        return None
    high = signals[match[1]].width - 1 if match[2] is None else int(match[2])
    low = 0 if match[2] is None else int(match[3] or match[2])
    return [(match[1], high, low)]


def text_of(runs, high, low, signals):
    """Return some bits of a list of runs as text."""
    parts, top = [], sum(first - last + 1 for _, first, last in runs) - 1
    for name, first, last in runs:
        bottom = top - (first - last)
        upper, lower = min(high, top), max(low, bottom)
        if upper >= lower:
            first, last = last + upper - bottom, last + lower - bottom
            whole = name in signals and signals[name].width == first - last + 1
            parts.append(name if whole else bits_of(name, first, last))
        top = bottom - 1
    return parts[0] if len(parts) == 1 else f"{{ {', '.join(parts)} }}"


def bits_of(name, high, low):
    """Return some bits of a signal or constant as text."""
    if not CONSTANT.fullmatch(name):
        return f"{name}[{high}:{low}]"
    base, digits = re.fullmatch(r"\d+'([hdb])(\w+)", name).groups()
    size = high - low + 1
    if "x" in digits:
        return f"{size}'hx"
    value = int(digits, {"h": 16, "d": 10, "b": 2}[base]) >> low & (1 << size) - 1
    return f"{size}'h{value:x}"


def cut_fields(signals, logic, registers, uses):
    """Cut wide variables and registers into their fields.

    Parameters
    ----------
    signals : dict
        All signals by name; gets those of the fields.
    logic : dict of str to str
        Expressions of variables; changed.
    registers : list of Register
        Changed.
    uses : list of str
        Other expressions in which variables are read.

    Returns
    -------
    dict of str to list
        Fields of what was cut, the highest first: high and low bit and name.
    """

    def wide(name):
        signal = signals.get(name)
        return signal and signal.width > WORD and not signal.direction and not signal.rows

    drivers = {name: [Expression(text, signals)] for name, text in logic.items() if wide(name)}
    for register in registers:
        target = register.clauses[0][1]
        if wide(target):
            drivers[target] = [Expression(value, signals) for _, _, value in register.clauses]
    drivers = {
        name: found for name, found in drivers.items() if all(item.branches for item in found)
    }
    cuts = {name: {0, signals[name].width} for name in drivers}
    texts = [*uses, *logic.values(), *(value for r in registers for c in r.clauses for value in c)]
    for text in texts:
        for match in REFERENCE.finditer(text or ""):
            if match[1] in cuts and match[2]:
                cuts[match[1]] |= {int(match[2]) + 1, int(match[3] or match[2])}
    links = links_of(drivers, cuts)
    spread(cuts, links)
    join(cuts, links)

    pieces = {}
    for name in drivers:
        edges = sorted(cuts[name], reverse=True)
        initial = signals[name].initial
        pieces[name] = []
        for above, low in pairwise(edges):
            field = unused(f"{name}_{above - 1}_{low}", signals)
            value = initial and bits_of(initial, above - 1, low)
            signals[field] = Signal(above - low, initial=value)
            pieces[name].append((above - 1, low, field))
    for name in [name for name in logic if name in drivers]:
        del logic[name]
        for high, low, field in pieces[name]:
            logic[field] = drivers[name][0].part(high, low)
    cut = [register for register in registers if register.clauses[0][1] in drivers]
    for register in cut:
        registers.remove(register)
        name = register.clauses[0][1]
        for high, low, field in pieces[name]:
            clauses = [
                (condition, field, item.part(high, low))
                for (condition, _, _), item in zip(register.clauses, drivers[name], strict=True)
            ]
            registers.append(Register(register.clock, clauses))
    return pieces


def links_of(drivers, cuts):
    """Return which bits of wide signals are the same: two names, and low bits and size."""
    links = []
    for name, expressions in drivers.items():
        for expression in expressions:
            for runs in expression.branches:
                low = 0
                for source, first, last in reversed(runs):
                    cuts[name] |= {low, low + first - last + 1} if len(runs) > 1 else set()
                    if source in cuts:
                        links.append((name, low, source, last, first - last + 1))
                    low += first - last + 1
    return links


def spread(cuts, links):
    """Cut what is passed on wherever what it comes from, or what it becomes, is cut."""
    changed = True
    while changed:
        changed = False
        for one, low, other, last, size in links:
            here = {bit - low for bit in cuts[one] if low <= bit <= low + size}
            there = {bit - last for bit in cuts[other] if last <= bit <= last + size}
            if here != there:
                cuts[one] |= {bit + low for bit in there}
                cuts[other] |= {bit + last for bit in here}
                changed = True


def join(cuts, links):
    """Take back cuts wherever what they separate fits in a machine word together."""
    parents = {}

    def root(cut):
        while parents.setdefault(cut, cut) != cut:
            cut = parents[cut]
        return cut

    for one, low, other, last, size in links:
        for bit in cuts[one]:
            if low <= bit <= low + size:
                parents[root((one, bit))] = root((other, bit - low + last))
    classes = {}
    for name, bits in cuts.items():
        for bit in sorted(bits):
            classes.setdefault(root((name, bit)), []).append((name, bit))
    for members in classes.values():
        if all(joinable(cuts[name], bit) for name, bit in members):
            for name, bit in members:
                cuts[name].discard(bit)


def joinable(bits, bit):
    """Is a cut one between two fields that fit in a machine word together?"""
    below = max((other for other in bits if other < bit), default=None)
    above = min((other for other in bits if other > bit), default=None)
    return below is not None and above is not None and above - below <= WORD

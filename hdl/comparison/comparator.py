# SPDX-License-Identifier: Apache-2.0
"""Comparators of keys: whole ones, digests and cells."""

from functools import cache, reduce
from operator import and_, xor

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.ecp5 import is_ecp5
from hdl.predicates.own import own_predicate
from hdl.words.cells import double_cells_layout
from hdl.words.prepared import comparison_groups, criterion_layout, stored_layout

from .carry_chain import ONE, CarryChain, CarryEquality, elaborate_luts

__all__ = [
    "PART_BITS",
    "CellComparator",
    "Comparator",
    "criterion_signature",
    "divisor",
    "packed",
    "split_key",
]


#: Bits that an equality compares as one part in its first cycle: two levels of logic.
PART_BITS = 16


def packed(group, values, *, guard):
    """Return the fields of a comparison group in a row, each with a guard bit above it."""
    return Cat(Cat(values[field.name], Const(guard, 1)) for field in group)


def criterion_signature(parameters):
    """Return a signature with one member for each part of a probe's criterion.

    The simulator would have to cut a single wide signal into its parts in every cycle.
    """
    return wiring.Signature(
        {name: Out(field.shape) for name, field in criterion_layout(parameters)}
    )


class Comparator(wiring.Component):
    """Compare a prepared probe with a stored key, and say whether they match.

    A band compares all fields of a group (:func:`hdl.words.prepared.comparison_groups`) with each
    bound by one subtraction. In ``key - low``, the key has a guard bit of one above every field,
    and ``low`` a guard bit of zero. A guard bit of the difference stays one unless its field
    borrowed, that is, while ``low <= key``. The same holds for ``high - key``. This takes two
    thirds of the cells, and of the simulator's instructions, that comparing field by field takes.

    An equality is compared in parts of :data:`PART_BITS` bits.

    On an ECP5 both use carry chains. The comparators of a scan use
    :class:`hdl.comparison.carry_chain.CarryChain`. The equality of an index, with one comparator
    per region, uses :class:`hdl.comparison.carry_chain.CarryEquality`.

    Latency: 1 cycle; the register is between comparing the parts of a key and combining the
    outcomes. A predicate of one's own says how many cycles it takes. Throughput: 1 comparison per
    cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    probe_side : int
        Side of the probes, 0 for R and 1 for S; matters to a custom predicate only.

    Members
    -------
    criterion : In(criterion_signature(parameters))
    key : In
    match : Out(1)
    """

    def __init__(self, parameters, *, probe_side):
        self.parameters = parameters
        self.probe_side = probe_side
        self._own = own_predicate(parameters) if parameters.comparator == "custom" else None
        self.latency = 1
        if self._own is not None:
            self._own.check(parameters)
            self.latency = self._own.latency
        super().__init__(
            {
                "criterion": In(criterion_signature(parameters)),
                "key": In(stored_layout(parameters)),
                "match": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        if self.parameters.comparator == "band":
            self.elaborate_band(m, platform)
        elif self.parameters.comparator == "equality":
            self.elaborate_equality(m, platform)
        else:
            r, s = self.criterion, self.key
            if self.probe_side:
                r, s = s, r
            m.d.comb += self.match.eq(self._own.match(m, r, s))
        return m

    def elaborate_band(self, m, platform):
        """Compare all fields of a group at once."""
        matches = []
        for n, group in enumerate(comparison_groups(self.parameters)):
            low, high = (getattr(self.criterion, f"{bound}_{n}") for bound in ("low", "high"))
            if self.has_chains(platform):
                matches += self.elaborate_chains(m, n, group, low, high)
                continue
            above = Signal(len(low), name=f"above_{n}")
            below = Signal(len(high), name=f"below_{n}")
            within = Signal(name=f"within_{n}", reset_less=True)
            m.d.comb += [
                above.eq(packed(group, self.key, guard=1) - low),
                below.eq(high - packed(group, self.key, guard=0)),
            ]
            guards = (above[n] & below[n] for n in guard_offsets(group))
            m.d.sync += within.eq(reduce(and_, guards))
            matches.append(within)
        m.d.comb += self.match.eq(Cat(matches).all())

    def elaborate_chains(self, m, n, group, low, high):
        """Compare the fields of a group with both bounds in carry chains; return the outcomes.

        Each outcome has a register of its own, directly at the end of its chain. With logic between
        the chain and the register, ABC would misjudge the chain and remove it.
        """
        widths = [field.bits for field in group]
        key = Cat(self.key[field.name].as_unsigned() for field in group)
        low, high = (
            Cat(
                bound[guard - width : guard]
                for width, guard in zip(widths, guard_offsets(group), strict=True)
            )
            for bound in (low, high)
        )
        outcomes = []
        for name, a, b in (("above", key, low), ("below", high, key)):
            chain = CarryChain(widths, relation="at_least")
            m.submodules[f"{name}_{n}_chain"] = chain
            outcome = Signal(len(widths), name=f"{name}_{n}", reset_less=True)
            m.d.comb += [chain.a.eq(a), chain.b.eq(b)]
            m.d.sync += outcome.eq(chain.holds)
            outcomes.append(outcome)
        return outcomes

    def elaborate_equality(self, m, platform):
        """Compare the whole key in a carry chain if there is one, otherwise part by part."""
        criterion = Cat(getattr(self.criterion, key.name) for key in self.parameters.keys)
        key = Value.cast(self.key)
        if is_ecp5(platform):
            equal = Signal(reset_less=True)
            if self.has_chains(platform):
                m.submodules.equality = equality = CarryChain([len(key)], relation="equal")
                m.d.sync += equal.eq(equality.holds)
            else:
                m.submodules.equality = equality = CarryEquality(len(key))
                m.d.sync += equal.eq(equality.equal)
            m.d.comb += [equality.a.eq(criterion), equality.b.eq(key), self.match.eq(equal)]
            return
        matches = []
        for first in range(0, len(key), PART_BITS):
            part = Signal(name=f"part_{first}", reset_less=True)
            bits = slice(first, first + PART_BITS)
            m.d.sync += part.eq(criterion[bits] == key[bits])
            matches.append(part)
        m.d.comb += self.match.eq(Cat(matches).all())

    def has_chains(self, platform):
        """Return whether the comparator uses :class:`CarryChain`: in a scan, on an ECP5."""
        return is_ecp5(platform) and self.parameters.engine == "scan"


def guard_offsets(group):
    """Return the offsets of the guard bits of a comparison group."""
    offsets, bits = [], 0
    for field in group:
        bits += field.bits + 1
        offsets.append(bits - 1)
    return offsets


def remainder(value, by):
    """Return the remainder of a polynomial division over the field of two elements.

    Bit n of a number is the coefficient of x^n.
    """
    while value.bit_length() >= by.bit_length():
        value ^= by << value.bit_length() - by.bit_length()
    return value


@cache
def divisor(degree):
    """Return the least irreducible polynomial of this degree that x does not divide.

    Parameters
    ----------
    degree : int
        At least one. The run time doubles with every second degree; it is 0.1 s for degree 24.
    """
    return next(
        candidate
        for candidate in range(1 << degree | 1, 2 << degree, 2)
        if all(remainder(candidate, by) for by in range(2, 2 << degree // 2))
    )


def split_key(key, bits):
    """Return the digest of a key and the rest of the key. The two together determine the key.

    The digest is the remainder of the key divided by :func:`divisor`, as in a cyclic redundancy
    check. Keys that differ only within ``bits`` neighbouring bits have different digests, so
    consecutive numbers do not collide. The rest is the key without its lowest ``bits``.

    Parameters
    ----------
    key : Value
        Wider than ``bits``.
    bits : int
        Width of the digest.

    Returns
    -------
    tuple of Value
        Digest and rest.
    """
    rest = key[bits:]
    shares = [remainder(1 << bits + n, divisor(bits)) for n in range(len(rest))]
    digest = Cat(
        reduce(xor, (rest[n] for n, share in enumerate(shares) if share >> bit & 1), key[bit])
        for bit in range(bits)
    )
    return digest, rest


#: Table of a LUT that passes the carry on if C is the one of A and B that D chooses: A for 0.
CHOSEN = sum(1 << n for n in range(16) if (n >> 1 if n & 8 else n) & 1 == n >> 2 & 1)


class CellComparator(wiring.Component):
    """Compare the cells of a stored key with those of a probe, and say whether the key may match.

    A range that is no wider than a cell meets the cell in which it begins, and perhaps the next
    one. These two are one double cell of the even or of the odd grid
    (:func:`hdl.words.cells.double_cells_layout`). The probe brings the grid and the number of the
    double cell, so one comparison for equality tells whether the key lies in either cell.

    On an ECP5 the comparator is a carry chain with one LUT per compared bit, one that starts the
    carry, and one that brings it out. The LUT of a bit also chooses the grid.

    Latency: 1 cycle. Throughput: 1 comparison per cycle.

    Parameters
    ----------
    widths : list of int
        Bits of a cell number in each part of the digest, at least two each.

    Members
    -------
    criterion : In(wiring.Signature({"digest": Out(sum(widths))}))
        From the lowest bit up: for each part the grid, 1 for the odd one; then the numbers of the
        double cells, one below the other.
    key : In(double_cells_layout(widths))
    match : Out(1)
        The key lies, in all parts, in the double cell of the probe.
    """

    def __init__(self, widths):
        if not widths or min(widths) < 2:
            raise ValueError(
                f"Each part of a band digest must have at least 2 bits, not {widths!r}"
            )
        self.widths = list(widths)
        self.latency = 1
        digest = wiring.Signature({"digest": Out(sum(widths))})
        super().__init__(
            {"criterion": In(digest), "key": In(double_cells_layout(widths)), "match": Out(1)}
        )

    def elaborate(self, platform):
        m = Module()
        digest, parts = self.criterion.digest, len(self.widths)
        # The grid of each compared bit.
        grids = Cat(digest[n].replicate(width - 1) for n, width in enumerate(self.widths))
        double = digest[parts:]
        even, odd = self.key.even, self.key.odd
        match = Signal(reset_less=True)
        m.d.comb += self.match.eq(match)
        if is_ecp5(platform):
            holds = Signal()
            elaborate_luts(m, chain(even, odd, double, grids, holds))
            m.d.sync += match.eq(holds)
        else:
            chosen = Signal.like(even)
            m.d.comb += chosen.eq(even ^ ((even ^ odd) & grids))
            m.d.sync += match.eq(chosen == double)
        return m


def chain(even, odd, double, grids, holds):
    """Return the LUTs of the carry chain, as :func:`elaborate_luts` takes them."""
    ones = Const(-1, 4)
    bits = zip(even, odd, double, grids, strict=True)
    return [
        (ONE, "NO", ones, None),
        *((CHOSEN, "YES", inputs, None) for inputs in bits),
        (0, "NO", ones, holds),  # the sum is zero plus the carry
    ]

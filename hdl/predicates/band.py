# SPDX-License-Identifier: Apache-2.0
"""A band: the difference of two keys lies within bounds that are set at run time."""

from dataclasses import dataclass
from functools import reduce
from operator import and_

from amaranth import *
from amaranth.lib import data

from hdl.ecp5 import CarryChain

from .rule import MOST_DIGEST_BITS, Rule

__all__ = ["Band", "comparison_groups", "field_ranges", "packed", "unsigned_key"]


#: Most bits of a packed comparison: one word of the processor that runs the simulation.
PACKED_BITS = 64


def comparison_groups(parameters):
    """Return groups of key fields that a band comparator subtracts together from each bound.

    Every field is followed by a guard bit, which receives its borrow. A group has as many fields as
    :data:`PACKED_BITS` allows, and at least one.
    """
    groups, bits = [], PACKED_BITS + 1
    for key in parameters.keys:
        if bits + key.bits + 1 > PACKED_BITS:
            groups.append([])
            bits = 0
        groups[-1].append(key)
        bits += key.bits + 1
    return groups


def field_ranges(parameters, criterion):
    """Return the lowest and the highest stored value that a probe of a band matches, by field."""
    ranges = {}
    for n, group in enumerate(comparison_groups(parameters)):
        offset = 0
        for field in group:
            bits = slice(offset, offset + field.bits)
            ranges[field.name] = (criterion[f"low_{n}"][bits], criterion[f"high_{n}"][bits])
            offset += field.bits + 1
    return ranges


def packed(group, values, *, guard):
    """Return the fields of a comparison group in a row, each with a guard bit above it."""
    return Cat(Cat(values[field.name], Const(guard, 1)) for field in group)


def guard_offsets(group):
    """Return the offsets of the guard bits of a comparison group."""
    offsets, bits = [], 0
    for field in group:
        bits += field.bits + 1
        offsets.append(bits - 1)
    return offsets


def unsigned_key(field, key):
    """Return ``key`` without its sign: the least value of the field becomes zero."""
    sign = 1 << field.bits - 1 if field.signed else 0
    return (Value.cast(key) ^ sign)[: field.bits]


@dataclass(frozen=True, kw_only=True)
class Band(Rule):
    """``low <= r - s <= high`` for every key field.

    Regions store fields without their signs: the sign bit of a signed field is inverted, which
    keeps the order. Comparing unsigned numbers is cheaper to simulate and costs no more hardware.
    The criterion of a probe is the inclusive ranges of the keys that match, from ``low_n`` to
    ``high_n`` for every group of fields (:func:`comparison_groups`). There is a guard bit above
    each field, 0 in every ``low_n`` and 1 in every ``high_n``.

    All fields of a group are compared with each bound by one subtraction. In ``key - low``, the key
    has a guard bit of one above every field. A guard bit of the difference stays one unless its
    field borrowed, that is, while ``low <= key``. The same holds for ``high - key``. This takes two
    thirds of the cells, and of the simulator's instructions, that comparing field by field takes.
    """

    kind = "band"
    fixed = {"comparator": "band"}

    def digest_range(self, parameters):
        """Return least and greatest width of a digest, and the reason for the two."""
        most = MOST_DIGEST_BITS
        return 2 * len(parameters.keys), most, f"at least 2 for each key field and at most {most}"

    def bounded(self, parameters):
        return parameters.keys

    def stored_layout(self, parameters):
        return data.StructLayout({key.name: unsigned(key.bits) for key in parameters.keys})

    def criterion_layout(self, parameters):
        members = {}
        for n, group in enumerate(comparison_groups(parameters)):
            width = sum(key.bits + 1 for key in group)
            members[f"low_{n}"] = members[f"high_{n}"] = unsigned(width)
        return data.StructLayout(members)

    def stored(self, parameters, key):
        return {field.name: unsigned_key(field, key[field.name]) for field in parameters.keys}

    def compare(self, m, platform, comparator):
        matches = []
        for n, group in enumerate(comparison_groups(comparator.parameters)):
            low, high = (getattr(comparator.criterion, f"{bound}_{n}") for bound in ("low", "high"))
            if comparator.has_chains(platform):
                matches += self.elaborate_chains(m, n, group, comparator.key, low, high)
                continue
            above = Signal(len(low), name=f"above_{n}")
            below = Signal(len(high), name=f"below_{n}")
            within = Signal(name=f"within_{n}", reset_less=True)
            m.d.comb += [
                above.eq(packed(group, comparator.key, guard=1) - low),
                below.eq(high - packed(group, comparator.key, guard=0)),
            ]
            guards = (above[n] & below[n] for n in guard_offsets(group))
            m.d.sync += within.eq(reduce(and_, guards))
            matches.append(within)
        return Cat(matches).all()

    def elaborate_chains(self, m, n, group, key, low, high):
        """Compare the fields of a group with both bounds in carry chains; return the outcomes.

        Each outcome has a register of its own, directly at the end of its chain. With logic between
        the chain and the register, ABC would misjudge the chain and remove it.
        """
        widths = [field.bits for field in group]
        key = Cat(key[field.name].as_unsigned() for field in group)
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

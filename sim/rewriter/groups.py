# SPDX-License-Identifier: Apache-2.0
"""Group the registers of a process by the conditions under which they change."""

from collections import Counter
from dataclasses import dataclass, field

from .netlist import ALWAYS

__all__ = ["Group", "find_resets", "make_groups"]

#: Number of registers that a condition must set to constants to count as a reset.
RESETS = 4


@dataclass
class Group:
    """Registers that are assigned under the same conditions."""

    conditions: tuple
    clauses: list  # for each condition, the clauses of the registers
    inner: list  # for each condition, the variables that are computed only under it
    reads: set = field(default_factory=set)
    writes: set = field(default_factory=set)
    shown: set = field(default_factory=set)  # registers that other modules read
    old: set = field(default_factory=set)  # registers whose value the group must read from a copy


def find_resets(registers):
    """Return the reset clauses by condition, and the other clauses of each register."""

    def constant(clause):
        return clause.condition.tests and clause.value.kind == "bits" and not clause.read

    first = [register.clauses[0] for register in registers if len(register.clauses) > 1]
    count = Counter(clause.condition for clause in first if constant(clause))
    resets, updates = {}, []
    for register in registers:
        clause = register.clauses[0]
        if constant(clause) and count[clause.condition] >= RESETS:
            resets.setdefault(clause.condition, []).append(clause)
            if register.clauses[1:]:
                updates.append(register.clauses[1:])
        else:
            updates.append(register.clauses)
    return resets, updates


def make_groups(updates):
    """Group registers that have the same conditions; memories form groups of their own."""
    groups = {}
    for clauses in updates:
        conditions = tuple(clause.condition for clause in clauses)
        target = clauses[0].target
        key = target if conditions == (ALWAYS,) else (conditions, bool(target.width))
        if key not in groups:
            groups[key] = Group(conditions, [[] for _ in clauses], [[] for _ in clauses])
        for found, clause in zip(groups[key].clauses, clauses, strict=True):
            found.append(clause)
    return list(groups.values())

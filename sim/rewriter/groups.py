# SPDX-License-Identifier: Apache-2.0
"""Registers of a process, gathered by the conditions under which they change."""

from collections import Counter
from dataclasses import dataclass, field

from .netlist import ALWAYS

__all__ = ["Group", "find_resets", "make_groups"]

#: A condition that gives so many registers a constant is a reset.
RESETS = 4


@dataclass
class Group:
    """Registers that are assigned under the same conditions."""

    conditions: tuple
    clauses: list  # for every condition, those of the registers
    inner: list  # for every condition, variables that are computed under it only
    reads: set = field(default_factory=set)
    writes: set = field(default_factory=set)
    shown: set = field(default_factory=set)  # registers that other modules see
    old: set = field(default_factory=set)  # registers that it must read from a copy


def find_resets(registers):
    """Return what resets do, by condition, and the clauses of registers without them."""

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
    """Gather registers with the same conditions, memories apart."""
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

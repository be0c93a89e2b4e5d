# SPDX-License-Identifier: Apache-2.0
"""What a module of a netlist consists of.

Every signal has one driver: an input port, a cell, or an instance. So a signal is a *variable* (the
output of a cell that computes), a *register* or a *memory*, and all else is :class:`.Bits` of them.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

from .bits import NOTHING, Bits

__all__ = [
    "ALWAYS", "Clause", "Condition", "Expression", "Instance", "Module", "Register", "Signal",
    "Target", "UnknownNetlist", "unused",
]  # fmt: skip


class UnknownNetlist(Exception):
    """The netlist holds what the rewriter does not know; its Verilog can still be compiled."""


@dataclass(frozen=True)
class Signal:
    """So many bits; a memory has rows of so many bits.

    ``initial`` is the value of a register after power-up, None if any will do.
    """

    width: int
    initial: int | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Condition:
    """Bits of which each must be high (True) or low (False); none: always."""

    tests: tuple  # of (Bits, bool)

    @cached_property
    def names(self):
        """Names of the signals that it reads."""
        return frozenset().union(*(bits.names for bits, _ in self.tests))

    def substitute(self, sources):
        """Return the condition with some signals replaced; see :meth:`.Bits.substitute`."""
        if sources.keys().isdisjoint(self.names):
            return self
        return Condition(tuple((bits.substitute(sources), high) for bits, high in self.tests))


ALWAYS = Condition(())


@dataclass(frozen=True)
class Expression:
    """What a cell computes, or a row of a memory.

    Parameters
    ----------
    kind : str
        The type of a cell in :data:`sim.rewriter.cells.OPERATORS`; or ``"bits"``: the operand;
        ``"choice"``: the operands are a default and then, in pairs, a bit and what is chosen if it
        is high; ``"row"``: the operand is the address.
    operands : tuple of Bits
    signed : bool
        Whether operands are.
    memory : str or None
        Of a row.
    """

    kind: str
    operands: tuple
    signed: bool = False
    memory: str | None = None

    @cached_property
    def names(self):
        """Names of the signals and of the memory that it reads."""
        names = frozenset().union(*(bits.names for bits in self.operands))
        return names | {self.memory} if self.memory else names

    def substitute(self, sources):
        """Return the expression with some signals replaced; see :meth:`.Bits.substitute`."""
        if sources.keys().isdisjoint(self.names):
            return self
        memory = sources[self.memory].runs[0].name if self.memory in sources else self.memory
        operands = tuple(bits.substitute(sources) for bits in self.operands)
        return Expression(self.kind, operands, self.signed, memory)

    @property
    def passed(self):
        """Operands that are passed on unchanged; None if anything is computed."""
        if self.kind == "choice":
            return self.operands[:1] + self.operands[2::2]
        return self.operands if self.kind == "bits" else None

    def part(self, low, width):
        """Return some bits of what is only passed on."""
        operands = [bits.part(low, width) for bits in self.operands]
        operands[1::2] = self.operands[1::2]
        return Expression(self.kind, tuple(operands))


@dataclass(frozen=True)
class Target:
    """A register, or ``width`` bits from ``low`` up of the row of a memory at ``address``."""

    name: str
    address: Bits = NOTHING
    low: int = 0
    width: int = 0

    def substitute(self, sources):
        """Return the target with some signals replaced; see :meth:`.Bits.substitute`."""
        name = sources[self.name].runs[0].name if self.name in sources else self.name
        return Target(name, self.address.substitute(sources), self.low, self.width)


@dataclass(frozen=True)
class Clause:
    """Under a condition, a target takes the value of an expression."""

    condition: Condition
    target: Target
    value: Expression

    @cached_property
    def read(self):
        """Names that target and value read."""
        return self.target.address.names | self.value.names

    def substitute(self, sources):
        """Return the clause with some signals replaced; see :meth:`.Bits.substitute`."""
        parts = (self.condition, self.target, self.value)
        return Clause(*(part.substitute(sources) for part in parts))

    def reading(self, sources):
        """Return the clause that assigns the same register, and reads other signals for some."""
        target = replace(self.target, address=self.target.address.substitute(sources))
        return replace(self, target=target, value=self.value.substitute(sources))


@dataclass
class Register:
    """What a rising clock edge does: the first clause whose condition holds."""

    clock: Bits
    clauses: list

    @property
    def name(self):
        """Name of the register or memory."""
        return self.clauses[0].target.name

    def substitute(self, sources):
        """Return the register with some signals replaced; see :meth:`.Bits.substitute`."""
        clauses = [clause.substitute(sources) for clause in self.clauses]
        return Register(self.clock.substitute(sources), clauses)


@dataclass
class Instance:
    """A module in another one.

    Parameters
    ----------
    kind, place : str
        Name of the module, and of the instance.
    inputs : dict of str to Bits
        What its input ports get.
    outputs : dict of str to str
        Signals that its output ports drive.
    """

    kind: str
    place: str
    inputs: dict
    outputs: dict


@dataclass
class Module:
    """A module.

    Parameters
    ----------
    name : str
    ports : dict of str to str
        Directions, ``"input"`` or ``"output"``, in the order of the ports.
    signals : dict of str to Signal
        Everything that has a driver. An output port is one of them only if it is a register.
    variables : dict of str to Expression
    registers : list of Register
        Ports of memories that write, and those that read at an edge, are some of them.
    outputs : dict of str to Bits
        What output ports show.
    instances : list of Instance
    """

    name: str
    ports: dict = field(default_factory=dict)
    signals: dict = field(default_factory=dict)
    variables: dict = field(default_factory=dict)
    registers: list = field(default_factory=list)
    outputs: dict = field(default_factory=dict)
    instances: list = field(default_factory=list)


def unused(name, taken):
    """Return ``name``, with a number if it is taken."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found

# SPDX-License-Identifier: Apache-2.0
"""The data model of a netlist's modules.

Every signal has one driver: an input port, a cell, or an instance. The output of a cell that
computes is a *variable*; the other cells are *registers* and *memories*. Whatever reads signals
reads them as :class:`.Bits`.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

from .bits import NOTHING, Bits

__all__ = [
    "ALWAYS", "Clause", "Condition", "Expression", "Instance", "Module", "Register", "Signal",
    "Target", "UnknownNetlist", "unused",
]  # fmt: skip


class UnknownNetlist(Exception):
    """The netlist contains a construct that the rewriter does not know.

    Verilator can still compile the bundle's own Verilog.
    """


@dataclass(frozen=True)
class Signal:
    """A signal of ``width`` bits, or a memory with rows of ``width`` bits.

    ``initial`` is the value of a register, or of every row of a memory, after power-up; None if any
    value will do. Memories begin with zeros or with any values.
    """

    width: int
    initial: int | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Condition:
    """A conjunction of tests, each of which requires bits to be high (True) or low (False).

    A condition without tests always holds.
    """

    tests: tuple  # of (Bits, bool)

    @cached_property
    def names(self):
        """Names of the signals that the condition reads."""
        return frozenset().union(*(bits.names for bits, _ in self.tests))

    def substitute(self, sources):
        """Return the condition with some signals replaced; see :meth:`.Bits.substitute`."""
        if sources.keys().isdisjoint(self.names):
            return self
        return Condition(tuple((bits.substitute(sources), high) for bits, high in self.tests))


ALWAYS = Condition(())


@dataclass(frozen=True)
class Expression:
    """The value that a cell computes, or a row of a memory.

    Parameters
    ----------
    kind : str
        A cell type in :data:`sim.rewriter.cells.OPERATORS`, or one of three others. ``"bits"``
        passes on its only operand. ``"choice"`` has a default operand and then pairs of a select
        bit and the operand that a high select bit chooses; a later pair takes precedence.
        ``"row"`` reads the memory at the address given by its operand.
    operands : tuple of Bits
    signed : bool
        Whether the operands are signed.
    memory : str or None
        Name of the memory, for a row.
    """

    kind: str
    operands: tuple
    signed: bool = False
    memory: str | None = None

    @cached_property
    def names(self):
        """Names of the signals and the memory that the expression reads."""
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
        """Operands that are passed on unchanged; None if the expression computes a new value."""
        if self.kind == "choice":
            return self.operands[:1] + self.operands[2::2]
        return self.operands if self.kind == "bits" else None

    def part(self, low, width):
        """Return ``width`` bits from bit ``low`` up; only for an expression that passes bits on."""
        operands = [bits.part(low, width) for bits in self.operands]
        operands[1::2] = self.operands[1::2]
        return Expression(self.kind, tuple(operands))


@dataclass(frozen=True)
class Target:
    """The destination of an assignment.

    It is a register, or ``width`` bits from bit ``low`` up of the memory row at ``address``.
    """

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
    """An assignment under a condition: the target takes the value of the expression."""

    condition: Condition
    target: Target
    value: Expression

    @cached_property
    def read(self):
        """Names of the signals that the target's address and the value read."""
        return self.target.address.names | self.value.names

    def substitute(self, sources):
        """Return the clause with some signals replaced; see :meth:`.Bits.substitute`."""
        parts = (self.condition, self.target, self.value)
        return Clause(*(part.substitute(sources) for part in parts))

    def reading(self, sources):
        """Return the clause with signals replaced in address and value, not in the condition."""
        target = replace(self.target, address=self.target.address.substitute(sources))
        return replace(self, target=target, value=self.value.substitute(sources))


@dataclass
class Register:
    """An action at a rising clock edge: the first clause whose condition holds takes effect."""

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
    """An instance of a module inside another module.

    Parameters
    ----------
    kind, place : str
        Name of the instantiated module, and name of the instance.
    inputs : dict of str to Bits
        Bits that each input port receives.
    outputs : dict of str to str
        Name of the signal that each output port drives.
    """

    kind: str
    place: str
    inputs: dict
    outputs: dict


@dataclass
class Module:
    """The contents of a module.

    Parameters
    ----------
    name : str
    ports : dict of str to str
        Direction of each port, ``"input"`` or ``"output"``, in the order of the ports.
    signals : dict of str to Signal
        Everything that has a driver. An output port is a signal only if it is a register.
    variables : dict of str to Expression
    registers : list of Register
        Registers, write ports of memories, and read ports of memories with a clock.
    outputs : dict of str to Bits
        Bits that each output port shows.
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
    """Return ``name``, with a number appended if the name is taken."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found

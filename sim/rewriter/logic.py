# SPDX-License-Identifier: Apache-2.0
"""The logic of a flat module: variables that are computed, and registers of a single clock."""

from dataclasses import dataclass

from .netlist import UnknownNetlist

__all__ = ["Logic", "logic_of"]


@dataclass
class Logic:
    """Logic of a module.

    Parameters
    ----------
    signals : dict of str to Signal
    ports : dict of str to str
        Direction of each port of the module.
    variables : dict of str to Expression
        Every signal that is neither a register, an input, nor an output of an instance.
    registers : list of Register
    outputs : dict of str to Bits
        Bits that each output port shows, except for outputs that are registers themselves.
    inputs : dict of (str, str) to Bits
        Bits that the inputs of instances receive, by the names of instance and port.
    clock : str
    """

    signals: dict
    ports: dict
    variables: dict
    registers: list
    outputs: dict
    inputs: dict
    clock: str

    def substitute(self, sources):
        """Replace signals by other bits wherever they are read."""
        self.variables = {name: e.substitute(sources) for name, e in self.variables.items()}
        self.registers = [register.substitute(sources) for register in self.registers]
        self.outputs = {port: bits.substitute(sources) for port, bits in self.outputs.items()}
        self.inputs = {place: bits.substitute(sources) for place, bits in self.inputs.items()}

    def reads(self):
        """Yield all bits that the logic reads."""
        yield from self.outputs.values()
        yield from self.inputs.values()
        for value in self.variables.values():
            yield from value.operands
        for register in self.registers:
            for clause in register.clauses:
                yield from (bits for bits, _ in clause.condition.tests)
                yield clause.target.address
                yield from clause.value.operands


def logic_of(module):
    """Return the logic of a flat module.

    Raises
    ------
    UnknownNetlist
        If the registers have several clocks, or a clock that is not an input port.
    """
    clocks = {register.clock for register in module.registers}
    names = {name for bits in clocks for name in bits.names}
    if len(clocks) != 1 or len(names) != 1 or not names <= module.ports.keys():
        raise UnknownNetlist(f"registers with the clocks {sorted(names)}")
    states = {register.name for register in module.registers}
    return Logic(
        signals=module.signals,
        ports=module.ports,
        variables=module.variables,
        registers=module.registers,
        outputs={port: bits for port, bits in module.outputs.items() if port not in states},
        inputs={
            (instance.place, port): bits
            for instance in module.instances
            for port, bits in instance.inputs.items()
        },
        clock=names.pop(),
    )  # fmt: skip

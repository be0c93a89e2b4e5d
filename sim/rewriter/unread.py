# SPDX-License-Identifier: Apache-2.0
"""Remove registers whose value never reaches an output or another module.

Yosys removes what has no use inside of a module. What has no use between modules, or in a register
that only counts on from its own value, shows in the flat module only.
"""

__all__ = ["drop_unread"]


def drop_unread(logic):
    """Remove variables and registers that no output and no input of an instance depends on.

    Parameters
    ----------
    logic : Logic
        Of a module; changed.
    """
    writers = {}
    for register in logic.registers:
        writers.setdefault(register.name, []).append(register)
    found = set()
    waiting = {name for name, direction in logic.ports.items() if direction == "output"}
    waiting.update(*(bits.names for bits in [*logic.outputs.values(), *logic.inputs.values()]))
    while waiting:
        name = waiting.pop()
        found.add(name)
        if name in logic.variables:
            waiting |= logic.variables[name].names - found
        for register in writers.get(name, ()):
            for clause in register.clauses:
                waiting |= (clause.condition.names | clause.read) - found
    logic.variables = {name: value for name, value in logic.variables.items() if name in found}
    logic.registers = [register for register in logic.registers if register.name in found]

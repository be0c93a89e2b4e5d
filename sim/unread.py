# SPDX-License-Identifier: Apache-2.0
"""Registers of a netlist that nobody reads, but perhaps they themselves.

Yosys removes what has no use inside of a module. Between modules, and round a register that counts
for nobody, that takes a look at the whole.
"""

from .netlist import references
from .schedule import stem

__all__ = ["drop_unread"]


def drop_unread(logic):
    """Drop variables and registers that nothing depends on which other modules see.

    Parameters
    ----------
    logic : Logic
        Of a module; changed.

    Returns
    -------
    Logic
        The same.
    """
    writers = {}
    for register in logic.registers:
        writers.setdefault(stem(register.clauses[0][1]), []).append(register)
    ports = [name for name, signal in logic.signals.items() if signal.direction == "output"]
    found, waiting = set(), [*ports, *logic.outputs.values(), *logic.inputs.values()]
    while waiting:
        for name in references(waiting.pop()) - found:
            found.add(name)
            waiting += [logic.variables[name]] if name in logic.variables else []
            for register in writers.get(name, ()):
                waiting += [part for clause in register.clauses for part in clause if part]
    logic.variables = {name: text for name, text in logic.variables.items() if name in found}
    logic.registers = [
        register for register in logic.registers if stem(register.clauses[0][1]) in found
    ]
    return logic

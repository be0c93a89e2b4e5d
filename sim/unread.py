# SPDX-License-Identifier: Apache-2.0
"""Registers of a netlist that nobody reads, but perhaps they themselves.

Yosys removes what has no use inside of a module. Between modules, and round a register that counts
for nobody, that takes a look at the whole.
"""

from .netlist import references

__all__ = ["drop_unread"]


def drop_unread(variables, registers, uses):
    """Drop what no use depends on.

    Parameters
    ----------
    variables : dict of str to str
        Expressions by name; changed.
    registers : list of Register
        Registers and ports of memories; changed.
    uses : list of str
        Expressions that are read from outside.
    """
    writers = {}
    for register in registers:
        for name in references(register.clauses[0][1].partition("[")[0]):
            writers.setdefault(name, []).append(register)
    found, waiting = set(), list(uses)
    while waiting:
        for name in references(waiting.pop()) - found:
            found.add(name)
            if name in variables:
                waiting.append(variables[name])
            for register in writers.get(name, ()):
                waiting += [part for clause in register.clauses for part in clause if part]
    for name in variables.keys() - found:
        del variables[name]
    registers[:] = [
        register
        for register in registers
        if references(register.clauses[0][1].partition("[")[0]) & found
    ]

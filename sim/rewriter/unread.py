# SPDX-License-Identifier: Apache-2.0
"""Remove registers whose value never reaches an output or another module, and inputs like that.

Yosys removes what has no use inside of a module. What has no use between modules, or in a register
that only counts on from its own value, shows in the flat module only.
"""

__all__ = ["drop_inputs", "drop_unread", "drop_unread_inputs"]


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


def drop_unread_inputs(logic):
    """Remove the inputs that nothing in a module depends on; return their names.

    A module whose reset goes another way still has the common one as an input. It is an input of
    the accelerator, and what hangs on one of these makes Verilator look for changes of all of them.

    Parameters
    ----------
    logic : Logic
        Of a module; changed.
    """
    read = {name for bits in logic.reads() for name in bits.names} | {logic.clock}
    unread = {name for name, way in logic.ports.items() if way == "input" and name not in read}
    for name in unread:
        del logic.ports[name], logic.signals[name]
    return unread


def drop_inputs(module, unread):
    """Leave inputs of instances open that their modules do not have any more.

    Parameters
    ----------
    module : Module
        Flat; changed.
    unread : dict of str to set of str
        Names of inputs, by the name of the instance's module.
    """
    for instance in module.instances:
        gone = unread.get(instance.kind, ())
        instance.inputs = {port: bits for port, bits in instance.inputs.items() if port not in gone}

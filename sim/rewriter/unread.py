# SPDX-License-Identifier: Apache-2.0
"""Remove registers and inputs whose value never reaches an output or another module.

Yosys removes logic that is unused inside one module. Registers that are unused across modules, or
that only feed back into themselves, are visible only in the flat module.
"""

__all__ = ["drop_inputs", "drop_unread", "drop_unread_inputs"]


def drop_unread(logic):
    """Remove the variables and registers that no output and no input of an instance depends on.

    Parameters
    ----------
    logic : Logic
        Logic of a module, which is changed.
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

    A module that gets its reset another way still has the accelerator's reset as an input. As soon
    as any logic hangs on an input of the accelerator, Verilator looks for changes of all inputs.

    Parameters
    ----------
    logic : Logic
        Logic of a module, which is changed.
    """
    read = {name for bits in logic.reads() for name in bits.names} | {logic.clock}
    unread = {name for name, way in logic.ports.items() if way == "input" and name not in read}
    for name in unread:
        del logic.ports[name], logic.signals[name]
    return unread


def drop_inputs(module, unread):
    """Disconnect the inputs of instances that were removed from the instances' modules.

    Parameters
    ----------
    module : Module
        Flat module, which is changed.
    unread : dict of str to set of str
        Names that :func:`drop_unread_inputs` returned, by the name of the instantiated module.
    """
    for instance in module.instances:
        gone = unread.get(instance.kind, ())
        instance.inputs = {port: bits for port, bits in instance.inputs.items() if port not in gone}

# SPDX-License-Identifier: Apache-2.0
"""Flatten the module hierarchy, except for the instances of chosen modules."""

from .bits import Bits
from .netlist import Instance, Module, unused

__all__ = ["flatten"]


def flatten(modules, name, stay):
    """Return the module ``name`` with all instances flattened, except those of modules that stay.

    Parameters
    ----------
    modules : dict of str to Module
    name : str
    stay : set of str
        Names of the modules that are not flattened.
    """
    return Flattening(modules, name, stay).flat


class Flattening:
    """Flattens the contents of instances into one module.

    An input port of an instance stands for bits of the module around it, and an output port stands
    for bits of the module inside. Both are recorded in ``sources`` while the instances are placed,
    and replaced everywhere once all instances are placed.
    """

    def __init__(self, modules, name, stay):
        self.modules, self.stay = modules, stay
        self.flat = Module(name, modules[name].ports)
        self.sources = {}
        _, self.flat.outputs = self.place(modules[name], "")
        settled = {}
        for source in self.sources:
            self.settle(source, settled)
            del self.flat.signals[source]
        self.substitute(settled)

    def place(self, module, prefix):
        """Add the contents of a module to the flat module.

        Returns the new names of its signals, by their old names, and the bits of its outputs.
        """
        flat = self.flat
        names = {}
        for name, signal in module.signals.items():
            names[name] = unused(prefix + name, flat.signals)
            flat.signals[names[name]] = signal
        new = {
            name: Bits.whole(names[name], signal.width)
            for name, signal in module.signals.items()
            if names[name] != name
        }
        for name, value in module.variables.items():
            flat.variables[names[name]] = value.substitute(new)
        flat.registers += [register.substitute(new) for register in module.registers]
        for instance in module.instances:
            inputs = {port: bits.substitute(new) for port, bits in instance.inputs.items()}
            outputs = {port: names[signal] for port, signal in instance.outputs.items()}
            place = prefix + instance.place
            if instance.kind in self.stay:
                flat.instances.append(Instance(instance.kind, place, inputs, outputs))
                continue
            inner, shown = self.place(self.modules[instance.kind], f"{place}_")
            self.sources |= {inner[port]: bits for port, bits in inputs.items()}
            self.sources |= {signal: shown[port] for port, signal in outputs.items()}
        return names, {port: bits.substitute(new) for port, bits in module.outputs.items()}

    def settle(self, name, settled):
        """Record the bits of the flat module that a port of an instance finally stands for."""
        if name not in settled:
            bits = self.sources[name]
            inner = {other: self.settle(other, settled)
                     for other in bits.names if other in self.sources}  # fmt: skip
            settled[name] = bits.substitute(inner)
        return settled[name]

    def substitute(self, sources):
        """Replace signals everywhere in the flat module."""
        flat = self.flat
        flat.variables = {name: e.substitute(sources) for name, e in flat.variables.items()}
        flat.registers = [register.substitute(sources) for register in flat.registers]
        flat.outputs = {port: bits.substitute(sources) for port, bits in flat.outputs.items()}
        for instance in flat.instances:
            instance.inputs = {
                port: bits.substitute(sources) for port, bits in instance.inputs.items()
            }

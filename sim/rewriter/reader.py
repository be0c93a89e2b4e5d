# SPDX-License-Identifier: Apache-2.0
"""Read Yosys' JSON netlist as modules.

Yosys numbers the bits of a module and lists the bit numbers that each port of each cell connects.
"""

from collections import ChainMap
import json
import re

from .bits import Bits, Run
from .cells import CLOCKED, expression, register
from .memories import initial_of, ports_of, shape_of
from .netlist import Instance, Module, Signal, UnknownNetlist, unused

__all__ = ["read_netlist"]

#: Cell type of a memory together with all of its ports.
MEMORY = "$mem_v2"
#: Cell types without a function.
IGNORED = {"$scopeinfo"}


def read_netlist(text):
    """Return the modules of a netlist by their names.

    Raises
    ------
    UnknownNetlist
        If the netlist contains an unknown cell, or is not a netlist of Yosys.
    """
    try:
        found = json.loads(text)["modules"]
        kinds = {name: module["ports"] for name, module in found.items()}
        return {name: Reader(name, module, kinds).module for name, module in found.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise UnknownNetlist(f"no netlist of Yosys ({error!r})") from error


def plain(name):
    """Return a name with every character replaced that a Verilog identifier may not contain."""
    return re.sub(r"\W", "_", name)


class Reader:
    """Reader of one module.

    Parameters
    ----------
    name : str
        Name of the module.
    found : dict
        The module as Yosys writes it.
    kinds : dict of str to dict
        Ports of all modules, by module name.

    Attributes
    ----------
    module : Module
        The module that was read.
    """

    def __init__(self, name, found, kinds):
        self.found, self.kinds = found, kinds
        directions = {port: of["direction"] for port, of in found["ports"].items()}
        self.module = Module(name, directions)
        self.drivers = {}  # by bit number: name of the signal and position of the bit in it
        self.names, self.initial = {}, {}
        outputs = self.ports()
        self.look_at_names(outputs)
        cells = [cell for cell in found["cells"].items() if cell[1]["type"] not in IGNORED]
        driven = [self.declare(place, cell) for place, cell in cells]
        for (place, cell), signals in zip(cells, driven, strict=True):
            self.read(place, cell, signals)
        self.module.outputs = {port: self.bits(bits) for port, bits in outputs.items()}

    def ports(self):
        """Declare the input ports; return the bits of the output ports."""
        outputs = {}
        for port, of in self.found["ports"].items():
            if of["direction"] == "input":
                self.drive(port, of["bits"])
            elif of["direction"] == "output":
                outputs[port] = of["bits"]
            else:
                raise UnknownNetlist(f"a port that is {of['direction']}")
        return outputs

    def look_at_names(self, outputs):
        """Record the names of bits, and the initial values of registers."""
        for name, net in self.found["netnames"].items():
            if not net.get("hide_name"):
                self.names.setdefault(tuple(net["bits"]), plain(name))
            init = net.get("attributes", {}).get("init")
            if init:
                self.initial.update(zip(net["bits"], reversed(init), strict=False))
        self.shown = {tuple(bits): port for port, bits in reversed(outputs.items())}

    def drive(self, name, bits, **about):
        """Declare the signal that drives the given bits; return its name."""
        self.module.signals[name] = Signal(len(bits), **about)
        self.drivers.update((bit, (name, place)) for place, bit in enumerate(bits))
        return name

    def own_name(self, bits, fallback):
        """Return a name for a signal: the netlist's name of its bits, or else ``fallback``."""
        taken = ChainMap(self.module.signals, self.found["ports"])
        return unused(self.names.get(tuple(bits), fallback), taken)

    def declare(self, place, cell):
        """Declare the signals that a cell drives; return their names."""
        kind, connections = cell["type"], cell["connections"]
        if kind in self.kinds:
            return [
                self.drive(
                    unused(f"{plain(place)}_{port}", self.module.signals),
                    connections[port],
                )
                for port in self.outputs_of(kind, connections)
            ]
        if kind == MEMORY:
            return self.declare_memory(cell)
        if kind in CLOCKED:
            return [self.declare_register(connections["Q"])]
        if "Y" not in connections:
            raise UnknownNetlist(f"a cell of type {kind}")
        bits = connections["Y"]
        return [self.drive(self.own_name(bits, f"wire_{bits[0]}"), bits)]

    def declare_memory(self, cell):
        """Declare a memory and a signal for each of its read ports; return their names."""
        memory = self.own_name((), plain(cell["parameters"]["MEMID"].removeprefix("\\")))
        rows, width = shape_of(cell)
        self.module.signals[memory] = Signal(width, initial_of(cell), rows)
        bits = cell["connections"]["RD_DATA"]
        parts = [bits[start : start + width] for start in range(0, len(bits), width)]
        return [
            memory,
            *(self.drive(self.own_name(p, f"{memory}_row"), p) for p in parts),
        ]

    def declare_register(self, bits):
        """Declare a register and return its name: that of its output port, if it has one."""
        start = "".join(self.initial.get(bit, "x") for bit in reversed(bits))
        initial = int(start.replace("x", "0"), 2) if start.strip("x") else None
        port = self.shown.get(tuple(bits))
        if port is None or port in self.module.signals:
            port = self.own_name(bits, f"register_{bits[0]}")
        return self.drive(port, bits, initial=initial)

    def outputs_of(self, kind, connections):
        """Return the output ports of a module that an instance connects."""
        ports = self.kinds[kind].items()
        return [name for name, of in ports if of["direction"] == "output" and name in connections]

    def read(self, place, cell, signals):
        """Add a cell, which drives ``signals``, to the module."""
        kind, module = cell["type"], self.module
        ports = {name: self.bits(bits) for name, bits in cell["connections"].items()}
        if kind in self.kinds:
            outputs = dict(zip(self.outputs_of(kind, ports), signals, strict=True))
            inputs = {port: bits for port, bits in ports.items() if port not in outputs}
            module.instances.append(Instance(kind, plain(place), inputs, outputs))
        elif kind == MEMORY:
            variables, registers = ports_of(cell, ports, signals[0], signals[1:])
            module.variables |= variables
            module.registers += registers
        elif kind in CLOCKED:
            module.registers.append(register(cell, signals[0], ports))
        else:
            module.variables[signals[0]] = expression(cell, ports)

    def bits(self, numbers):
        """Return bits by their numbers. Undefined bits and bits without a driver are zero."""
        runs = []
        for bit in numbers:
            if bit in self.drivers:
                runs.append(Run(*self.drivers[bit], 1))
            else:
                runs.append(Run(None, int(bit == "1"), 1))
        return Bits.of(runs)

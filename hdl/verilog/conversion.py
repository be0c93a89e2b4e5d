# SPDX-License-Identifier: Apache-2.0
"""Conversion of an Amaranth component to readable Verilog, with one module per distinct component.

The same netlist can also be written as Yosys' JSON, which is for programs such as
:mod:`sim.rewriter`.
"""

import json

from amaranth._toolchain.yosys import find_yosys
from amaranth.back import rtlil
from amaranth.hdl import Fragment, Module
from amaranth.hdl._ast import SignalDict
from amaranth.hdl._ir import PortDirection, build_netlist
from amaranth.hdl._nir import Memory
from amaranth.lib.wiring import In

from .collector import without_collector
from .sharing import share_modules, snake_case
from .zeroed import with_zeros, without_contents

__all__ = ["TOP", "port_names", "to_netlist", "to_verilog", "yosys_version"]

#: Name of the top module.
TOP = "splitjoin"

#: The script turns processes into multiplexers and registers with enable and reset. No optimization
#: crosses a module boundary. Enables are worth half of the simulator's speed, and `wreduce`
#: (shorter operands) another 5 %.
SCRIPT = """\
read_rtlil <<rtlil
{rtlil}
rtlil
proc
opt
wreduce
opt
memory_collect
opt_clean -purge
write_verilog -noattr
"""
#: How the JSON netlist, which is written after the Verilog, begins.
JSON_START = '\n{\n  "creator":'


def yosys():
    """Return the Yosys program that writes the Verilog."""
    return find_yosys(lambda version: version >= (0, 40))


def yosys_version():
    """Return the version of the Yosys program that writes the Verilog."""
    return ".".join(str(part) for part in yosys().version())


def port_names(component):
    """Yield plain name (``i_payload``, not ``i__payload``), member and value of every port."""
    for path, member, value in component.signature.flatten(component):
        value = value.as_value() if hasattr(value, "as_value") else value
        yield "_".join(map(str, path)), member, value


def top_ports(component):
    """Return the ports of ``component`` under plain names, with their directions."""
    return {
        name: (value, PortDirection.Input if member.flow == In else PortDirection.Output)
        for name, member, value in port_names(component)
    }


def to_rtlil(fragment, ports, name):
    """Return a design as RTLIL, without memory contents that are all zeros.

    Amaranth writes the initial contents of a memory bit by bit. For the millions of bits of a large
    window that would take minutes, and :func:`hdl.verilog.sharing.drop_blank_memories` removes
    zeros anyway.
    """
    netlist = build_netlist(fragment, ports, name=name)
    for cell in netlist.cells:
        if isinstance(cell, Memory) and not any(cell.init):
            cell.init = ()
    design = rtlil.Design(emit_src=False)
    empty = rtlil.EmptyModuleChecker(netlist)
    names = SignalDict()
    for number, module in enumerate(netlist.modules):
        if not empty.is_empty(number):
            builder = design.module(".".join(module.name))
            rtlil.ModuleEmitter(builder, netlist, module, names, empty_checker=empty).emit()
    return str(design)


def component_names(fragment, path):
    """Map the module name of every component in ``fragment`` to the name of its class."""
    names = {}
    for number, (child, name, _) in enumerate(fragment.subfragments):
        child_path = f"{path}.{name if name is not None else f'U${number}'}"
        classes = [type(origin) for origin in child.origins or ()]
        # The last origin is the component; those before it are transformers around it.
        classes = [kind for kind in classes if not issubclass(kind, (Module, Fragment))]
        if classes:
            names[child_path] = snake_case(classes[-1].__name__)
        names |= component_names(child, child_path)
    return names


def converted(component, name, platform, script, prefix=""):
    """Return the output of Yosys for ``script``, run on the RTLIL of a component.

    Names of modules below the top begin with ``prefix``.
    """
    with without_collector():
        fragment = Fragment.get(component, platform)
        stems = component_names(fragment, name)
        stems = {path: f"{prefix}{stem}" for path, stem in stems.items()}
        text = to_rtlil(fragment, top_ports(component), name)
        text = share_modules(text, top=name, stems=stems)
    return yosys().run(["-q", "-"], script.format(rtlil=text), ignore_warnings=True)


def from_first_module(verilog):
    """Return the Verilog from its first module on, with the contents of zeroed memories."""
    return with_zeros(verilog[verilog.index("\nmodule ") + 1 :])


def to_verilog(component, *, name=TOP, platform=None, prefix=""):
    """Return the Verilog of ``component``.

    The text depends on the component only: it contains no paths, dates or versions. A module is
    named after its component class, and numbered if a class has several distinct bodies.

    Parameters
    ----------
    component : wiring.Component
        Component to convert.
    name : str
        Name of the top module.
    platform : object or None
        Object with the name of a ``device``, whose primitives are used; None for no primitives.
    prefix : str
        What the names of all modules but the top begin with.
    """
    return from_first_module(converted(component, name, platform, SCRIPT, prefix))


def to_netlist(component, *, name=TOP):
    """Return the Verilog of ``component``, and the same netlist as Yosys' JSON.

    The JSON has the same modules, cells and names as the Verilog. It omits the version of Yosys,
    and the undefined contents of memories, which would take megabytes.

    Parameters
    ----------
    component, name
        See :func:`to_verilog`.

    Returns
    -------
    verilog, netlist : str
    """
    text = converted(component, name, None, f"{SCRIPT}write_json\n")
    verilog, start, netlist = text.rpartition(JSON_START)
    with without_collector():
        return from_first_module(verilog + "\n"), compact(start + netlist)


def compact(netlist):
    """Return a JSON netlist with one line per module."""
    modules = json.loads(netlist)["modules"]
    for module in modules.values():
        for cell in module["cells"].values():
            without_contents(cell)
    lines = [
        f"{json.dumps(name)}: {json.dumps(module, separators=(',', ':'))}"
        for name, module in modules.items()
    ]
    return '{"modules": {\n' + ",\n".join(lines) + "\n}}\n"

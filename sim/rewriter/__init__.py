# SPDX-License-Identifier: Apache-2.0
"""A netlist as Verilog that simulates fast: ``docs/simulator-rewriter.md`` explains the passes.

Verilator keeps the signals of a netlist in memory, because what one `always` block or assignment
computes another one reads. Inside of a single process most of them are variables that the compiler
never stores. So all but the regions is flattened, and every module gets one process.
"""

from hdl.verilog.collector import without_collector

from .fields import cut_fields, cut_inputs
from .flattening import flatten
from .logic import logic_of
from .netlist import UnknownNetlist
from .process import ModuleText
from .reader import read_netlist
from .unread import drop_inputs, drop_unread, drop_unread_inputs

__all__ = ["UnknownNetlist", "one_process_each"]


def one_process_each(netlist, *, top, stay):
    """Return Verilog with one process in each of its modules.

    Parameters
    ----------
    netlist : str
        JSON, as Yosys writes it.
    top : str
        Name of the top module.
    stay : callable
        Tells by the name of a module whether it stays a module; all others become part of what they
        are in.

    Raises
    ------
    UnknownNetlist
        If the netlist holds anything that the passes do not know.
    """
    with without_collector():
        modules = read_netlist(netlist)
        kept = {name for name in modules if stay(name)}
        cut, unread = {}, {}
        return "\n".join(
            rewritten(modules, name, kept, cut, unread) for name in [*sorted(kept), top]
        )


def rewritten(modules, name, kept, cut, unread):
    """Return the text of one module.

    Parameters
    ----------
    modules : dict of str to Module
    name : str
    kept : set of str
        Names of modules that stay modules.
    cut : dict of str to dict
        Inputs that modules have field by field now; gets those of this one if it stays.
    unread : dict of str to set of str
        Inputs that modules do not have any more; gets those of this one if it stays.
    """
    module = flatten(modules, name, kept)
    cut_inputs(module, cut)
    drop_inputs(module, unread)
    logic = logic_of(module)
    cut[name] = cut_fields(logic, inputs=name in kept)
    drop_unread(logic)
    if name in kept:
        unread[name] = drop_unread_inputs(logic)
    return ModuleText(module, logic).text()

# SPDX-License-Identifier: Apache-2.0
"""Rewrite a netlist as Verilog that simulates fast; ``docs/simulator-rewriter.md`` explains how.

Verilator keeps a signal in memory if one `always` block or assignment computes it and another one
reads it. Inside a single process, most signals are local variables, which the compiler never
stores. Therefore everything except the regions is flattened, and every remaining module gets one
process.
"""

from hdl.verilog.conversion import without_collector

from .netlist import UnknownNetlist, read_netlist
from .passes import (
    cut_fields,
    cut_inputs,
    drop_inputs,
    drop_unread,
    drop_unread_inputs,
    find_clock,
    flatten,
    shift_masks,
)
from .process import ModuleText

__all__ = ["UnknownNetlist", "one_process_each"]


def one_process_each(netlist, *, top, stay):
    """Return a netlist as Verilog in which every module has one process.

    Parameters
    ----------
    netlist : str
        Netlist in Yosys' JSON format.
    top : str
        Name of the top module.
    stay : callable
        Called with the name of a module; returns whether it stays a module. All other modules are
        flattened into the modules that instantiate them.

    Raises
    ------
    UnknownNetlist
        If the netlist contains a construct that the passes do not know.
    """
    with without_collector():
        modules = read_netlist(netlist)
        kept = {name for name in modules if stay(name)}
        cut, unread = {}, {}
        return "\n".join(
            rewritten(modules, name, kept, cut, unread) for name in [*sorted(kept), top]
        )


def rewritten(modules, name, kept, cut, unread):
    """Return the Verilog text of one module.

    Parameters
    ----------
    modules : dict of str to Module
    name : str
    kept : set of str
        Names of the modules that are not flattened.
    cut : dict of str to dict
        For each module that stays, the inputs that were cut into fields. The entry of this module
        is added.
    unread : dict of str to set of str
        For each module that stays, the inputs that were removed. The entry of this module is
        added if it stays.
    """
    module = flatten(modules, name, kept)
    cut_inputs(module, cut)
    drop_inputs(module, unread)
    find_clock(module)
    shift_masks(module)
    cut[name] = cut_fields(module, inputs=name in kept)
    drop_unread(module)
    if name in kept:
        unread[name] = drop_unread_inputs(module)
    return ModuleText(module).text()

# SPDX-License-Identifier: Apache-2.0
"""Constraints of a package: clocks, and a bound for every crossing that its design has."""

__all__ = ["constraint_texts"]

#: Nanoseconds of a clock whose period the integrator has not stated.
PERIOD = 5.0

XDC_HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Crossings between the clocks of {top}, for Vivado. Nobody has run this file in Vivado.
# Written from the netlist, which has no other path between clocks. Add it for the module alone:
#     read_xdc -ref {top} {name}.xdc
# Declare no asynchronous clock groups: they would lift these bounds.
"""
CLOCKS_HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Clocks of {top} for synthesis by itself (out of context); a design around it has its own.
"""
SDC_HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Clocks of {top}, and crossings between them, for tools that read SDC and name a register after
# its signal with `_reg` behind it. Nobody has run this file in such a tool.
# Set the periods, in nanoseconds, to those of your clocks.
"""


def xdc(crossings):
    """Return the lines of XDC about crossings."""
    lines = []
    for each in crossings:
        lines += ["", f"# {heading(each)}"]
        if each.stages:
            lines.append(f"set_property ASYNC_REG TRUE {cells(each.stages)}")
        lines += exceptions(each, "[get_property -min PERIOD [get_clocks -of_objects {}]]", True)
    return lines


def sdc(clocks, crossings):
    """Return the lines of SDC about clocks and crossings."""
    lines = [f"set {clock}_period {PERIOD:g}" for clock in clocks]
    lines += [create_clock(clock, f"${clock}_period") for clock in clocks]
    for each in crossings:
        lines += ["", f"# {heading(each)}", *exceptions(each, "${}_period", False)]
    return lines


def exceptions(crossing, period, datapath_only):
    """Return the commands that bound a crossing, or lift the bound that clocks would give it.

    Parameters
    ----------
    crossing : ListedCrossing
    period : str
        Expression for the period of a clock, whose port goes in for ``{}``.
    datapath_only : bool
        Whether the tool bounds the delay of the path alone, as Vivado does; otherwise the check of
        hold times is lifted by a command.
    """
    kind = crossing.kind
    to = f"-to {cells(crossing.targets)}"
    if kind.bound is None:
        return [f"set_false_path {to}"]
    both = f"-from {cells(crossing.sources)} {to}"
    clock = crossing.source_clock if kind.bound == "source" else crossing.target_clock
    bound = period.format(f"[get_ports {clock}]" if datapath_only else clock)
    if not datapath_only:
        return [f"set_max_delay {both} {bound}", f"set_false_path -hold {both}"]
    skew = [f"set_bus_skew {both} {bound}"] if kind.synchronized else []
    return [f"set_max_delay -datapath_only {both} {bound}", *skew]


def heading(crossing):
    """Return what a crossing is, from which clock to which."""
    source = crossing.source_clock or "no clock"
    return f"{source} to {crossing.target_clock}: {crossing.kind.description}"


def cells(names):
    """Return the Tcl that names registers, each of one bit or more."""
    patterns = " ".join(f"{name}_reg {name}_reg[*]" for name in names)
    return f"[get_cells -quiet {{{patterns}}}]"


def create_clock(clock, period):
    """Return the command that makes a clock of a port."""
    return f"create_clock -name {clock} -period {period} [get_ports {clock}]"


def constraint_texts(names, shell, inspection):
    """Return the texts of the files of constraints, by their names.

    Parameters
    ----------
    names : PackageNames
    shell : str or None
    inspection : Inspection
        What there is between the clocks of the design.

    Returns
    -------
    dict of str to str
        ``NAME.xdc`` for the crossings and ``NAME_ooc.xdc`` for the clocks in Vivado, ``NAME.sdc``
        for both in other tools.
    """
    about = {"top": names.top(shell), "name": names.name}
    clocks = [create_clock(clock, f"{PERIOD:g}") for clock in inspection.clocks]
    crossings = xdc(inspection.listed) or ["# It has one clock, so there is none."]
    parts = {
        f"{names.name}.xdc": (XDC_HEAD, crossings),
        f"{names.name}_ooc.xdc": (CLOCKS_HEAD, clocks),
        f"{names.name}.sdc": (SDC_HEAD, sdc(inspection.clocks, inspection.listed)),
    }
    return {
        name: head.format(**about) + "\n".join(lines) + "\n"
        for name, (head, lines) in parts.items()
    }

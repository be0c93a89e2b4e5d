# SPDX-License-Identifier: Apache-2.0
"""Reading nextpnr's report: clock, utilization, and the slowest path by component."""

from collections import Counter
import re

__all__ = [
    "PORTS",
    "Hierarchy",
    "class_of",
    "critical_path",
    "fmax_mhz",
    "register_of",
    "slow_registers",
    "slowest",
    "utilization",
]


MODULE = re.compile(r"^module (\w+)\(.*?^endmodule", re.MULTILINE | re.DOTALL)
#: Instance of a component; instances of vendor primitives have parameters and look different.
INSTANCE = re.compile(r"^  (\w+) (\w+) \($", re.MULTILINE)


def class_of(module):
    """Return the component class of a module: its name without the number."""
    return re.sub(r"_\d+$", "", module)


class Hierarchy:
    """Modules and instances of a Verilog text from :func:`hdl.verilog.conversion.to_verilog`.

    Parameters
    ----------
    verilog : str
        Verilog text.
    top : str
        Name of its top module.
    """

    def __init__(self, verilog, *, top):
        self.top = top
        bodies = {match[1]: match[0] for match in MODULE.finditer(verilog)}
        #: Module name to its instances, which map name to module. Vendor primitives are left out.
        self.instances = {
            module: {name: child for child, name in INSTANCE.findall(body) if child in bodies}
            for module, body in bodies.items()
        }

    def counts(self):
        """Return the number of instances of each module in the whole design."""
        totals = Counter()

        def visit(module, times):
            totals[module] += times
            for child, number in Counter(self.instances[module].values()).items():
                visit(child, times * number)

        visit(self.top, 1)
        return totals

    def locate(self, name):
        """Return instance path and module of the component to which a flattened ``name`` belongs.

        The path starts below the top module; it is empty for names of the top module itself.
        """
        module, path = self.top, []
        for part in name.split("."):
            if part not in self.instances[module]:
                break
            module = self.instances[module][part]
            path.append(part)
        return ".".join(path), module


#: nextpnr's names of the resources that are reported.
RESOURCES = {"lut4": "TRELLIS_COMB", "registers": "TRELLIS_FF", "block_rams": "DP16KD"}

#: Number of rows that :func:`slow_registers` returns.
SLOW_REGISTERS = 25
#: Suffix that Yosys appends to the name of a net to name a cell.
CELL_SUFFIX = re.compile(r"_(?:TRELLIS_FF|LUT4|PFUMX|L6MUX21|CCU2C)_|\$")
#: Data ports of a register: data can enter through either of two ports.
PORTS = {"DI": "D", "M": "D"}


def fmax_mhz(report):
    """Return the clock frequency in MHz that the slowest path of a nextpnr report allows."""
    return round(min(clock["achieved"] for clock in report["fmax"].values()), 2)


def utilization(report):
    """Return the used number, available number and used share of LUTs, registers and block RAMs."""
    result = {}
    for name, resource in RESOURCES.items():
        numbers = report["utilization"].get(resource, {"used": 0, "available": 0})
        used, available = numbers["used"], numbers["available"]
        share = round(used / available, 4) if available else 0.0
        result[name] = {"used": used, "available": available, "share": share}
    return result


def slowest(report):
    """Return the steps of the slowest path between two registers of the clock."""
    paths = [
        path["path"]
        for path in report["critical_paths"]
        if "<async>" not in (path["from"], path["to"])
    ]
    return max(paths, key=lambda path: sum(step["delay"] for step in path), default=[])


def component(hierarchy, instance):
    """Return the component class at ``instance``, preceded by the class of its parent component."""
    outer, _, inner = instance.rpartition(".")
    names = [hierarchy.locate(path)[1] for path in ([outer] if inner else []) + [instance]]
    return ".".join(class_of(name) for name in names)


def register_of(hierarchy, name):
    """Return the component class of a flattened net or cell, and the name of its register."""
    instance = hierarchy.locate(name)[0]
    register = CELL_SUFFIX.split(name[len(instance) :].lstrip("."))[0]
    return component(hierarchy, instance), register


def critical_path(report, hierarchy):
    """Return the slowest path of a nextpnr report, one part per component that it passes.

    Cells of a flattened netlist are named after nets, and a net on a boundary is named after either
    side. So a part may be attributed to a neighbouring component.

    Parameters
    ----------
    report : dict
        Report that nextpnr's ``--report`` wrote.
    hierarchy : Hierarchy
        Hierarchy of the synthesized Verilog.

    Returns
    -------
    list of dict
        ``component``, ``instance``, ``net`` (the first one of the part), ``cells`` passed,
        ``logic_ns`` and ``routing_ns``.
    """
    parts = []
    for step in slowest(report):
        cell = step["to"]["cell"]  # routing belongs to the cell at its end
        if cell.startswith("$nextpnr"):  # a cell that nextpnr inserts to split a carry chain
            instance = parts[-1]["instance"] if parts else ""
        else:
            instance = hierarchy.locate(cell)[0]
        if not parts or parts[-1]["instance"] != instance:
            parts.append(
                {
                    "component": component(hierarchy, instance),
                    "instance": instance,
                    "net": step.get("net", cell),
                    "cells": 0,
                    "logic_ns": 0.0,
                    "routing_ns": 0.0,
                }
            )
        routing = step["type"] == "routing"
        parts[-1]["routing_ns" if routing else "logic_ns"] += step["delay"]
        parts[-1]["cells"] += step["type"] in ("clk-to-q", "logic")
    for part in parts:
        part |= {name: round(part[name], 3) for name in ("logic_ns", "routing_ns")}
    return parts


def slow_registers(report, hierarchy, *, limit=SLOW_REGISTERS):
    """Return where the slowest paths end, one row per register of a component class.

    The slowest path limits the clock; the design is limited by all paths that are nearly as slow.
    nextpnr reports those with ``--detailed-timing-report``.

    Parameters
    ----------
    report, hierarchy
        See :func:`critical_path`.
    limit : int
        Number of rows to return, slowest first.

    Returns
    -------
    list of dict
        ``component``, ``register``, ``port`` (``D``, ``CE``, ``LSR`` or another), ``endpoints``,
        ``worst_ns`` and ``net``, which is the last net on the way to the slowest endpoint.
    """
    rows = {}
    for timing in report.get("detailed_net_timings", ()):
        for endpoint in timing["endpoints"]:
            if "<async>" in (timing["event"], endpoint["event"]):
                continue
            port = PORTS.get(endpoint["port"], endpoint["port"])
            key = (*register_of(hierarchy, endpoint["cell"]), port)
            row = rows.setdefault(key, {"endpoints": 0, "worst_ns": 0.0, "net": ""})
            row["endpoints"] += 1
            if (delay := endpoint["delay"][1]) > row["worst_ns"]:
                row |= {"worst_ns": round(delay, 3), "net": timing["net"]}
    order = sorted(rows, key=lambda key: (-rows[key]["worst_ns"], key))[:limit]
    names = ("component", "register", "port")
    return [dict(zip(names, key, strict=True), **rows[key]) for key in order]

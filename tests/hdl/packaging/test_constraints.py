# SPDX-License-Identifier: Apache-2.0
"""Constraints are read by Tcl, and name registers that the Verilog has."""

from fnmatch import fnmatchcase
import json
import re

import pytest

from hdl.crossings import inspect_crossings
from hdl.packaging.headers import PackageNames
from hdl.packaging.integrations import constraint_texts
from hdl.shells.bus_crossing import BusCrossing, ResetStretch
from hdl.verilog.conversion import to_netlist

tkinter = pytest.importorskip("tkinter")

MODULE = re.compile(r"^module (\w+)\((.*?)\);\n(.*?)^endmodule", re.MULTILINE | re.DOTALL)
REGISTER = re.compile(r"^  (?:output )?reg (?:\[(\d+):\d+\] )?(\w+)( \[\d+:\d+\])?", re.MULTILINE)
INSTANCE = re.compile(r"^  (\w+) (\w+) \($", re.MULTILINE)
NAMES, CLOCKS = PackageNames("trades_"), {"bus_clk", "clk"}


def registers_of(verilog, top):
    """Return the names of all registers as Vivado has them: `x_reg`, and `y_reg[3]` of a bit."""
    modules = {match[1]: match[3] for match in MODULE.finditer(verilog)}

    def walk(module, path):
        for bits, name, _ in REGISTER.findall(modules[module]):
            yield from (
                [f"{path}{name}_reg[{n}]" for n in range(int(bits) + 1)]
                if bits else [f"{path}{name}_reg"]
            )  # fmt: skip
        for kind, name in INSTANCE.findall(modules[module]):
            if kind in modules:
                yield from walk(kind, f"{path}{name}/")

    return set(walk(top, ""))


def run(text, registers, ports):
    """Run Tcl; return each command with the registers and ports that it names."""
    tcl, said = tkinter.Tcl(), []

    def get_cells(*words):
        (patterns,) = (word for word in words if word != "-quiet")
        found = []
        for pattern in tcl.splitlist(patterns):
            glob = pattern.replace("[", "[[]") if "[" in pattern else pattern
            found += sorted(each for each in registers if fnmatchcase(each, glob))
        assert found, patterns
        return " ".join(f"{{{each}}}" for each in found)

    def get_ports(name):
        assert name in ports
        return name

    def command(name):
        return lambda *words: said.append((name, *words))

    for name, what in {
        "get_cells": get_cells, "get_ports": get_ports,
        "get_clocks": lambda _, port: f"clock-{port}",
        "get_property": lambda *words: f"period-{words[-1]}",
        **{name: command(name) for name in (
            "create_clock", "set_property", "set_false_path", "set_max_delay", "set_bus_skew",
        )},
    }.items():  # fmt: skip
        tcl.createcommand(name, what)
    tcl.eval(text)
    return said, tcl


@pytest.fixture(scope="module")
def crossing():
    """Verilog and constraints of a crossing by itself, whose clocks are `bus_clk` and `clk`."""
    return constrained(BusCrossing)


def constrained(make, name="trades_axi"):
    """Return Verilog and constraints of a component."""
    verilog, netlist = to_netlist(make(), name=name)
    found = inspect_crossings(
        make(), json.loads(netlist)["modules"], name=name,
        clock_of=lambda port: "bus_clk" if port.startswith(("i_", "bus_")) else "clk",
    )  # fmt: skip
    found.check()
    return verilog, constraint_texts(NAMES, "axi", found)


def test_every_crossing_of_two_clocks_is_bounded(crossing):
    verilog, texts = crossing
    said, tcl = run(texts["trades.xdc"], registers_of(verilog, "trades_axi"), CLOCKS)
    levels = ("asking_2", "answered_2")
    stages = set()
    for name, *words in said:
        if name == "set_property":
            assert words[:2] == ["ASYNC_REG", "TRUE"]
            stages.update(tcl.splitlist(words[2]))
    assert stages == {f"{level}/stage{n}_reg" for level in levels for n in (0, 1)}
    free = {tcl.splitlist(words[-1]) for words in said if words[0] == "set_false_path"}
    assert free == {(f"{level}/stage0_reg",) for level in levels}
    bounded = {}
    for name, *words in said:
        if name == "set_max_delay":
            only, start, sources, end, targets, period = words
            assert (only, start, end) == ("-datapath_only", "-from", "-to")
            bounded[period] = (len(tcl.splitlist(sources)), len(tcl.splitlist(targets)))
    request, response = 1 + 10 + 32 + 4, 32 + 1
    assert bounded == {
        "period-clock-clk": (request, request), "period-clock-bus_clk": (response, response),
    }  # fmt: skip


def test_clocks_of_the_module_alone_are_in_a_file_of_their_own(crossing):
    said, _ = run(crossing[1]["trades_ooc.xdc"], set(), CLOCKS)
    assert [(name, words[1], words[-1]) for name, *words in said] == [
        ("create_clock", "bus_clk", "bus_clk"), ("create_clock", "clk", "clk"),
    ]  # fmt: skip


def test_the_sdc_has_clocks_and_crossings(crossing):
    verilog, texts = crossing
    text = texts["trades.sdc"].replace("set bus_clk_period 5", "set bus_clk_period 10")
    said, _ = run(text, registers_of(verilog, "trades_axi"), CLOCKS)
    names = [name for name, *_ in said]
    assert names.count("create_clock") == names.count("set_max_delay") == 2
    assert sorted(words[-1] for name, *words in said if name == "set_max_delay") == ["10", "5"]
    holds = [words for name, *words in said if name == "set_false_path" and words[0] == "-hold"]
    assert len(holds) == 2


def test_a_package_of_one_clock_bounds_nothing():
    _, texts = constrained(ResetStretch)
    assert run(texts["trades.xdc"], set(), set())[0] == []
    said, _ = run(texts["trades.sdc"], set(), {"clk"})
    assert [name for name, *_ in said] == ["create_clock"]

# SPDX-License-Identifier: Apache-2.0
"""Taking an accelerator's netlist out of its shell, on netlists made by hand."""

from amaranth import *
from amaranth.lib.wiring import In
import pytest

from hdl.accelerator import Accelerator
from hdl.fpga.shell import SHELL, open_shell, port_widths
from hdl.parameters import JoinParameters, KeyField
from hdl.presets import PRESETS
from tests.halves import half

SMALLEST = JoinParameters.of(
    cores=1, sub_window=1, keys=(KeyField(name="x", bits=1),), probe_bits=0, comparator="equality"
)
CLK, RST, DATA_IN, CAPTURE, DATA_OUT = range(2, 7)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("streams", "name"), half([1, 2], ["tiny", "ecp5-default", "ecp5-equality"])
)
def test_ports_are_those_of_the_accelerator_in_the_order_of_the_shell(name, streams):
    parameters = PRESETS[name].with_(result_streams=streams)
    accelerator = Accelerator(parameters)
    expected = ({}, {})
    for path, member, value in accelerator.signature.flatten(accelerator):
        expected[member.flow != In]["_".join(path)] = len(Value.cast(value))
    found = port_widths(parameters)
    assert [list(ports.items()) for ports in found] == [list(ports.items()) for ports in expected]


def register(data, output, origin):
    """A register of the ECP5 as Yosys writes it."""
    return {
        "type": "TRELLIS_FF",
        "attributes": {"src": origin},
        "connections": {"CLK": [CLK], "DI": [data], "Q": [output]},
    }


def shell():
    """A shell around nothing: its outputs are its lowest inputs."""
    inputs, outputs = (sum(ports.values()) for ports in port_widths(SMALLEST))
    first, taken = 100, 1000
    cells = {}
    for n in range(inputs):
        bit = first + n
        cells[f"shifted_{n}"] = register(bit - 1 if n else DATA_IN, bit, "shell.v:1")
        cells[f"inside_{n}"] = register(bit, 10_000 + n, "shell.v:2")  # of the accelerator
    for n in range(outputs):
        cells[f"taken_{n}"] = register(10_000 + n % inputs, taken + n, "shell.v:3")
    ports = {"clk": CLK, "rst": RST, "data_in": DATA_IN, "capture": CAPTURE, "data_out": DATA_OUT}
    return {
        "modules": {
            SHELL: {
                "attributes": {"top": "1"},
                "ports": {
                    name: {"direction": "output" if bit == DATA_OUT else "input", "bits": [bit]}
                    for name, bit in ports.items()
                },
                "cells": cells,
                "netnames": {
                    "taken": {"bits": list(range(taken, taken + outputs))},
                    "i_ready": {"bits": [10_000]},
                },
            }
        }
    }


def test_inputs_and_outputs_take_the_places_of_the_shells_registers():
    netlist = shell()
    open_shell(netlist, SMALLEST, name="top")
    module = netlist["modules"].pop("top")
    assert not netlist["modules"]
    inputs, outputs = port_widths(SMALLEST)
    ports = {name: port["bits"] for name, port in module["ports"].items()}
    assert ports.pop("clk") == [CLK]
    assert ports.pop("rst") == [RST]
    assert list(ports) == [*inputs, *outputs]
    shifted = [bit for name in inputs for bit in ports[name]]
    assert shifted == list(range(100, 100 + sum(inputs.values())))
    assert ports["i_ready"] == [10_000]
    assert not any(name.startswith("shifted") for name in module["cells"])
    assert "inside_0" in module["cells"]
    assert "i_ready" not in module["netnames"]


def test_a_broken_shift_register_is_told():
    netlist = shell()
    netlist["modules"][SHELL]["cells"].pop("shifted_3")
    with pytest.raises(ValueError, match="Input 3 of"):
        open_shell(netlist, SMALLEST, name="top")


def test_other_parameters_are_told():
    with pytest.raises(ValueError, match="The shell takes|Input"):
        open_shell(shell(), SMALLEST.with_(probe_bits=3), name="top")

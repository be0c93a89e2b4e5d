# SPDX-License-Identifier: Apache-2.0
"""Extraction of an accelerator's netlist from the shell in which it is routed."""

from hdl.counters import COUNTER_BITS, address_bits
from hdl.result_ports import result_ports
from hdl.words.inputs import input_word
from hdl.words.results import result_word

from .shell import SHELL

__all__ = ["open_shell", "port_widths"]

REGISTER = "TRELLIS_FF"


def port_widths(parameters):
    """Return the inputs and outputs of an accelerator, in the order in which the shell shifts them.

    Returns
    -------
    inputs, outputs : dict
        Port name, as in the Verilog of a bundle, to width in bits.
    """
    inputs = {"i_payload": input_word(parameters).size, "i_valid": 1}
    outputs = {"i_ready": 1}
    for port in result_ports(parameters):
        inputs[f"{port}_ready"] = 1
        outputs |= {f"{port}_payload": result_word(parameters).size, f"{port}_valid": 1}
    inputs["counter_addr"] = address_bits(parameters)
    outputs["counter_data"] = COUNTER_BITS
    return inputs, outputs


def shift_register(cells, bit, length):
    """Return the names of the registers that ``bit`` is shifted through, in order.

    A register of the accelerator may read such a bit, too. The registers of the shell are those
    that come from a single statement of the source.
    """
    readers = {}
    for name, cell in cells.items():
        if cell["type"] == REGISTER:
            readers.setdefault(cell["connections"]["DI"][0], []).append(name)
    chain = []
    for _ in range(length):
        names = readers.get(bit, [])
        if chain:
            origin = cells[chain[0]]["attributes"]["src"]
            names = [name for name in names if cells[name]["attributes"]["src"] == origin]
        if len(names) != 1:
            raise ValueError(
                f"Input {len(chain)} of {length} of the shell drives {names!r}, not one register"
            )
        chain += names
        (bit,) = cells[names[0]]["connections"]["Q"]
    return chain


def ports_of(widths, direction, bits):
    """Return the ports in the form of Yosys' JSON; ``bits`` are the bits of all ports, in order."""
    ports, first = {}, 0
    for name, width in widths.items():
        ports[name] = {"direction": direction, "bits": bits[first : first + width]}
        first += width
    return ports


def open_shell(netlist, parameters, *, name):
    """Give a routed netlist the ports of the accelerator that is in the shell.

    The shell's registers at the inputs and outputs are removed; reset still passes its two
    registers. No other cell changes, so a simulation through these ports runs what nextpnr gets.

    Parameters
    ----------
    netlist : dict
        Netlist as Yosys' JSON, written by :func:`hdl.fpga.route.placed_netlist`; changed in place.
    parameters : JoinParameters
        Parameters of the accelerator.
    name : str
        New name of the module.

    Raises
    ------
    ValueError
        If the netlist is not that of such an accelerator in its shell.
    """
    module = netlist["modules"].pop(SHELL)
    cells, ports, names = module["cells"], module["ports"], module["netnames"]
    inputs, outputs = port_widths(parameters)

    chain = shift_register(cells, ports["data_in"]["bits"][0], sum(inputs.values()))
    shifted = [cells.pop(cell)["connections"]["Q"][0] for cell in chain]
    drivers = {
        cell["connections"]["Q"][0]: cell["connections"]["DI"][0]
        for cell in cells.values()
        if cell["type"] == REGISTER
    }
    taken = [drivers.get(bit, bit) for bit in names["taken"]["bits"]]
    if len(taken) != sum(outputs.values()):
        raise ValueError(f"The shell takes {len(taken)} outputs, not {sum(outputs.values())}")

    module["ports"] = {
        "clk": ports["clk"],
        "rst": ports["rst"],
        **ports_of(inputs, "input", shifted),
        **ports_of(outputs, "output", taken),
    }
    for port in module["ports"]:  # names of the same bits, or of the shell's ports
        names.pop(port, None)
    module["attributes"].pop("top", None)
    netlist["modules"][name] = module

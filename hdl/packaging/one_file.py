# SPDX-License-Identifier: Apache-2.0
"""The Verilog of an accelerator in one file, with a header that says what it is."""

import json

from hdl.crossings import inspect_crossings
from hdl.families.choice import make_accelerator
from hdl.shells.axi import AxiShell
from hdl.shells.files import ports_of
from hdl.verilog.conversion import to_netlist

from .headers import enumerations, what_it_is, word_fields, words

__all__ = ["one_file", "packaged_component", "packaged_ports", "parameter_texts"]

#: Clock and reset of an accelerator without a shell, which Amaranth adds to its ports.
CLOCKING = [
    {"name": "clk", "direction": "in", "bits": 1},
    {"name": "rst", "direction": "in", "bits": 1},
]


def packaged_component(parameters, shell, digest, axi):
    """Return the component that becomes the top module: a shell, or the bare accelerator.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator.
    shell : str or None
        One of :data:`hdl.shells.names.SHELLS`.
    digest : str
        Hash of the manifest.
    axi : AxiOptions
        What an AXI shell looks like from outside.
    """
    if shell is None:
        return make_accelerator(parameters)
    return AxiShell(parameters, digest=digest, options=axi, is_whole=True)


def packaged_ports(component, shell):
    """Return name, direction and width of every port of the top module."""
    return [*(CLOCKING if shell is None else []), *ports_of(component)]


def parameter_texts(parameters, place=""):
    """Yield name and value of every parameter that is set, as texts; a kind by its ``place``."""
    for name, value in parameters.items():
        if name == "operator":
            yield name, value["name"]
        elif isinstance(value, dict):
            yield from parameter_texts(value, name)
        elif name == "kind":
            yield place, value
        elif name == "keys" and not isinstance(value, int):
            yield (
                name,
                ", ".join(
                    f"{key['name']}: {'signed' if key['signed'] else 'unsigned'} {key['bits']}"
                    for key in value
                ),
            )
        elif value is not None and value is not False:
            yield name, str(value)


def header(manifest, names, shell, ports):
    """Return the lines of the comment in front of the first module."""
    lines = [
        "SPDX-License-Identifier: Apache-2.0",
        "",
        f"{what_it_is(manifest)}, top module {names.top(shell)}.",
        f"Written by the SplitJoin kit {manifest['kit']}, not to be edited.",
        f"Hash of the manifest: {manifest['hash']}",
        f"Every other module of this file has a name that begins with {names.prefix}",
        "",
        "Parameters",
        *(f"  {name} = {text}" for name, text in parameter_texts(manifest["parameters"])),
        "",
        "Ports",
        *(f"  {port['direction']:3} {port['bits']:4}  {port['name']}" for port in ports),
    ]
    for _, title, word in words(manifest):
        lines += ["", f"{title}, {word['bits']} bits"]
        lines += [
            f"  {field.span:>7}  {field.name}: {'signed, ' if field.signed else ''}{field.meaning}"
            for field in word_fields(word)
        ]
    for _, title, values in enumerations(manifest):
        lines += ["", title, *(f"  {value:2} {name}" for name, value in values.items())]
    return [f"// {line}".rstrip() for line in lines]


def one_file(parameters, manifest, names, shell, axi):
    """Return the Verilog of an accelerator, with its shell, in one text.

    The accelerator is the circuit that the hash of the manifest names. Its modules only have other
    names than in a bundle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    manifest : dict
        Its manifest.
    names : PackageNames
    shell : str or None
        One of :data:`hdl.shells.names.SHELLS`; None for the bare accelerator.
    axi : AxiOptions
        What an AXI shell looks like from outside.

    Returns
    -------
    verilog : str
    ports : list of dict
        Name, direction and width of the ports of its top module.
    inspection : Inspection
        What there is between its clocks.

    Raises
    ------
    UnlistedCrossing
        If there is a path between clocks that no component declares.
    """
    component = packaged_component(parameters, shell, manifest["hash"], axi)
    ports, top = packaged_ports(component, shell), names.top(shell)
    verilog, netlist = to_netlist(component, name=top, prefix=names.prefix)
    inspection = inspect_crossings(
        component, json.loads(netlist)["modules"], name=top,
        clock_of=component.clock_of if shell else lambda port: "clk",
    )  # fmt: skip
    inspection.check()
    text = "\n".join([*header(manifest, names, shell, ports), "", verilog])
    return text, ports, inspection

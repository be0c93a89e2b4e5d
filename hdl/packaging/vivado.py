# SPDX-License-Identifier: Apache-2.0
"""The Tcl script that makes an IP core of a package for Vivado's IP catalog."""

from .word_fields import what_it_is

__all__ = ["vivado_script"]

SCRIPT = """\
# SPDX-License-Identifier: Apache-2.0
# Makes an IP core of {top} for Vivado's IP catalog:
#     vivado -mode batch -source {name}_vivado.tcl
# This script was written from Vivado's documentation. It has not been run.
# The accelerator has the hash {digest}.
set here [file dirname [file normalize [info script]]]
create_project -force -in_memory {name}_packaging
add_files -norecurse [file join $here {name}.v]
set_property top {top} [current_fileset]
update_compile_order -fileset [current_fileset]
ipx::package_project -root_dir [file join $here {name}_ip] -vendor splitjoin-kit \\
    -library accelerator -taxonomy /UserIP -import_files -force
set core [ipx::current_core]
set_property name {top} $core
set_property display_name "SplitJoin accelerator {name}" $core
set_property version {version} $core
set_property description "{what}, hash {digest}" $core
{interfaces}ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity $core
ipx::save_core $core
"""

#: Vivado finds the AXI interfaces by the names of their ports. It must be told the clock.
INTERFACES = """\
{clocks}ipx::infer_bus_interface interrupt xilinx.com:signal:interrupt_rtl:1.0 $core
foreach bus {{{buses}}} {{
    ipx::associate_bus_interfaces -busif $bus -clock {clock} $core
}}
ipx::associate_bus_interfaces -busif {registers} -clock {registers_clock} $core
"""
CLOCK = """\
ipx::infer_bus_interface {clock} xilinx.com:signal:clock_rtl:1.0 $core
ipx::infer_bus_interface {reset} xilinx.com:signal:reset_rtl:1.0 $core
"""


def interfaces_of(ports, axi):
    """Return the lines that tell Vivado of clocks, resets, buses and the interrupt of a shell."""
    pins, data = axi.pins, [port["name"] for port in ports if port["name"].endswith("_tdata")]
    clocks = [(pins.clock, pins.reset)]
    if axi.has_bus_clock:
        clocks.append((pins.bus_clock, pins.bus_reset))
    return INTERFACES.format(
        clocks="".join(CLOCK.format(clock=clock, reset=reset) for clock, reset in clocks),
        buses=" ".join(name.removesuffix("_tdata") for name in data),
        clock=pins.clock, registers=pins.registers, registers_clock=clocks[-1][0],
    )  # fmt: skip


def vivado_script(manifest, names, shell, ports, axi):
    """Return the script. It has not been run, for want of Vivado.

    Parameters
    ----------
    manifest : dict
    names : PackageNames
    shell : str or None
    ports : list of dict
        Name, direction and width of every port of the top module.
    axi : AxiOptions
        What an AXI shell looks like from outside.
    """
    interfaces = interfaces_of(ports, axi) if shell else ""
    version = ".".join(manifest["kit"].split(".")[:2])
    return SCRIPT.format(
        name=names.name, top=names.top(shell), version=version, digest=manifest["hash"],
        interfaces=interfaces, what=what_it_is(manifest),
    )  # fmt: skip

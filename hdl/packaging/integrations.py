# SPDX-License-Identifier: Apache-2.0
"""Files for other tools: FuseSoC, Vivado, LiteX, constraints, and a page."""

from .headers import (
    bytes_of,
    enumerations,
    input_streams,
    result_streams,
    what_it_is,
    word_fields,
    words,
)
from .one_file import parameter_texts

__all__ = [
    "class_name",
    "constraint_texts",
    "core_file",
    "litex_module",
    "package_page",
    "sink_of",
    "source_of",
    "vivado_script",
]


CORE = """\
CAPI=2:
# SPDX-License-Identifier: Apache-2.0
name: splitjoin-kit:accelerator:{name}:{version}
description: {what}, hash {digest}

filesets:
  rtl:
    files:
      - {name}.v
    file_type: verilogSource
  words:
    files:
      - {name}_pkg.sv
    file_type: systemVerilogSource
{bench_files}  waivers:
    files:
      - {name}.vlt
    file_type: vlt

targets:
  default: &default
    filesets: [rtl, words]
    toplevel: {top}

  lint:
    <<: *default
    description: Check the Verilog with Verilator
    filesets: [waivers, rtl]
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]
{bench_target}"""

#: The files of the bench, and the target that runs it.
BENCH_FILES = """\
  bench:
    files:
      - {name}_checks.sv
      - {name}_tb.sv
    file_type: systemVerilogSource
"""
BENCH_TARGET = """
  sim:
    description: Run the test bench with Verilator
    filesets: [waivers, rtl, words, bench]
    toplevel: {name}_tb
    flow: sim
    flow_options:
      tool: verilator
      mode: binary
      verilator_options: [--assert, --timing, --output-split, "0", -Wno-fatal, -CFLAGS, -std=c++20]
"""


def core_file(manifest, names, shell, *, bench=True):
    """Return the core file, with the targets ``default``, ``lint`` and, with a bench, ``sim``.

    Parameters
    ----------
    manifest : dict
    names : PackageNames
    shell : str or None
    bench : bool
        Whether the package has a test bench.
    """
    return CORE.format(
        name=names.name, top=names.top(shell), version=manifest["kit"], digest=manifest["hash"],
        what=what_it_is(manifest),
        bench_files=BENCH_FILES.format(name=names.name) if bench else "",
        bench_target=BENCH_TARGET.format(name=names.name) if bench else "",
    )  # fmt: skip


SCRIPT = """\
# SPDX-License-Identifier: Apache-2.0
# Makes an IP core of {top} for Vivado's IP catalog:
#     vivado -mode batch -source {name}_vivado.tcl
# This script was written from Vivado's documentation. It has not been run.
# The accelerator has the hash {digest}.
set here [file dirname [file normalize [info script]]]
create_project -force -in_memory {name}_packaging
add_files -norecurse [file join $here {name}.v]
add_files -fileset constrs_1 -norecurse [file join $here {name}.xdc]
add_files -fileset constrs_1 -norecurse [file join $here {name}_ooc.xdc]
set_property PROCESSING_ORDER LATE [get_files {name}.xdc]
set_property USED_IN {{synthesis implementation out_of_context}} [get_files {name}_ooc.xdc]
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
VIVADO_CLOCK = """\
ipx::infer_bus_interface {clock} xilinx.com:signal:clock_rtl:1.0 $core
ipx::infer_bus_interface {reset} xilinx.com:signal:reset_rtl:1.0 $core
"""


def interfaces_of(ports, axi):
    """Return the lines that tell Vivado of clocks, resets, buses and the interrupt of a shell."""
    pins, data = axi.pins, [port["name"] for port in ports if port["name"].endswith("_tdata")]
    return INTERFACES.format(
        clocks="".join(VIVADO_CLOCK.format(clock=one, reset=reset) for one, reset in axi.clocks),
        buses=" ".join(name.removesuffix("_tdata") for name in data),
        clock=pins.clock, registers=pins.registers, registers_clock=axi.clocks[-1][0],
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


#: What ports mean, by the part of the name behind the name of the stream.
SIGNALS = {
    "clk": "clock",
    "rst": "reset, active high, synchronous to `clk`",
    "interrupt": "high while an enabled cause is there",
    "counter_addr": "number of the counter to read",
    "counter_data": "its value, a cycle later",
    "payload": "word",
    "tdata": "word, from bit 0 on; bits above it are zero",
    "valid": "a word is offered", "tvalid": "a word is offered",
    "ready": "a word is taken", "tready": "a word is taken",
    "tkeep": "all ones",
    "tlast": "the word is a mark, or the last of its packet",
}  # fmt: skip


def clocking(axi):
    """Return what the clocks and resets of an AXI shell mean, by their names."""
    pins, of_all = axi.pins, "all signals"
    found = {}
    if axi.has_bus_clock:
        of_all = "all signals but those of the registers"
        found = {
            pins.bus_clock: "clock of the registers",
            pins.bus_reset: f"reset, active low, synchronous to `{pins.bus_clock}`",
        }
    return found | {
        pins.clock: f"clock of {of_all}",
        pins.reset: f"reset, active low, synchronous to `{pins.clock}`",
    }


def meaning(port, axi):
    """Return what a port means."""
    name, (stream, _, signal) = port["name"], port["name"].rpartition("_")
    known = SIGNALS | clocking(axi)
    if name in known:
        return known[name]
    if stream == axi.pins.registers:
        return "AXI4-Lite, for the registers"
    if stream.startswith("m_axi_"):
        return f"AXI4, for the windows of region {stream.removeprefix('m_axi_')}"
    if stream.startswith("s_axis") and signal == "tlast":
        return "ignored"
    return SIGNALS[signal]


def table(heads, rows):
    """Return the lines of a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def package_page(manifest, names, shell, ports, axi):
    """Return Markdown: parameters, ports, layout of both words, kinds and operations.

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
    lines = [
        f"# {names.top(shell)}",
        "",
        f"SplitJoin accelerator, kit {manifest['kit']}, hash `{manifest['hash']}`. Generated.",
        "",
        "## Parameters",
        "",
        *table(["parameter", "value"], parameter_texts(manifest["parameters"])),
        "",
        "## Ports",
        "",
        *table(
            ["port", "direction", "bits", "meaning"],
            [(f"`{port['name']}`", port["direction"], port["bits"], meaning(port, axi))
             for port in ports],
        ),
    ]  # fmt: skip
    for _, title, word in words(manifest):
        rows = [
            (f"`{field.name}`", field.span, "yes" if field.signed else "", field.meaning)
            for field in word_fields(word)
        ]
        size = f"{word['bits']} bits in {bytes_of(word)} bytes, the lowest byte first."
        heads = ["field", "bits", "signed", "meaning"]
        lines += ["", f"## {title}", "", size, "", *table(heads, rows)]
    for _, title, values in enumerations(manifest):
        rows = [(value, f"`{name}`") for name, value in values.items()]
        lines += ["", f"## {title}", "", *table(["value", "name"], rows)]
    return "\n".join([*lines, ""])


MODULE = '''\
# SPDX-License-Identifier: Apache-2.0
"""LiteX module around {top}. Generated, not to be edited.

The accelerator has the hash
{digest}.
"""

from pathlib import Path

from litex.gen import LiteXModule
from litex.soc.interconnect import axi, stream
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourceLevel
from migen import ClockSignal, Instance, ResetSignal, Signal

#: Bits of a word at the pins of the shell, whole bytes.
INPUT_BITS = {input_bits}
RESULT_BITS = {result_bits}
#: Bytes of the registers.
REGISTERS_SIZE = 0x1000


class {name_class}(LiteXModule):
    """The accelerator in the clock domain ``sys``.

    Attributes
    ----------
    bus : AXILiteInterface
        Registers.
    {sinks} : Endpoint
        Input words in ``data``.
    {sources} : Endpoint
        Result words in ``data``; ``last`` is set with a mark.
    ev : EventManager
        The interrupt as an event of the SoC.
    """

    def __init__(self, platform):
        platform.add_source(str(Path(__file__).resolve().with_name("{name}.v")))
        self.bus = axi.AXILiteInterface(data_width=32, address_width=32)
{endpoints}
        self.ev = EventManager()
        self.ev.interrupt = EventSourceLevel()
        self.ev.finalize()
        bus = self.bus
        self.specials += Instance(
            "{top}",
{clocks}
{slaves}
{masters}
            i_{registers}_awaddr=bus.aw.addr[:12],
            i_{registers}_awprot=0,
            i_{registers}_awvalid=bus.aw.valid,
            o_{registers}_awready=bus.aw.ready,
            i_{registers}_wdata=bus.w.data,
            i_{registers}_wstrb=bus.w.strb,
            i_{registers}_wvalid=bus.w.valid,
            o_{registers}_wready=bus.w.ready,
            o_{registers}_bresp=bus.b.resp,
            o_{registers}_bvalid=bus.b.valid,
            i_{registers}_bready=bus.b.ready,
            i_{registers}_araddr=bus.ar.addr[:12],
            i_{registers}_arprot=0,
            i_{registers}_arvalid=bus.ar.valid,
            o_{registers}_arready=bus.ar.ready,
            o_{registers}_rdata=bus.r.data,
            o_{registers}_rresp=bus.r.resp,
            o_{registers}_rvalid=bus.r.valid,
            i_{registers}_rready=bus.r.ready,
            o_interrupt=self.ev.interrupt.trigger,
        )
'''

LITEX_CLOCK = """\
            i_{clock}=ClockSignal("sys"),
            i_{reset}=~ResetSignal("sys"),"""

SLAVE = """\
            i_{slave}_tdata=self.{sink}.data,
            i_{slave}_tkeep=2 ** (INPUT_BITS // 8) - 1,
            i_{slave}_tlast=self.{sink}.last,
            i_{slave}_tvalid=self.{sink}.valid,
            o_{slave}_tready=self.{sink}.ready,"""

MASTER = """\
            o_{master}_tdata=self.{source}.data,
            o_{master}_tkeep=Signal(RESULT_BITS // 8),  # always ones
            o_{master}_tlast=self.{source}.last,
            o_{master}_tvalid=self.{source}.valid,
            i_{master}_tready=self.{source}.ready,"""


def class_name(names):
    """Return the name of the class: ``trades`` becomes ``Trades``."""
    return "".join(part.capitalize() for part in names.name.split("_"))


def source_of(master):
    """Return the name of the endpoint of a stream of results: ``m_axis_r`` becomes ``source_r``."""
    return f"source{master.removeprefix('m_axis')}"


def sink_of(slave):
    """Return the name of the endpoint of a stream of inputs: ``s_axis_r`` becomes ``sink_r``."""
    return f"sink{slave.removeprefix('s_axis')}"


def litex_module(manifest, names, shell, ports, axi):
    """Return the Python text of a module that puts the AXI shell into a LiteX SoC.

    Parameters
    ----------
    manifest : dict
    names : PackageNames
    shell : str
    ports : list of dict
        Name, direction and width of every port of the top module.
    axi : AxiOptions
        What the shell looks like from outside. A separate clock of the registers is ``sys`` too.
    """
    widths = {port["name"]: port["bits"] for port in ports}
    masters, slaves = result_streams(ports), input_streams(ports)
    sinks, sources = map(sink_of, slaves), map(source_of, masters)
    endpoints = [
        f'        self.{endpoint} = stream.Endpoint([("data", {bits})])'
        for names_of, bits in ((sinks, "INPUT_BITS"), (sources, "RESULT_BITS"))
        for endpoint in names_of
    ]
    return MODULE.format(
        name=names.name,
        name_class=class_name(names),
        top=names.top(shell),
        digest=manifest["hash"],
        input_bits=widths[f"{slaves[0]}_tdata"],
        result_bits=widths[f"{masters[0]}_tdata"],
        sinks=", ".join(map(sink_of, slaves)),
        sources=", ".join(map(source_of, masters)),
        registers=axi.pins.registers,
        clocks="\n".join(LITEX_CLOCK.format(clock=one, reset=reset) for one, reset in axi.clocks),
        slaves="\n".join(SLAVE.format(slave=slave, sink=sink_of(slave)) for slave in slaves),
        endpoints="\n".join(endpoints),
        masters="\n".join(MASTER.format(master=m, source=source_of(m)) for m in masters),
    )


# Constraints: clocks, and a bound for every crossing that a design has.

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

# SPDX-License-Identifier: Apache-2.0
"""The LiteX module of a package with the AXI shell, and an example of an SoC around it."""

from .word_fields import result_streams

__all__ = ["litex_module", "litex_soc"]

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
    sink : Endpoint
        Input words in ``data``.
    {sources} : Endpoint
        Result words in ``data``; ``last`` is set with a mark.
    ev : EventManager
        The interrupt as an event of the SoC.
    """

    def __init__(self, platform):
        platform.add_source(str(Path(__file__).resolve().with_name("{name}.v")))
        self.bus = axi.AXILiteInterface(data_width=32, address_width=32)
        self.sink = stream.Endpoint([("data", INPUT_BITS)])
{endpoints}
        self.ev = EventManager()
        self.ev.interrupt = EventSourceLevel()
        self.ev.finalize()
        bus = self.bus
        self.specials += Instance(
            "{top}",
            i_aclk=ClockSignal("sys"),
            i_aresetn=~ResetSignal("sys"),
            i_s_axis_tdata=self.sink.data,
            i_s_axis_tkeep=2 ** (INPUT_BITS // 8) - 1,
            i_s_axis_tlast=self.sink.last,
            i_s_axis_tvalid=self.sink.valid,
            o_s_axis_tready=self.sink.ready,
{masters}
            i_s_axi_awaddr=bus.aw.addr[:12],
            i_s_axi_awprot=0,
            i_s_axi_awvalid=bus.aw.valid,
            o_s_axi_awready=bus.aw.ready,
            i_s_axi_wdata=bus.w.data,
            i_s_axi_wstrb=bus.w.strb,
            i_s_axi_wvalid=bus.w.valid,
            o_s_axi_wready=bus.w.ready,
            o_s_axi_bresp=bus.b.resp,
            o_s_axi_bvalid=bus.b.valid,
            i_s_axi_bready=bus.b.ready,
            i_s_axi_araddr=bus.ar.addr[:12],
            i_s_axi_arprot=0,
            i_s_axi_arvalid=bus.ar.valid,
            o_s_axi_arready=bus.ar.ready,
            o_s_axi_rdata=bus.r.data,
            o_s_axi_rresp=bus.r.resp,
            o_s_axi_rvalid=bus.r.valid,
            i_s_axi_rready=bus.r.ready,
            o_interrupt=self.ev.interrupt.trigger,
        )
'''

MASTER = """\
            o_{master}_tdata=self.{source}.data,
            o_{master}_tkeep=Signal(RESULT_BITS // 8),  # always ones
            o_{master}_tlast=self.{source}.last,
            o_{master}_tvalid=self.{source}.valid,
            i_{master}_tready=self.{source}.ready,"""

SOC = '''\
# SPDX-License-Identifier: Apache-2.0
"""Example of a LiteX SoC around {top}: words go from a memory to the accelerator and back.

    python {name}_litex_soc.py DIR

writes its Verilog and the map of its registers into the folder DIR. A word takes a multiple of four
bytes in memory, the lowest byte first. A host reaches all registers through the UART (litex_server
--uart). Another SoC needs the class {name_class} and the lines between the two rules only.
"""

from contextlib import chdir
import json
from pathlib import Path
import sys

from litex.build.generic_platform import Pins, Subsignal
from litex.build.sim import SimPlatform
from litex.gen import LiteXModule
from litex.soc.cores.dma import WishboneDMAReader, WishboneDMAWriter
from litex.soc.integration.soc import SoCRegion
from litex.soc.integration.soc_core import SoCMini
from litex.soc.interconnect import stream, wishbone
from migen import ClockDomain
from {name}_litex import INPUT_BITS, REGISTERS_SIZE, RESULT_BITS, {name_class}

PINS = [
    ("sys_clk", 0, Pins(1)),
    ("sys_rst", 0, Pins(1)),
    ("serial", 0, Subsignal("tx", Pins(1)), Subsignal("rx", Pins(1))),
]
FREQUENCY = 100e6
WORDS_BASE, WORDS_SIZE = 0x1000_0000, 0x4000
ACCELERATOR_BASE = 0x2000_0000


class ClockAndReset(LiteXModule):
    """The clock domain ``sys``, straight from two pins."""

    def __init__(self, platform):
        self.cd_sys = ClockDomain("sys")
        self.comb += [
            self.cd_sys.clk.eq(platform.request("sys_clk")),
            self.cd_sys.rst.eq(platform.request("sys_rst")),
        ]


class ExampleSoC(SoCMini):
    """A UART bridge, a memory, two kinds of DMA, and the accelerator between them."""

    def __init__(self, platform):
        SoCMini.__init__(self, platform, clk_freq=FREQUENCY, ident="SplitJoin")
        self.crg = ClockAndReset(platform)
        self.add_uartbone()
        self.add_ram("words", origin=WORDS_BASE, size=WORDS_SIZE)
        # ---- from here on
        self.accelerator = {name_class}(platform)
        registers = SoCRegion(origin=ACCELERATOR_BASE, size=REGISTERS_SIZE, cached=False)
        self.bus.add_slave("accelerator_registers", self.accelerator.bus, registers)
        self.add_reader(self.accelerator.sink)
{writers}
        # ---- to here

    def add_reader(self, sink):
        """Lead words from memory into the accelerator."""
        bus = wishbone.Interface(data_width=32, adr_width=30)
        self.reader = WishboneDMAReader(bus, endianness="little", with_csr=True)
        self.bus.add_master("reader", master=bus)
        self.up = stream.Converter(32, 32 * -(-INPUT_BITS // 32))
        self.comb += [
            self.reader.source.connect(self.up.sink),
            sink.valid.eq(self.up.source.valid),
            sink.data.eq(self.up.source.data[:INPUT_BITS]),
            self.up.source.ready.eq(sink.ready),
        ]

    def add_writer(self, name, source):
        """Lead results into memory."""
        bus = wishbone.Interface(data_width=32, adr_width=30)
        writer = WishboneDMAWriter(bus, endianness="little", with_csr=True)
        down = stream.Converter(32 * -(-RESULT_BITS // 32), 32)
        self.add_module(f"{{name}}_writer", writer)
        self.add_module(f"{{name}}_down", down)
        self.bus.add_master(f"{{name}}_writer", master=bus)
        self.comb += [
            down.sink.valid.eq(source.valid),
            down.sink.data.eq(source.data),
            down.sink.last.eq(source.last),
            source.ready.eq(down.sink.ready),
            down.source.connect(writer.sink),
        ]


def main(folder):
    """Write the SoC's Verilog, and the addresses of its registers."""
    platform = SimPlatform("SIM", PINS)
    soc = ExampleSoC(platform)
    soc.finalize()
    regions = {{name: hex(region.origin) for name, region in soc.bus.regions.items()}}
    Path(folder).mkdir(parents=True, exist_ok=True)
    with chdir(folder):  # contents of memories are written into the current folder
        platform.get_verilog(soc, name="{name}_soc").write("{name}_soc.v")
        text = json.dumps(regions, indent=2) + "\\n"
        Path("{name}_soc.json").write_text(text, encoding="utf-8")
    print(f"{{folder}}/{name}_soc.v: {{', '.join(regions)}}")


if __name__ == "__main__":
    main(sys.argv[1])
'''


def class_name(names):
    """Return the name of the class: ``trades`` becomes ``Trades``."""
    return "".join(part.capitalize() for part in names.name.split("_"))


def source_of(master):
    """Return the name of the endpoint of a stream of results: ``m_axis_r`` becomes ``source_r``."""
    return f"source{master.removeprefix('m_axis')}"


def litex_module(manifest, names, shell, ports):
    """Return the Python text of a module that puts the AXI shell into a LiteX SoC.

    Parameters
    ----------
    manifest : dict
    names : PackageNames
    shell : str
    ports : list of dict
        Name, direction and width of every port of the top module.
    """
    widths = {port["name"]: port["bits"] for port in ports}
    masters = result_streams(ports)
    endpoints = [
        f'        self.{source_of(master)} = stream.Endpoint([("data", RESULT_BITS)])'
        for master in masters
    ]
    return MODULE.format(
        name=names.name,
        name_class=class_name(names),
        top=names.top(shell),
        digest=manifest["hash"],
        input_bits=widths["s_axis_tdata"],
        result_bits=widths[f"{masters[0]}_tdata"],
        sources=", ".join(map(source_of, masters)),
        endpoints="\n".join(endpoints),
        masters="\n".join(MASTER.format(master=m, source=source_of(m)) for m in masters),
    )


def litex_soc(names, shell, ports):
    """Return the Python text of an example SoC: memory, DMA, accelerator, a bridge for a host.

    Parameters
    ----------
    names, shell, ports
        See :func:`litex_module`.
    """
    writers = [
        f'        self.add_writer("{source_of(master)}", self.accelerator.{source_of(master)})'
        for master in result_streams(ports)
    ]
    return SOC.format(
        name=names.name,
        name_class=class_name(names),
        top=names.top(shell),
        writers="\n".join(writers),
    )

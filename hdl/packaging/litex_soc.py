# SPDX-License-Identifier: Apache-2.0
"""An example of a LiteX SoC around the LiteX module of a package."""

from .headers import input_streams, result_streams
from .integrations import class_name, sink_of, source_of

__all__ = ["litex_soc"]

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
{readers}
{writers}
        # ---- to here

    def add_reader(self, name, sink):
        """Lead words from memory into the accelerator."""
        bus = wishbone.Interface(data_width=32, adr_width=30)
        reader = WishboneDMAReader(bus, endianness="little", with_csr=True)
        up = stream.Converter(32, 32 * -(-INPUT_BITS // 32))
        self.add_module(f"{{name}}_reader", reader)
        self.add_module(f"{{name}}_up", up)
        self.bus.add_master(f"{{name}}_reader", master=bus)
        self.comb += [
            reader.source.connect(up.sink),
            sink.valid.eq(up.source.valid),
            sink.data.eq(up.source.data[:INPUT_BITS]),
            up.source.ready.eq(sink.ready),
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


def litex_soc(names, shell, ports):
    """Return the Python text of an example SoC: memory, DMA, accelerator, a bridge for a host.

    Parameters
    ----------
    names, shell, ports
        See :func:`litex_module`.
    """
    readers = [
        f'        self.add_reader("{sink_of(slave)}", self.accelerator.{sink_of(slave)})'
        for slave in input_streams(ports)
    ]
    writers = [
        f'        self.add_writer("{source_of(master)}", self.accelerator.{source_of(master)})'
        for master in result_streams(ports)
    ]
    return SOC.format(
        name=names.name,
        name_class=class_name(names),
        top=names.top(shell),
        readers="\n".join(readers),
        writers="\n".join(writers),
    )

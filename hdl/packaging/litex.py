# SPDX-License-Identifier: Apache-2.0
"""The LiteX module of a package with the AXI shell."""

from .word_fields import input_streams, result_streams

__all__ = ["class_name", "litex_module", "sink_of", "source_of"]

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

CLOCK = """\
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
    pins = axi.pins
    clocks = [(pins.clock, pins.reset)]
    if axi.has_bus_clock:
        clocks.append((pins.bus_clock, pins.bus_reset))
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
        registers=pins.registers,
        clocks="\n".join(CLOCK.format(clock=clock, reset=reset) for clock, reset in clocks),
        slaves="\n".join(SLAVE.format(slave=slave, sink=sink_of(slave)) for slave in slaves),
        endpoints="\n".join(endpoints),
        masters="\n".join(MASTER.format(master=m, source=source_of(m)) for m in masters),
    )

# SPDX-License-Identifier: Apache-2.0
"""An accelerator as an RTL kernel of Vitis, which fetches words from memory and stores results."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.families.choice import family_of, make_accelerator
from hdl.families.family import is_mark
from hdl.memory.axi4 import Axi4
from hdl.registers.bus import RegisterBus
from hdl.registers.table import word_bytes

from .axi_streams import AxiLite, AxiLiteSlave
from .bus_crossing import ResetStretch, refuse_external_windows
from .registers import hash_number

__all__ = ["ARGUMENTS", "BURST", "HEADER_BEATS", "KERNEL_TOP", "KernelControl", "VitisKernel"]

#: Name of the top module.
KERNEL_TOP = "splitjoin_kernel"
#: Arguments of the kernel: name, address of the register, bits, and the master of a pointer.
ARGUMENTS = (
    ("words", 0x10, 64, "m_axi_words"),
    ("count", 0x1C, 32, None),
    ("results", 0x24, 64, "m_axi_results"),
    ("room", 0x30, 32, None),
    ("cycles", 0x38, 32, None),
    ("restart", 0x40, 32, None),
)
#: Most beats of a burst, and beats of the queues. A pointer must be a multiple of 4096 bytes, so
#: that no burst crosses such a border.
BURST, QUEUE = 16, 64
#: Beats in front of the results: 0 has what happened, 1 to 15 the counters, 16 to 19 the hash of
#: the manifest, each in the lowest 64 bits.
HEADER_BEATS, FIRST_COUNTER, FIRST_HASH = 32, 1, 16
#: Bit of beat 0 that says that the memory has answered with an error.
MEMORY_ERROR = 31
#: Most results and words of a run.
COUNT_BITS = 31


class KernelControl(wiring.Component):
    """Registers of ``ap_ctrl_hs``, and those of the arguments.

    Register 0 has ap_start (bit 0), ap_done (1), ap_idle (2) and ap_ready (3); reading it clears
    ap_done and ap_ready. Register 4 enables the interrupt, 8 enables its causes, done (0) and ready
    (1), and 12 shows them, cleared by writing ones. There is no auto-restart.

    Latency: 1 cycle. Throughput: one access per 2 cycles.

    Members
    -------
    bus : In(RegisterBus())
    start : Out(1)
        A run is wanted, until ``done``.
    done : In(1)
        It has ended; for one cycle.
    arguments : Out
        One for each of :data:`ARGUMENTS`, by its name.
    interrupt : Out(1)
    """

    def __init__(self):
        self.latency = 1
        super().__init__(
            {
                "bus": In(RegisterBus()),
                "start": Out(1),
                "done": In(1),
                "interrupt": Out(1),
                **{name: Out(bits) for name, _, bits, _ in ARGUMENTS},
            }
        )

    def elaborate(self, platform):
        m = Module()
        bus = self.bus
        ended, ready = Signal(), Signal()  # ap_done, ap_ready
        enable, causes, shown = Signal(), Signal(2), Signal(2)
        writable = {0x04: enable, 0x08: causes}
        for name, address, bits, _ in ARGUMENTS:
            for n in range(bits // 32):
                writable[address + 4 * n] = getattr(self, name).word_select(n, 32)
        readable = {
            0x00: Cat(self.start, ended, ~self.start, ready), 0x0C: shown, **writable,
        }  # fmt: skip
        now = (bus.read | bus.write) & ~bus.done
        m.d.sync += [bus.done.eq(now), bus.refused.eq(1), self.interrupt.eq(enable & shown.any())]
        with m.Switch(bus.address):
            for address, value in readable.items():
                with m.Case(address):
                    m.d.sync += [bus.answer.eq(value), bus.refused.eq(0)]
        with m.If(now & bus.write):
            with m.Switch(bus.address):
                for address, value in writable.items():
                    with m.Case(address):
                        for n in range(4):
                            part = value[8 * n : 8 * n + 8]
                            with m.If(bus.strobe[n]):
                                m.d.sync += part.eq(bus.data.word_select(n, 8))
                with m.Case(0x00):
                    m.d.sync += self.start.eq(self.start | (bus.data[0] & bus.strobe[0]))
                with m.Case(0x0C):
                    m.d.sync += shown.eq(shown & ~Mux(bus.strobe[0], bus.data, 0))
        with m.If(now & bus.read & (bus.address == 0)):
            m.d.sync += [ended.eq(0), ready.eq(0)]
        with m.If(self.done):
            m.d.sync += [self.start.eq(0), ended.eq(1), ready.eq(1), shown.eq(shown | causes)]
        return m


class VitisKernel(wiring.Component):
    """RTL kernel: a run hands words from memory to an accelerator and its results to memory.

    A run is an exchange of the host's contract (:meth:`host.devices.Device.exchange`). It ends
    behind a mark, when there is no more ``room``, or after so many ``cycles``. Then the kernel
    writes the header: in beat 0 the results (bits 0 to 30) and the accepted words (32 to 62) of
    this run, and whether the memory has answered with an error (31). A word that was not accepted
    must be the first one of the next run. Windows and results on their way stay between two runs,
    unless ``restart`` is 1, which resets the accelerator first.

    A word takes a beat, in its lowest bits, and so does a result.

    Latency: about 60 cycles and 2 of the memory's for a run, beside those of the accelerator.
    Throughput: 1 word per cycle in and 1 per cycle out, while the memory keeps up.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator: with one result port, windows on the chip, and at most 15
        counters.
    digest : str
        Hash of the bundle's manifest, 64 hexadecimal digits.

    Members
    -------
    ap_clk, ap_rst_n : In(1)
    s_axi_control : In(AxiLite())
        Registers of :class:`KernelControl`.
    m_axi_words : Out(Axi4)
        Reads ``count`` words from the address ``words`` on, a multiple of 4096.
    m_axi_results : Out(Axi4)
        Writes the header to the address ``results``, a multiple of 4096, and up to ``room``
        results behind it.
    interrupt : Out(1)
    """

    def __init__(self, parameters, *, digest):
        refuse_external_windows(parameters, "A kernel of Vitis")
        self.parameters = parameters
        self._family = family = family_of(parameters)
        self._hash = hash_number(digest)
        if len(family.result_ports) != 1:
            raise ValueError(
                f"A kernel of Vitis has one port for results, not {len(family.result_ports)}; set"
                f" result_streams=1"
            )
        self._counters = max(counter.address for counter in family.counters) + 1
        if self._counters > FIRST_HASH - FIRST_COUNTER:
            raise ValueError(
                f"A kernel of Vitis shows at most {FIRST_HASH - FIRST_COUNTER} counters, but the"
                f" accelerator has {self._counters}; leave out gates and parity"
            )
        self.word_bytes, self.result_bytes = (
            word_bytes(word.size, is_row=True) for word in (family.input_word, family.result_word)
        )
        super().__init__(
            {
                "ap_clk": In(1),
                "ap_rst_n": In(1),
                "s_axi_control": In(AxiLite()),
                "m_axi_words": Out(Axi4(address_bits=64, data_bits=8 * self.word_bytes)),
                "m_axi_results": Out(Axi4(address_bits=64, data_bits=8 * self.result_bytes)),
                "interrupt": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = sync = ClockDomain(local=True)
        m.domains.inside = inside = ClockDomain(local=True)
        m.submodules.stretch = stretch = ResetStretch()
        m.submodules.slave = slave = AxiLiteSlave()
        m.submodules.control = control = KernelControl()
        m.submodules.accelerator = accelerator = DomainRenamer("inside")(
            make_accelerator(self.parameters)
        )
        connect(m, flipped(self.s_axi_control), slave.axi)
        connect(m, slave.bus, control.bus)
        m.d.comb += [
            sync.clk.eq(self.ap_clk),
            sync.rst.eq(~self.ap_rst_n),
            inside.clk.eq(self.ap_clk),
            inside.rst.eq(stretch.reset),
            self.interrupt.eq(control.interrupt),
        ]
        self._wrong = wrong = Signal()  # the memory has answered with an error
        accepted, produced = Signal(COUNT_BITS), Signal(COUNT_BITS)
        status = Cat(produced, wrong, accepted)
        running, draining = Signal(), Signal()
        marked, left = Signal(), Signal(32)
        results = getattr(accelerator, self._family.result_ports[0])
        is_read = self.elaborate_reads(m, control, accelerator.i, running, accepted)
        begins, headed = Signal(), Signal()  # the header is wanted, and stored
        is_written = self.elaborate_writes(
            m, control, accelerator, results, running, draining, status, begins, headed
        )
        over = marked | (produced == control.room[:COUNT_BITS]) | (left == 0)
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [
                    accepted.eq(0), produced.eq(0), wrong.eq(0), marked.eq(0),
                    left.eq(control.cycles),
                ]  # fmt: skip
                with m.If(control.start & ~control.done):
                    m.d.comb += stretch.restart.eq(control.restart[0])
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                with m.If(~stretch.reset):
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.comb += running.eq(~over)
                m.d.sync += left.eq(left - 1)
                with m.If(results.valid & results.ready):
                    m.d.sync += [produced.eq(produced + 1), marked.eq(is_mark(results.payload))]
                with m.If(over):
                    m.next = "DRAIN"
            with m.State("DRAIN"):
                m.d.comb += draining.eq(1)
                with m.If(is_read & is_written):
                    m.next = "HEADER"
            with m.State("HEADER"):
                m.d.comb += begins.eq(1)
                with m.If(headed):
                    m.d.sync += control.done.eq(1)
                    m.next = "DONE"
            with m.State("DONE"):
                m.d.sync += control.done.eq(0)
                m.next = "IDLE"
        return m

    def elaborate_reads(self, m, control, words, running, accepted):
        """Fetch words ahead, and offer them; return whether none is under way."""
        port, size = self.m_axi_words, self.word_bytes
        m.submodules.fetched = fifo = SyncFIFOBuffered(width=8 * size, depth=QUEUE)
        asked, kept = Signal(COUNT_BITS), Signal(range(2 * QUEUE))  # kept: asked for, not used up
        rest = (control.count[:COUNT_BITS] - asked)[:COUNT_BITS]
        beats = Mux(rest > BURST, BURST, rest[:5])
        asks = Signal()
        uses = fifo.r_rdy & fifo.r_en
        idle = Signal()
        m.d.comb += [
            asks.eq(running & (rest != 0) & (kept <= QUEUE - BURST) & ~port.arvalid),
            port.arsize.eq(ceil_log2(size)),
            port.arburst.eq(1),
            port.rready.eq(fifo.w_rdy),
            fifo.w_en.eq(port.rvalid),
            fifo.w_data.eq(port.rdata),
            Value.cast(words.payload).eq(fifo.r_data),
            words.valid.eq(fifo.r_rdy & running),
            # What was fetched and not accepted is fetched again by the next run.
            fifo.r_en.eq(Mux(running, words.ready, 1)),
            idle.eq((kept == 0) & ~port.arvalid),
        ]
        with m.If(asks):
            m.d.sync += [
                port.arvalid.eq(1),
                port.araddr.eq(control.words + (asked << ceil_log2(size))),
                port.arlen.eq((beats - 1)[: ceil_log2(BURST)]),
                asked.eq(asked + beats),
            ]
        with m.Elif(port.arready):
            m.d.sync += port.arvalid.eq(0)
        m.d.sync += kept.eq(kept + Mux(asks, beats, 0) - uses)
        with m.If(running & uses):
            m.d.sync += accepted.eq(accepted + 1)
        with m.If(~control.start):
            m.d.sync += asked.eq(0)
        with m.If(port.rvalid & port.rready & port.rresp.any()):
            m.d.sync += self._wrong.eq(1)
        return idle

    def elaborate_writes(
        self, m, control, accelerator, results, running, draining, status, begins, headed
    ):
        """Store results in bursts, and the header; return whether all results are stored."""
        port, size = self.m_axi_results, self.result_bytes
        m.submodules.stored = fifo = SyncFIFOBuffered(width=8 * size, depth=QUEUE)
        stored, beats = Signal(COUNT_BITS), Signal(6)  # beats: of the burst, that are left
        owed, fetching = Signal(range(2 * QUEUE)), Signal(2)
        in_header, place = Signal(), Signal(range(HEADER_BEATS))
        free = (beats == 0) & ~port.awvalid
        amount = Mux(fifo.level > BURST, BURST, fifo.level)
        goes = free & ((fifo.level >= BURST) | (draining & (fifo.level != 0)))
        heads = free & begins & ~in_header
        answered = port.bvalid & port.bready
        told = Signal(64)
        m.d.comb += [
            results.ready.eq(fifo.w_rdy & running),
            fifo.w_en.eq(results.valid & running),
            fifo.w_data.eq(Value.cast(results.payload)),
            port.awsize.eq(ceil_log2(size)),
            port.awburst.eq(1),
            port.wstrb.eq(~0),
            port.wlast.eq(beats == 1),
            port.wdata.eq(Mux(in_header, told, fifo.r_data)),
            port.wvalid.eq(
                (beats != 0) & ~port.awvalid & Mux(in_header, fetching == 0, fifo.r_rdy)
            ),
            fifo.r_en.eq(port.wvalid & port.wready & ~in_header),
            port.bready.eq(1),
            headed.eq(in_header & free & (owed == 0)),
            accelerator.counter_addr.eq(place - FIRST_COUNTER),
        ]
        with m.If(port.awready):
            m.d.sync += port.awvalid.eq(0)
        with m.If(goes):
            m.d.sync += [
                port.awvalid.eq(1),
                port.awaddr.eq(control.results + ((stored + HEADER_BEATS) << ceil_log2(size))),
                port.awlen.eq((amount - 1)[: ceil_log2(BURST)]),
                beats.eq(amount),
                stored.eq(stored + amount),
            ]
        with m.Elif(heads):
            m.d.sync += [
                port.awvalid.eq(1),
                port.awaddr.eq(control.results),
                port.awlen.eq(HEADER_BEATS - 1),
                beats.eq(HEADER_BEATS),
                in_header.eq(1),
                place.eq(0),
                fetching.eq(3),
            ]
        with m.Elif(port.wvalid & port.wready):
            m.d.sync += beats.eq(beats - 1)
            with m.If(in_header):
                m.d.sync += [place.eq(place + 1), fetching.eq(3)]
        with m.If(in_header & (fetching != 0)):  # a counter comes a cycle after its address
            m.d.sync += fetching.eq(fetching - 1)
            m.d.sync += told.eq(0)
            with m.Switch(place):
                with m.Case(0):
                    m.d.sync += told.eq(status)
                with m.Case(*range(FIRST_COUNTER, FIRST_COUNTER + self._counters)):
                    m.d.sync += told.eq(accelerator.counter_data)
                for n in range(4):
                    with m.Case(FIRST_HASH + n):
                        m.d.sync += told.eq(self._hash >> 64 * n & (1 << 64) - 1)
        with m.If(~control.start):
            m.d.sync += [stored.eq(0), in_header.eq(0)]
        m.d.sync += owed.eq(owed + (goes | heads) - answered)
        with m.If(answered & port.bresp.any()):
            m.d.sync += self._wrong.eq(1)
        return free & (fifo.level == 0) & (owed == 0) & ~in_header

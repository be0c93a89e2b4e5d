# SPDX-License-Identifier: Apache-2.0
"""What a shell has between two clocks and beside a memory: crossings and resets."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from hdl.crossings import Crossing
from hdl.external.reads import read_queue_depth
from hdl.families.choice import family_of
from hdl.local_reset import LEAST_CYCLES
from hdl.memory.axi4 import memory_port, shared_port
from hdl.registers.bus import ADDRESS_BITS, DATA_BITS, RegisterBus
from hdl.streams.registers import StreamRegister

__all__ = ["PATIENCE", "BusCrossing", "MemoryIsolator", "ResetStretch", "refuse_external_windows"]


#: Cycles of the domain ``bus`` after which a request that gets no answer is refused.
PATIENCE = 1 << 16
#: Bytes of a register, each with a strobe.
STROBES = DATA_BITS // 8


class BusCrossing(wiring.Component):
    """Clock-domain crossing: lead accesses to registers from ``bus`` to ``sync``.

    One access is under way at a time. A level asks, another level answers, and both fall before the
    next access; each passes two flip-flops. All other signals stand still while they are read on
    the other side. The two clocks need not have anything to do with each other.

    If no answer comes within ``patience`` cycles of ``bus``, because ``sync`` stands still or is in
    reset, the access is refused. It still happens later. Until it has, further accesses wait, and
    are refused after as many cycles.

    A reset of either domain may come at any time and last any number of cycles. It changes no
    signal that the other side reads, so an access is never seen in parts and no answer is mixed:

    - An access that meets a reset of ``sync`` happens once, before the reset or after it, and gets
      the answer of that moment. A write that happens before it is undone by it.
    - An access that meets a reset of ``bus`` gets no answer. It happens once and as a whole, also
      after the reset, or not at all; it has happened before any later access does.

    Both rest on registers that no reset reaches: those that the other side reads. They begin with
    their initial values at power-up.

    Latency: :attr:`bus_latency` cycles of ``bus`` and :attr:`latency` cycles of ``sync`` from the
    request to ``done``, with a register file that answers in the next cycle, and up to one cycle of
    either more. Throughput: one access at a time.

    Parameters
    ----------
    patience : int

    Members
    -------
    i : In(RegisterBus())
        In the domain ``bus``. Whoever asks is reset with it.
    o : Out(RegisterBus())
        In the domain ``sync``. Whoever answers is reset with it, and then sees the request again.
    """

    crossings = (
        Crossing("level", ("asking/stage0",), ("asking",)),
        Crossing("level", ("answered/stage0",), ("answered",)),
        Crossing(
            "held",
            ("held_write", "held_address", "o_data", "o_strobe"),
            ("request_write", "request_address", "request_data", "request_strobe"),
        ),
        Crossing("held", ("i_answer", "i_refused"), ("response_answer", "response_refused")),
    )

    def __init__(self, *, patience=PATIENCE):
        if patience < 1:
            raise ValueError(f"A crossing must be patient for at least a cycle, not {patience!r}")
        self.patience = patience
        self.latency = 5  # two flip-flops, the copy, the register file, the answer
        self.bus_latency = 4  # the copy, two flip-flops, the answer
        super().__init__({"i": In(RegisterBus()), "o": Out(RegisterBus())})

    def elaborate(self, platform):
        m = Module()
        asking = Signal(reset_less=True)  # in `bus`: there is a request
        answered = Signal(reset_less=True)  # in `sync`: there is its answer
        # Of an address, its lowest two bits are zero.
        widths = {"write": 1, "address": ADDRESS_BITS - 2, "data": DATA_BITS, "strobe": STROBES}
        request = {
            name: Signal(width, reset_less=True, name=f"request_{name}")
            for name, width in widths.items()
        }
        response = {
            name: Signal(width, reset_less=True, name=f"response_{name}")
            for name, width in {"answer": DATA_BITS, "refused": 1}.items()
        }
        self.elaborate_bus(m, asking, answered, request, response)
        self.elaborate_sync(m, asking, answered, request, response)
        return m

    def elaborate_bus(self, m, asking, answered, request, response):
        """Ask, wait for the answer or the end of patience, and hand it back."""
        is_answered = Signal()
        m.submodules.answered = FFSynchronizer(answered, is_answered, o_domain="bus")
        bus = self.i
        expected = Signal()  # somebody still wants the answer
        left = Signal(range(self.patience + 1), init=self.patience)
        asked = Signal()
        m.d.comb += asked.eq((bus.read | bus.write) & ~bus.done)
        m.d.bus += [
            bus.done.eq(0),
            left.eq(Mux(asked, left - (left != 0), self.patience)),
        ]
        with m.If(asked & ~asking & ~is_answered):
            m.d.bus += [asking.eq(1), expected.eq(1)]
            asks = {"address": bus.address[2:]}
            m.d.bus += [
                value.eq(asks.get(name, getattr(bus, name))) for name, value in request.items()
            ]
        with m.If(asking & is_answered):
            m.d.bus += [asking.eq(0), expected.eq(0), bus.done.eq(expected)]
            m.d.bus += [getattr(bus, name).eq(value) for name, value in response.items()]
        with m.Elif(asked & (left == 0)):
            m.d.bus += [expected.eq(0), bus.done.eq(1), bus.refused.eq(1)]

    def elaborate_sync(self, m, asking, answered, request, response):
        """Serve a request, and show the answer until the request has gone."""
        is_asking = Signal()
        m.submodules.asking = FFSynchronizer(asking, is_asking)
        bus, busy = self.o, Signal()
        held = {name: Signal(len(value), name=f"held_{name}") for name, value in request.items()}
        m.d.comb += [
            bus.write.eq(busy & held["write"]),
            bus.read.eq(busy & ~held["write"]),
            bus.address.eq(Cat(C(0, 2), held["address"])),
            *(getattr(bus, name).eq(held[name]) for name in ("data", "strobe")),
        ]
        with m.If(busy & bus.done):
            m.d.sync += [busy.eq(0), answered.eq(1)]
            m.d.sync += [value.eq(getattr(bus, name)) for name, value in response.items()]
        with m.Elif(is_asking & ~busy & ~answered):
            m.d.sync += busy.eq(1)
            m.d.sync += [value.eq(request[name]) for name, value in held.items()]
        with m.Elif(answered & ~is_asking):
            m.d.sync += answered.eq(0)


class ResetStretch(wiring.Component):
    """Reset stretcher: lengthen a reset of one cycle to :attr:`cycles` cycles.

    The output comes from a register. It is high from the cycle after power-up, after reset or after
    ``restart``, and :attr:`cycles` cycles longer than these last.

    Latency: 1 cycle. Throughput: not applicable.

    Parameters
    ----------
    cycles : int
        How long a reset lasts at the least.

    Members
    -------
    restart : In(1)
        Begin a reset.
    reset : Out(1)
    """

    def __init__(self, cycles=LEAST_CYCLES):
        if cycles < 1:
            raise ValueError(f"Reset must last at least one cycle, not {cycles!r}")
        self.cycles = cycles
        self.latency = 1
        super().__init__({"restart": In(1), "reset": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        left = Signal(range(self.cycles), init=self.cycles - 1)
        with m.If(self.restart):
            m.d.sync += [left.eq(self.cycles - 1), self.reset.eq(1)]
        with m.Elif(left == 0):
            m.d.sync += self.reset.eq(0)
        with m.Else():
            m.d.sync += left.eq(left - 1)
        return m


class MemoryIsolator(wiring.Component):
    """Stand between an accelerator that can be reset by itself and its external memory.

    A master that is reset in the middle of a burst leaves the memory waiting for the rest of its
    data, and takes the data of earlier reads for those of its own. While ``closed``, the isolator
    takes nothing more from the accelerator and gives it nothing. It sends what was requested: data
    without strobes for bursts that are not complete, which write nothing. It drops what the memory
    still answers. ``busy`` falls when all transactions have ended.

    Latency: 1 cycle on the channels ``aw``, ``w`` and ``ar``, 0 cycles on ``b`` and ``r``.
    Throughput: 1 transfer per cycle on every channel.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator, whose ``store`` is external.

    Members
    -------
    i : In(memory_port(parameters))
        Port of the accelerator, whose bursts of writes all have ``memory_burst`` beats, and which
        is always ready for answers.
    above : In
        What addresses of the memory have above those of the accelerator; steady while anything is
        under way.
    o : Out(shared_port(parameters))
        Port of the memory. The three channels to it come from registers.
    closed : In(1)
        The accelerator is in reset, or about to be.
    busy : Out(1)
        A transaction is under way; from a register.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        port, shared = memory_port(parameters), shared_port(parameters)
        super().__init__(
            {
                "i": In(port),
                "above": In(shared.address_bits - port.address_bits),
                "o": Out(shared),
                "closed": In(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        i, o, opened = self.i, self.o, ~self.closed
        addresses = ("addr", "len", "size", "burst")
        asks = self.elaborate_channel(m, "ar", addresses, i.arvalid & opened, opened)
        writes = self.elaborate_channel(m, "aw", addresses, i.awvalid & opened, opened)
        owed = Signal(range(2 * self.parameters.engine.recent_rows))  # beats of requested writes
        missing = Signal()
        m.d.comb += missing.eq(self.closed & (owed != 0))
        sends = self.elaborate_channel(
            m, "w", ("data", "strb", "last"), (i.wvalid & opened) | missing, opened, fills=missing
        )
        read = Signal(range(read_queue_depth(self.parameters) + 1))  # beats that were asked for
        written = Signal.like(owed)  # bursts that were requested
        m.d.comb += [
            o.rready.eq(1),
            o.bready.eq(1),
            i.rvalid.eq(o.rvalid & opened),
            i.bvalid.eq(o.bvalid & opened),
            *(
                getattr(i, name).eq(getattr(o, name))
                for name in ("rid", "rdata", "rresp", "rlast", "bid", "bresp")
            ),
        ]
        m.d.sync += [
            owed.eq(owed + Mux(writes, i.awlen + 1, 0) - sends),
            read.eq(read + Mux(asks, i.arlen + 1, 0) - o.rvalid),
            written.eq(written + writes - o.bvalid),
            self.busy.eq((owed != 0) | (read != 0) | (written != 0) | asks | writes),
        ]
        return m

    def elaborate_channel(self, m, name, fields, valid, opened, fills=None):
        """Put a register into a channel; return whether something enters it.

        The accelerator sees that the register is ready while the isolator is ``opened``.
        ``fills`` says that what enters is a beat in the place of one that the accelerator owes.
        """
        shape = data.StructLayout(
            {field: len(getattr(self.i, f"{name}{field}")) for field in fields}
        )
        register = StreamRegister(shape)
        m.submodules[name] = register
        m.d.comb += [
            register.i.valid.eq(valid),
            getattr(self.i, f"{name}ready").eq(register.i.ready & opened),
            getattr(self.o, f"{name}valid").eq(register.o.valid),
            register.o.ready.eq(getattr(self.o, f"{name}ready")),
        ]
        for field in fields:
            m.d.comb += [
                register.i.payload[field].eq(getattr(self.i, f"{name}{field}")),
                getattr(self.o, f"{name}{field}").eq(
                    Cat(register.o.payload[field], self.above)
                    if field == "addr"
                    else register.o.payload[field]
                ),
            ]
        enters = register.i.valid & register.i.ready
        if fills is not None:
            self.elaborate_filling(m, register.i.payload, enters, fills)
        return enters

    def elaborate_filling(self, m, beat, enters, fills):
        """Let beats in the place of others write nothing, and end their bursts where they end."""
        place = Signal(
            range(max(2, self.parameters.engine.memory_burst))
        )  # of the beat in its burst
        last = place == self.parameters.engine.memory_burst - 1
        with m.If(fills):
            m.d.comb += [beat.strb.eq(0), beat.last.eq(last)]
        with m.If(enters):
            m.d.sync += place.eq(Mux(last, 0, place + 1))


def refuse_external_windows(parameters, shell):
    """Raise :exc:`ValueError` if an accelerator needs memory ports, which this shell does not have.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator.
    shell : str
        What the message calls the shell.
    """
    if family_of(parameters).memory_ports:
        raise ValueError(
            f"{shell} has no ports for the external memory of store 'external'; set store='chip',"
            " or connect the ports 'm_axi_*' of the accelerator itself"
        )

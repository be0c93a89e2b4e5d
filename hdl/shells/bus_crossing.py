# SPDX-License-Identifier: Apache-2.0
"""The bus of registers between two clocks."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from hdl.registers.bus import ADDRESS_BITS, DATA_BITS, RegisterBus

__all__ = ["PATIENCE", "BusCrossing"]

#: Cycles of the domain ``bus`` after which a request that gets no answer is refused.
PATIENCE = 1 << 16


class BusCrossing(wiring.Component):
    """Lead accesses to registers from the clock domain ``bus`` to the clock domain ``sync``.

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
        request = {
            "write": Signal(reset_less=True),
            "address": Signal(ADDRESS_BITS, reset_less=True),
            "data": Signal(DATA_BITS, reset_less=True),
            "strobe": Signal(DATA_BITS // 8, reset_less=True),
        }
        response = {
            "answer": Signal(DATA_BITS, reset_less=True),
            "refused": Signal(reset_less=True),
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
            m.d.bus += [value.eq(getattr(bus, name)) for name, value in request.items()]
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
            *(getattr(bus, name).eq(held[name]) for name in ("address", "data", "strobe")),
        ]
        with m.If(busy & bus.done):
            m.d.sync += [busy.eq(0), answered.eq(1)]
            m.d.sync += [value.eq(getattr(bus, name)) for name, value in response.items()]
        with m.Elif(is_asking & ~busy & ~answered):
            m.d.sync += busy.eq(1)
            m.d.sync += [value.eq(request[name]) for name, value in held.items()]
        with m.Elif(answered & ~is_asking):
            m.d.sync += answered.eq(0)

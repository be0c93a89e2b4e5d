# SPDX-License-Identifier: Apache-2.0
"""A join core: one left and one right region (Figure 4)."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from .memory.axi4 import memory_members
from .region import PairedRegion, Region
from .streams.registers import StreamFork
from .words.inputs import Control, InputKind
from .words.prepared import activity_layout, region_word
from .words.results import node_result

__all__ = ["ClockRequest", "JoinCore", "mirrored"]


class ClockRequest(wiring.Component):
    """Clock-gating request: on while anything happens in a core, and for some cycles after that.

    What happens is seen from outside: a word that waits, an engine at work, a result. Behind what
    is seen, registers follow for as many cycles as the core has stages. When these have passed,
    every register holds what it would be given again.

    ``wanted`` rises in the cycle in which a word arrives, so a clock gate that samples it before
    the edge passes the edge that takes the word. The component itself needs no clock while
    ``wanted`` is low.

    Latency: 0 cycles to rise, :attr:`linger` to fall. Throughput: 1 word per cycle.

    Parameters
    ----------
    stages : int
        Most registers that follow one another in the core.

    Members
    -------
    active : In(1)
        Something happens in this cycle.
    wanted : Out(1)
        The core needs the next clock edge.
    """

    def __init__(self, stages):
        if stages < 1:
            raise ValueError(f"A core has at least one stage, not {stages!r}")
        self.latency = 0
        self.linger = 1 << ceil_log2(stages + 1)
        super().__init__({"active": In(1), "wanted": Out(1)})

    def elaborate(self, platform):
        m = Module()
        # It counts up to a power of two, whose only bit says that enough cycles have passed.
        passed = Signal(range(self.linger + 1))
        m.d.comb += self.wanted.eq(self.active | ~passed[-1])
        with m.If(self.active):
            m.d.sync += passed.eq(0)
        with m.Elif(~passed[-1]):
            m.d.sync += passed.eq(passed + 1)
        return m


def mirrored(m, word):
    """Return a region word in which sides R and S of ``word`` are exchanged.

    Module ``m`` receives the wires.
    """
    mirror = Signal(word.shape(), name="mirrored")
    m.d.comb += [
        mirror.eq(word),
        mirror.close.eq(Cat(word.close[1], word.close[0])),
        mirror.star.eq(Cat(word.star[1], word.star[0])),
        mirror.leaves.eq(Cat(word.leaves[1], word.leaves[0])),
        *(mirror[name][n].eq(word[name][1 - n]) for name in ("storing", "leaving") for n in (0, 1)),
    ]
    two = "first" in word.shape().members
    if two:
        exchange_tuples(m, word, mirror)
    with m.If(word.kind == InputKind.CONTROL):
        control = word.body.control  # its index is a side, unless it is a key field
        of_field = control.op == Control.COORDINATE
        if two:
            m.d.comb += mirror.body.control.eq(control)
        m.d.comb += mirror.body.control.index.eq(control.index ^ ~of_field)
    if not two:
        with m.Else():
            m.d.comb += mirror.kind.eq(Mux(word.kind == InputKind.R, InputKind.S, InputKind.R))
    return mirror


def exchange_tuples(m, word, mirror):
    """Give each tuple of ``word`` the other side in ``mirror``."""
    kind = Value.cast(word.kind)
    m.d.comb += [
        # A lone tuple of R becomes one of S, and the other way round.
        Value.cast(mirror.kind).eq(Cat(~(kind[0] ^ kind[1]), kind[1])),
        mirror.first.eq(~word.first),
        mirror.body.both.r.eq(word.body.both.s),
        mirror.body.both.s.eq(word.body.both.r),
    ]


class JoinCore(wiring.Component):
    """A join core: its two regions get every word, and work independently from there on.

    The right region probes with S. Its stream is :func:`mirrored`, so both regions are the same
    circuit. A region that can take a word does not wait for the other one, which may take the word
    later. So no region depends on what the other one does in the same cycle.

    Latency: that of a :class:`Region`. Throughput: that of the slower region.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    position : In
        Number of the core, 0 to ``cores - 1``.
    words : In(stream.Signature(region_word(parameters)))
        A word is taken when the later region takes it. ``ready`` depends on registers only.
    results : Out(stream.Signature(node_result(parameters, 0))).array(2)
        Results of the left region (probes of R) and of the right region (probes of S).
    activity : Out(activity_layout(parameters)).array(2)
    reset : In(1)
        Resets all registers of the core.
    m_axi : Out(memory_port(parameters)).array(2)
        External memories of the left and of the right region, if they have any.

    With ``clock_requests``, also:

    clock_request : Out(1)
        The core needs the next clock edge (:class:`~hdl.join_core.ClockRequest`). In a cycle in
        which this is low, its clock may be stopped: nothing but a word or a reset, which make it
        high, would change a register.
    vacant : Out(1)
        The core holds no tuple of either window. If it has no turns in the segment in force, it
        finds no pair until it gets some.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        kind = PairedRegion if parameters.side_by_side else Region
        self.regions = [kind(parameters, probe_side=side) for side in range(2)]
        self.latency = self.regions[0].latency
        super().__init__(
            {
                "position": In(range(max(2, parameters.cores))),
                "words": In(stream.Signature(region_word(parameters))),
                "results": Out(stream.Signature(node_result(parameters, 0))).array(2),
                "activity": Out(activity_layout(parameters)).array(2),
                "reset": In(1),
                **memory_members(parameters, 2),
                **dict.fromkeys(
                    ["clock_request", "vacant"] * parameters.engine.clock_requests, Out(1)
                ),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.fork = fork = StreamFork(self.words.payload.shape(), outputs=2)
        connect(m, flipped(self.words), fork.i)
        for side, (name, region) in enumerate(zip(("left", "right"), self.regions, strict=True)):
            m.submodules[name] = region
            connect(m, region.results, flipped(self.results[side]))
            if hasattr(region, "m_axi"):
                connect(m, region.m_axi, flipped(self.m_axi[side]))
            words = fork.o[side]
            m.d.comb += [
                region.reset.eq(self.reset),
                region.position.eq(self.position),
                region.words.payload.eq(mirrored(m, words.payload) if side else words.payload),
                region.words.valid.eq(words.valid),
                words.ready.eq(region.words.ready),
                self.activity[side].eq(region.activity),
            ]
        if self.parameters.engine.clock_requests:
            self.elaborate_clock(m)
        return m

    def elaborate_clock(self, m):
        """Ask for the clock while a word waits, a region works, or reset is on its way."""
        # A word passes the stages of a region, and those behind its engine, more than once.
        m.submodules.clock = clock = ClockRequest(2 * self.latency)
        works = Cat(region.works for region in self.regions).any()
        m.d.comb += [
            clock.active.eq(self.words.valid | works | self.reset | ResetSignal()),
            self.clock_request.eq(clock.wanted),
            self.vacant.eq(Cat(region.vacant for region in self.regions).all()),
        ]

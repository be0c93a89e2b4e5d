# SPDX-License-Identifier: Apache-2.0
"""Figures from Amaranth's own simulator: a ScaleGate, a link, and a chain of which a core stops."""

import random
from random import Random

from amaranth import *
from amaranth.hdl import Cat, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from bench.handshake import HANDSHAKE, LOW_LATENCY
from bench.handshake.accelerator import ChainAccelerator
from hdl.link.settings import LinkSettings
from hdl.parameters import JoinParameters, KeyField
from hdl.scalegate.gate import ScaleGate
from hdl.scalegate.words import GateKind
from hdl.words.inputs import Control, InputKind, input_word
from sim.link.line import LineBench
from sim.link.simulation import simulate
from sim.model.scale_gate import GateWord, GateWordKind, ScaleGateReference

from .registry import Result, figure

__all__ = ["GateRun", "StoppableCore", "received"]

# How many tuples a ScaleGate passes per cycle.

TIME_BITS, BODY_BITS = 20, 16
#: Mean distance between two tuples of the merged stream.
DISTANCE = 4


class GateRun:
    """Sources with random times, of which each pauses in some cycles by chance.

    Parameters
    ----------
    sources : int
        Number of sources.
    tuples : int
        Tuples of all sources together.
    gaps : float
        Share of cycles in which a source has nothing to offer.
    stalls : float
        Share of cycles in which nothing is taken from the gate.

    Attributes
    ----------
    steady : float
        Tuples per cycle at the output, from the first tuple up to the last one before some source
        had sent everything.
    """

    def __init__(self, sources, *, tuples, gaps, stalls=0.0, seed=0):
        self.dut = ScaleGate(TIME_BITS, BODY_BITS, sources=sources)
        self.gaps, self.stalls = gaps, stalls
        self.random = Random(seed)
        self.queues = [
            sorted(self.random.randrange(1, tuples * DISTANCE) for _ in range(tuples // sources))
            for _ in range(sources)
        ]
        self.expected = self.merged()
        self.found, self.stamps = [], []
        self.ended = None  # cycle in which the first source has sent everything

    def merged(self):
        """Return (time, source) of every tuple in the order of the reference."""
        gate = ScaleGateReference(len(self.queues))
        found = []
        for number, times in enumerate(self.queues):
            for time in times:
                found += gate.push(number, GateWord(GateWordKind.TUPLE, time))
            found += gate.push(number, GateWord(GateWordKind.LEAVE))
        return [(word.time, word.source) for word in found]

    def run(self, *, deadline):
        """Run until every tuple has left.

        Raises
        ------
        AssertionError
            If the order is not that of the reference, or after ``deadline`` cycles.
        """
        simulate(self.dut, self.bench, deadline=deadline)
        if self.found != self.expected:
            raise AssertionError("the gate must give the order of the reference")
        within = [at for at in self.stamps if self.ended is None or at < self.ended]
        self.steady = (len(within) - 1) / (within[-1] - within[0])

    async def bench(self, ctx):
        """Offer words by chance, and hold each until it is taken."""
        dut = self.dut
        words, out = dut.i[0].payload.shape(), dut.o.payload.shape()
        rest = [[*map(self.tuple_at, times), {"kind": GateKind.LEAVE}] for times in self.queues]
        rest = [[words.const(word) for word in reversed(some)] for some in rest]
        offered = [False] * len(rest)
        readies = [i.ready for i in dut.i]
        cycle = 0
        while len(self.found) < len(self.expected):
            for n, i in enumerate(dut.i):
                if not offered[n] and rest[n] and self.random.random() >= self.gaps:
                    offered[n] = True
                    ctx.set(i.payload, rest[n][-1])
                    ctx.set(i.valid, 1)
            taking = self.random.random() >= self.stalls
            ctx.set(dut.o.ready, taking)
            *_, valid, bits, ready = await ctx.tick().sample(
                dut.o.valid, Value.cast(dut.o.payload), Cat(readies)
            )
            if valid and taking:
                self.take(out.from_bits(bits), cycle)
            for n, i in enumerate(dut.i):
                if offered[n] and ready >> n & 1:
                    offered[n] = False
                    ctx.set(i.valid, 0)
                    rest[n].pop()
                    if not rest[n] and self.ended is None:
                        self.ended = cycle
            cycle += 1

    def tuple_at(self, time):
        """Return the members of a tuple whose body is the lower half of its time."""
        return {"kind": GateKind.TUPLE, "time": time, "body": time % (1 << BODY_BITS)}

    def take(self, word, cycle):
        """Note a word that leaves."""
        if word.kind == GateKind.TUPLE:
            if word.late or word.body != word.time % (1 << BODY_BITS):
                raise AssertionError(f"a tuple of time {word.time} is late, or has lost its body")
            self.found.append((word.time, word.source))
            self.stamps.append(cycle)


#: Numbers of sources, and tuples of a run. Amaranth's simulator runs some hundred cycles per second
#: of the largest gate.
RUNS = {2: 8_000, 8: 8_000, 64: 6_400}
#: Share of cycles in which a source has nothing to offer.
GAPS = 0.25


@figure("scalegate.words_per_cycle", unit="tuples per cycle", goal=">= 0.99")
def words_per_cycle(report):
    """Tuples per cycle of a ScaleGate whose sources pause at random; the least of three gates.

    Each of 2, 8 and 64 sources has random times of the same density, and nothing to offer in a
    quarter of the cycles. Counted at the output while all sources still have tuples. The order is
    compared with the reference.
    """
    found = {}
    for sources, tuples in RUNS.items():
        report(f"ScaleGate of {sources} sources")
        run = GateRun(sources, tuples=tuples, gaps=GAPS, seed=sources)
        run.run(deadline=4 * tuples)
        found[sources] = run.steady
    notes = tuple(
        f"{sources} sources, gaps in {GAPS:.0%} of the cycles: {share:.4f} tuples per cycle"
        for sources, share in found.items()
    )
    return Result(min(found.values()), notes=notes, details={"sources": found})


# What the circuit of a link carries, and what it makes of a line that damages bytes.

#: Bits of input words and of result words.
INPUT_BITS, RESULT_BITS = 64, 40
#: Bytes of words each way, with a clean line and with a bad one. Amaranth's simulator runs some
#: thousand cycles per second.
CLEAN_BYTES, BAD_BYTES = 12_000, 1_500
#: Share of the bytes that a bad line damages.
DAMAGE = 0.01
CYCLES = 1_000_000


def line(**options):
    """Return both ends with default sizes of frames and windows, and a line between."""
    chosen = LinkSettings(
        input_bits=INPUT_BITS, result_bits=RESULT_BITS, hash=bytes(32),
        timeout_cycles=10_000, heartbeat_cycles=5_000,
    )  # fmt: skip
    return LineBench(chosen, **options)


def random_words(bits, size, seed):
    """Return words that take ``size`` bytes."""
    rng = random.Random(seed)
    return [rng.randrange(1 << bits) for _ in range(size * 8 // bits)]


@figure("link.circuit.efficiency", unit="of 1", goal=">= 0.9")
def link_efficiency(report):
    """Share of the line that carries words while both directions are full, the worse direction."""
    run = line()
    inputs, outputs = (random_words(bits, CLEAN_BYTES, bits) for bits in (INPUT_BITS, RESULT_BITS))
    found = run.exchange(inputs, outputs, deadline=CYCLES)
    if (found, run.words) != (outputs, inputs):
        raise AssertionError("a clean line must change no word")
    share = CLEAN_BYTES / (run.cycle / run.pace)
    note = f"{CLEAN_BYTES} bytes of words each way; frames of 240 bytes, short ones at first"
    return Result(share, notes=(note,))


@figure("link.circuit.errors_1pct.differences", unit="words", goal="<= 0")
def link_differences(report):
    """Words that are lost, repeated, changed or out of place where one byte in 100 is damaged."""
    run = line(rate=DAMAGE)
    inputs, outputs = (random_words(bits, BAD_BYTES, bits) for bits in (INPUT_BITS, RESULT_BITS))
    found = run.exchange(inputs, outputs, deadline=CYCLES)
    wrong = sum(a != b for a, b in zip(found, outputs, strict=True))
    wrong += sum(a != b for a, b in zip(run.words, inputs, strict=True))
    damaged = sum(noise.damaged for noise in run.noises)
    note = f"{len(inputs) + len(outputs)} words, {damaged} bytes damaged, {run.cycle} cycles"
    return Result(wrong, notes=(note,))


# How many tuples still get to the other cores of a chain.

#: What a core is told beside its lanes.
INPUTS = ("position", "last", "reset")


class StoppableCore(wiring.Component):
    """A core of a chain that takes and sends nothing while ``stopped`` is high.

    Latency, throughput: those of the core.

    Parameters
    ----------
    core : HandshakeCore or ExpeditedCore
    """

    def __init__(self, core):
        self.core, self.latency, self.stopped = core, core.latency, Signal()
        super().__init__(core.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = self.core
        arriving = [(self.r_i, core.r_i), (self.s_i, core.s_i)]
        leaving = [(self.r_o, core.r_o), (self.s_o, core.s_o)]
        leaving += zip(self.results, core.results, strict=True)
        for outside, inside in arriving:
            connect(m, flipped(outside), inside)
        for outside, inside in leaving:
            connect(m, inside, flipped(outside))
        m.d.comb += [getattr(core, name).eq(getattr(self, name)) for name in INPUTS]
        m.d.comb += self.taken.eq(core.taken)
        for side in range(2):
            m.d.comb += self.activity[side].eq(core.activity[side])
            if "held_i" in self.signature.members:
                m.d.comb += [
                    core.held_i[side].eq(self.held_i[side]),
                    self.held_o[side].eq(core.held_o[side]),
                ]
        with m.If(self.stopped):  # later assignments win
            m.d.comb += [
                *(outside.ready.eq(0) for outside, _ in arriving),
                *(inside.valid.eq(0) for _, inside in arriving),
                *(outside.valid.eq(0) for outside, _ in leaving),
                *(inside.ready.eq(0) for _, inside in leaving),
            ]
        return m


def received(architecture, cores, stopping, *, sub_window=8):
    """Return the words that each core takes of R's and of S's lane after one has stopped.

    Parameters
    ----------
    architecture : str
        One of the chains.
    cores : int
        Number of cores.
    stopping : int or None
        The core that stops when both windows are full. Then tuples are offered for as long as it
        takes to fill the windows again.
    sub_window : int
        Tuples of a side in a core.

    Returns
    -------
    list of (int, int)
        For each core, of R and of S.
    """
    parameters = JoinParameters.of(
        cores=cores, sub_window=sub_window, keys=(KeyField(name="x", bits=8),),
        comparator="equality", architecture=architecture, fan_in=2,
    )  # fmt: skip
    dut = ChainAccelerator(parameters)
    cores_of = dut.chain.cores
    core = cores_of[stopping or 0] = StoppableCore(cores_of[stopping or 0])
    layout, capacity = input_word(parameters), parameters.capacity
    taken = [[0, 0] for _ in range(cores)]

    def window(side):
        operands = {"op": Control.WINDOW, "index": side, "value": capacity}
        return layout.const({"kind": InputKind.CONTROL, "body": {"control": operands}})

    def tuples(count):
        for number in range(count):
            kind = InputKind.S if number % 2 else InputKind.R
            yield layout.const({"kind": kind, "body": {"tuple": {"key": {"x": number % 200}}}})

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.i.valid, 1)
        for word in (window(0), window(1), *tuples(4 * capacity)):
            ctx.set(dut.i.payload, word)
            await ctx.tick().until(dut.i.ready)
        ctx.set(core.stopped, stopping is not None)
        words = Cat(each.taken for each in cores_of)
        following = tuples(2 * capacity)
        ctx.set(dut.i.payload, next(following))
        for _ in range(cycles):
            *_, ready, bits = await ctx.tick().sample(dut.i.ready, words)
            for place in range(2 * cores):
                taken[place // 2][place % 2] += bits >> place & 1
            if ready:
                ctx.set(dut.i.payload, next(following, layout.const({"kind": InputKind.R})))

    # A tuple takes as many cycles as a core keeps tuples, and some for the coordinator.
    cycles = 2 * capacity * (sub_window + 8)
    simulate(dut, bench, deadline=5 * cycles)
    return [tuple(one) for one in taken]


@figure("failure.chain_words", unit="words", goal="<= 16")
def chain_words(report):
    """Words that any core of a handshake chain still takes after one of eight cores has stopped.

    Either chain, with windows of 64 tuples that have been filled twice; core 4 stops, and tuples
    are offered in every cycle for the time of a window. The most of either lane. Of SplitJoin with
    gates, the other cores go on (``failure.lost_pairs_exact``).
    """
    notes, most = [], 0
    for architecture in (HANDSHAKE, LOW_LATENCY):
        report(architecture)
        words = received(architecture, 8, 4)
        most = max(most, *(count for core in words for count in core))
        notes.append(f"{architecture}, words of R and S by core: {words}")
    return Result(most, notes=tuple(notes))

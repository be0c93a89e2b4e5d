# SPDX-License-Identifier: Apache-2.0
"""An ingress and its distribution tree, and how an epoch passes through them cycle by cycle."""

from collections import Counter
from statistics import fmean, pstdev

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.ingress.ingress import Ingress
from hdl.parameters import JoinParameters, KeyField
from hdl.tree import tree_levels
from hdl.trees.distribution import DistributionTree
from hdl.words.inputs import Control, InputKind, input_word
from hdl.words.prepared import region_word
from sim.link.simulation import simulate

__all__ = ["Broadcast", "EpochRun"]


class Broadcast(wiring.Component):
    """What lies between the input of an accelerator and its cores, without the cores.

    Latency: that of the ingress and of the tree. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(stream.Signature(input_word(parameters)))
    o : Out(stream.Signature(region_word(parameters))).array(cores)
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.ingress = Ingress(parameters)
        self.tree = DistributionTree(
            region_word(parameters), leaves=parameters.cores, fan_out=parameters.fan_out
        )
        self.latency = self.ingress.latency + self.tree.latency
        super().__init__(
            {
                "i": In(stream.Signature(input_word(parameters))),
                "o": Out(stream.Signature(region_word(parameters))).array(parameters.cores),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.ingress = ingress = self.ingress
        m.submodules.tree = tree = self.tree
        connect(m, flipped(self.i), ingress.i)
        connect(m, ingress.o, tree.i)
        for leaf, o in zip(tree.o, self.o, strict=True):
            connect(m, leaf, flipped(o))
        m.d.comb += ingress.room.eq(1)
        return m


class EpochRun:
    """Sends tuples without a pause, and epochs between them; every core takes a word per cycle.

    Parameters
    ----------
    cores : int
        Cores of the accelerator.
    steps : sequence of (int, int)
        Numbers of active cores before and after each step.
    tuples : int
        Least number of tuples in the epoch before a step.

    Attributes
    ----------
    depth : int
        Levels of the distribution tree.
    cycles : dict of (int, int) to int
        For each step, cycles from the one in which SEGMENT is taken to the one in which the last
        core has the first tuple of the new epoch.
    preparation : dict of (int, int) to int
        For each step, cycles in which its CORE words were taken, which change nothing yet.
    stalls : int
        Cycles in which the input had to wait.
    stored : dict of (int, int) to Counter
        For each step, how many tuples of the epoch before it each active core was told to store.
    """

    def __init__(self, cores, steps, tuples=0):
        self.parameters = JoinParameters.of(
            cores=cores, keys=(KeyField(name="x", bits=16, signed=False),)
        )
        self.depth = len(tree_levels(cores, self.parameters.fan_out))
        self.steps, self.tuples = steps, tuples
        self.dut = Broadcast(self.parameters)
        self.cycles, self.preparation, self.stored, self.stalls = {}, {}, {}, 0

    def run(self):
        """Send everything.

        Raises
        ------
        AssertionError
            If two cores are told different turns for a tuple, or other turns than those of the
            epoch, or if a core misses a word.
        """
        words, marks = self.program()
        simulate(self.dut, lambda ctx: self.bench(ctx, words, marks), deadline=20 * len(words))

    def program(self):
        """Return the words, and by step the numbers of its first CORE word and of its SEGMENT."""
        layout = input_word(self.parameters)
        words = []
        self.owners = {}  # by the key of a tuple, the core that has to store it

        def control(op, value=0):
            operands = {"op": Control[op], "index": 0, "value": value}
            words.append(layout.const({"kind": InputKind.CONTROL, "body": {"control": operands}}))

        def epoch(active, tuples=0):
            live = [(len(words) + n) % self.parameters.cores for n in range(active)]
            for core in live:
                control("CORE", core)
            control("SEGMENT")
            begin = len(words) - 1
            for turn in range(max(tuples, 2 * self.parameters.cores // active + 3)):
                key = len(self.owners)
                self.owners[key] = live[turn % active]
                body = {"tuple": {"key": {"x": key}}}
                words.append(layout.const({"kind": InputKind.R, "body": body}))
            return begin

        control("WINDOW", 1)  # of side R, so that no list of cores is needed for long
        marks = {}
        for step in self.steps:
            known = len(self.owners)
            epoch(step[0], self.tuples)
            self.stored[step] = Counter(list(self.owners.values())[known:])
            before = len(words)
            begin = epoch(step[1])
            marks[step] = (before, begin)
        return words, marks

    def imbalance(self, step):
        """Return the coefficient of variation of what cores stored before a step, in per cent."""
        counts = self.stored[step].values()
        return 100 * pstdev(counts) / fmean(counts)

    async def bench(self, ctx, words, marks):
        """Offer a word in every cycle, and note when words are taken and arrive."""
        dut = self.dut
        accepted, arrived = [], {}
        shape = region_word(self.parameters)
        for o in dut.o:
            ctx.set(o.ready, 1)
        cycle = 0
        valids = Cat(o.valid for o in dut.o)
        while len(arrived) < len(self.owners):
            offers = len(accepted) < len(words)
            ctx.set(dut.i.valid, offers)
            if offers:
                ctx.set(dut.i.payload, words[len(accepted)])
            *_, ready, valid, bits = await ctx.tick().sample(
                dut.i.ready, valids, Cat(Value.cast(o.payload) for o in dut.o)
            )
            if offers and ready:
                accepted.append(cycle)
            elif offers and accepted:
                self.stalls += 1
            self.arrive(valid, bits, shape, arrived, cycle)
            cycle += 1
        for step, (before, begin) in marks.items():
            first = sum(word.kind == InputKind.R for word in words[:begin])
            self.cycles[step] = arrived[first] - accepted[begin]
            self.preparation[step] = accepted[begin] - accepted[before]

    def arrive(self, valid, bits, shape, arrived, cycle):
        """Check what the cores are told in a cycle: the same word, and the turns of its epoch."""
        if not valid:
            return
        width, cores = shape.size, self.parameters.cores
        told = {bits >> n * width & (1 << width) - 1 for n in range(cores) if valid >> n & 1}
        assert valid == (1 << cores) - 1, f"only cores {valid:b} have a word"
        assert len(told) == 1, "cores disagree about a word"
        word = shape.from_bits(told.pop())
        if word.kind == InputKind.R:
            key = word.body.tuple.key.x
            assert word.storing[0] == self.owners[key], f"tuple {key} has another owner"
            arrived[key] = cycle

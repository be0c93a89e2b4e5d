# SPDX-License-Identifier: Apache-2.0
"""What changes of turns and epochs cost, and whether a join under many of them is exact."""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from statistics import fmean, pstdev

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
import numpy as np

from bench.epochs import ENGINES, WINDOWS, compare
from bench.simulated import built
from hdl.ingress.ingress import Ingress
from hdl.parameters import JoinParameters, KeyField
from hdl.tree import tree_levels
from hdl.trees.distribution import DistributionTree
from hdl.words.inputs import Control, InputKind, input_word
from hdl.words.prepared import region_word
from host.errors import DeviceError
from sim.benches.saturated_run import RARE, SaturatedRun, tuples
from sim.link.simulation import simulate

from .registry import Result, figure

__all__ = ["Broadcast", "CHANGES", "EpochRun", "Load", "counted", "cycles_more"]

# What a change of the cores that store costs: by the change itself, and by groups that it ends.

#: Changes in a run.
CHANGES = 40
FIELDS = tuple(KeyField(name=name, bits=16, signed=False) for name in "xy")
SCAN = JoinParameters.of(cores=4, sub_window=64, lanes=2, probes=8, keys=FIELDS, probe_bits=3)
INDEX = JoinParameters.of(
    engine="index", cores=4, sub_window=256, probes=8, keys=FIELDS, probe_bits=3, bucket_bits=8
)


@dataclass(frozen=True)
class Load:
    """A saturated accelerator, its precision, and the order in which cores take turns.

    Parameters
    ----------
    parameters : JoinParameters
    period : int
        Probes per star.
    rotates : bool
        Whether every segment begins with another core. Otherwise cores keep their order, and a
        segment begins with the core whose turn it is, so that each core does the same work.
    """

    parameters: JoinParameters
    period: int
    rotates: bool = False

    @property
    def distance(self):
        """Return the number of tuples of both sides from change to change.

        Turns of all cores come round, a full group does not, and no window holds tuples of more
        than three segments.
        """
        return self.parameters.capacity + 2 * self.parameters.cores

    def cores(self, number):
        """Return the cores of a segment."""
        first = number if self.rotates else 0
        return [(first + n) % self.parameters.cores for n in range(self.parameters.cores)]


#: Loads whose regions store the same tuples with changes and without.
LOADS = {
    "scan, strict outer order": Load(SCAN, 1),
    "scan, groups of 8": Load(SCAN, 8),
    "index, strict outer order": Load(INDEX, 1),
    "index, groups of 8": Load(INDEX, 8),
}
#: A load with changes after which cores have up to one tuple more than others.
ROTATED = {"index, groups of 8, other cores first": Load(INDEX, 8, rotates=True)}


def change_words(codec, load, number, kind):
    """Return the control words of one change: of ``kind`` "turns", "closing" or "nothing".

    There are as many words of each kind: CORE words and SEGMENT; BOUND_LOW words, which repeat the
    bound in force, and FLUSH; BOUND_LOW words alone.
    """
    live, bound = load.cores(number), codec.pack_control("BOUND_LOW", 0, -RARE)
    if kind == "turns":
        cores = [codec.pack_control("CORE", value=core) for core in live]
        return [*cores, codec.pack_control("SEGMENT")]
    last = codec.pack_control("FLUSH") if kind == "closing" else bound
    return [*[bound] * len(live), last]


@cache
def counted(load, kind, report):
    """Return the counters of a run: full windows, and words as fast as they are accepted."""
    with closing(SaturatedRun(load.parameters, report, period=load.period)) as run:
        run.bound(RARE)
        changes = [change_words(run.codec, load, number, kind) for number in range(CHANGES)]
        places = np.repeat((np.arange(CHANGES) + 1) * load.distance, len(changes[0]))
        every = run.tuples((CHANGES + 1) * load.distance)
        words = np.insert(
            every, places, np.concatenate([word for change in changes for word in change]), axis=0
        )
        before = run.device.counters()
        run.send(words, marks=1 + (CHANGES if kind == "closing" else 0))
        after = run.device.counters()
    counts = {name: after[name] - before[name] for name in after}
    if counts["illegal"] or tuples(counts) != len(every):
        raise DeviceError(f"The accelerator dropped words of a run that measures turns: {counts}")
    return counts


def cycles_more(loads, kind, report):
    """Return, for each load, how many cycles a change of turns takes more than other words."""
    found = {}
    for name, load in loads.items():
        without, changed = (counted(load, one, report)["cycles"] for one in (kind, "turns"))
        found[name] = (changed - without) / CHANGES
        report(f"figures: {name}: {without} cycles with words of kind {kind}, {changed} with turns")
    return found


def told(found):
    """Return the notes of a figure."""
    return tuple(f"{name}: {value:+.3f}" for name, value in found.items())


@figure("segments.stall_cycles", unit="cycles", goal="<= 0")
def stall_cycles(report):
    """Cycles that a change of turns takes more than a word that only closes groups; the worst load.

    Two saturated runs are compared by the counter ``cycles``, from the first word to the last mark.
    Both have the same tuples and as many control words, at the same 40 places. One has CORE words
    and SEGMENT there, the other one has bounds that repeat those in force, and FLUSH. The cores
    keep their order, so that in both runs each region stores the same tuples.

    The value is in whole cycles for each change; the notes have the fractions. BOUND_LOW goes
    through the trees, CORE does not, and FLUSH emits a mark. So now and then, an index is a cycle
    ahead in one of the runs.

    The last note is of cores in another order for every segment. Then cores differ by a tuple for a
    while, which is work and no stall, and is not judged.
    """
    found = cycles_more(LOADS, "closing", report)
    rotated = cycles_more(ROTATED, "closing", report)
    worst = round(max(found.values()))
    return Result(worst, notes=told(found | rotated), details={"loads": found | rotated})


@figure("segments.closing_cycles", unit="cycles", goal=None)
def closing_cycles(report):
    """Cycles that a change of turns costs because SEGMENT closes the open groups; the worst load.

    As ``segments.stall_cycles``, but beside as many words that close no group. A group that ends
    early takes a pass of its own, in which fewer probes share the work; and so does the closing
    word itself, as FLUSH does. A change comes in the middle of a group of each side.
    """
    found = cycles_more(LOADS, "nothing", report)
    return Result(max(found.values()), notes=told(found), details={"loads": found})


# How an epoch passes through an ingress and its distribution tree, cycle by cycle.


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


# What an epoch costs, and whether a join under many epochs answers each pair once.

#: Steps of the seed's Table IV: threads before and after a reconfiguration.
STEPS = [
    (1, 2), (5, 9), (9, 16), (18, 31), (30, 52), (40, 69),
    (5, 2), (9, 3), (18, 7), (30, 12), (40, 17), (60, 25), (70, 30),
]  # fmt: skip
#: Tuples and epochs of each of the joins.
TUPLES, EPOCHS = 250_000, 2_500


@cache
def broadcast():
    """Return the run of all steps, in an accelerator of as many cores as the largest needs."""
    run = EpochRun(max(map(max, STEPS)), STEPS)
    run.run()
    return run


@figure("epoch.reconfiguration_cycles", unit="cycles", goal="<= 16")
def reconfiguration_cycles(report):
    """Cycles from SEGMENT to the first tuple of the new epoch at the last core; the worst step.

    All steps of the seed's Table IV, from 1 -> 2 up to 70 -> 30 active cores, in the ingress and
    the distribution tree of an accelerator of 70 cores, in Amaranth's simulator. Cores take a word
    in every cycle; a core that does not delays epochs as it delays all words. The goal is twice the
    depth of the tree and 8. In every cycle, all cores are compared: they have the same word, and it
    names the owner that the epoch in force says.

    CORE words come before SEGMENT, one per core. They change nothing until then.
    """
    report("70 cores, all steps of Table IV")
    run = broadcast()
    notes = tuple(
        f"{old} to {new} cores: {cycles} cycles, after {run.preparation[old, new]} of CORE words"
        for (old, new), cycles in run.cycles.items()
    )
    depth = f"depth of the tree {run.depth}, so the goal is {2 * run.depth + 8}"
    return Result(max(run.cycles.values()), notes=(depth, *notes))


#: Tuples of a side in the windows of which the imbalance is measured.
BALANCED = 1 << 12


@figure("epoch.imbalance", unit="%", goal="<= 2")
def imbalance(report):
    """Coefficient of variation of the tuples that cores hold before a step of Table IV; the worst.

    The right half of the seed's Figure 9, for a window of :data:`BALANCED` tuples: a core compares
    each probe with what it holds. What each of the 70 cores is told to store is counted in the
    circuit of ``epoch.reconfiguration_cycles``.
    """
    report("70 cores, windows of 4,096 tuples")
    first = {step[0]: step for step in STEPS}
    run = EpochRun(max(map(max, STEPS)), list(first.values()), BALANCED)
    run.run()
    found = {old: run.imbalance(step) for old, step in sorted(first.items())}
    notes = tuple(f"{old} cores: {percent:.2f} %" for old, percent in found.items())
    return Result(max(found.values()), notes=notes)


@figure("epoch.stall_cycles", unit="cycles", goal="<= 0")
def epoch_stall_cycles(report):
    """Cycles in which the input waits, over all steps of Table IV.

    The run of ``epoch.reconfiguration_cycles``: a word is offered in every cycle. What closing the
    groups costs in the cores is ``segments.closing_cycles``.
    """
    report("70 cores, all steps of Table IV")
    return broadcast().stalls


@figure("epoch.lost_or_repeated_pairs", unit="pairs", goal="<= 0")
def lost_or_repeated_pairs(report):
    """Pairs that are lost, repeated or wrong in 1,000,000 tuples under 10,000 random epochs.

    A scan and an index, each with a count-based and a time-based window, simulated; 250,000 tuples
    and 2,500 epochs each, at random places, of random cores in a random order. Compared with the
    reference join, pair by pair. An epoch whose successor comes before the ingress has a free list
    of cores is superseded.
    """
    found = {}
    for engine, parameters in ENGINES.items():
        bundle = built(parameters, f"epochs-{engine}", report)
        for kind, window in WINDOWS.items():
            report(f"{engine}, {kind} window")
            name = f"{engine}, {kind} window"
            found[name] = compare(
                f"sim:{bundle}", window, tuples=TUPLES, epochs=EPOCHS, seed=len(found)
            )
    notes = tuple(
        f"{name}: {one.pairs:,} pairs, {one.epochs:,} epochs and {one.superseded:,} superseded, "
        f"{one.bad} pairs wrong"
        for name, one in found.items()
    )
    return Result(sum(one.bad for one in found.values()), notes=notes)

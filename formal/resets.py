# SPDX-License-Identifier: Apache-2.0
"""Proofs that reset leads from any state to the state after power-up, as far as it is visible."""

from amaranth import *
from amaranth.lib import data, wiring

from hdl.ingress.ingress import Ingress
from hdl.ingress.punctuation import GroupSchedule, Punctuation
from hdl.local_reset import STAGES
from hdl.scan.serializers import GroupCollector, LaneSerializer, PairSerializer
from hdl.streams.queues import PointerQueue
from hdl.streams.registers import SteadyQueue, StreamRegister
from hdl.trees.combiner import Combiner, DualCombiner
from hdl.trees.distribution import DistributionNode, DistributionTree
from hdl.trees.merger import MergerTree, OrderedMerger, OrderedMergerTree
from hdl.trees.order_queue import OrderQueue, TurnQueue, Turns
from hdl.trees.result_pairing import SideExit
from hdl.window.tracker import WindowTracker

from .proof import proof
from .small import PAIRED, SMALL, ingress_parameters, scan_parameters, window_parameters

__all__ = []

#: Least length of a reset, in cycles, for components in which reset passes registers.
LONG = 16


def twins(bench, make, *, cycles, quiet=(), after=0, shown=None, rules=None):
    """Return a function that builds the bench of two components, one of which starts in any state.

    Both components see the same reset, ``cycles`` cycles long, and the same inputs. The claims are
    that their outputs are the same from then on.

    Parameters
    ----------
    make : function
        Function that returns the component.
    cycles : int
        Length of the reset.
    quiet : sequence of str
        Inputs that are zero up to and including the last cycle of reset; ``valid`` always is.
    after : int
        Number of cycles after reset for which these inputs remain zero.
    shown : dict of str to str
        Outputs that are only compared while another output is set. Payloads are only compared while
        they are valid.
    rules : function
        Promises of the component's user, as a function of the members by path.
    """
    bench.forgotten = ["old"]
    old, new = (bench.add(make(), name) for name in ("old", "new"))
    count = bench.register(range(cycles + after + 2), "count")
    last = cycles + after
    bench.next(count.eq(count + (count <= last)))
    resets = bench.wire(count < cycles)
    bench.set(bench.reset, resets)
    silent = bench.wire(count < last)
    members = [dict(members_of(dut)) for dut in (old, new)]
    for path, (flow, port) in members[1].items():
        if flow is wiring.In:
            given = drive(bench, path, port, resets, silent, quiet)
            bench.set(port, given)
            bench.set(members[0][path][1], given)
    if rules is not None:
        values = {path: port for path, (_, port) in members[1].items()}
        bench.assume(silent | rules(values))
    for path, (flow, port) in members[1].items():
        if flow is wiring.Out:
            means = meaning(path, members[1], shown or {})
            same = members[0][path][1] == port
            bench.claim(f"{path} is as after power-up", (count < last) | ~means | same)
    bench.cover("reset is over", count > last)


def drive(bench, path, port, resets, silent, quiet):
    """Return the value that drives a port."""
    name = path.rpartition(".")[2]
    if name == "reset" or path.startswith("resets"):
        return resets
    if name == "position":
        return bench.constant(len(port), "position")
    given = bench.any(len(port), name)
    return Mux(silent, 0, given) if name == "valid" or name in quiet else given


def members_of(dut):
    """Yield the members of a component that have bits, as (path, (flow, value))."""
    for path, member, value in dut.signature.flatten(dut):
        value = Value.cast(value)
        if len(value) and not isinstance(value, Const):
            yield ".".join(str(step) for step in path), (member.flow, value)


def meaning(path, members, shown):
    """Return the condition under which an output is compared."""
    stem, _, name = path.rpartition(".")
    if name == "payload":
        return members[f"{stem}.valid"][1]
    return members[shown[path]][1] if path in shown else C(1)


def reset_proof(name, component, make, mutate, *, cycles, depth, spared=None, **options):
    """Add the proof about the reset of a component."""
    proof(
        f"reset-{name}",
        says=f"reset, {cycles} cycles of it, leads from any state to the one after power-up",
        component=component,
        depth=depth,
        mutate=mutate,
        of_reset=True,
        spared=spared or {},
        given={"make": make, "cycles": cycles, **options},
    )(twins)


def within(values):
    """Return the promises of the user of a queue of four."""
    return (~values["take"] | values["filled"]) & (~values["add"] | (values["level"] < 4))


#: Of a register at an output, with a long reset.
READY = {"Signal(init=1)": "nothing is valid while reset lasts: it gets ready"}
WORD = data.StructLayout({"early": 1, "rest": 1})

# fmt: off
reset_proof(
    "stream-register", "StreamRegister", lambda: StreamRegister(2), (StreamRegister.elaborate,),
    cycles=1, depth=9,
)
reset_proof(
    "stream-register-early", "StreamRegister, an early flag",
    lambda: StreamRegister(WORD, early=["early"]), (StreamRegister.elaborate,), cycles=2,
    depth=9, spared={"Signal(init=1)": "nothing is valid in the second cycle: it gets ready"},
)
reset_proof(
    "pointer-queue", "PointerQueue, 4 places", lambda: PointerQueue(1, depth=4, reserve=1),
    (PointerQueue,), cycles=1, depth=9, quiet=("add", "take"), shown={"first": "filled"},
    rules=within,
)
reset_proof(
    "steady-queue", "SteadyQueue", lambda: SteadyQueue(1, stages=1), (PointerQueue,), cycles=1,
    depth=8,
)
reset_proof(
    "tracker", "WindowTracker, 2 cores", lambda: WindowTracker(window_parameters(cores=2)),
    (WindowTracker,), cycles=2, after=1, depth=10,
    quiet=("store", "begin_count", "begin_time", "empty", "forget"),
    spared={
        "Signal() -> reset_less (1)": "of use with timestamps only",
        "Signal(name=name)": "the inputs that it follows are quiet in the first cycle of reset",
    },
)
reset_proof(
    "group-schedule", "GroupSchedule, groups of 3", lambda: GroupSchedule(ingress_parameters()),
    (GroupSchedule,), cycles=1, depth=16, quiet=("probe", "other", "finish", "advance"),
    spared={
        "init=probes == 1": "the first group ends with its first probe, which is due",
        "probe_bits + 1": "the first probe is due by its flag, and its star sets the counter",
    },
)
reset_proof(
    "punctuation", "Punctuation", lambda: Punctuation(ingress_parameters()), (Punctuation,),
    cycles=1, depth=6, quiet=("probes", "finish", "advance"),
    spared={"probe_bits + 1": "a period of one counts by its flag alone"},
)
reset_proof(
    "turns", "Turns", Turns, (Turns,), cycles=2, depth=8,
)
reset_proof(
    "turn-queue", "TurnQueue", TurnQueue, (TurnQueue,), cycles=1, depth=8, quiet=("ended",),
)
reset_proof(
    "group-collector", "GroupCollector, 2 probes",
    lambda: GroupCollector(scan_parameters(), hold=3),
    (GroupCollector,), cycles=2, depth=8, quiet=("add", "close"),
    rules=lambda values: ~values["close"] | values["add"] | (values["count"] != 0),
    spared={"Signal(self.hold - 1)": "what it holds passes while reset lasts"},
)
reset_proof(
    "pair-serializer", "PairSerializer, 2 probes", lambda: PairSerializer(scan_parameters()),
    (PairSerializer,), cycles=2, depth=9,
    spared={"Signal() -> reset_less (1)": "nothing comes in the second cycle of reset"},
)
reset_proof(
    "lane-serializer", "LaneSerializer, 3 lanes",
    lambda: LaneSerializer(scan_parameters(lanes=3), bits=2), (LaneSerializer,), cycles=1,
    depth=9,
)
reset_proof(
    "order-queue", "OrderQueue, 8 entries", lambda: OrderQueue(1, depth=8),
    (OrderQueue, PointerQueue),
    cycles=LONG, after=STAGES, depth=LONG + STAGES + 8, quiet=("push",),
    spared={
        "Signal.like(queue.level)": "it follows what is reset while reset lasts",
        "init=self.reserve": "nobody looks at the room of this queue",
    },
)
reset_proof(
    "distribution-tree", "DistributionTree, 3 leaves",
    lambda: DistributionTree(WORD, leaves=3, fan_out=2, early=["early"]),
    (DistributionTree, DistributionNode), cycles=LONG, after=STAGES, depth=LONG + STAGES + 7,
)
reset_proof(
    "merger-tree", "MergerTree, 3 cores", lambda: MergerTree(SMALL.with_(cores=3)),
    (OrderedMergerTree, OrderedMerger), cycles=LONG, after=STAGES, depth=LONG + STAGES + 8,
)
reset_proof(
    "combiner", "Combiner", lambda: Combiner(SMALL), (Combiner,), cycles=LONG, after=STAGES,
    depth=LONG + STAGES + 7,
)
reset_proof(
    "dual-combiner", "DualCombiner", lambda: DualCombiner(PAIRED),
    (DualCombiner,), cycles=LONG, after=STAGES, depth=LONG + STAGES + 7,
)
reset_proof(
    "side-exit", "SideExit", lambda: SideExit(SMALL, side=1), (StreamRegister,), cycles=LONG,
    after=STAGES, depth=LONG + STAGES + 7, spared=READY,
)
reset_proof(
    "side-exit-two", "SideExit, two results in a word",
    lambda: SideExit(PAIRED, side=1), (PointerQueue, StreamRegister),
    cycles=LONG, after=STAGES, depth=LONG + STAGES + 7, spared=READY,
)
reset_proof(
    "ingress", "Ingress, an equality", lambda: Ingress(ingress_parameters(timestamp_bits=2)),
    (Ingress,), cycles=LONG, after=STAGES, depth=LONG + STAGES + 9,
)
# fmt: on

# SPDX-License-Identifier: Apache-2.0
"""The counters of an accelerator, and the events that they count."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, or_

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, ceil_log2

from .local_reset import reset_nearby
from .tree import tree_levels
from .words.prepared import activity_layout
from .words.results import result_kinds, result_ports, results_of, results_per_cycle

__all__ = [
    "ADDRESSES",
    "COUNTERS",
    "COUNTER_BITS",
    "COUNTER_LATENCY",
    "ActivityNode",
    "ActivityTree",
    "Counter",
    "CounterBank",
    "Counting",
    "JoinCounting",
    "address_bits",
    "counters_of",
    "elaborate_counters",
]


#: Width of every counter in bits. At 250 MHz, a counter wraps after 13 days.
COUNTER_BITS = 48
#: Clock cycles from the address of a counter to its value.
COUNTER_LATENCY = 2


@dataclass(frozen=True)
class Counter:
    """One entry of the counter map."""

    name: str
    address: int
    description: str
    bits: int = COUNTER_BITS


#: The counter map of every accelerator. All counters count from reset on; readers take differences.
COUNTERS = tuple(
    Counter(name, address, description)
    for address, (name, description) in enumerate(
        [
            ("cycles", "clock cycles"),
            ("tuples_r", "tuples of R accepted"),
            ("tuples_s", "tuples of S accepted"),
            ("comparisons", "comparisons of a probe with a key of its window"),
            ("results", "pairs emitted"),
            ("stars", "stars emitted"),
            ("marks", "marks emitted"),
            ("region_busy", "cycles in which a region read a row, summed over all regions"),
            ("region_stalled", "cycles in which a region's results were stuck, likewise"),
            ("ingress_busy", "cycles in which an input word was taken"),
            ("ingress_stalled", "cycles in which an input word had to wait"),
            ("output_busy", "cycles in which a result word was taken"),
            ("output_stalled", "cycles in which a result word had to wait"),
            ("disorder", "one while time has gone backwards since the last CLEAR"),
            ("illegal", "input words that were illegal, and dropped"),
        ]
    )
)


#: Addresses of :data:`COUNTERS` and spare ones.
ADDRESSES = 16

#: What is counted besides if the memories of stored tuples have parity.
PARITY_COUNTERS = tuple(
    Counter(name, address, description)
    for address, (name, description) in enumerate(
        [
            ("failures", "failures of cores that were noticed"),
            ("parity_errors", "cycles in which a region had read a flipped bit, likewise"),
        ],
        # The simulator gives an address below that no counter has while it reads none.
        start=ADDRESSES,
    )
)


def counters_of(parameters):
    """Return the counters of an accelerator with these parameters."""
    told = {"results": parameters.engine.emits}
    return (
        *(replace(one, description=told.get(one.name, one.description)) for one in COUNTERS),
        *parameters.engine.counters,
        *(PARITY_COUNTERS if parameters.engine.parity else ()),
    )


def address_bits(parameters):
    """Return the number of bits of a counter's address."""
    return ceil_log2(max(ADDRESSES, counters_of(parameters)[-1].address + 1))


class ActivityNode(wiring.Component):
    """Add the activity of up to two children: one addition, with a register behind it.

    Latency: 1 cycle. Throughput: 1 sum per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    children : int
        Number of inputs.
    regions : int
        Largest number of regions that one input stands for.

    Members
    -------
    i : In(activity_layout(parameters, regions)).array(children)
    o : Out(activity_layout(parameters, regions * ARITY))
    """

    ARITY = 2

    def __init__(self, parameters, *, children, regions):
        self.parameters = parameters
        self.latency = 1
        self._layout = activity_layout(parameters, regions)
        super().__init__(
            {
                "i": In(self._layout).array(children),
                "o": Out(activity_layout(parameters, regions * self.ARITY)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for name, _ in self._layout:
            m.d.sync += self.o[name].eq(sum(i[name] for i in self.i))
        return m


class ActivityTree(wiring.Component):
    """Add the activity of all regions.

    The inputs have registers of their own, because the regions are far from each other.

    Latency: ``len(tree_levels(regions, 2)) + 1`` cycles. Throughput: 1 sum per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(activity_layout(parameters)).array(regions)
    o : Out(activity_layout(parameters, ...))
        Wide enough for all regions busy at once.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.regions = parameters.regions
        self._levels = tree_levels(self.regions, ActivityNode.ARITY)
        self.latency = len(self._levels) + 1
        super().__init__(
            {
                "i": In(activity_layout(parameters)).array(self.regions),
                "o": Out(activity_layout(parameters, ActivityNode.ARITY ** len(self._levels))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self.elaborate_sums(m)
        return reset_nearby(m, platform)

    def elaborate_sums(self, m):
        """Register the activity of all regions, and add it up level by level."""
        arity = ActivityNode.ARITY
        children = [Signal.like(i, name=f"region_{n}") for n, i in enumerate(self.i)]
        m.d.sync += [child.eq(i) for child, i in zip(children, self.i, strict=True)]
        for level, count in enumerate(self._levels):
            parents = []
            for n in range(count):
                group = children[n * arity : (n + 1) * arity]
                node = ActivityNode(self.parameters, children=len(group), regions=arity**level)
                m.submodules[f"sum_{level}_{n}"] = node
                m.d.comb += [i.eq(child) for i, child in zip(node.i, group, strict=True)]
                parents.append(node.o)
            children = parents
        m.d.comb += self.o.eq(children[0])


class CounterBank(wiring.Component):
    """All counters of :func:`counters_of`, read through one address.

    Latency: 2 cycles from ``address`` to ``data``; an event is counted 1 cycle late. Throughput:
    every counter counts every cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    activity : In
        Output of the :class:`ActivityTree`.
    accepted : In(2)
        A tuple of R (bit 0), of S (bit 1) was accepted.
    kinds : In(3 * bits_for(results_per_cycle(parameters)))
        How many pairs, stars and marks are emitted in this cycle, with as many bits each.
    ingress : In(2)
        The port is busy (bit 0) or stalled (bit 1).
    output : In(2 * result_streams)
        How many result ports are busy, and how many are stalled, with as many bits each.
    disorder : In(1)
        Shown as it is, not counted.
    illegal : In(1)
        An illegal word was dropped.
    fails : In(cores)
        These cores have failed; only with parity.
    address : In(4), In(5) with parity or external memory
    data : Out(48)
        Zero for an address that is not in the map.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = COUNTER_LATENCY
        self._count_bits = bits_for(results_per_cycle(parameters))
        levels = len(tree_levels(parameters.regions, ActivityNode.ARITY))
        super().__init__(
            {
                "activity": In(activity_layout(parameters, ActivityNode.ARITY**levels)),
                "accepted": In(2),
                "kinds": In(3 * self._count_bits),
                "ingress": In(2),
                "output": In(2 * parameters.engine.result_streams),
                "disorder": In(1),
                "illegal": In(1),
                **({"fails": In(parameters.cores)} if parameters.engine.parity else {}),
                "address": In(address_bits(parameters)),
                "data": Out(COUNTER_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        results, stars, marks = (self.kinds.word_select(n, self._count_bits) for n in range(3))
        busy, stalled = (
            self.output.word_select(n, self.parameters.engine.result_streams) for n in range(2)
        )
        increments = {
            "cycles": 1,
            "tuples_r": self.accepted[0],
            "tuples_s": self.accepted[1],
            "comparisons": self.activity.comparisons,
            "results": results,
            "stars": stars,
            "marks": marks,
            "region_busy": self.activity.busy,
            "region_stalled": self.activity.stalled,
            "ingress_busy": self.ingress[0],
            "ingress_stalled": self.ingress[1],
            "output_busy": busy,
            "output_stalled": stalled,
            "illegal": self.illegal,
        }
        if self.parameters.engine.parity:
            increments |= {
                "failures": sum(self.fails),
                "parity_errors": self.activity.wrong,
            }
        events = self.parameters.engine.events
        increments |= {name: self.activity[activity] for name, activity in events.items()}
        counters = counters_of(self.parameters)
        elaborate_counters(m, self, counters, increments, shown={"disorder": self.disorder})
        return reset_nearby(m, platform)


def elaborate_counters(m, bank, counters, increments, *, shown):
    """Count every event one cycle late, and select a counter by a bit of its own.

    Each counter has a select bit beside it, because the wires of an address would be long. While no
    counter is selected, the outputs of the counters are not evaluated, which saves simulation time.

    Parameters
    ----------
    m : Module
        Module of the bank.
    bank : Component
        With an ``address`` and ``data``.
    counters : sequence of Counter
        The counter map.
    increments, shown : dict of str to value-like
        What each counter adds in a cycle; values of counters that are shown as they are.
    """
    chosen = Signal(len(counters))
    choices = []
    for own, counter in zip(chosen, counters, strict=True):
        if counter.name in shown:
            value = shown[counter.name]
        else:
            value = Signal(counter.bits, name=counter.name)
            increment = Value.cast(increments[counter.name])
            registered = Signal(increment.shape(), name=f"{counter.name}_increment")
            m.d.sync += [registered.eq(increment), value.eq(value + registered)]
        m.d.sync += own.eq(bank.address == counter.address)
        choices.append(value & own.replicate(len(value)))
    with m.If(chosen.any()):
        m.d.sync += bank.data.eq(reduce(or_, choices))
    with m.Else():
        m.d.sync += bank.data.eq(0)


class Counting(ABC):
    """What counts the events of an accelerator, and makes the counters readable at its ports."""

    @abstractmethod
    def place(self, m):
        """Add what sums up the cores to the module of an accelerator, before its cores."""

    @abstractmethod
    def count(self, m, accelerator):
        """Add the counters to the module, after the cores.

        Parameters
        ----------
        m : Module
        accelerator : hdl.accelerator.Top
        """


class JoinCounting(Counting):
    """The counters of a join: what the regions report is summed, ports and ingress are watched.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    """

    def __init__(self, parameters):
        self.activity = ActivityTree(parameters)

    def place(self, m):
        """Add the sum of what the regions report."""
        m.submodules.activity = self.activity

    def count(self, m, accelerator):
        """Count events at the ports, which are those of :class:`hdl.accelerator.Accelerator`."""
        for total, region in zip(self.activity.i, accelerator.activity, strict=True):
            m.d.comb += total.eq(region)
        parameters, ingress, i = accelerator.parameters, accelerator.ingress, accelerator.i
        outputs = [getattr(accelerator, name) for name in result_ports(parameters)]
        m.submodules.counters = counters = CounterBank(parameters)
        leaving = [o.valid & o.ready for o in outputs]
        shown = [results_of(o.payload) for o in outputs]
        bits = bits_for(results_per_cycle(parameters))

        def emitted(kind, ports):
            """Return how many results of a kind leave by some ports in this cycle."""
            found = [leaving[n] & (one.kind == kind) for n in ports for one in shown[n]]
            return resized(reduce(add, found), bits)

        every = range(len(outputs))
        result, star, mark = result_kinds(parameters)
        m.d.comb += [
            counters.activity.eq(self.activity.o),
            counters.accepted.eq(ingress.accepted),
            counters.disorder.eq(ingress.disorder),
            counters.illegal.eq(ingress.illegal),
            counters.ingress.eq(Cat(i.valid & i.ready, i.valid & ~i.ready)),
            counters.output.eq(
                Cat(reduce(add, leaving), reduce(add, (o.valid & ~o.ready for o in outputs)))
            ),
            counters.kinds.eq(
                Cat(
                    emitted(result, every),
                    emitted(star, every),
                    emitted(mark, every[:1]),  # every mark leaves by all ports
                )
            ),
            counters.address.eq(accelerator.counter_addr),
            accelerator.counter_data.eq(counters.data),
        ]
        if parameters.engine.parity:
            m.d.comb += counters.fails.eq(Cat(gate.fails for gate in accelerator.gates))


def resized(value, bits):
    """Return the lowest bits of a value, or the value with zeros above it."""
    return value[:bits] if len(value) >= bits else Cat(value, Const(0, bits - len(value)))

# SPDX-License-Identifier: Apache-2.0
"""The accelerator of aggregates: its cores, ports and counters."""

import re

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.accelerator import Top
from hdl.counters import (
    COUNTER_BITS,
    COUNTER_LATENCY,
    Counter,
    Counting,
    elaborate_counters,
)
from hdl.exits import RegisteredExit
from hdl.installation import kit_version
from hdl.local_reset import reset_nearby
from hdl.manifest import bundle_parts, fingerprint, members, word

from .accumulator import PaneAccumulator
from .aggregate_parameters import is_additive
from .ingress import AggregateIngress
from .trees import ValueTree
from .window_scan import NAMING, WindowScan
from .words import (
    AggregateControl,
    AggregateKind,
    CoreKind,
    ValueKind,
    aggregate_word,
    core_word,
    target_layout,
    value_result,
)

__all__ = [
    "ADDRESS_BITS",
    "AGGREGATE_COUNTERS",
    "AGGREGATE_FORMAT",
    "AggregateAccelerator",
    "AggregateCore",
    "AggregateCounters",
    "AggregateCounting",
    "TargetChoice",
    "aggregate_ports",
    "describe_aggregate",
]

#: The counter map. All counters count from reset on; readers take differences.
AGGREGATE_COUNTERS = tuple(
    Counter(name, address, description)
    for address, (name, description) in enumerate(
        [
            ("cycles", "clock cycles"),
            ("tuples", "tuples sent to the cores"),
            ("panes", "panes that ended"),
            ("results", "values of windows emitted"),
            ("stars", "stars emitted"),
            ("marks", "marks emitted"),
            ("ingress_busy", "cycles in which an input word was taken"),
            ("ingress_stalled", "cycles in which an input word had to wait"),
            ("output_busy", "cycles in which a result word was taken"),
            ("output_stalled", "cycles in which a result word had to wait"),
        ]
    )
)
#: Bits of a counter's address. The last address has no counter, as the simulator expects.
ADDRESS_BITS = ceil_log2(len(AGGREGATE_COUNTERS) + 1)


class AggregateCounters(wiring.Component):
    """All counters of :data:`AGGREGATE_COUNTERS`, read through one address.

    Latency: 2 cycles from ``address`` to ``data``; an event is counted 1 cycle late. Throughput:
    every counter counts every cycle.

    Members
    -------
    events : In(len(AGGREGATE_COUNTERS) - 1)
        Which events but ``cycles`` happen in this cycle, in the order of the map.
    address : In(ADDRESS_BITS)
    data : Out(COUNTER_BITS)
        Zero for an address that is not in the map.
    """

    events: In(len(AGGREGATE_COUNTERS) - 1)
    address: In(ADDRESS_BITS)
    data: Out(COUNTER_BITS)

    latency = COUNTER_LATENCY

    def elaborate(self, platform):
        m = Module()
        names = [counter.name for counter in AGGREGATE_COUNTERS]
        increments = {"cycles": 1, **dict(zip(names[1:], self.events, strict=True))}
        elaborate_counters(m, self, AGGREGATE_COUNTERS, increments, shown={})
        return reset_nearby(m, platform)


def aggregate_ports(parameters):
    """Return the members of an aggregate accelerator.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.
    """
    return {
        "i": In(stream.Signature(aggregate_word(parameters))),
        "o": Out(stream.Signature(value_result(parameters))),
        "counter_addr": In(ADDRESS_BITS),
        "counter_data": Out(COUNTER_BITS),
    }


class TargetChoice(wiring.Component):
    """Find the targets of a tuple in this core, the first one first.

    The tuple stays at the input until ``last``. A tuple without a target here takes one cycle.

    Latency: 0 cycles. Throughput: 1 target per cycle.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.

    Members
    -------
    position : In(range(parameters.cores))
        Number of the core.
    present : In(1)
        ``targets`` are those of a tuple.
    targets : In(data.ArrayLayout(target_layout(parameters), parameters.tuple_keys))
    found : Out(1)
        ``row`` is a row of this core.
    row : Out(range(parameters.rows))
    last : Out(1)
        No target of this core is left after this cycle; it does not depend on ``present``.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        targets = data.ArrayLayout(target_layout(parameters), parameters.tuple_keys)
        super().__init__(
            {
                "position": In(range(max(2, parameters.cores))),
                "present": In(1),
                "targets": In(targets),
                "found": Out(1),
                "row": Out(range(parameters.rows)),
                "last": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        count = self.parameters.tuple_keys
        mine, served = Signal(count), Signal(count)
        m.d.comb += [
            *(
                mine[n].eq(
                    self.targets[n].valid & ~served[n] & (self.targets[n].core == self.position)
                )
                for n in range(count)
            ),
            self.found.eq(self.present & mine.any()),
            # Without its lowest one, nothing is left.
            self.last.eq((mine & (mine - 1)[:count]) == 0),
        ]
        for n in reversed(range(count)):
            with m.If(mine[n]):
                m.d.comb += self.row.eq(self.targets[n].row)
        if count > 1:
            with m.If(self.present):
                m.d.sync += served.eq(Mux(self.last, 0, served | (mine & -mine)))
        return m


class AggregateCore(wiring.Component):
    """Reduce the tuples of the keys that belong to this core, window by window.

    All cores get all words. A core takes the keys of a tuple that are its own, one per cycle. When
    a pane ends, the tuples of the next one go to another bank, while the windows of all keys move
    on (:class:`~hdl.aggregate.window_scan.WindowScan`). A word that ends a pane waits until the
    pane before it has been scanned, and tuples wait behind it. So panes with at least as many
    tuples as the core has keys cost no cycle beside their tuples, as long as results are taken.

    Results come sorted by the boundary of their window (Lemma 2), then by key. Behind those of a
    window comes a star.

    Latency: :attr:`latency` cycles from the word that ends a pane to the value of the first key.
    Throughput: 1 tuple per cycle, or 1 of its keys in this core per cycle if there are several. A
    pane takes ``core_keys + overhead`` cycles at the least, a window as many as it has results.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.

    Attributes
    ----------
    overhead : int
        Cycles of a pane beside those of its keys.

    Members
    -------
    position : In(range(parameters.cores))
        Number of the core.
    words : In(stream.Signature(core_word(parameters)))
    results : Out(stream.Signature(value_result(parameters)))
    reset : In(1)
        Resets all registers of the core.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.accumulator = PaneAccumulator(parameters)
        self.scan = WindowScan(
            parameters,
            settling=1 + self.accumulator.settling + NAMING,
            entry_latency=self.accumulator.latency_of_scan,
        )
        self.latency = self.scan.latency
        self.overhead = self.scan.overhead
        super().__init__(
            {
                "position": In(range(max(2, parameters.cores))),
                "words": In(stream.Signature(core_word(parameters))),
                "results": Out(stream.Signature(value_result(parameters))),
                "reset": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.accumulator = accumulator = self.accumulator
        m.submodules.scan = scan = self.scan
        connect(m, scan.results, flipped(self.results))
        word, bank = self.words.payload, Signal()
        is_tuple = word.kind == CoreKind.TUPLE
        m.submodules.choice = choice = TargetChoice(self.parameters)
        m.d.comb += [
            choice.present.eq(self.words.valid & is_tuple & scan.tuples),
            choice.position.eq(self.position),
            choice.targets.eq(word.body.tuple.targets),
            self.words.ready.eq(Mux(is_tuple, scan.tuples & choice.last, scan.idle)),
            scan.start.eq(self.words.valid & ~is_tuple & scan.idle),
            scan.kind.eq(word.kind),
            scan.job.eq(word.body.job),
            scan.bank.eq(bank),
            scan.position.eq(self.position),
            accumulator.scanned.eq(scan.scanned),
            accumulator.scan_row.eq(scan.scan_row),
            accumulator.clear.eq(scan.clear),
            accumulator.clear_row.eq(scan.clear_row),
            scan.entry.eq(accumulator.entry),
        ]
        m.d.sync += accumulator.add.eq(choice.found)
        with m.If(self.words.valid):
            m.d.sync += [
                accumulator.bank.eq(bank),
                accumulator.row.eq(choice.row),
                accumulator.lifted.eq(word.body.tuple.lifted),
            ]
        with m.If(scan.start & (word.kind == CoreKind.CLOSE)):
            m.d.sync += bank.eq(~bank)
        self.elaborate_faults(m, bank)
        return reset_nearby(m, platform, reset=self.reset)

    def elaborate_faults(self, m, bank):
        """Remember the first key since CLEAR whose reduction needed more bits than it has.

        The star of a pane tells of the tuples up to its end, however many have come since. So an
        overflow first belongs to its bank, and counts once a job of that bank has settled.
        """
        scan, accumulator = self.scan, self.accumulator
        pending = [Signal(name=f"pending_{n}") for n in range(2)]
        rows = [Signal.like(scan.exceeded_row, name=f"pending_row_{n}") for n in range(2)]
        for n in range(2):
            with m.If(accumulator.exceeded & (accumulator.exceeded_bank == n) & ~pending[n]):
                m.d.sync += [pending[n].eq(1), rows[n].eq(accumulator.exceeded_row)]
        faulty, row, job_bank = Signal(), Signal.like(scan.exceeded_row), Signal()
        with m.If(scan.start):
            m.d.sync += job_bank.eq(bank)
        with m.If(scan.settled):
            m.d.sync += Array(pending)[job_bank].eq(0)
        with m.If(~faulty):
            with m.If(scan.settled & Array(pending)[job_bank]):
                m.d.sync += [faulty.eq(1), row.eq(Array(rows)[job_bank])]
            with m.Elif(scan.exceeded):
                m.d.sync += [faulty.eq(1), row.eq(scan.exceeded_row)]
        clearing = Signal()  # a CLEAR is under way, whose mark tells of the faults before it
        with m.If(clearing & scan.tuples):  # its mark has been sent
            m.d.sync += [clearing.eq(0), faulty.eq(0)]
        with m.If(scan.start):
            m.d.sync += clearing.eq(self.words.payload.kind == CoreKind.CLEAR)
        key = Signal.like(scan.faulty_key, reset_less=True)
        m.d.sync += key.eq(Mux(faulty, row * self.parameters.cores + self.position, 0))
        m.d.comb += [scan.faulty.eq(faulty), scan.faulty_key.eq(key)]


class AggregateCounting(Counting):
    """The counters of aggregates: what passes the ports, and what the ingress sends to cores."""

    def place(self, m):
        """Add nothing: cores report nothing that could be summed up."""

    def count(self, m, accelerator):
        """See :meth:`Counting.count`."""
        m.submodules.counters = counters = AggregateCounters()
        i, o, sent = accelerator.i, accelerator.o, accelerator.ingress.o
        leaves = o.valid & o.ready
        m.d.comb += [
            counters.events.eq(
                Cat(
                    *(
                        sent.valid & sent.ready & (sent.payload.kind == kind)
                        for kind in (CoreKind.TUPLE, CoreKind.CLOSE)
                    ),
                    *(leaves & (o.payload.kind == kind) for kind in ValueKind),
                    i.valid & i.ready,
                    i.valid & ~i.ready,
                    leaves,
                    o.valid & ~o.ready,
                )
            ),
            counters.address.eq(accelerator.counter_addr),
            accelerator.counter_data.eq(counters.data),
        ]


class AggregateAccelerator(Top):
    """Windowed aggregates by key: tuples in, the reductions of every window out.

    The input is sorted by time, up to the length of a pane. Every tuple is sent once, to all cores.
    A window leaves when the watermark, of a tuple or of a WATERMARK word, has reached its right
    boundary: the values of its keys, by core and key, and then a star. Windows leave in the order
    of their boundaries.

    Latency: :attr:`latency` cycles from the tuple that ends a pane to the value of the first key of
    its window, when the accelerator is idle. Throughput: 1 tuple per cycle, for panes of at least
    ``core_keys + overhead`` tuples and windows of no more results than that; 2 cycles more per
    pane.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(stream.Signature(aggregate_word(parameters)))
    o : Out(stream.Signature(value_result(parameters)))
    counter_addr : In(ADDRESS_BITS)
        Address of a counter of :data:`hdl.aggregate.accelerator.AGGREGATE_COUNTERS`.
    counter_data : Out(COUNTER_BITS)
        Value of that counter, two cycles later.
    """

    def __init__(self, parameters):
        super().__init__(
            parameters,
            aggregate_ports(parameters),
            ingress=AggregateIngress(parameters),
            cores=[AggregateCore(parameters) for _ in range(parameters.cores)],
            early=["kind"],
            gathering=[ValueTree(parameters)],
            leaving=RegisteredExit(value_result(parameters)),
            counting=AggregateCounting(),
        )


#: Version of the format, which no host that knows only joins reads.
AGGREGATE_FORMAT = 6

#: Parts that the names of nested fields lose. Names that a user has chosen keep a part before them.
SILENT = re.compile(r"\bbody\.(?:value\.)?")


def describe_aggregate(parameters, verilog, *, verilog_file, others=(), clock=None):
    """Return the manifest of an aggregate accelerator as JSON-compatible values.

    A field of a tuple has the name ``tuple.NAME`` in the input word, a value of a window has the
    name ``window.NAME`` in the result word, where NAME is that of the operator's field or
    reduction.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.
    verilog, verilog_file, others, clock
        As of :func:`hdl.manifest.describe`.
    """
    rules = parameters.operator.reductions
    manifest = {
        "format": AGGREGATE_FORMAT,
        "kit": kit_version(),
        "hash": "",
        "parameters": parameters.to_dict(),
        "input_word": word(aggregate_word(parameters), silent=SILENT),
        "result_word": word(value_result(parameters), silent=SILENT),
        "input_kinds": members(AggregateKind),
        "result_kinds": members(ValueKind),
        "operations": members(AggregateControl),
        "aggregate": {
            "cores": parameters.cores,
            "keys": parameters.keys,
            "panes": parameters.panes,
            "slides_by": {rule.name: "delta" if is_additive(rule) else "panes" for rule in rules},
        },
        **bundle_parts(AGGREGATE_COUNTERS, verilog_file=verilog_file, others=list(others)),
    }
    if clock is not None:
        manifest["clock"] = clock
    manifest["hash"] = fingerprint(manifest, verilog)
    return manifest

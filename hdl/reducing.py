# SPDX-License-Identifier: Apache-2.0
"""What a join aggregate has beside a join: matches are reduced where they are found, and merged."""

from dataclasses import dataclass, field

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.engine import RESULTS
from hdl.local_reset import reset_nearby
from hdl.memory.columns import KeyColumn
from hdl.parts import option, require
from hdl.scan.engine import USUAL_LANES, AnyScan, Lanes, ScanEngine
from hdl.scan.layouts import lane_matches_layout
from hdl.scan.serializers import MatchQueue
from hdl.streams.queues import PointerQueue
from hdl.streams.registers import SteadyQueue, StreamRegister, delayed
from hdl.trees.merger import OrderedMergerTree
from hdl.words.results import node_result
from hdl.words.values import (
    MatchKind,
    combination,
    combined_values,
    neutral_values,
    stored_value_shape,
    values_layout,
)

from .words.prepared import ending_layout, pointer_layout

__all__ = [
    "GroupValues",
    "MatchReducer",
    "ReducingEngine",
    "ReducingMerger",
    "ReducingQueue",
    "ReducingScan",
    "ReducingTree",
    "group_values_layout",
]


def group_values_layout(parameters):
    """Return the layout of the reductions of all probes of a group, and of what follows them.

    The first ``ending.count`` of ``values`` have a meaning.
    """
    values = data.ArrayLayout(values_layout(parameters, 0), parameters.engine.probes)
    return data.StructLayout({"values": values, "ending": ending_layout(parameters)})


class GroupValues(wiring.Component):
    """Send a VALUE for each probe of a group, in order, then the star and the mark of the group.

    The group is held in registers that are shifted by one probe with each VALUE, so all values
    leave from the same place. The next group is taken with the last word of the one before.

    Latency: 2 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; of a join aggregate.

    Members
    -------
    i : In(stream.Signature(group_values_layout(parameters)))
    o : Out(stream.Signature(node_result(parameters, 0)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 2
        super().__init__(
            {
                "i": In(stream.Signature(group_values_layout(parameters))),
                "o": Out(stream.Signature(node_result(parameters, 0))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.output = output = StreamRegister(self.o.payload.shape(), early=["kind"])
        connect(m, output.o, flipped(self.o))
        group = Signal(group_values_layout(self.parameters), reset_less=True)
        count = self.parameters.engine.probes
        left = Signal(range(count + 1))  # values to send
        star, mark = Signal(), Signal()  # yet to be sent
        number = Signal(self.parameters.engine.probe_bits)  # of the probe, since the last star
        word = output.i
        is_value = left != 0
        m.d.comb += word.valid.eq(is_value | star | mark)
        last_word = Mux(is_value, (left == 1) & ~star & ~mark, ~(star & mark))
        m.d.comb += self.i.ready.eq(~word.valid | (last_word & word.ready))
        self.elaborate_word(m, word.payload, group, number, is_value, star)

        with m.If(word.ready & word.valid):
            with m.If(is_value):
                m.d.sync += [left.eq(left - 1), number.eq(number + 1)]
                m.d.sync += [group.values[n].eq(group.values[n + 1]) for n in range(count - 1)]
            with m.Elif(star):
                m.d.sync += [star.eq(0), number.eq(0)]
            with m.Else():
                m.d.sync += mark.eq(0)
        with m.If(self.i.valid & self.i.ready):
            ending = self.i.payload.ending
            m.d.sync += [
                group.eq(self.i.payload),
                left.eq(ending.count),
                star.eq(ending.star),
                mark.eq(ending.mark),
            ]
        return m

    def elaborate_word(self, m, word, group, number, is_value, star):
        """Choose the next word of the group."""
        values = group.values[0]
        with m.If(is_value):
            m.d.comb += [
                word.kind.eq(MatchKind.VALUE),
                word.body.value.probe.eq(number),
                *(word.body.value[name].eq(values[name]) for name, _ in values.shape()),
            ]
        with m.Else():
            m.d.comb += [
                word.kind.eq(Mux(star, MatchKind.STAR, MatchKind.MARK)),
                word.body.punctuation.eq(group.ending.punctuation),
            ]


class MatchReducer(wiring.Component):
    """Read the value of every lane that has matches, and reduce it for all probes at once.

    Each probe of the group has accumulators. The value of a lane is read once, and goes into the
    accumulators of all probes that match it, in the same cycle. So a lane takes one cycle, however
    many probes match it, and no probe waits for what it has added a cycle before.

    With the last lane of the pass, the accumulators go to :class:`GroupValues`, which sends a VALUE
    for each probe while the next group is reduced.

    Latency: :attr:`latency` cycles from a last lane to the first VALUE of its group. Throughput: 1
    lane per cycle; a group takes as many cycles as it has words.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; of a join aggregate.

    Members
    -------
    i : In(stream.Signature(lane_matches_layout(parameters, probes)))
    o : Out(stream.Signature(node_result(parameters, 0)))
    place : Out(pointer_layout(parameters))
        Where the value of the lane at ``i`` is.
    value : In
        That value, after the latency of a :class:`hdl.memory.columns.KeyColumn`.
    finished : Out(1)
        In this cycle, the last value of a pass is read.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self._lane = lane_matches_layout(parameters, parameters.engine.probes)
        read = data.StructLayout({"lane": self._lane, "value": stored_value_shape(parameters)})
        self._queue = SteadyQueue(read, stages=KeyColumn.LATENCY)
        self._values = GroupValues(parameters)
        self.latency = KeyColumn.LATENCY + self._queue.latency + self._values.latency
        super().__init__(
            {
                "i": In(stream.Signature(self._lane)),
                "o": Out(stream.Signature(node_result(parameters, 0))),
                "place": Out(pointer_layout(parameters)),
                "value": In(stored_value_shape(parameters)),
                "finished": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self._queue
        m.submodules.values = values = self._values
        connect(m, values.o, flipped(self.o))
        lane = self.i.payload
        taken = self.i.valid & queue.room
        m.d.comb += [
            self.i.ready.eq(queue.room),
            self.place.lane.eq(lane.lane),
            self.place.row.eq(lane.row),
            self.finished.eq(taken & lane.last),
        ]
        beside = {"lane": lane, "taken": taken}
        for cycle in range(KeyColumn.LATENCY):
            beside = delayed(m, beside, f"read_{cycle}", flags=("taken",))
        m.d.comb += [
            queue.i.valid.eq(beside["taken"]),
            Value.cast(queue.i.payload.lane).eq(beside["lane"]),
            queue.i.payload.value.eq(self.value),
        ]
        self.elaborate_reduction(m, queue.o, values.i)
        return m

    def elaborate_reduction(self, m, lanes, group):
        """Reduce the lanes of a group; pass the outcome on with the last one."""
        lane, value = lanes.payload.lane, lanes.payload.value
        takes = lanes.valid & (~lane.last | group.ready)
        m.d.comb += [
            lanes.ready.eq(~lane.last | group.ready),
            group.valid.eq(lanes.valid & lane.last),
            group.payload.ending.eq(lane.ending),
        ]
        layout = values_layout(self.parameters, 0)
        neutral = neutral_values(self.parameters)
        one = {"count": Const(1, 1), "total": value, "least": value, "most": value}
        for n in range(self.parameters.engine.probes):
            kept = Signal(layout, init=neutral, name=f"kept_{n}")
            reduced = group.payload.values[n]
            with_lane = combination(kept, one)
            for name, _ in layout:
                chosen = Mux(lane.matches[n], with_lane[name], kept[name])
                m.d.comb += reduced[name].eq(chosen)
                with m.If(takes):
                    m.d.sync += kept[name].eq(Mux(lane.last, neutral[name], reduced[name]))


#: Widest sum, which a host reads as a number of its processor.
MOST_TOTAL_BITS = 64


class ReducingEngine(ScanEngine):
    """Compare every key of the window with every probe, and reduce the values of its matches.

    A column of its own holds the value of each key, written in the cycle in which the key is. A
    pass is pending until the last of its values is read, and the ring keeps its rows for so long:
    a match waits in a queue after its row was scanned, and the next key in its place would bring
    another value.

    Latency: :attr:`latency` cycles, plus the rows of the span, from the probe that ends its group
    to the first value of the group, when the engine is idle. Throughput: that of a
    :class:`~hdl.scan.engine.ScanEngine`, if a group has no more lanes with matches, and no more
    words, than its pass has cycles.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; of a join aggregate.
    probe_side : int
        Side that probes, 0 for R; matters to a custom predicate only.

    Members
    -------
    See :func:`hdl.engine.engine_members`.
    """

    #: Passes that may be pending, a power of two: about as many as rows can wait in the queue.
    PASSES = 16

    def queue(self, **shape):
        """Return the queue between the scanner and the results."""
        return ReducingQueue(self.parameters, **shape)

    def elaborate_passes(self, m, collector):
        """Start the scan of a group while passes may still become pending; note its first row."""
        row = pointer_layout(self.parameters)["row"].shape
        # One pass may begin before the fall of `room` is seen.
        m.submodules.passes = passes = PointerQueue(row, depth=self.PASSES, reserve=1)
        waiting, group = collector.group, self._scanner.group
        m.d.comb += [
            group.payload.eq(waiting.payload),
            group.valid.eq(waiting.valid & passes.room),
            waiting.ready.eq(group.ready & passes.room),
            passes.add.eq(group.valid & group.ready),
            passes.last.eq(waiting.payload.first),
            passes.take.eq(self._queue.finished),
        ]
        return passes.filled, passes.first

    def elaborate_storing(self, m, ring):
        """Write the value of a key into its column in the cycle in which the key is written."""
        key, place, store = super().elaborate_storing(m, ring)
        lanes, rows = self.parameters.engine.lanes, self.parameters.ring_rows
        value = Signal.like(self._queue.value, reset_less=True)
        m.d.sync += value.eq(self.prepared.value)
        m.submodules.column = column = KeyColumn(width=len(value), depth=rows << ceil_log2(lanes))
        m.d.comb += [
            column.write.eq(store),
            column.place.eq(self.address_of(place)),
            column.row.eq(value),
            column.address.eq(self.address_of(self._queue.place)),
            self._queue.value.eq(column.data),
        ]
        return key, place, store

    def address_of(self, place):
        """Return the address of a place in the column: its lane and its row without wrap bit."""
        return Cat(place.lane, place.row[:-1])


class ReducingMerger(wiring.Component):
    """Take one word from every port at once, and emit their combination.

    All cores close the same groups, so all ports show the same sequence of values, stars and marks.
    Counts and sums are added, the least and the greatest value are chosen, and the faults of a star
    or mark are those of any port. So there is no order of ports to keep.

    A word waits until every port shows one. The merger takes no word of a port before that, so
    ports that are ahead are stopped.

    Latency: 2 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; of a join aggregate.
    level : int
        Number of mergers between this one and the regions; zero beside the regions.
    ports : int
        Number of inputs, one to ``parameters.fan_in``.

    Members
    -------
    i : In(stream.Signature(node_result(parameters, level))).array(ports)
    o : Out(stream.Signature(node_result(parameters, level + 1)))
    reset : In(1)
        Resets all registers of the merger.
    """

    def __init__(self, parameters, *, level, ports):
        if not 1 <= ports <= parameters.fan_in:
            raise ValueError(f"A merger has 1 to {parameters.fan_in} ports, not {ports!r}")
        self.parameters = parameters
        self.level = level
        self.ports = ports
        self.latency = 2
        super().__init__(
            {
                "i": In(stream.Signature(node_result(parameters, level))).array(ports),
                "o": Out(stream.Signature(node_result(parameters, level + 1))),
                "reset": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.output = output = StreamRegister(self.o.payload.shape(), early=["kind"])
        connect(m, output.o, flipped(self.o))
        ports = []
        for n, i in enumerate(self.i):
            m.submodules[f"port_{n}"] = port = StreamRegister(i.payload.shape(), early=["kind"])
            connect(m, flipped(i), port.i)
            ports.append(port.o)
        every = Cat(port.valid for port in ports).all()
        m.d.comb += [
            output.i.valid.eq(every),
            *(port.ready.eq(every & output.i.ready) for port in ports),
        ]
        self.elaborate_word(m, output.i.payload, [port.payload for port in ports])
        return reset_nearby(m, platform, reset=self.reset)

    def elaborate_word(self, m, word, shown):
        """Combine the words of all ports, which are of one kind."""
        m.d.comb += word.kind.eq(shown[0].kind)
        with m.If(shown[0].kind == MatchKind.VALUE):
            layout = values_layout(self.parameters, self.level + 1)
            values = combined_values([one.body.value for one in shown])
            m.d.comb += [
                word.body.value.probe.eq(shown[0].body.value.probe),
                *(word.body.value[name].eq(values[name]) for name, _ in layout),
            ]
        with m.Else():
            m.d.comb += [
                word.body.punctuation.eq(shown[0].body.punctuation),
                word.body.punctuation.overflow.eq(
                    Cat(one.body.punctuation.overflow for one in shown).any()
                ),
            ]


class ReducingTree(OrderedMergerTree):
    """Gather the values of all cores.

    Latency: 2 cycles for each of the ``len(tree_levels(cores, fan_in))`` levels; none with a single
    core. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator: ``cores`` inputs, arity ``fan_in``.

    Members
    -------
    i : In(stream.Signature(node_result(parameters, 0))).array(cores)
    o : Out(stream.Signature(node_result(parameters, levels)))
    resets : In(1).array(cores)
        One reset per core, from a :class:`hdl.local_reset.ResetTree`.
    """

    def shape(self, level):
        """Return the layout of a result after ``level`` mergers."""
        return node_result(self.parameters, level)

    def merger(self, *, level, ports):
        """Return a merger of results."""
        return ReducingMerger(self.parameters, level=level, ports=ports)


class ReducingQueue(MatchQueue):
    """Queue the rows that have matches, and reduce their matches by probe.

    It is a :class:`hdl.scan.serializers.MatchQueue` with a :class:`MatchReducer` in the place of
    the pair serializer.

    Latency: :attr:`latency` cycles from ``matches`` to the first word: 6, and 3 more with several
    lanes. Throughput: 1 lane with matches per cycle.

    Parameters
    ----------
    parameters, in_flight, depth, bits
        Those of a ``MatchQueue``.

    Members
    -------
    place, value, finished
        Those of a :class:`MatchReducer`.

    All others are those of a ``MatchQueue``.
    """

    def serializer(self):
        """Return what turns lanes into results."""
        return MatchReducer(self.parameters)

    def members(self):
        """Return the members beside those that every queue has."""
        return {
            "place": Out(pointer_layout(self.parameters)),
            "value": In(stored_value_shape(self.parameters)),
            "finished": Out(1),
        }

    def elaborate(self, platform):
        m = super().elaborate(platform)
        reducer = self._pairs
        m.d.comb += [
            self.place.eq(reducer.place),
            reducer.value.eq(self.value),
            self.finished.eq(reducer.finished),
        ]
        return m


#: What no join aggregate can be, and why.
NO_GATES = "a sum without those of a core would be wrong, not incomplete"


@dataclass(frozen=True, kw_only=True)
class ReducingScan(AnyScan):
    """A scan that reduces the values of the matches of each tuple of R: a join aggregate.

    Tuples of R only probe, and in place of its pairs, each leaves count, sum, least and greatest of
    the values that it matches (:mod:`hdl.accelerator`).

    Parameters
    ----------
    predicate : Band, Equality or Own
    read : Lanes
    value_bits : int
        Width of the signed value that is stored beside each key of S.
    """

    kind = "reducing-scan"
    title = "A join aggregate"
    reasons = AnyScan.reasons | {
        "digest_bits": "values are reduced where whole keys are compared",
        "result_streams": "only tuples of R have results",
        "failure_cycles": NO_GATES,
        "parity": NO_GATES,
        "clock_requests": "a core without a clock would hold up all values",
        "rounds": "a tuple has one result, not one per round",
    }
    module = ReducingEngine
    kinds, emits = MatchKind, "values of tuples of R emitted"

    read: Lanes = USUAL_LANES
    value_bits: option(
        "width of the value beside a key of S; each tuple of R leaves as one word, what its "
        "matches are reduced to. 0, the default, sends pairs",
        range(1, MOST_TOTAL_BITS + 1),
        group=RESULTS,
    ) = field()  # no default, for other engines have an attribute of this name

    def beside(self, parameters):
        return {"value": stored_value_shape(parameters)}

    def check(self, parameters):
        names = [key.name for key in parameters.keys]
        require("value" not in names, "Key field name 'value' is taken by the value of a tuple")
        most = MOST_TOTAL_BITS - ceil_log2(parameters.capacity)
        require(
            self.value_bits <= most,
            f"Parameter 'value_bits' must be at most {most}, so that the sum of the"
            f" {parameters.capacity} values of a window has {MOST_TOTAL_BITS} bits, not"
            f" {self.value_bits}",
        )
        super().check(parameters)

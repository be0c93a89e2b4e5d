# SPDX-License-Identifier: Apache-2.0
"""Reduction of the matches of each left tuple."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.memory.columns import KeyColumn
from hdl.scan.layouts import lane_matches_layout
from hdl.streams.registers import SteadyQueue, StreamRegister, delayed
from hdl.words.cells import (
    MatchKind,
    combination,
    neutral_values,
    stored_value_shape,
    values_layout,
)
from hdl.words.results import node_result
from hdl.words.spans import ending_layout, pointer_layout

__all__ = ["GroupValues", "MatchReducer", "group_values_layout"]


def group_values_layout(parameters):
    """Return the layout of the reductions of all probes of a group, and of what follows them.

    The first ``ending.count`` of ``values`` have a meaning.
    """
    values = data.ArrayLayout(values_layout(parameters, 0), parameters.probes)
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
        count = self.parameters.probes
        left = Signal(range(count + 1))  # values to send
        star, mark = Signal(), Signal()  # yet to be sent
        number = Signal(self.parameters.probe_bits)  # of the probe, since the last star
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
        self._lane = lane_matches_layout(parameters, parameters.probes)
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
        for n in range(self.parameters.probes):
            kept = Signal(layout, init=neutral, name=f"kept_{n}")
            reduced = group.payload.values[n]
            with_lane = combination(kept, one)
            for name, _ in layout:
                chosen = Mux(lane.matches[n], with_lane[name], kept[name])
                m.d.comb += reduced[name].eq(chosen)
                with m.If(takes):
                    m.d.sync += kept[name].eq(Mux(lane.last, neutral[name], reduced[name]))

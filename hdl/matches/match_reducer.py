# SPDX-License-Identifier: Apache-2.0
"""Match reducer: turns the matches of a group into one VALUE per probe."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.memory.key_column import KeyColumn
from hdl.scan.layouts import lane_matches_layout
from hdl.streams.delay import delayed
from hdl.streams.steady import SteadyQueue
from hdl.words.match_values import combination, neutral_values, stored_value_shape, values_layout
from hdl.words.results import node_result
from hdl.words.spans import pointer_layout

from .group_values import GroupValues

__all__ = ["MatchReducer"]


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
        That value, after the latency of a :class:`hdl.memory.key_column.KeyColumn`.
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
